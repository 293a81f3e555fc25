// `taper alloc replay` and `min-capacity`: what policies do with traces, in figures.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "taper/allocator/options.h"
#include "taper/allocator/plan.h"
#include "taper/core/base/error.h"
#include "taper/tools/taper/alloc_inputs.h"

namespace taper::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kFewSteps = 4;  // fewer have no first quarter to warm up in

// What there was after the event at which reserved first was at its peak.
class AtPeak final : public TwinObserver {
 public:
  explicit AtPeak(std::uint64_t reserved_peak) : reserved_peak_(reserved_peak) {}

  void after(std::size_t event, const Allocator& allocator) override {
    const AllocatorStats now = allocator.stats();
    if (now.reserved <= stats.reserved) return;
    stats = now;
    at = event;
    if (now.reserved != reserved_peak_) return;
    double sum = 0, squares = 0;
    for (const SegmentInfo& segment : allocator.memory_map()) {
      for (const BlockInfo& b : segment.blocks) {
        if (b.state != BlockState::kFree) continue;
        const auto bytes = static_cast<double>(b.bytes);
        sum += bytes, squares += bytes * bytes;
      }
    }
    sum_of_squares = sum == 0 ? 1 : squares / (sum * sum);
  }

  void placed(std::size_t, std::uint64_t, std::uint64_t) override {}

  AllocatorStats stats;
  std::size_t at = 0;
  double sum_of_squares = -1;  // of the shares that free blocks have of all that is free

 private:
  std::uint64_t reserved_peak_;
};

struct Run {
  std::string trace, policy, options;
  std::size_t events = 0;
  TwinResult result;
  AllocatorStats peak;
  std::size_t peak_event = 0;
  double sum_of_squares = -1, nanoseconds = -1;

  // The share of what is free that is not in the largest free block.
  double scattered() const {
    const std::uint64_t free = peak.reserved - peak.allocated - peak.pending;
    return free == 0 || peak.largest_free >= free
               ? 0
               : 1 - static_cast<double>(peak.largest_free) / static_cast<double>(free);
  }
};

// Every run must do the same; the least is one run to measure and one to look.
Run measure(const AllocInput& input, const AllocSettings& settings, int times) {
  Run run;
  run.trace = input.name;
  run.policy = settings.policy;
  run.options = to_string(settings.twin.options);
  run.events = input.trace.events.size();
  std::vector<double> seconds;
  for (int i = 0; i < std::max(times, 1); ++i) {
    run.result = run_twin(input.trace, settings.twin);
    seconds.push_back(run.result.seconds);
  }
  AtPeak at_peak(run.result.stats.reserved_peak);
  const TwinResult again = run_twin(input.trace, settings.twin, &at_peak);
  TAPER_CHECK(again.placement_hash == run.result.placement_hash, input.name, " under ",
              settings.policy, ": two replays differ; please report this trace");
  run.peak = at_peak.stats;
  run.peak_event = at_peak.at;
  run.sum_of_squares = at_peak.sum_of_squares;
  if (times > 0 && run.result.stopped > 0) {
    std::sort(seconds.begin(), seconds.end());
    run.nanoseconds = seconds[seconds.size() / 2] * 1e9 / static_cast<double>(run.result.stopped);
  }
  return run;
}

std::string hex(std::uint64_t n) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(n));
  return text;
}

std::string end_of(const Run& run) {
  if (run.result.finished) return "finished";
  return str("out of memory at event ", run.result.stopped);
}

void add_memory_row(Table& table, const Run& run) {
  const AllocatorStats& s = run.result.stats;
  table.add({run.trace, run.policy, size_text(run.result.max_load), size_text(s.reserved_peak),
             run.result.finished ? fixed(run.result.peak_ratio(), 3) : "-",
             size_text(s.allocated_peak), size_text(s.pending_peak),
             percent(run.peak.internal_fragmentation()), percent(run.peak.external_fragmentation()),
             size_text(run.peak.releasable), size_text(run.peak.inactive_split),
             percent(run.scattered()),
             run.sum_of_squares < 0 ? "-" : fixed(run.sum_of_squares, 3)});
}

void add_work_row(Table& table, const Run& run) {
  const TwinResult& r = run.result;
  std::vector<std::string> row = {run.trace,
                                  run.policy,
                                  str(run.events),
                                  str(r.steps),
                                  str(r.stats.device_calls),
                                  str(r.stats.pages_mapped),
                                  r.steps < kFewSteps ? "-" : fixed(r.maps_per_step, 1),
                                  str(r.stats.stream_waits),
                                  str(r.stats.retries)};
  if (run.nanoseconds >= 0) row.push_back(fixed(run.nanoseconds, 0));
  row.push_back(hex(r.placement_hash));
  row.push_back(end_of(run));
  table.add(std::move(row));
}

