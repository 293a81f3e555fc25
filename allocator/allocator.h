// Where tensor memory comes from: blocks of bytes on one device, ordered by streams.
#pragma once
#include <cstddef>
#include <cstdint>

namespace taper {

// A queue of work on a device; 0 is the default one. Opaque here.
using StreamId = std::uint32_t;

// A run of memory that the allocator gave out. `handle` is the allocator's own word.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;  // usable; the request rounded up to 512
  std::uint64_t handle = 0;
};

// Bytes, unless said otherwise; O(1) to read.
struct AllocatorStats {
  std::uint64_t allocated = 0;  // in blocks that are out
  std::uint64_t allocated_peak = 0;
  std::uint64_t requested = 0;  // what callers asked for, before rounding
  std::uint64_t reserved = 0;   // taken from the device
  std::uint64_t reserved_peak = 0;
  std::uint64_t allocations = 0;   // calls of allocate
  std::uint64_t device_calls = 0;  // maps and unmaps
};

inline constexpr std::size_t kBlockBytes = 512;  // every block is a multiple, and so aligned

// One per device. Thread-safe. Memory freed on a stream is reused on it in order, without waiting.
class Allocator {
 public:
  virtual ~Allocator() = default;
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // At least `bytes` (0 gives a block without memory). Throws taper::Error when the device is full.
  virtual Block allocate(std::size_t bytes, StreamId stream) = 0;
  // `requested` is what allocate was asked for. Never throws.
  virtual void free(const Block& block, std::size_t requested, StreamId stream) noexcept = 0;
  // The block is used on `stream` too; it is reused only after that work.
  virtual void record_stream(const Block& block, StreamId stream) = 0;
  // Gives cached memory that nobody uses back to the device.
  virtual void empty_cache() = 0;
  virtual AllocatorStats stats() const = 0;
};

// The allocator of the host's memory; lives as long as the process.
Allocator& cpu_allocator();

}  // namespace taper
