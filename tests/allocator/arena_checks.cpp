// Adds up memory maps of Taper's own policy.
#include "taper/tests/allocator/arena_checks.h"

#include <iterator>

#include "taper/core/base/error.h"

namespace taper::testing {
namespace {

struct Sums {
  std::uint64_t mapped = 0, live = 0, requested = 0, pending = 0, whole = 0, beside = 0;
  std::uint64_t blocks = 0, largest = 0;
};

// Adds a segment's blocks; says what is wrong with them.
std::string add(const SegmentInfo& segment, Sums& sums) {
  std::uint64_t at = segment.offset;
  bool was_free = false;
  for (const BlockInfo& b : segment.blocks) {
    if (b.offset != at) return str("block ", b.offset, " is not at ", at);
    if (b.bytes == 0 || b.bytes % kBlockBytes != 0) return str("block of ", b.bytes, " bytes");
    at += b.bytes;
    const bool live = b.state == BlockState::kLive;
    if (!live && was_free) return str("two free blocks meet at ", b.offset);
    was_free = !live;
    if (live) {
      ++sums.blocks;
      sums.live += b.bytes;
      sums.requested += b.requested;
      if (b.requested == 0 ||
          (b.requested + kBlockBytes - 1) / kBlockBytes * kBlockBytes != b.bytes)
        return str("block of ", b.bytes, " bytes for ", b.requested);
      continue;
    }
    sums.largest = b.bytes > sums.largest ? b.bytes : sums.largest;
    if (b.state == BlockState::kPending) {
      sums.pending += b.bytes;
      continue;
    }
    const std::uint64_t first = pages_of(b.offset), last = at / kPageBytes;
    const std::uint64_t whole = last > first ? (last - first) * kPageBytes : 0;
    if (b.releasable != whole && b.releasable != 0)  // a pool may keep all of it
      return str(b.releasable, " bytes could go back of block ", b.offset, ", not ", whole);
    sums.whole += b.releasable;
    sums.beside += b.bytes - b.releasable;
  }
  if (at != segment.offset + segment.bytes) return str("segment ", segment.offset, " ends at ", at);
  return "";
}

}  // namespace

std::string first_wrong_in_arena(const OnSim& sim) {
  Sums sums;
  const SegmentInfo* before = nullptr;
  const std::vector<SegmentInfo> map = sim.allocator->memory_map();
  for (const SegmentInfo& segment : map) {
    if (segment.offset % kPageBytes != 0 || segment.bytes % kPageBytes != 0 || segment.bytes == 0)
      return str("segment ", segment.offset, " is no run of pages");
    if (before != nullptr) {
      const std::uint64_t end = before->offset + before->bytes;
      if (segment.offset < end) return str("segment ", segment.offset, " begins before ", end);
      if (segment.offset == end && segment.stream == before->stream && segment.pool == before->pool)
        return str("segments meet at ", end);
    }
    before = &segment;
    if (std::string wrong = add(segment, sums); !wrong.empty()) return wrong;
    sums.mapped += segment.bytes;
  }
  const AllocatorStats s = sim.allocator->stats();
  const std::uint64_t idle =
      (sim.device->created_pages() - sim.device->mapped_pages()) * kPageBytes;
  const struct {
    const char* what;
    std::uint64_t shown, counted;
  } figures[] = {{"allocated", s.allocated, sums.live},
                 {"requested", s.requested, sums.requested},
                 {"blocks", s.blocks, sums.blocks},
                 {"pending", s.pending, sums.pending},
                 {"releasable", s.releasable, sums.whole + idle},
                 {"inactive split", s.inactive_split, sums.beside},
                 {"largest free", s.largest_free, sums.largest},
                 {"mapped", sim.device->mapped_pages() * kPageBytes, sums.mapped},
                 {"reserved", s.reserved, sim.device->created_pages() * kPageBytes},
                 {"frees", s.frees, s.allocations - sums.blocks},
                 {"sum", s.reserved, s.allocated + s.pending + s.releasable + s.inactive_split}};
  for (const auto& f : figures) {
    if (f.shown != f.counted) return str(f.what, ": shown ", f.shown, ", counted ", f.counted);
  }
  if (s.allocated > s.allocated_peak) return "allocated above its peak";
  if (s.requested > s.requested_peak) return "requested above its peak";
  if (s.reserved > s.reserved_peak) return "reserved above its peak";
  if (s.pages_mapped - s.pages_unmapped != sim.device->mapped_pages())
    return "pages are miscounted";
  return "";
}

std::uint64_t pages_touched(const std::vector<SegmentInfo>& map) {
  std::uint64_t touched = 0, counted_to = 0;  // pages below it were looked at
  for (const SegmentInfo& segment : map) {
    for (const BlockInfo& b : segment.blocks) {
      if (b.state != BlockState::kLive) continue;
      const std::uint64_t begin = b.offset / kPageBytes, end = pages_of(b.offset + b.bytes);
      touched += end - (begin < counted_to ? counted_to : begin);
      counted_to = end;
    }
  }
  return touched;
}

std::string first_left_over(OnSim& sim) {
  sim.allocator->empty_cache();
  if (std::string wrong = first_wrong_in_arena(sim); !wrong.empty()) return wrong;
  const AllocatorStats s = sim.allocator->stats();
  if (s.allocated + s.requested + s.pending + s.reserved + s.blocks != 0)
    return str(s.allocated, " bytes in ", s.blocks, " blocks are out, ", s.reserved, " reserved");
  if (sim.device->created_pages() != 0) return str(sim.device->created_pages(), " pages exist");
  if (sim.device->mapped_pages() != 0) return str(sim.device->mapped_pages(), " pages are mapped");
  return "";
}

ArrayRef<const char*> report_names() {
  static constexpr const char* kNames[] = {"embedding_records", "splinters",    "used_elsewhere",
                                           "stuck_stream",      "fsdp",         "oversize",
                                           "small_then_large",  "private_pool", "host_powers"};
  return {kNames, std::size(kNames)};
}

Trace repeated(const Trace& trace, int times) {
  Trace out = trace;
  out.events.clear();
  out.allocations = 0;
  out.offsets.clear();
  for (int i = 0; i < times; ++i) {
    for (TraceEvent e : trace.events) {
      if (e.action <= TraceAction::kRecordStream) e.block += out.allocations;
      e.time = 0;
      out.events.push_back(e);
    }
    out.allocations += trace.allocations;
    TraceEvent step;
    step.action = TraceAction::kStep;
    out.events.push_back(step);
  }
  return out;
}

}  // namespace taper::testing
