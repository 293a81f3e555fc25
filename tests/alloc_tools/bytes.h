// Pieces of files, for those that are put together by hand.
#pragma once
#include <cstdint>
#include <string>

#include "taper/allocator/snapshot_binary.h"

namespace taper::testing {

inline const std::uint8_t* bytes_of(const std::string& s) {
  return reinterpret_cast<const std::uint8_t*>(s.data());
}

inline std::string number(std::uint64_t n) {
  std::string out;
  for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
  return out + static_cast<char>(n);
}

inline std::string binary_file(const std::string& rest) {
  return std::string(binary::kMagic) + std::string("\1\0\0\0", 4) + rest;
}

// A device up to its texts.
inline const std::string kDevice = number(0) + number(1) + number(0) + number(0);

inline std::string pickle(const std::string& opcodes) {
  return "\x80\x04" + opcodes;
}

inline std::string key(const std::string& s) {
  return std::string("\x8c") + static_cast<char>(s.size()) + s;
}

}  // namespace taper::testing
