// The arena's public side: the quick path through a heap, pools, and what the counters say
// together.
#include "taper/allocator/arena_allocator.h"

#include <algorithm>

#include <sys/mman.h>

#include "taper/allocator/out_of_memory.h"
#include "taper/allocator/page_map.h"
#include "taper/allocator/poison.h"
#include "taper/core/base/error.h"

namespace taper {
namespace {

// Address space over capacity, so that pages find places to move to. First fit of runs of pages
// would never need more than log2(pages of memory) times the memory (Robson 1974), 15.3 times for
// 80 GB. For the fewest pages, which are looked for here, no such bound is known to us.
constexpr std::size_t kWindowFactor = 16;
// Sizes and offsets in 512 bytes fit 32 bits.
constexpr std::size_t kLargestWindow = (std::size_t{2} << 40) - kPageBytes;
constexpr std::size_t kSmallestWindow = std::size_t{64} << 20;
constexpr std::size_t kMostBytes = std::size_t{1} << 60;    // beyond it rounding could overflow
constexpr std::uint64_t kQuantum = std::uint64_t{1} << 20;  // of what streams add to the totals

BlockNode* node_of(const Block& block) {
  return reinterpret_cast<BlockNode*>(block.handle);
}

BlockInfo info_of(const Heap& heap, const BlockNode& b) {
  BlockInfo info;
  info.offset = b.offset;
  info.bytes = b.bytes();
  if (!b.live) {
    info.state = b.waits == nullptr ? BlockState::kFree : BlockState::kPending;
    if (info.state == BlockState::kFree && !heap.keeps_pages())
      info.releasable = whole_pages(&b) * kPageBytes;
    return info;
  }
  info.state = BlockState::kLive;
  info.requested = b.facts.requested;
  info.site = b.facts.site;
  info.entry = b.facts.entry;
  return info;
}

void raise(std::atomic<std::uint64_t>& peak, std::uint64_t to) {
  std::uint64_t was = peak.load(std::memory_order_relaxed);
  while (was < to && !peak.compare_exchange_weak(was, to, std::memory_order_relaxed)) {
  }
}

// All locks of an allocator, for a scope.
class AllLocks {
 public:
  explicit AllLocks(const Allocator& of) : of_(of) { of_.lock_all(); }

  ~AllLocks() { of_.unlock_all(); }

  AllLocks(const AllLocks&) = delete;
  AllLocks& operator=(const AllLocks&) = delete;

