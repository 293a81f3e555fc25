// What an allocator gives out, and the small numbers that name streams and pools.
#pragma once
#include <cstddef>
#include <cstdint>

namespace taper {

// A queue of work on a device; 0 is the default one. Opaque here.
using StreamId = std::uint32_t;

// Memory that is kept apart, for a captured graph; 0 is the common pool.
using PoolId = std::uint32_t;

inline constexpr std::size_t kBlockBytes = 512;  // every block is a multiple, and so aligned
inline constexpr std::size_t kPageBytes = std::size_t{2} << 20;  // what a device maps at a time

// A run of memory that the allocator gave out. `handle` is the allocator's own word.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;  // usable; the request rounded up to 512
  std::uint64_t handle = 0;
};

}  // namespace taper
