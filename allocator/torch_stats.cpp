// What PyTorch's allocator counts, in all, by stream and by pool, and the map of its memory.
#include <algorithm>
#include <array>

#include "taper/allocator/page_map.h"
#include "taper/allocator/torch_allocator.h"

namespace taper {
namespace {

std::array<AllocatorStats*, 3> figures_of(AllocatorStats& all, const TorchShelf& shelf) {
  return {&all, shelf.of_stream, &shelf.pool->stats};
}

void change(std::uint64_t& figure, std::size_t by, bool more) {
  figure = more ? figure + by : figure - by;
}

void forget_peaks(AllocatorStats& s) {
  s.allocated_peak = s.allocated;
  s.requested_peak = s.requested;
  s.reserved_peak = s.reserved;
  s.pending_peak = s.pending;
}

std::uint64_t largest_of(const TorchShelf& shelf) {
  return shelf.free.empty() ? 0 : (*shelf.free.rbegin())->bytes;
}

}  // namespace

void TorchAllocator::count_reserved(const TorchShelf& shelf, std::size_t bytes, bool more) {
  for (AllocatorStats* s : figures_of(all_, shelf)) {
    change(s->reserved, bytes, more);
    s->reserved_peak = std::max(s->reserved_peak, s->reserved);
  }
}

// releasable + inactive_split is all that is idle.
void TorchAllocator::count_idle(const TorchBlock& block, bool more) {
  const std::size_t part = releasable_part(block);
  for (AllocatorStats* s : figures_of(all_, *block.shelf)) {
    change(s->releasable, part, more);
    change(s->inactive_split, block.bytes - part, more);
  }
}

void TorchAllocator::count_live(const TorchBlock& block, bool more) {
  for (AllocatorStats* s : figures_of(all_, *block.shelf)) {
    change(s->allocated, block.bytes, more);
    change(s->requested, block.requested, more);
    change(s->blocks, 1, more);
    ++(more ? s->allocations : s->frees);
    s->allocated_peak = std::max(s->allocated_peak, s->allocated);
    s->requested_peak = std::max(s->requested_peak, s->requested);
  }
}

void TorchAllocator::count_pending(const TorchBlock& block, bool more) {
  for (AllocatorStats* s : figures_of(all_, *block.shelf)) {
    change(s->pending, block.bytes, more);
    s->pending_peak = std::max(s->pending_peak, s->pending);
  }
}

// Of an idle block, what could go back by itself: a whole segment, or whole granules.
std::size_t TorchAllocator::releasable_part(const TorchBlock& block) const {
  if (!block.shelf->pool->gives_back()) return 0;
  if (!expandable_) return block.prev == nullptr && block.next == nullptr ? block.bytes : 0;
  const std::size_t granule = block.shelf->granule(), at = block.offset - block.segment->offset;
  const std::size_t from = (at + granule - 1) / granule, to = (at + block.bytes) / granule;
  return from < to ? (to - from) * granule : 0;
}

BlockInfo TorchAllocator::info_of(const TorchBlock& block) const {
  BlockInfo info;
  info.offset = block.offset;
  info.bytes = block.bytes;
  if (block.live) {
    info.state = BlockState::kLive;
    info.requested = block.requested;
    info.site = block.site;
    info.entry = block.entry;
  } else if (block.idle()) {
    info.state = BlockState::kFree;
    info.releasable = releasable_part(block);
  } else {
    info.state = BlockState::kPending;
  }
  return info;
}

AllocatorStats TorchAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  AllocatorStats s = all_;
  for (const auto& [id, pool] : pools_) {
    for (const auto& [key, shelf] : pool.shelves)
      s.largest_free = std::max(s.largest_free, largest_of(shelf));
  }
  return s;
}

AllocatorStats TorchAllocator::stream_stats(StreamId stream) const {
  const std::lock_guard lock(mutex_);
  const auto it = by_stream_.find(stream);
  if (it == by_stream_.end()) return {};
  AllocatorStats s = it->second;
  for (const auto& [id, pool] : pools_) {
    for (const auto& [key, shelf] : pool.shelves) {
      if (shelf.stream == stream) s.largest_free = std::max(s.largest_free, largest_of(shelf));
    }
  }
  return s;
}

AllocatorStats TorchAllocator::pool_stats(PoolId id) const {
  const std::lock_guard lock(mutex_);
  const auto it = pools_.find(id);
  if (it == pools_.end()) return {};
  AllocatorStats s = it->second.stats;
  for (const auto& [key, shelf] : it->second.shelves)
    s.largest_free = std::max(s.largest_free, largest_of(shelf));
  return s;
}

void TorchAllocator::reset_peaks() {
  const std::lock_guard lock(mutex_);
  forget_peaks(all_);
  for (auto& [stream, s] : by_stream_) forget_peaks(s);
  for (auto& [id, pool] : pools_) forget_peaks(pool.stats);
}

// Calls f(first block, block behind the last) for each mapped part of a segment, in address order:
// unmapped space parts an expandable one into several.
template <class F> void TorchAllocator::each_run(F f) const {
  for (const auto& [offset, segment] : segments_) {
    const TorchBlock* block = segment.first;
    while (block != nullptr) {
      const TorchBlock* first = block;
      while (block != nullptr && block->mapped == first->mapped) block = block->next;
      if (first->mapped) f(first, block);
    }
  }
}

std::vector<SegmentInfo> TorchAllocator::segments() const {
  std::vector<SegmentInfo> map;
  each_run([&](const TorchBlock* first, const TorchBlock* end) {
    SegmentInfo& run = map.emplace_back();
    run.offset = first->offset;
    run.stream = first->shelf->stream;
    run.pool = first->shelf->pool->id;
    run.small = first->shelf->small;
    for (const TorchBlock* block = first; block != end; block = block->next) {
      run.bytes += block->bytes;
      run.blocks.push_back(info_of(*block));
    }
  });
  return map;
}

std::vector<SegmentInfo> TorchAllocator::memory_map() const {
  const std::lock_guard lock(mutex_);
  return segments();
}

void TorchAllocator::write_map(PageMapWriter& out) const {
  each_run([&](const TorchBlock* first, const TorchBlock* end) {
    std::uint64_t bytes = 0;
    for (const TorchBlock* block = first; block != end; block = block->next) bytes += block->bytes;
    out.segment(first->offset, bytes, first->shelf->stream, first->shelf->pool->id,
                first->shelf->small);
    for (const TorchBlock* block = first; block != end; block = block->next) {
      const BlockInfo info = info_of(*block);
      out.block(info.bytes, info.requested, info.state);
    }
  });
}

}  // namespace taper
