// policy:malloc: every block from the C library, for valgrind and as a yardstick.
#include "taper/allocator/malloc_allocator.h"

#include <cstdlib>

#include "taper/allocator/heap.h"
#include "taper/allocator/options.h"
#include "taper/allocator/out_of_memory.h"

namespace taper {
namespace {

constexpr std::size_t kAlignment = 64;  // what the widest vectors like

class MallocAllocator final : public Allocator {
 public:
  MallocAllocator(const AllocatorOptions& options, std::unique_ptr<MemoryDevice> device)
      : options_(options), device_(std::move(device)) {}

  Block allocate(std::size_t bytes, StreamId) override {
    if (bytes == 0) return {};
    const bool possible = bytes <= device_->capacity();
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* data = possible ? std::aligned_alloc(kAlignment, rounded) : nullptr;
    if (data == nullptr) {
      {
        const std::lock_guard lock(lock_);
        ooms_.add(1);
      }
      fail_out_of_memory(*this, bytes, rounded);
    }
    const std::lock_guard lock(lock_);
    allocated_.set(allocated_.get() + rounded);
    requested_.set(requested_.get() + bytes);
    allocations_.add(1);
    return {data, rounded, 0};
  }

  void free(const Block& block, std::size_t requested, StreamId) noexcept override {
    if (block.data == nullptr) return;
    std::free(block.data);
    const std::lock_guard lock(lock_);
    allocated_.set(allocated_.get() - block.bytes);
    requested_.set(requested_.get() - requested);
    frees_.add(1);
  }

  // The host's streams run in order, and so does free.
  void record_stream(const Block&, StreamId) override {}

  void empty_cache() override {}  // what is cached is the C library's

  // There is nothing to keep apart.
  PoolId make_pool(bool) override { return 0; }

  void begin_pool(PoolId, StreamId) override {}

  void end_pool(StreamId) override {}

  void release_pool(PoolId) override {}

  void note_step() override {}

  AllocatorStats stats() const override {
    AllocatorStats s;
    s.allocated = s.reserved = allocated_.get();
    s.allocated_peak = s.reserved_peak = allocated_.peak();
    s.requested = requested_.get();
    s.requested_peak = requested_.peak();
    s.allocations = allocations_.get();
    s.frees = frees_.get();
    s.blocks = s.allocations - s.frees;
    s.ooms = ooms_.get();
    return s;
  }

  AllocatorStats stream_stats(StreamId) const override { return stats(); }

  AllocatorStats pool_stats(PoolId) const override { return stats(); }

  void reset_peaks() override {
    const std::lock_guard lock(lock_);
    allocated_.reset_peak();
    requested_.reset_peak();
  }

  std::vector<SegmentInfo> memory_map() const override { return {}; }

  void write_map(PageMapWriter&) const override {}

  Trace recent_events() const override { return {}; }

  const AllocatorOptions& options() const override { return options_; }

  const MemoryDevice& device() const override { return *device_; }

  void lock_all() const override { lock_.lock(); }

  void unlock_all() const override { lock_.unlock(); }

 private:
  const AllocatorOptions options_;
  const std::unique_ptr<MemoryDevice> device_;
  mutable SpinLock lock_;
  Gauge allocated_, requested_;
  Counter allocations_, frees_, ooms_;
};

}  // namespace

std::unique_ptr<Allocator> make_malloc_allocator(const AllocatorOptions& options,
                                                 std::unique_ptr<MemoryDevice> device) {
  return std::make_unique<MallocAllocator>(options, std::move(device));
}

}  // namespace taper