 private:
  const Allocator& of_;
};

}  // namespace

ArenaAllocator::ArenaAllocator(const AllocatorOptions& options,
                               std::unique_ptr<MemoryDevice> memory_device)
    : options_(options), device_(std::move(memory_device)) {
  const std::size_t capacity = std::min(device_->capacity(), kLargestWindow);
  const std::size_t most = std::clamp(capacity * kWindowFactor, kSmallestWindow, kLargestWindow);
  window_ = device_->reserve(most, kSmallestWindow) / kPageBytes;
  base_ = device_->base();
  limit_ = std::min(capacity / kPageBytes, window_);
  if (options_.limit != 0) limit_ = std::min(limit_, options_.limit / kPageBytes);
  // One entry more than pages, never mapped: the last page has a neighbour to look at.
  void* table = mmap(nullptr, (window_ + 1) * sizeof(ArenaPage), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TAPER_CHECK(table != MAP_FAILED, "no memory for the page table of ", device_->name());
  pages_ = static_cast<ArenaPage*>(table);
  holes_[0] = window_;
}

ArenaAllocator::~ArenaAllocator() {
  for (std::uint32_t id = 1; id <= heap_count_.load(); ++id) delete heaps_[id].load();
  munmap(pages_, (window_ + 1) * sizeof(ArenaPage));
}

Block ArenaAllocator::allocate(std::size_t bytes, StreamId stream) {
  if (bytes == 0) return {};
  const std::size_t rounded =
      bytes > kMostBytes ? bytes : (bytes + kBlockBytes - 1) & ~(kBlockBytes - 1);
  BlockNode* block = nullptr;
  if (bytes <= window_ * kPageBytes) {
    const auto units = static_cast<std::uint32_t>(rounded / kBlockBytes);
    Heap& heap = heap_of(stream);
    {
      const std::lock_guard lock(heap.lock);
      if (heap.plan != nullptr) {
        const Block planned = take_planned(heap, bytes, rounded);
        if (planned.data != nullptr) return planned;
      }
      block = take(heap, units, bytes);
    }
    if (block == nullptr) block = take_slowly(heap, units, bytes);
  }
  if (block == nullptr) fail_out_of_memory(*this, bytes, rounded);
  char* data = base_ + block->offset;
  if (kPoisons) device_->unpoison(data, bytes);
  return {data, rounded, reinterpret_cast<std::uint64_t>(block)};
}

void ArenaAllocator::free(const Block& block, std::size_t requested, StreamId) noexcept {
  if (block.data == nullptr) return;
  if (is_planned(block)) {
    if (kPoisons) device_->poison(block.data, block.bytes);
    return free_planned(block, requested);
  }
  BlockNode* node = node_of(block);
  Heap& heap = *heaps_[node->heap].load(std::memory_order_relaxed);
  // A graph that is replayed writes again to what was freed while it was captured.
  if (kPoisons && !heap.keeps_pages()) device_->poison(block.data, block.bytes);
  const std::lock_guard lock(heap.lock);
  heap.put(node, *device_);
  publish(heap);
}

void ArenaAllocator::record_stream(const Block& block, StreamId stream) {
  if (block.data == nullptr) return;
  check_stream(stream);
  if (is_planned(block)) return record_stream_planned(block, stream);
  BlockNode* node = node_of(block);
  Heap& heap = *heaps_[node->heap].load(std::memory_order_relaxed);
  const std::lock_guard lock(heap.lock);
  heap.record_stream(node, stream);
}

BlockNode* ArenaAllocator::take(Heap& heap, std::uint32_t units, std::size_t bytes) {
  BlockNode* block = heap.take(units, bytes, *device_);
  if (block != nullptr) publish(heap);
  return block;
}

void ArenaAllocator::check_stream(StreamId stream) const {
  TAPER_CHECK(stream < kStreams, "stream ", stream, " of ", device_->name(),
              ": an allocator knows streams below ", kStreams);
}

Heap& ArenaAllocator::first_heap_of(StreamId stream) {
  check_stream(stream);
  const std::lock_guard lock(arena_);
  if (Heap* heap = current_[stream].load(std::memory_order_acquire)) return *heap;
  Heap& heap = make_heap(stream, 0);
  current_[stream].store(&heap, std::memory_order_release);
  return heap;
}

Heap* ArenaAllocator::find_heap(StreamId stream, PoolId pool) const {
  for (std::uint32_t id = 1; id <= heap_count_.load(std::memory_order_acquire); ++id) {
    Heap* heap = heaps_[id].load(std::memory_order_relaxed);
    if (heap->stream == stream && heap->pool == pool) return heap;
  }
  return nullptr;
}

// The heap of a pool of the stream that was released and has no block left. Its pages go first: a
// pool that keeps its own is not to keep others'. What it counted is pool 0's from now on.
Heap* ArenaAllocator::reuse_heap(StreamId stream, PoolId pool) {
  for (std::uint32_t id = 1; id <= heap_count_.load(); ++id) {
    Heap& heap = *heaps_[id].load();
    if (heap.stream != stream || !pools_[heap.pool].released || heap.count.blocks.get() != 0 ||
        current_[stream].load() == &heap)
      continue;
    harvest(heap, window_);
    Heap& common = *find_heap(stream, 0);
    const std::lock_guard common_lock(common.lock), heap_lock(heap.lock);
    if (heap.count.reserved.get() != 0) continue;
    common.count.allocations.add(heap.count.allocations.get());
    common.count.frees.add(heap.count.frees.get());
    common.count.stream_waits.add(heap.count.stream_waits.get());
    heap.serve(pool, pools_[pool].keep_addresses);
    return &heap;
  }
  return nullptr;
}

Heap& ArenaAllocator::make_heap(StreamId stream, PoolId pool) {
  if (Heap* heap = find_heap(stream, pool)) return *heap;
  if (Heap* heap = reuse_heap(stream, pool)) return *heap;
  const std::uint32_t id = heap_count_.load() + 1;
  TAPER_CHECK(id < kHeaps, "more than ", kHeaps - 1, " streams and pools allocate on ",
              device_->name());
  auto* heap = new Heap(static_cast<std::uint16_t>(id), stream, pool, pools_[pool].keep_addresses,
                        pages_, options_.trace_events, !options_.trace_file.empty());
  if (options_.plan) heap->plan = std::make_unique<StepPlan>();
  heaps_[id].store(heap, std::memory_order_release);
  heap_count_.store(id, std::memory_order_release);
  if (id == 2) {  // from now on the totals are kept apart
    Heap& one = *heaps_[1].load();
    const std::lock_guard lock(one.lock);
    const Gauge* gauges[kTotals] = {&one.count.allocated, &one.count.requested, &one.count.pending};
    for (std::size_t i = 0; i < kTotals; ++i) {
      one.published[i] = gauges[i]->get();
      total_[i].store(one.published[i]);
      total_peak_[i].store(gauges[i]->peak());
    }
    several_.store(true);
  }
  return *heap;
}

// Peaks of sums are within heaps x quantum; shared lines are written so seldom that streams do not
// hinder each other.
void ArenaAllocator::add_to_totals(Heap& heap) {
  const Gauge* gauges[kTotals] = {&heap.count.allocated, &heap.count.requested,
                                  &heap.count.pending};
  for (std::size_t i = 0; i < kTotals; ++i) {
    const std::uint64_t change = gauges[i]->get() - heap.published[i];  // may wrap: a fall
    if (change + kQuantum <= 2 * kQuantum) continue;                    // within ±quantum
    heap.published[i] += change;
    raise(total_peak_[i], total_[i].fetch_add(change, std::memory_order_relaxed) + change);
  }
}

PoolId ArenaAllocator::make_pool(bool keep_addresses) {
  const std::lock_guard lock(arena_);
  pools_.push_back({keep_addresses, false});
  return static_cast<PoolId>(pools_.size() - 1);
}

void ArenaAllocator::begin_pool(PoolId pool, StreamId stream) {
  heap_of(stream);
  const std::lock_guard lock(arena_);
  TAPER_CHECK(pool < pools_.size() && !pools_[pool].released, "there is no memory pool ", pool,
              " on ", device_->name(), ", or it was released");
  current_[stream].store(&make_heap(stream, pool), std::memory_order_release);
}

void ArenaAllocator::end_pool(StreamId stream) {
  heap_of(stream);
  const std::lock_guard lock(arena_);
  current_[stream].store(&make_heap(stream, 0), std::memory_order_release);
}

void ArenaAllocator::release_pool(PoolId pool) {
  const std::lock_guard lock(arena_);
  TAPER_CHECK(pool != 0 && pool < pools_.size() && !pools_[pool].released,
              "there is no memory pool ", pool, " on ", device_->name(), " to release");
  pools_[pool].released = true;
  for (std::uint32_t id = 1; id <= heap_count_.load(); ++id) {
    Heap& heap = *heaps_[id].load();
    const std::lock_guard heap_lock(heap.lock);
    if (heap.pool == pool) heap.release_pages();
  }
}

template <class F> AllocatorStats ArenaAllocator::sum(F wanted) const {
  AllocatorStats s;
  for (std::uint32_t id = 1; id <= heap_count_.load(std::memory_order_acquire); ++id) {
    const Heap& heap = *heaps_[id].load(std::memory_order_relaxed);
    const std::lock_guard lock(heap.lock);
    if (!wanted(heap)) continue;
    const HeapCounters& c = heap.count;
    s.allocated += c.allocated.get();
    s.allocated_peak += c.allocated.peak();
    s.requested += c.requested.get();
    s.requested_peak += c.requested.peak();
    s.reserved += c.reserved.get();
    s.reserved_peak += c.reserved.peak();
    s.pending += c.pending.get();
    s.pending_peak += c.pending.peak();
    s.inactive_split += c.pinned.get();
    s.inactive_split_peak += c.pinned.peak();
    s.releasable += c.releasable_pages.get() * kPageBytes;
    s.blocks += c.blocks.get();
    s.allocations += c.allocations.get();
    s.frees += c.frees.get();
    s.stream_waits += c.stream_waits.get();
    s.largest_free = std::max(s.largest_free, heap.largest_free());
  }
  return s;
}

AllocatorStats ArenaAllocator::stats() const {
  AllocatorStats s = sum([](const Heap&) { return true; });
  const std::uint64_t reserved = reserved_.get() * kPageBytes;
  s.releasable += reserved - std::min(s.reserved, reserved);  // idle pages are in no heap
  s.reserved = reserved;
  s.limit = limit_ * kPageBytes;
  s.reserved_peak = reserved_.peak() * kPageBytes;
  if (several_.load(std::memory_order_relaxed)) {
    s.allocated_peak = std::max(s.allocated, total_peak_[0].load(std::memory_order_relaxed));
    s.requested_peak = std::max(s.requested, total_peak_[1].load(std::memory_order_relaxed));
    s.pending_peak = std::max(s.pending, total_peak_[2].load(std::memory_order_relaxed));
  }
  s.device_calls = device_calls_.get();
  s.pages_mapped = pages_mapped_.get();
  s.pages_unmapped = pages_unmapped_.get();
  s.retries = retries_.get();
  s.ooms = ooms_.get();
  return s;
}

AllocatorStats ArenaAllocator::stream_stats(StreamId stream) const {
  return sum([&](const Heap& heap) { return heap.stream == stream; });
}

AllocatorStats ArenaAllocator::pool_stats(PoolId pool) const {
  return sum([&](const Heap& heap) { return heap.pool == pool; });
}

void ArenaAllocator::reset_peaks() {
  const AllLocks locks(*this);
  reserved_.reset_peak();
  for (std::uint32_t id = 1; id <= heap_count_.load(); ++id) heaps_[id].load()->count.reset_peaks();
  for (std::size_t i = 0; i < kTotals; ++i) total_peak_[i].store(total_[i].load());
}

void ArenaAllocator::lock_all() const {
  step_mutex_.lock();
  arena_.lock();
  for (std::uint32_t id = 1; id <= heap_count_.load(); ++id) heaps_[id].load()->lock.lock();
}

void ArenaAllocator::unlock_all() const {
  for (std::uint32_t id = heap_count_.load(); id >= 1; --id) heaps_[id].load()->lock.unlock();
  arena_.unlock();
  step_mutex_.unlock();
}

std::vector<SegmentInfo> ArenaAllocator::memory_map() const {
  const AllLocks locks(*this);
  return segments();
}

template <class F> void ArenaAllocator::each_run(F f) const {
  const auto mapped = [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      const std::uint16_t heap = pages_[p].heap;
      if (heap != 0 && (p == begin || heap != pages_[p - 1].heap))
        f(*heaps_[heap].load(std::memory_order_relaxed), pages_[p].head);
    }
  };
  std::size_t begin = 0;
  for (const auto& [hole, count] : holes_) {
    mapped(begin, hole);
    begin = hole + count;
  }
  mapped(begin, window_);
}

std::vector<SegmentInfo> ArenaAllocator::segments() const {
  std::vector<SegmentInfo> out;
  each_run([&](const Heap& heap, const BlockNode* first) {
    SegmentInfo& segment = out.emplace_back();
    segment.offset = first->offset;
    segment.stream = heap.stream;
    segment.pool = heap.pool;
    for (const BlockNode* b = first; b != nullptr; b = b->next) {
      segment.blocks.push_back(info_of(heap, *b));
      segment.bytes += b->bytes();
    }
  });
  return out;
}

void ArenaAllocator::write_map(PageMapWriter& out) const {
  each_run([&](const Heap& heap, const BlockNode* first) {
    std::uint64_t bytes = 0;
    for (const BlockNode* b = first; b != nullptr; b = b->next) bytes += b->bytes();
    out.segment(first->offset, bytes, heap.stream, heap.pool);
    for (const BlockNode* b = first; b != nullptr; b = b->next) {
      const BlockInfo info = info_of(heap, *b);
      out.block(info.bytes, info.requested, info.state);
    }
  });
}

Trace ArenaAllocator::recent_events() const {
  std::vector<TraceEvent> events;
  // Pages move between heaps: of a place, all events are known only from where all rings are whole.
  std::uint64_t since = 0;
  std::vector<SegmentInfo> map;
  {
    const AllLocks locks(*this);
    for (std::uint32_t id = 1; id <= heap_count_.load(); ++id) {
      const TraceRing& ring = heaps_[id].load()->ring;
      ring.copy_to(events);
      since = std::max(since, ring.complete_since());
    }
    map = segments();
  }
  std::erase_if(events, [&](const TraceEvent& e) { return e.time < since; });
  Trace trace = trace_of_rings(std::move(events), map);
  trace.device = device_->name();
  return trace;
}

}  // namespace taper
