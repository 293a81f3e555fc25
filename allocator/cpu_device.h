// The host as a memory device: address space by mmap, pages by touching them.
#pragma once
#include <atomic>

#include "taper/allocator/memory_device.h"

namespace taper {

// Pages have no identity here: one that is unmapped is given to the system, and one that is mapped
// comes zeroed. Streams of the host itself run in order and need no marks.
class CpuDevice : public MemoryDevice {
 public:
  explicit CpuDevice(bool huge_pages);
  ~CpuDevice() override;

  std::size_t reserve(std::size_t most, std::size_t least) override;
  char* base() const override;
  bool create(std::size_t count, PhysicalPage* pages) override;
  void destroy(ArrayRef<PhysicalPage>) override {}
  bool map(std::size_t first, ArrayRef<PhysicalPage> pages) override;
  void unmap(std::size_t first, ArrayRef<PhysicalPage> pages) override;

  StreamMark mark(StreamId) override { return 0; }

  void wait(StreamId, StreamId, StreamMark) override {}

  bool reached(StreamId, StreamMark) override { return true; }

  void synchronize(StreamId, StreamMark) override {}

  void poison(const void* data, std::size_t bytes) override;
  void unpoison(const void* data, std::size_t bytes) override;

  std::size_t capacity() const override;    // of the machine, or of the cgroup, if that is less
  std::size_t available() const override;   // looked up anew after 10 ms at the earliest
  bool wants_memory_back() const override;  // less than 1/32 of the capacity is available
  std::string name() const override { return "cpu"; }

 private:
  const bool huge_pages_;
  char* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  char* base_ = nullptr;
  std::size_t capacity_ = 0;
  mutable std::atomic<std::uint64_t> looked_at_{0};  // ticks of the steady clock
  mutable std::atomic<std::size_t> available_{0};
};

}  // namespace taper