ordered_json json_of(const Run& run) {
  const TwinResult& r = run.result;
  const AllocatorStats& s = r.stats;
  ordered_json out = {{"trace", run.trace},
                      {"policy", run.policy},
                      {"options", run.options},
                      {"events", run.events},
                      {"steps", r.steps},
                      {"finished", r.finished},
                      {"events_done", r.stopped},
                      {"max_load", r.max_load},
                      {"reserved_peak", s.reserved_peak},
                      {"peak_ratio", r.peak_ratio()},
                      {"allocated_peak", s.allocated_peak},
                      {"requested_peak", s.requested_peak},
                      {"pending_peak", s.pending_peak},
                      {"device_calls", s.device_calls},
                      {"pages_mapped", s.pages_mapped},
                      {"pages_unmapped", s.pages_unmapped},
                      {"pages_mapped_after_warmup", r.mapped_after_warmup},
                      {"pages_mapped_per_step", r.maps_per_step},
                      {"stream_waits", s.stream_waits},
                      {"retries", s.retries},
                      {"device_nanoseconds", r.device_nanoseconds},
                      {"placement_hash", hex(r.placement_hash)}};
  ordered_json peak = {{"event", run.peak_event},
                       {"reserved", run.peak.reserved},
                       {"allocated", run.peak.allocated},
                       {"requested", run.peak.requested},
                       {"pending", run.peak.pending},
                       {"internal_fragmentation", run.peak.internal_fragmentation()},
                       {"external_fragmentation", run.peak.external_fragmentation()},
                       {"releasable", run.peak.releasable},
                       {"pinned", run.peak.inactive_split},
                       {"largest_free", run.peak.largest_free},
                       {"scattered", run.scattered()}};
  if (run.sum_of_squares >= 0) peak["free_sum_of_squares"] = run.sum_of_squares;
  out["at_peak"] = std::move(peak);
  if (run.nanoseconds >= 0) out["nanoseconds_per_event"] = run.nanoseconds;
  if (!r.failure.empty()) out["failure"] = r.failure;
  return out;
}

// Ratios by trace and policy, which come in the order of policies, and their geometric means.
// Without a ratio: it did not finish.
class Ratios {
 public:
  explicit Ratios(const std::vector<AllocSettings>& settings) {
    for (const AllocSettings& s : settings) means_.push_back({s.policy, 0, 0});
  }

  void add(const std::string& trace,
           std::uint64_t load,
           const std::string& policy,
           std::optional<double> ratio) {
    if (rows_.empty() || rows_.back().ratios.size() == means_.size())
      rows_.push_back({trace, load, {}});
    rows_.back().ratios.push_back(ratio ? fixed(*ratio, 3) : "-");
    for (Mean& m : means_) {
      if (m.policy == policy && ratio) m.logs += std::log(*ratio), ++m.count;
    }
  }

  // A column for each policy, the means below.
  std::string table() const {
    std::vector<std::string> head = {"trace", "max load"}, last = {"geometric mean", ""};
    for (const Mean& m : means_) {
      head.push_back(m.policy);
      last.push_back(m.count == 0 ? "-" : fixed(m.value(), 3));
    }
    Table table(std::move(head), 1);
    for (const Row& row : rows_) {
      std::vector<std::string> cells = {row.trace, size_text(row.load)};
      cells.insert(cells.end(), row.ratios.begin(), row.ratios.end());
      table.add(std::move(cells));
    }
    if (rows_.size() > 1) table.add(std::move(last));
    return table.text();
  }

  // "" where no policy has two.
  std::string means() const {
    std::string out;
    for (const Mean& m : means_) {
      if (m.count < 2) continue;
      out += str(out.empty() ? "" : ", ", m.policy, " ", fixed(m.value(), 3), " (", m.count, ")");
    }
    return out;
  }

  ordered_json json() const {
    ordered_json out = ordered_json::object();
    for (const Mean& m : means_) {
      if (m.count > 0) out[m.policy] = {{"mean", m.value()}, {"traces", m.count}};
    }
    return out;
  }

 private:
  struct Mean {
    std::string policy;
    double logs;
    int count;

    double value() const { return std::exp(logs / count); }
  };

  struct Row {
    std::string trace;
    std::uint64_t load = 0;
    std::vector<std::string> ratios;  // in the order of policies
  };

