// The layout of the compact binary trace file, for its writer and its reader.
//
//   "TAPRTRCE", version (4 bytes, the lowest first), options (text), number of devices
//   for each device:
//     device (text), source (text)
//     number of texts, each: text
//     number of sites, each: op, scope, number of frames, each: file, function, line
//     number of streams, each: what it is called
//     number of offsets, each: less the one before, signed
//     allocations
//     number of events, each:
//       a byte: the action in the low half; which of the last four numbers follow in the high half
//       time, less that of the event before, signed
//       bytes
//       block, less the number of allocations so far, signed
//       site; entry, less the last one written, signed; stream; pool: each 0 where it is left out
//
// Every number is unsigned LEB128: seven bits a byte, the lowest first, the top bit says that more
// follow; at most ten bytes. A signed one is written as 2n, or -2n - 1 where n is negative. A text
// is its length and its bytes. op, scope, file and function are indices of texts. Differences wrap
// at 2^64.
#pragma once
#include <cstdint>

namespace taper::binary {

inline constexpr char kMagic[] = "TAPRTRCE";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint8_t kHasSite = 0x10, kHasEntry = 0x20, kHasStream = 0x40, kHasPool = 0x80;

inline std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (0 - (difference >> 63));
}

inline std::uint64_t unzigzag(std::uint64_t n) {
  return n >> 1 ^ (0 - (n & 1));
}

}  // namespace taper::binary
