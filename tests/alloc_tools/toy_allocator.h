// An allocator to feed a report by hand: first fit in one arena of pages that only grows.
#pragma once
#include <algorithm>
#include <map>
#include <vector>

#include "taper/allocator/allocator.h"
#include "taper/allocator/options.h"
#include "taper/allocator/trace.h"
#include "taper/core/base/error.h"
#include "taper/tools/alloc/report.h"

namespace taper {

class ToyAllocator final : public Allocator {
 public:
  Block allocate(std::size_t bytes, StreamId) override {
    const std::uint64_t size = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    auto hole = free_.begin();
    while (hole != free_.end() && hole->second < size) ++hole;
    if (hole == free_.end()) hole = grow(size);
    const std::uint64_t at = hole->first, left = hole->second - size;
    free_.erase(hole);
    if (left > 0) free_[at + size] = left;
    stats_.allocated += size, stats_.requested += bytes;
    stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
    stats_.requested_peak = std::max(stats_.requested_peak, stats_.requested);
    ++stats_.allocations;
    return {nullptr, size, at};
  }

  void free(const Block& block, std::size_t requested, StreamId) noexcept override {
    stats_.allocated -= block.bytes, stats_.requested -= requested;
    if (block.bytes == 0) return;
    auto it = free_.emplace(block.handle, block.bytes).first;
    const auto next = std::next(it);
    if (next != free_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it == free_.begin()) return;
    const auto before = std::prev(it);
    if (before->first + before->second != it->first) return;
    before->second += it->second;
    free_.erase(it);
  }

  AllocatorStats stats() const override {
    AllocatorStats s = stats_;
    for (const auto& hole : free_) s.largest_free = std::max(s.largest_free, hole.second);
    return s;
  }

  std::vector<SegmentInfo> memory_map() const override {
    SegmentInfo s;
    s.bytes = stats_.reserved;
    if (s.bytes == 0) return {};
    return {s};
  }

  void record_stream(const Block&, StreamId) override { no(); }
  void empty_cache() override { no(); }
  PoolId make_pool(bool) override { no(); }
  void begin_pool(PoolId, StreamId) override { no(); }
  void end_pool(StreamId) override { no(); }
  void release_pool(PoolId) override { no(); }

  void note_step() override {}

  void write_map(PageMapWriter&) const override {}

  void lock_all() const override {}

  void unlock_all() const override {}
  AllocatorStats stream_stats(StreamId) const override { no(); }
  AllocatorStats pool_stats(PoolId) const override { no(); }
  void reset_peaks() override { no(); }
  Trace recent_events() const override { no(); }
  const AllocatorOptions& options() const override { no(); }
  const MemoryDevice& device() const override { no(); }

 private:
  [[noreturn]] static void no() { fail("a toy cannot"); }

  std::map<std::uint64_t, std::uint64_t>::iterator grow(std::uint64_t size) {
    std::uint64_t begin = stats_.reserved;
    if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == begin)
      begin = free_.rbegin()->first;
    const std::uint64_t end = (begin + size + kPageBytes - 1) / kPageBytes * kPageBytes;
    stats_.pages_mapped += (end - stats_.reserved) / kPageBytes, ++stats_.device_calls;
    stats_.reserved = stats_.reserved_peak = end;
    return free_.insert_or_assign(begin, end - begin).first;
  }

  AllocatorStats stats_;
  std::map<std::uint64_t, std::uint64_t> free_;
};

// What a replay on the toy shows.
inline tools::ReportRun toy_run(const Trace& trace, const std::string& policy) {
  ToyAllocator toy;
  tools::ReportRecorder recorder(trace, policy);
  std::vector<Block> blocks(trace.allocations);
  std::vector<std::uint64_t> asked(trace.allocations);
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    if (e.action == TraceAction::kAlloc) {
      blocks[e.block] = toy.allocate(e.bytes, e.stream), asked[e.block] = e.bytes;
      recorder.placed(i, blocks[e.block].handle, blocks[e.block].bytes);
    }
    if (e.action == TraceAction::kFree) toy.free(blocks[e.block], asked[e.block], e.stream);
    recorder.after(i, toy);
  }
  TwinResult result;
  result.finished = true, result.stopped = trace.events.size();
  result.stats = toy.stats(), result.max_load = result.stats.requested_peak;
  return recorder.take(result);
}

}  // namespace taper