  std::vector<Mean> means_;
  std::vector<Row> rows_;
};

void print_runs(const std::vector<Run>& runs, const Ratios& ratios, bool timed) {
  Table memory({"trace", "policy", "max load", "reserved", "ratio", "allocated", "pending",
                "internal", "external", "releasable", "pinned", "scattered", "squares"},
               2);
  std::vector<std::string> head = {"trace",        "policy", "events", "steps",  "device calls",
                                   "pages mapped", "a step", "waits",  "retries"};
  if (timed) head.emplace_back("ns/event");
  head.emplace_back("placement hash");
  head.emplace_back("end");
  Table work(std::move(head), 2);
  for (const Run& run : runs) add_memory_row(memory, run), add_work_row(work, run);
  std::printf("%s\n%s", memory.text().c_str(), work.text().c_str());
  if (const std::string text = ratios.means(); !text.empty())
    std::printf("\nreserved / max load, geometric mean of those that finished: %s\n", text.c_str());
  for (const Run& run : runs) {
    if (!run.result.failure.empty()) {
      std::printf("\n%s under %s\n%s\n", run.trace.c_str(), run.policy.c_str(),
                  run.result.failure.c_str());
    }
  }
}

// Calls f(input, settings) for every trace under every policy.
template <class F>
void for_each_run(const ReplayRequest& request,
                  const std::vector<AllocSettings>& settings,
                  const char* label,
                  F f) {
  const std::vector<std::string> names = expand_inputs(request.inputs);
  LateProgress progress(label, names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const AllocInput& input : load_inputs(names[i])) {
      for (const AllocSettings& s : settings) f(input, s);
    }
    progress.update(i + 1, names[i]);
  }
}

}  // namespace

int replay_traces(const ReplayRequest& request) {
  const std::vector<AllocSettings> settings = settings_of(request.machine);
  std::vector<Run> runs;
  Ratios ratios(settings);
  for_each_run(request, settings, "replay", [&](const AllocInput& input, const AllocSettings& s) {
    runs.push_back(measure(input, s, request.time));
    const TwinResult& r = runs.back().result;
    ratios.add(input.name, max_load(intervals_of(input.trace)), s.policy,
               r.finished ? std::optional(r.peak_ratio()) : std::nullopt);
  });
  if (!request.json) {
    if (request.brief) std::printf("reserved / max load\n\n%s", ratios.table().c_str());
    else print_runs(runs, ratios, request.time > 0);
    return 0;
  }
  ordered_json out = {{"capacity", settings.front().twin.capacity},
                      {"threads", request.machine.threads},
                      {"timing_seed", request.machine.timing_seed},
                      {"runs", ordered_json::array()}};
  for (const Run& run : runs) out["runs"].push_back(json_of(run));
  out["geometric_means"] = ratios.json();
  std::printf("%s\n", out.dump(2).c_str());
  return 0;
}

int find_min_capacity(const ReplayRequest& request) {
  const std::vector<AllocSettings> settings = settings_of(request.machine);
  Table table({"trace", "policy", "max load", "min capacity", "ratio"}, 2);
  ordered_json rows = ordered_json::array();
  Ratios ratios(settings);
  for_each_run(
      request, settings, "min-capacity", [&](const AllocInput& input, const AllocSettings& s) {
        const std::uint64_t load = max_load(intervals_of(input.trace));
        const std::uint64_t least = min_capacity(input.trace, s.twin);
        const double ratio = load == 0 ? 1 : static_cast<double>(least) / static_cast<double>(load);
        ratios.add(input.name, load, s.policy, ratio);
        table.add({input.name, s.policy, size_text(load), size_text(least), fixed(ratio, 3)});
        rows.push_back({{"trace", input.name},
                        {"policy", s.policy},
                        {"options", to_string(s.twin.options)},
                        {"max_load", load},
                        {"min_capacity", least},
                        {"ratio", ratio}});
      });
  if (request.json) {
    const ordered_json out = {{"runs", rows}, {"geometric_means", ratios.json()}};
    std::printf("%s\n", out.dump(2).c_str());
    return 0;
  }
  if (request.brief) {
    std::printf("min capacity / max load\n\n%s", ratios.table().c_str());
    return 0;
  }
  std::printf("%s", table.text().c_str());
  if (const std::string text = ratios.means(); !text.empty())
    std::printf("\nmin capacity / max load, geometric mean: %s\n", text.c_str());
  return 0;
}

}  // namespace taper::tools
