// The blocks of one stream of one pool: splits them, joins them, counts them.
#pragma once
#include <atomic>
#include <memory>

#include "taper/allocator/allocator.h"
#include "taper/allocator/free_index.h"
#include "taper/allocator/memory_device.h"
#include "taper/allocator/ring.h"
#include "taper/core/base/spin_lock.h"

namespace taper {

// A number that one thread at a time changes, under a lock, and every thread may read.
class Counter {
 public:
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

  void set(std::uint64_t to) { value_.store(to, std::memory_order_relaxed); }

  void add(std::uint64_t n) { set(get() + n); }

  void subtract(std::uint64_t n) { set(get() - n); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// A counter with the highest value that it had.
class Gauge {
 public:
  std::uint64_t get() const { return now_.get(); }

  std::uint64_t peak() const { return peak_.get(); }

  void set(std::uint64_t to) {
    now_.set(to);
    if (to > peak_.get()) peak_.set(to);
  }

  void reset_peak() { peak_.set(now_.get()); }

 private:
  Counter now_, peak_;
};

// One page of the arena's address space.
struct ArenaPage {
  PhysicalPage physical;
  BlockNode* head;  // on the first page of a run: its first block
  BlockNode* tail;  // on the last page of a run: its last block
  std::uint16_t
      heap;  // whose blocks lie here; 0: no memory. A run is neighbouring pages of one heap
};

// What a heap counts. Read by anyone; changed by who holds the heap's lock.
struct HeapCounters {
  Gauge allocated, requested, pending, pinned;  // bytes, as in AllocatorStats
  Gauge reserved;
  Counter free_pages;     // whole pages in free blocks
  Counter pending_pages;  // of those, in blocks that others' work may still use
  Counter releasable_pages;
  Counter blocks, allocations, frees, stream_waits;

  void reset_peaks() {
    for (Gauge* g : {&allocated, &requested, &pending, &pinned, &reserved}) g->reset_peak();
  }
};

// Everything but id and stream is guarded by `lock`.
class Heap {
 public:
  Heap(std::uint16_t id,
       StreamId stream,
       PoolId pool,
       bool keeps_pages,
       ArenaPage* pages,
       std::size_t trace_events,
       bool keep_all_events);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // The best-fitting free block, out and cut to size; null: there is none. `requested` 0 is for the
  // region of a plan. The stream waits first
  // for those that used the memory before.
  BlockNode* take(std::uint32_t units, std::uint64_t requested, MemoryDevice& device);
  // Takes a block back.
  void put(BlockNode* block, MemoryDevice& device);
  void record_stream(BlockNode* block, StreamId user);
  // The stream waits for those that use or used the block, of record_stream: then its own order is
  // enough to know. A block that is out counts as used until now.
  void wait_for_users(BlockNode* block, MemoryDevice& device) {
    if (block->waits != nullptr) wait_and_forget(block, device);
  }

  // Sees to it that add_pages of so many needs no memory, nor free what is cut from them.
  void reserve_for_pages(std::size_t count);
  // Pages [first, first + count) have become this heap's, free.
  void add_pages(std::size_t first, std::size_t count);
  // Takes pages, which lie inside the free `block`, away from it. What was given to the stream
  // before may still use them.
  // Needs two spare nodes (reserve_nodes), for what is before and behind them, and that nobody
  // waits for its users (wait_for_users).
  void cut_pages(BlockNode* block, std::size_t first, std::size_t count);
  void reserve_nodes(std::size_t count);

  void release_pages();  // what is free may go back to the device from now on
  // Serves another pool from now on. It has no pages, and what it counted was told elsewhere.
  void serve(PoolId pool, bool keeps_pages);

  bool keeps_pages() const { return keeps_pages_; }

  std::uint64_t largest_free() const;

  const std::uint16_t id;
  const StreamId stream;
  PoolId pool;
  mutable SpinLock lock;
  FreeIndex free;
  HeapCounters count;
  TraceRing ring;
  std::unique_ptr<StepPlan> plan;  // null unless plan:on
  BlockNode* region = nullptr;     // the block that planned blocks lie in
  // Of each gauge above in turn, what ArenaAllocator has added to its totals.
  std::uint64_t published[3] = {};

 private:
  TAPER_INLINE BlockNode* new_node();
  TAPER_INLINE void recycle(BlockNode* node);
  // Cuts a free block, which is not in the index and has no waits, to `units`; returns the rest,
  // which is not in the index either.
  TAPER_INLINE BlockNode* split_off(BlockNode* block, std::uint32_t units);
  TAPER_INLINE void insert(BlockNode* block);
  TAPER_INLINE void remove(BlockNode* block);
  // Joins a free block, not in the index, with its free neighbours, and enters the result.
  TAPER_INLINE void absorb(BlockNode* block);
  TAPER_INLINE void join(BlockNode* low,
                         BlockNode* high);         // both free, neighbours, neither in the index
  TAPER_INLINE void end_of_run(BlockNode* block);  // if it is the last one, its page learns it
  void uncount_pending(const BlockNode* block);
  void wait_and_forget(BlockNode* block, MemoryDevice& device);
  TAPER_INLINE void count_pinned();

  bool keeps_pages_;
  ArenaPage* pages_;
  BlockNode* spare_ = nullptr;  // chained by next
  std::size_t spares_ = 0;
  std::vector<std::unique_ptr<BlockNode[]>> slabs_;
  std::uint64_t free_bytes_ = 0;
};

// The whole pages inside a block: [first, last).
inline std::size_t first_page(const BlockNode* block) {
  return (block->offset + kPageBytes - 1) / kPageBytes;
}

inline std::size_t last_page(const BlockNode* block) {
  return block->end() / kPageBytes;
}

inline std::size_t whole_pages(const BlockNode* block) {
  const std::size_t first = first_page(block), last = last_page(block);
  return last > first ? last - first : 0;
}

}  // namespace taper
