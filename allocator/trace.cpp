// Builds traces, and says whether one can be replayed.
#include "taper/allocator/trace.h"

#include "taper/core/base/error.h"

namespace taper {

std::uint32_t TraceBuilder::alloc(std::uint64_t bytes, std::uint16_t stream, std::uint32_t site) {
  trace.events.push_back({now, bytes, trace.allocations, site, 0, stream, TraceAction::kAlloc, 0});
  return trace.allocations++;
}

void TraceBuilder::free(std::uint32_t block) {
  trace.events.push_back({now, 0, block, 0, 0, 0, TraceAction::kFree, 0});
}

void TraceBuilder::record_stream(std::uint32_t block, std::uint16_t stream) {
  trace.events.push_back({now, 0, block, 0, 0, stream, TraceAction::kRecordStream, 0});
}

void TraceBuilder::work(std::uint16_t stream, std::uint64_t nanoseconds) {
  trace.events.push_back({now, nanoseconds, 0, 0, 0, stream, TraceAction::kWork, 0});
}

void TraceBuilder::wait(std::uint16_t stream, std::uint16_t for_stream) {
  trace.events.push_back({now, 0, for_stream, 0, 0, stream, TraceAction::kWait, 0});
}

void TraceBuilder::synchronize() {
  trace.events.push_back({now, 0, 0, 0, 0, 0, TraceAction::kSynchronize, 0});
}

void TraceBuilder::empty_cache() {
  trace.events.push_back({now, 0, 0, 0, 0, 0, TraceAction::kEmptyCache, 0});
}

void TraceBuilder::step() {
  trace.events.push_back({now, 0, 0, 0, 0, 0, TraceAction::kStep, 0});
}

std::string first_fault(const Trace& trace) {
  std::vector<bool> out;  // by block
  const auto is_out = [&](std::uint32_t block) { return block < out.size() && out[block]; };
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    if (e.site >= trace.sites.size())
      return str("event ", i, " names site ", e.site, " of ", trace.sites.size());
    if (e.stream >= trace.streams.size())
      return str("event ", i, " names stream ", e.stream, " of ", trace.streams.size());
    switch (e.action) {
      case TraceAction::kAlloc:
        if (e.block != out.size()) {
          return str("event ", i, " allocates block ", e.block, " where block ", out.size(),
                     " is next");
        }
        out.push_back(true);
        break;
      case TraceAction::kFree:
        if (!is_out(e.block))
          return str("event ", i, " frees block ", e.block, ", which is not out");
        out[e.block] = false;
        break;
      case TraceAction::kRecordStream:
        if (!is_out(e.block))
          return str("event ", i, " uses block ", e.block, ", which is not out");
        break;
      case TraceAction::kWait:
        if (e.block >= trace.streams.size())
          return str("event ", i, " waits for stream ", e.block, " of ", trace.streams.size());
        break;
      case TraceAction::kWork:
      case TraceAction::kSynchronize:
      case TraceAction::kEmptyCache:
      case TraceAction::kStep:
      case TraceAction::kMap:
      case TraceAction::kUnmap:
      case TraceAction::kOom: break;
      default: return str("event ", i, " has the unknown action ", static_cast<int>(e.action));
    }
  }
  if (out.size() != trace.allocations)
    return str("there are ", out.size(), " allocations, not ", trace.allocations);
  if (!trace.offsets.empty() && trace.offsets.size() != out.size())
    return str("there are ", trace.offsets.size(), " offsets for ", out.size(), " allocations");
  return "";
}

}  // namespace taper
