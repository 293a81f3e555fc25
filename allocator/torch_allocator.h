// The tables of PyTorch's allocator (blocks on shelves, in segments, of pools) and its methods.
#pragma once
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "taper/allocator/memory_device.h"
#include "taper/allocator/options.h"
#include "taper/allocator/ring.h"
#include "taper/allocator/torch_policy.h"

namespace taper {

inline constexpr std::size_t kTorchSmall = std::size_t{1} << 20;  // the largest small request
inline constexpr std::size_t kTorchSmallSegment = kPageBytes;
inline constexpr std::size_t kTorchLargeSegment = std::size_t{20} << 20;
inline constexpr std::size_t kTorchOwnSegment = std::size_t{10} << 20;  // from here on, its own

struct TorchPool;
struct TorchSegment;
struct TorchShelf;

// A run of a segment: out, pending, free, or (of an expandable segment) without memory.
struct TorchBlock {
  std::size_t offset = 0, bytes = 0;
  std::size_t requested = 0;
  std::uint32_t site = 0, entry = 0;  // of a live block, as in BlockInfo
  TorchBlock* prev = nullptr;         // neighbours in the segment
  TorchBlock* next = nullptr;
  TorchSegment* segment = nullptr;
  TorchShelf* shelf = nullptr;
  bool live = false;
  bool mapped = true;
  std::uint32_t marks = 0;                 // of other streams, not yet reached
  std::uint64_t shelved_at = 0;            // the pool's searches when it became free
  std::vector<StreamId> used_on;           // since it was given out
  std::set<TorchBlock*>::node_type place;  // on a shelf, while it is on none

  // Neither out nor waiting for a stream.
  bool idle() const { return !live && marks == 0 && used_on.empty(); }
};

struct TorchBySize {
  bool operator()(const TorchBlock* a, const TorchBlock* b) const {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->offset < b->offset;
  }
};

struct TorchByAddress {
  bool operator()(const TorchBlock* a, const TorchBlock* b) const { return a->offset < b->offset; }
};

// The idle blocks of one pool, size class and stream.
struct TorchShelf {
  TorchPool* pool = nullptr;
  bool small = false;
  StreamId stream = 0;
  AllocatorStats* of_stream = nullptr;
  std::set<TorchBlock*, TorchBySize> free;
  std::set<TorchBlock*, TorchByAddress> unmapped;

  std::size_t granule() const { return small ? kTorchSmallSegment : kTorchLargeSegment; }
};

// Pool 0 is the common one.
struct TorchPool {
  PoolId id = 0;
  bool released = false;
  std::uint64_t searches[2] = {0, 0};  // of small blocks and of large ones; the clock of ages
  std::map<std::pair<bool, StreamId>, TorchShelf> shelves;  // by (small, stream)
  AllocatorStats stats;

  // Its idle memory may go back to the device.
  bool gives_back() const { return id == 0 || released; }
};

// Native: what one request took from the device. Expandable: a window of address space that is
// mapped bit by bit.
struct TorchSegment {
  std::size_t offset = 0, bytes = 0;
  TorchBlock* first = nullptr;
  std::vector<PhysicalPage> pages;  // by page of the segment; meaningless where nothing is mapped
};

class TorchAllocator final : public Allocator {
 public:
  TorchAllocator(const AllocatorOptions& options, std::unique_ptr<MemoryDevice> device);
  ~TorchAllocator() override;

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

  void lock_all() const override { mutex_.lock(); }

  void unlock_all() const override { mutex_.unlock(); }

  const AllocatorOptions& options() const override { return options_; }

  const MemoryDevice& device() const override { return *device_; }

 private:
  struct Event {
    StreamMark mark;
    TorchBlock* block;
  };

  // torch_policy.cpp: the way of an allocation and of a free. All expect the lock.
  TorchBlock* take(std::size_t rounded, StreamId stream);
  TorchBlock* best_fit(TorchShelf& shelf, std::size_t rounded);
  TorchBlock* grow(TorchShelf& shelf, std::size_t rounded);
  void split(TorchBlock* block, std::size_t rounded);
  TorchBlock* split_off(TorchBlock* block, std::size_t bytes);
  void merge(TorchBlock* block, TorchBlock* neighbour);
  void shelve(TorchBlock* block);    // merged with idle neighbours
  void put(TorchBlock* block);       // on its shelf, as it is
  void take_off(TorchBlock* block);  // its shelf
  void mark_uses(TorchBlock* block);
  void poll_events();
  void synchronize_events();
  void settle(TorchBlock* block);
  void release_cached();
  void release_shelf(TorchShelf& shelf);
  TorchShelf& shelf_for(StreamId stream, bool small);

  // Segments; torch_native.cpp and torch_expandable.cpp.
  TorchBlock* grow_native(TorchShelf& shelf, std::size_t rounded);
  void release_block(TorchBlock* block);  // which is a whole segment
  bool release_oversize(TorchShelf& shelf, std::size_t rounded);
  void collect_garbage();
  TorchBlock* grow_expandable(TorchShelf& shelf, std::size_t rounded);
  TorchBlock* find_room(TorchShelf& shelf, std::size_t rounded);
  bool map_front(TorchBlock* block, std::size_t bytes);
  void unmap_granules(TorchBlock* block);
  TorchSegment* open_segment(TorchShelf& shelf, std::size_t bytes, bool mapped);
  void close_segment(TorchSegment* segment);  // of one block, without memory
  bool map_pages(TorchSegment& segment, std::size_t from, std::size_t bytes);
  void unmap_pages(TorchSegment& segment, std::size_t from, std::size_t bytes, StreamId stream);

  // torch_stats.cpp. All expect the lock.
  template <class F> void each_run(F f) const;
  std::vector<SegmentInfo> segments() const;
  void count_reserved(const TorchShelf& shelf, std::size_t bytes, bool more);
  void count_idle(const TorchBlock& block, bool more);
  void count_live(const TorchBlock& block, bool more);
  void count_pending(const TorchBlock& block, bool more);
  std::size_t releasable_part(const TorchBlock& block) const;
  BlockInfo info_of(const TorchBlock& block) const;

  const AllocatorOptions options_;
  const std::unique_ptr<MemoryDevice> device_;
  const bool expandable_;
  mutable std::mutex mutex_;
  std::size_t limit_ = 0;                      // 0: none
  std::size_t window_ = 0;                     // address space of an expandable segment
  std::map<std::size_t, std::size_t> spaces_;  // unused address space: offset -> bytes
  std::map<std::size_t, TorchSegment> segments_;
  std::map<PoolId, TorchPool> pools_;
  std::map<StreamId, TorchPool*> filling_;        // streams between begin_pool and end_pool
  std::map<StreamId, std::deque<Event>> events_;  // of each stream, in its order
  std::vector<TorchBlock*> unmarked_;             // freed while a pool was filled
  std::map<StreamId, AllocatorStats> by_stream_;
  AllocatorStats all_;
  PoolId next_pool_ = 1;
  TraceRing ring_;
};

}  // namespace taper
