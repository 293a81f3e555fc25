// What an allocator asks of a device: address space, pages, and the order of its streams.
#pragma once
#include <string>

#include "taper/allocator/block.h"
#include "taper/core/base/array_ref.h"

namespace taper {

// A physical page as the device names it; a page of the address space is counted from the base.
using PhysicalPage = std::uint64_t;

// A point in a stream's order: what was given to the stream before it.
using StreamMark = std::uint64_t;

// Implemented by CUDA's virtual memory calls, by mmap, and by a simulation. The allocator calls the
// first five groups under its arena's lock, so an implementation needs none for them.
class MemoryDevice {
 public:
  virtual ~MemoryDevice() = default;

  // Address space of at least `least` and at most `most` bytes (multiples of a page), halving until
  // it fits. Called once. Returns what it got; throws taper::Error if even `least` is refused.
  virtual std::size_t reserve(std::size_t most, std::size_t least) = 0;
  virtual char* base() const = 0;  // of the reserved space; aligned to a page

  // Makes `count` physical pages. All or none; false: the device is full.
  virtual bool create(std::size_t count, PhysicalPage* pages) = 0;
  virtual void destroy(ArrayRef<PhysicalPage> pages) = 0;

  // Puts pages at the addresses from page `first` on. All or none; false: the device refused.
  virtual bool map(std::size_t first, ArrayRef<PhysicalPage> pages) = 0;
  // Takes them away; they can be mapped elsewhere. Work that uses them must have finished.
  virtual void unmap(std::size_t first, ArrayRef<PhysicalPage> pages) = 0;

  // Thread-safe. A mark stands for all work given to the stream until now.
  virtual StreamMark mark(StreamId stream) = 0;
  virtual void wait(StreamId stream, StreamId other, StreamMark mark) = 0;  // the stream, in order
  virtual bool reached(StreamId stream, StreamMark mark) = 0;               // asks, does not wait
  virtual void synchronize(StreamId stream, StreamMark mark) = 0;           // the host waits

  // Closes bytes to the sanitizer, and opens them; thread-safe. For devices whose memory the host
  // sees.
  virtual void poison(const void*, std::size_t) {}

  virtual void unpoison(const void*, std::size_t) {}

  virtual std::size_t capacity() const = 0;   // bytes of memory that the device has for us
  virtual std::size_t available() const = 0;  // bytes that it could still give; a guess on a host
  // Others need memory: free pages should go back rather than stay cached.
  virtual bool wants_memory_back() const { return false; }

  virtual std::string name() const = 0;  // "cuda:0", for messages
};

}  // namespace taper
