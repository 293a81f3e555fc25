// Taper's own policy: one address space per device, pages that move to where they are needed.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "taper/allocator/heap.h"
#include "taper/allocator/options.h"
#include "taper/allocator/trace.h"

namespace taper {

// Every stream of every pool has a heap: free blocks, a lock, counters. A request that no free
// block of its heap fits takes pages: at the place in the address space that needs the fewest; new
// ones while what is reserved stays near the most that was ever allocated (free_growth), else free
// pages of other places, which are unmapped there. So memory is refused only when the pages that
// live blocks touch and those that the request needs exceed the capacity, or when no hole in the
// address space is as large as the request.
//
// Locks are taken in this order: step_mutex_, arena_, heaps; two heaps only by who holds arena_.
class ArenaAllocator final : public Allocator {
 public:
  ArenaAllocator(const AllocatorOptions& options, std::unique_ptr<MemoryDevice> device);
  ~ArenaAllocator() override;

  Block allocate(std::size_t bytes, StreamId stream) override;
  void free(const Block& block, std::size_t requested, StreamId stream) noexcept override;
  void record_stream(const Block& block, StreamId stream) override;
  void empty_cache() override;
  PoolId make_pool(bool keep_addresses) override;
  void begin_pool(PoolId pool, StreamId stream) override;
  void end_pool(StreamId stream) override;
  void release_pool(PoolId pool) override;
  void note_step() override;
  AllocatorStats stats() const override;
  AllocatorStats stream_stats(StreamId stream) const override;
  AllocatorStats pool_stats(PoolId pool) const override;
  void reset_peaks() override;
  std::vector<SegmentInfo> memory_map() const override;
  void write_map(PageMapWriter& out) const override;
  Trace recent_events() const override;

  const AllocatorOptions& options() const override { return options_; }

  const MemoryDevice& device() const override { return *device_; }

  // For fork: no thread is inside between them.
  void lock_all() const override;
  void unlock_all() const override;

 private:
  static constexpr std::size_t kStreams = 1024, kHeaps = 4096;

  struct Pool {
    bool keep_addresses = false;
    bool released = false;
  };

  // Pages of the address space, [first, first + count).
  struct PageRange {
    std::size_t first = 0, count = 0;
  };

  // Where a request is to lie: pages have to be mapped into the holes from `first` on up to `end`.
  struct Place {
    std::size_t first = 0, pages = 0;
    std::uint64_t end = 0;
  };

  using Holes = std::map<std::size_t, std::size_t>;  // first page -> count

  Heap& heap_of(StreamId stream) {
    Heap* heap = stream < kStreams ? current_[stream].load(std::memory_order_acquire) : nullptr;
    return heap != nullptr ? *heap : first_heap_of(stream);
  }

  void check_stream(StreamId stream) const;
  Heap& first_heap_of(StreamId stream);
  Heap& make_heap(StreamId stream, PoolId pool);                        // with arena_ held
  Heap* find_heap(StreamId stream, PoolId pool) const;                  // null: there is none
  Heap* reuse_heap(StreamId stream, PoolId pool);                       // null: there is none
  BlockNode* take(Heap& heap, std::uint32_t units, std::size_t bytes);  // with heap.lock held
  // By the heap's plan; without data if the plan has no place for it. With heap.lock held.
  Block take_planned(Heap& heap, std::size_t bytes, std::size_t rounded);
  static bool is_planned(const Block& block) { return (block.handle & 1) != 0; }

  Heap& heap_of_planned(const Block& block) const;
  void free_planned(const Block& block, std::size_t bytes) noexcept;
  void record_stream_planned(const Block& block, StreamId stream);
  void replan(Heap& heap);
  void give_region_back(Heap& heap);  // with heap.lock held; if the step does not need it any more
  void take_region(Heap& heap);       // with heap.lock held
  BlockNode* take_slowly(Heap& heap, std::uint32_t units, std::size_t bytes);

  // With arena_ held, and heap.lock too.
  Place place_from(const Heap& heap, Holes::const_iterator hole, std::uint64_t wanted) const;
  Place find_place(const Heap& heap, std::uint64_t wanted) const;

  // With arena_ held, but no heap's lock.
  std::size_t free_growth(std::uint64_t bytes) const;
  bool provide(std::size_t count);
  bool map(Heap& heap, const Place& place);
  std::size_t harvest(Heap& heap, std::size_t want);
  void harvest_all();
  void release_idle();
  void unmap(PageRange range);
  void add_hole(PageRange range);
  void take_hole(PageRange range);

  // Calls f(heap, first block) for each run of a heap's pages, in address order.
  template <class F> void each_run(F f) const;
  std::vector<SegmentInfo> segments() const;  // with all locks held

  // After a change of what a heap counts, with heap.lock held.
  void publish(Heap& heap) {
    if (several_.load(std::memory_order_relaxed)) add_to_totals(heap);
  }

  void add_to_totals(Heap& heap);
  template <class F> AllocatorStats sum(F wanted) const;

  const AllocatorOptions options_;
  const std::unique_ptr<MemoryDevice> device_;
  std::size_t window_ = 0;  // pages of address space
  std::size_t limit_ = 0;   // pages that may be reserved
  ArenaPage* pages_ = nullptr;
  char* base_ = nullptr;

  std::atomic<Heap*> current_[kStreams] = {};  // where a stream allocates now
  std::atomic<Heap*> heaps_[kHeaps] = {};      // by id, from 1
  std::atomic<std::uint32_t> heap_count_{0};

  mutable std::mutex step_mutex_, arena_;
  Holes holes_;                     // unmapped address space
  std::vector<PhysicalPage> idle_;  // pages that exist, and are not mapped
  std::vector<Pool> pools_{1};
  Gauge reserved_;  // pages that exist
  Counter device_calls_, pages_mapped_, pages_unmapped_, retries_, ooms_;

  // Sums over heaps for peaks, once there are several: a heap adds its change when it is worth it.
  static constexpr std::size_t kTotals = 3;  // allocated, requested, pending
  std::atomic<std::uint64_t> total_[kTotals] = {}, total_peak_[kTotals] = {};
  std::atomic<bool> several_{false};
};

}  // namespace taper
