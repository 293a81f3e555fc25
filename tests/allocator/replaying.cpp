// Replays traces, and finds what is wrong in a memory map.
#include "taper/tests/allocator/replaying.h"

namespace taper::testing {

void Replay::alloc(const TraceEvent& event) {
  Allocator& a = *sim_.allocator;
  while (pools_.size() <= event.pool) pools_.push_back(a.make_pool(keep_addresses_));
  if (event.pool != 0) a.begin_pool(pools_[event.pool], event.stream);
  Out out{{}, event.bytes, event.stream, true};
  try {
    out.block = a.allocate(event.bytes, event.stream);
  } catch (const OutOfMemory&) {
    if (event.pool != 0) a.end_pool(event.stream);
    throw;
  }
  if (event.pool != 0) a.end_pool(event.stream);
  if (blocks_.size() <= event.block) blocks_.resize(event.block + 1);
  blocks_[event.block] = out;
}

bool Replay::run(const Trace& trace) {
  Allocator& a = *sim_.allocator;
  SimDevice& device = *sim_.device;
  for (; done_ < trace.events.size(); ++done_) {
    const TraceEvent& e = trace.events[done_];
    device.advance_host(e.time);
    switch (e.action) {
      case TraceAction::kAlloc: try { alloc(e);
        } catch (const OutOfMemory& error) {
          refusal_ = error.report();
          return false;
        }
        break;
      case TraceAction::kFree: {
        Out& out = blocks_[e.block];
        a.free(out.block, out.bytes, out.stream);
        out.out = false;
        break;
      }
      case TraceAction::kRecordStream: a.record_stream(blocks_[e.block].block, e.stream); break;
      case TraceAction::kWork: device.work(e.stream, e.bytes); break;
      case TraceAction::kWait: device.wait(e.stream, e.block, device.mark(e.block)); break;
      case TraceAction::kSynchronize: device.synchronize_all(); break;
      case TraceAction::kEmptyCache: a.empty_cache(); break;
      default: break;
    }
  }
  return true;
}

void Replay::free_all() {
  for (Out& out : blocks_) {
    if (out.out) sim_.allocator->free(out.block, out.bytes, out.stream);
    out.out = false;
  }
}

std::string first_wrong(const Torch& torch) {
  AllocatorStats sums;
  std::uint64_t end = 0, free_bytes = 0;
  for (const SegmentInfo& segment : torch.allocator->memory_map()) {
    if (segment.offset < end) return str("segment ", segment.offset, " begins before ", end);
    if (segment.offset % kPageBytes != 0 || segment.bytes % kPageBytes != 0 || segment.bytes == 0)
      return str("segment ", segment.offset, " is no run of pages");
    end = segment.offset;
    bool was_free = false;
    for (const BlockInfo& b : segment.blocks) {
      if (b.offset != end) return str("block ", b.offset, " is not at ", end);
      if (b.bytes == 0 || b.bytes % kBlockBytes != 0) return str("block of ", b.bytes, " bytes");
      const bool is_free = b.state == BlockState::kFree;
      if (is_free && was_free) return str("two free blocks meet at ", b.offset);
      was_free = is_free;
      end += b.bytes;
      if (b.state == BlockState::kLive) {
        sums.allocated += b.bytes;
        sums.requested += b.requested;
        ++sums.blocks;
        if (b.requested == 0 || b.requested > b.bytes)
          return str("block of ", b.bytes, " bytes for ", b.requested);
      }
      if (b.state == BlockState::kPending) sums.pending += b.bytes;
      if (is_free) free_bytes += b.bytes;
      sums.releasable += b.releasable;
      if (is_free && b.bytes > sums.largest_free) sums.largest_free = b.bytes;
    }
    if (end != segment.offset + segment.bytes)
      return str("blocks of segment ", segment.offset, " end at ", end);
    sums.reserved += segment.bytes;
  }
  const AllocatorStats s = torch.allocator->stats();
  const auto differs = [](const char* what, std::uint64_t counted, std::uint64_t shown) {
    return counted == shown ? "" : str(what, ": counted ", counted, ", shown ", shown);
  };
  std::string wrong = differs("allocated", s.allocated, sums.allocated);
  if (wrong.empty()) wrong = differs("requested", s.requested, sums.requested);
  if (wrong.empty()) wrong = differs("blocks", s.blocks, sums.blocks);
  if (wrong.empty()) wrong = differs("pending", s.pending, sums.pending);
  if (wrong.empty()) wrong = differs("reserved", s.reserved, sums.reserved);
  if (wrong.empty()) wrong = differs("largest free", s.largest_free, sums.largest_free);
  if (wrong.empty()) wrong = differs("releasable", s.releasable, sums.releasable);
  if (wrong.empty()) wrong = differs("free", s.releasable + s.inactive_split, free_bytes);
  if (wrong.empty())
    wrong = differs("pages", s.reserved, torch.device->created_pages() * kPageBytes);
  if (wrong.empty())
    wrong = differs("mapped", s.reserved, torch.device->mapped_pages() * kPageBytes);
  if (wrong.empty() && s.allocated > s.allocated_peak) wrong = "allocated above its peak";
  if (wrong.empty() && s.reserved > s.reserved_peak) wrong = "reserved above its peak";
  return wrong;
}

}  // namespace taper::testing
