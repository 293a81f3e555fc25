// Records runs for a report, and puts its page together.
#include "taper/tools/alloc/report.h"

#include <algorithm>
#include <utility>

#include "taper/core/base/error.h"
#include "taper/tools/alloc/report_parts.h"
#include "taper/tools/page_style.h"

namespace taper::tools {
namespace {

void add(ReportCurve& curve, std::size_t point, std::uint64_t value) {
  if (point == curve.low.size()) {
    curve.low.push_back(value), curve.high.push_back(value);
    return;
  }
  curve.low[point] = std::min(curve.low[point], value);
  curve.high[point] = std::max(curve.high[point], value);
}

}  // namespace

ReportRecorder::ReportRecorder(const Trace& trace, std::string policy) : trace_(trace) {
  run_.policy = std::move(policy);
  run_.events_per_point = (trace.events.size() + kPoints - 1) / kPoints;
  run_.events_per_point = std::max<std::uint64_t>(run_.events_per_point, 1);
  run_.places.resize(trace.allocations);
}

void ReportRecorder::after(std::size_t event, const Allocator& allocator) {
  TAPER_CHECK(event == seen_, "a report was told of event ", event, " after ", seen_, " events");
  ++seen_;
  const AllocatorStats stats = allocator.stats();
  const std::size_t point = event / run_.events_per_point;
  add(run_.reserved, point, stats.reserved);
  add(run_.allocated, point, stats.allocated);
  add(run_.requested, point, stats.requested);
  add(run_.pending, point, stats.pending);
  add(run_.largest_free, point, stats.largest_free);
  const AllocatorStats& most = run_.peak.stats;
  if (event == 0 ||
      std::pair(stats.reserved, stats.allocated) > std::pair(most.reserved, most.allocated))
    run_.peak = {event, stats};
  const std::uint64_t changes = stats.device_calls + stats.pages_mapped + stats.pages_unmapped;
  if (changes != map_changes_ && event >= next_map_) {
    map_changes_ = changes;
    next_map_ = event + trace_.events.size() / kMaps;
    read_map(event, allocator);
  }
}

// Segments that are still there go on; the others end, and new ones begin.
void ReportRecorder::read_map(std::size_t event, const Allocator& allocator) {
  std::vector<ReportRange> now;
  auto old = open_.begin();
  for (const SegmentInfo& s : allocator.memory_map()) {
    for (; old != open_.end() && old->offset < s.offset; ++old) {
      run_.ranges.push_back(*old);
      run_.ranges.back().end = event;
    }
    if (old != open_.end() && old->offset == s.offset && old->bytes == s.bytes) {
      now.push_back(*old++);
    } else {
      now.push_back({s.offset, s.bytes, event, 0});
    }
  }
  for (; old != open_.end(); ++old) {
    run_.ranges.push_back(*old);
    run_.ranges.back().end = event;
  }
  open_ = std::move(now);
}

void ReportRecorder::placed(std::size_t event, std::uint64_t offset, std::uint64_t bytes) {
  TAPER_CHECK(event < trace_.events.size() && trace_.events[event].action == TraceAction::kAlloc,
              "a report was told that event ", event, " placed a block; it allocates none");
  run_.places[trace_.events[event].block] = {offset, bytes};
}

ReportRun ReportRecorder::take(const TwinResult& result) {
  for (ReportRange& range : open_) {
    range.end = seen_;
    if (range.begin < range.end) run_.ranges.push_back(range);
  }
  open_.clear();
  run_.result = result;
  return std::move(run_);
}

std::string report_html(const Trace& trace, const std::vector<ReportRun>& runs) {
  for (const ReportRun& run : runs) {
    TAPER_CHECK(run.places.size() == trace.allocations, "the run of ", run.policy, " places ",
                run.places.size(), " blocks, the trace has ", trace.allocations);
  }
  std::string page = kReportPage;
  page += kPageStyle;
  page += kReportBody;
  page += "<script type=\"application/json\" id=\"data\">";
  page += report_data(trace, runs);
  page += "</script>\n<script>\n";
  page += kReportDrawing;
  page += kReportScript;
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace taper::tools
