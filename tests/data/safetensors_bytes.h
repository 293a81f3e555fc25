// safetensors files put together by hand, byte for byte.
#pragma once
#include <cstdint>
#include <string>

namespace taper::testing {

// u64, little-endian.
inline std::string length_bytes(std::uint64_t n) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(n >> (8 * i) & 0xFF);
  return out;
}

// A file with this header and `data` bytes 0, 1, 2, ... of elements.
inline std::string file_of(const std::string& header, std::size_t data = 0) {
  std::string out = length_bytes(header.size()) + header;
  for (std::size_t i = 0; i < data; ++i) out += static_cast<char>(i);
  return out;
}

// One member of a header; `name` as it stands between the quotes.
inline std::string member(const std::string& name,
                          const std::string& dtype,
                          const std::string& shape,
                          const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

inline std::string object(const std::string& members) {
  return "{" + members + "}";
}

}  // namespace taper::testing
