// `taper alloc report` and `map`: what memory looks like, as a page and as characters.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "taper/allocator/options.h"
#include "taper/allocator/page_map.h"
#include "taper/core/base/error.h"
#include "taper/core/base/text.h"
#include "taper/tools/alloc/report.h"
#include "taper/tools/taper/alloc_inputs.h"

namespace taper::tools {
namespace {

using nlohmann::ordered_json;

// The map after one event, or after the first event at which most is reserved.
class MapAt final : public TwinObserver {
 public:
  // `event` < 0: where reserved first is `reserved_peak`, or as near to it as any event leaves it.
  MapAt(std::int64_t event, std::uint64_t reserved_peak)
      : event_(event), reserved_peak_(reserved_peak) {}

  void after(std::size_t event, const Allocator& allocator) override {
    const AllocatorStats now = allocator.stats();
    const bool higher = now.reserved > stats.reserved && 10 * now.reserved >= 9 * reserved_peak_;
    if (event_ >= 0 ? event != static_cast<std::size_t>(event_) : !higher) return;
    stats = now;
    at = event;
    map = allocator.memory_map();
  }

  void placed(std::size_t, std::uint64_t, std::uint64_t) override {}

  std::size_t at = 0;
  AllocatorStats stats;
  std::vector<SegmentInfo> map;

 private:
  std::int64_t event_;
  std::uint64_t reserved_peak_;
};

const char* state_name(BlockState state) {
  switch (state) {
    case BlockState::kLive: return "live";
    case BlockState::kPending: return "pending";
    case BlockState::kFree: return "free";
  }
  return "";
}

ordered_json json_of(const std::vector<SegmentInfo>& map) {
  ordered_json out = ordered_json::array();
  for (const SegmentInfo& s : map) {
    ordered_json blocks = ordered_json::array();
    for (const BlockInfo& b : s.blocks) {
      ordered_json block = {
          {"offset", b.offset}, {"bytes", b.bytes}, {"state", state_name(b.state)}};
      if (b.state == BlockState::kLive) block["requested"] = b.requested;
      blocks.push_back(std::move(block));
    }
    out.push_back({{"offset", s.offset},
                   {"bytes", s.bytes},
                   {"stream", s.stream},
                   {"pool", s.pool},
                   {"small", s.small},
                   {"blocks", std::move(blocks)}});
  }
  return out;
}

std::string event_text(const Trace& trace, std::size_t at) {
  const TraceEvent& e = trace.events[at];
  std::string text;
  switch (e.action) {
    case TraceAction::kAlloc: text = str("allocates ", size_text(e.bytes)); break;
    case TraceAction::kFree: text = str("frees block ", e.block); break;
    case TraceAction::kStep: text = "ends a step"; break;
    default: text = "touches no block"; break;
  }
  const TraceSite& site = trace.sites[e.site];
  if (!site.op.empty()) text += str(" for ", site.op);
  if (!site.scope.empty()) text += str(" in ", site.scope);
  return text;
}

}  // namespace

int write_report(const ReportRequest& request) {
  const AllocInput input = load_input(request.input, request.device);
  const std::vector<AllocSettings> settings = settings_of(request.machine);
  std::vector<ReportRun> runs;
  LateProgress progress("report", settings.size());
  for (const AllocSettings& s : settings) {
    ReportRecorder recorder(input.trace, s.policy);
    const TwinResult result = run_twin(input.trace, s.twin, &recorder);
    runs.push_back(recorder.take(result));
    progress.update(runs.size(), s.policy);
  }
  const std::string page = report_html(input.trace, runs);
  write_text(request.out, page);
  if (request.json) {
    ordered_json out = {
        {"file", request.out}, {"bytes", page.size()}, {"trace", input.name}, {"runs", {}}};
    for (const ReportRun& run : runs) {
      out["runs"].push_back({{"policy", run.policy},
                             {"finished", run.result.finished},
                             {"reserved_peak", run.result.stats.reserved_peak},
                             {"peak_ratio", run.result.peak_ratio()}});
    }
    std::printf("%s\n", out.dump(2).c_str());
    return 0;
  }
  std::printf("%s  %s, %s\n", request.out.c_str(), size_text(page.size()).c_str(),
              summary_of(input.trace).c_str());
  for (const ReportRun& run : runs) {
    std::printf("  %-17s reserved %s, %s times the max load%s\n", run.policy.c_str(),
                size_text(run.result.stats.reserved_peak).c_str(),
                fixed(run.result.peak_ratio(), 3).c_str(),
                run.result.finished ? "" : ", out of memory");
  }
  return 0;
}

int show_map(const MapRequest& request) {
  AllocInput input = load_input(request.input, request.device);
  const std::size_t events = input.trace.events.size();
  TAPER_CHECK(events > 0, input.name, " has no events");
  TAPER_CHECK(request.at < 0 || static_cast<std::size_t>(request.at) < events, input.name, " has ",
              count_text(events, "event"), ", 0 to ", events - 1, "; there is none of number ",
              request.at);
  const std::size_t page = parse_size(request.page);
  TAPER_CHECK(page > 0 && page % kBlockBytes == 0,
              "--page is a multiple of 512 bytes, as in 64K; got ", request.page);
  const std::vector<AllocSettings> settings = settings_of(request.machine);
  TAPER_CHECK(settings.size() == 1, "map shows one policy");
  std::uint64_t reserved_peak = 0;
  if (request.at < 0) reserved_peak = run_twin(input.trace, settings[0].twin).stats.reserved_peak;
  else input.trace.events.resize(static_cast<std::size_t>(request.at) + 1);
  MapAt seen(request.at, reserved_peak);
  const TwinResult result = run_twin(input.trace, settings[0].twin, &seen);
  TAPER_CHECK(request.at < 0 || result.finished, "out of memory at event ", result.stopped,
              ", before event ", request.at, "; a larger --capacity goes further\n",
              result.failure);
  if (request.json) {
    const ordered_json out = {{"trace", input.name},
                              {"policy", settings[0].policy},
                              {"event", seen.at},
                              {"reserved", seen.stats.reserved},
                              {"allocated", seen.stats.allocated},
                              {"requested", seen.stats.requested},
                              {"segments", json_of(seen.map)}};
    std::printf("%s\n", out.dump(2).c_str());
    return 0;
  }
  std::printf("%s under %s after event %zu of %zu, which %s\n\n%s", input.name.c_str(),
              settings[0].policy.c_str(), seen.at, events, event_text(input.trace, seen.at).c_str(),
              page_map_text(seen.map, page).c_str());
  return 0;
}

}  // namespace taper::tools
