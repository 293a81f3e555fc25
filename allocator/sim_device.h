// A device that exists in numbers only: any capacity, streams with virtual clocks, faults to order.
#pragma once
#include <atomic>
#include <mutex>
#include <vector>

#include "taper/allocator/memory_device.h"

namespace taper {

// Its addresses must not be touched. Not for concurrent use of one stream by two threads.
class SimDevice : public MemoryDevice {
 public:
  struct Settings {
    std::size_t capacity = std::size_t{80} << 30;
    std::uint64_t timing_seed = 0;  // 0: work takes what it is said to; else up to 4 times longer
                                    // or shorter, by chance
    std::uint64_t fail_at = 0;      // this call of create or map (from 1) is refused; 0: none
    std::string name = "sim";
  };

  SimDevice() : SimDevice(Settings{}) {}

  explicit SimDevice(Settings settings);

  std::size_t reserve(std::size_t most, std::size_t least) override;
  char* base() const override;
  bool create(std::size_t count, PhysicalPage* pages) override;
  void destroy(ArrayRef<PhysicalPage> pages) override;
  bool map(std::size_t first, ArrayRef<PhysicalPage> pages) override;
  void unmap(std::size_t first, ArrayRef<PhysicalPage> pages) override;
  StreamMark mark(StreamId stream) override;
  void wait(StreamId stream, StreamId other, StreamMark mark) override;
  bool reached(StreamId stream, StreamMark mark) override;
  void synchronize(StreamId stream, StreamMark mark) override;
  std::size_t capacity() const override;
  std::size_t available() const override;
  std::string name() const override;

  // The host's clock, and work that a stream is given. Nanoseconds.
  void advance_host(std::uint64_t to);
  void work(StreamId stream, std::uint64_t nanoseconds);
  void synchronize_all();
  std::uint64_t host_time() const;
  std::uint64_t stream_time(StreamId stream) const;  // when it will have done all it was given

  std::uint64_t calls() const;  // of create and map so far

  // Which page of the address space has which physical page; checks that no page is mapped twice.
  std::uint64_t mapped_pages() const;
  std::uint64_t created_pages() const;

 private:
  // Counts a call; true when it is the one to refuse.
  bool refuse();
  std::uint64_t& clock(StreamId stream);
  PhysicalPage& at(std::size_t page);

  Settings settings_;
  mutable std::mutex mutex_;
  std::uint64_t calls_ = 0, host_ = 0, random_;
  std::vector<std::uint64_t> clocks_;  // of the streams: when each will be idle
  // Page of the address space -> physical page, 0: none. In chunks: a policy may leave wide gaps.
  std::vector<std::vector<PhysicalPage>> at_;
  std::vector<std::uint8_t> state_{1};  // of physical pages, from 1: free, created, mapped
  std::vector<PhysicalPage> spare_;     // numbers to use again
  std::atomic<std::uint64_t> created_{0};
  std::uint64_t mapped_ = 0;
  std::size_t reserved_ = 0;
};

}  // namespace taper
