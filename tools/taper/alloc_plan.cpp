// `taper alloc plan`: where the blocks of a step would lie if all of it were known beforehand.
#include <chrono>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "taper/allocator/options.h"
#include "taper/allocator/plan.h"
#include "taper/core/base/error.h"
#include "taper/tools/alloc/solver.h"
#include "taper/tools/taper/alloc_inputs.h"

namespace taper::tools {
namespace {

using nlohmann::ordered_json;

// Events [begin, end), the end of the step not among them.
struct Step {
  std::size_t begin = 0, end = 0;
};

// An allocation, or a free of the allocation number `number` of `ago` steps before.
struct Deed {
  std::size_t event = 0;
  bool allocates = false;
  std::uint64_t bytes = 0;
  std::size_t ago = 0, number = 0;

  bool same(const Deed& other) const {
    return allocates == other.allocates && bytes == other.bytes && ago == other.ago &&
           number == other.number;
  }

  std::string text() const {
    if (allocates) return str("allocates ", bytes, " bytes");
    return str("frees allocation ", number, ago == 0 ? " of its own" : str(" of ", ago, " before"));
  }
};

struct Steps {
  std::vector<Step> steps;
  std::vector<std::vector<Deed>> deeds;  // of each step
};

Steps steps_in(const Trace& trace) {
  Steps out;
  std::vector<std::size_t> step_of(trace.allocations), number_of(trace.allocations);
  std::vector<std::uint64_t> bytes_of(trace.allocations);
  std::vector<Deed> deeds;
  std::size_t begin = 0, allocations = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    if (e.action == TraceAction::kAlloc) {
      step_of[e.block] = out.steps.size();
      number_of[e.block] = allocations++;
      bytes_of[e.block] = e.bytes;
      deeds.push_back({i, true, e.bytes, 0, 0});
    } else if (e.action == TraceAction::kFree) {
      deeds.push_back(
          {i, false, bytes_of[e.block], out.steps.size() - step_of[e.block], number_of[e.block]});
    } else if (e.action == TraceAction::kStep) {
      out.steps.push_back({begin, i});
      out.deeds.push_back(std::move(deeds));
      deeds.clear();
      begin = i + 1, allocations = 0;
    }
  }
  return out;
}

// Nothing, or where step `i` leaves what the one before it did. Steps count from 1 there.
std::string difference(const Steps& all, std::size_t i) {
  const std::vector<Deed>&before = all.deeds[i - 1], &now = all.deeds[i];
  const std::string which = str("steps ", i, " and ", i + 1, " differ at ");
  for (std::size_t d = 0; d < before.size() && d < now.size(); ++d) {
    if (before[d].same(now[d])) continue;
    return str(which, "events ", before[d].event, " and ", now[d].event, ": one ", before[d].text(),
               ", the other ", now[d].text());
  }
  if (before.size() == now.size()) return "";
  return str(which, "their ends: one has ", before.size(), " allocations and frees, the other ",
             now.size());
}

// What is planned, and what of it is not the plan's to decide.
struct Scope {
  std::string what;                // "step 60, which equals step 59"
  std::vector<std::string> notes;  // why not another one
  std::vector<Interval> intervals;
  std::uint64_t staying = 0;               // bytes that are out before, during and after
  std::size_t step = 0, came = 0, go = 0;  // blocks out at its beginning, and at its end
};

// Blocks that come from before are in the plan from the step's beginning until they are freed,
// those that live on from their allocation to its end.
void add_step(Scope& scope, const Trace& trace, Step step) {
  for (const Interval& all : intervals_of(trace)) {
    if (all.end < step.begin || all.begin >= step.end) continue;
    if (all.begin < step.begin && all.end >= step.end) {
      scope.staying += all.bytes;
      continue;
    }
    scope.came += all.begin < step.begin ? 1 : 0;
    scope.go += all.end >= step.end ? 1 : 0;
    scope.intervals.push_back({std::max<std::uint64_t>(all.begin, step.begin),
                               std::min<std::uint64_t>(all.end, step.end), all.bytes});
  }
}

Scope scope_of(const AllocInput& input, bool whole) {
  Scope scope;
  const Steps all = whole ? Steps{} : steps_in(input.trace);
  for (std::size_t i = all.steps.size(); i-- > 1;) {
    const std::string differs = difference(all, i);
    if (differs.empty()) {
      scope.step = i + 1;
      scope.what = str("step ", i + 1, ", which does what step ", i, " did");
      add_step(scope, input.trace, all.steps[i]);
      return scope;
    }
    if (i + 1 == all.steps.size()) scope.notes.push_back(differs);
  }
  if (!whole) {
    scope.notes.push_back(
        all.steps.size() > 1
            ? "no two steps in a row are equal"
            : str("the trace has ", count_text(all.steps.size(), "step"), ", not two to compare"));
  }
  scope.what = "the whole trace";
  scope.intervals = intervals_of(input.trace);
  return scope;
}

// What the policy does with the trace when it plans steps itself.
struct Followed {
  TwinResult result;
  std::uint64_t last_step_calls = 0;  // of the device
};

Followed follow(const Trace& trace) {
  class Calls final : public TwinObserver {
   public:
    explicit Calls(const Trace& trace) : trace_(trace) {}

    void after(std::size_t event, const Allocator& allocator) override {
      if (trace_.events[event].action != TraceAction::kStep) return;
      const std::uint64_t now = allocator.stats().device_calls;
      in_step = now - before_;
      before_ = now;
    }

    void placed(std::size_t, std::uint64_t, std::uint64_t) override {}

    std::uint64_t in_step = 0;

   private:
    const Trace& trace_;
    std::uint64_t before_ = 0;
  } calls(trace);
  TwinSettings settings;
  settings.options.plan = true;
  settings.options.trace_events = 0;
  Followed out;
  out.result = run_twin(trace, settings, &calls);
  out.last_step_calls = calls.in_step;
  return out;
}

void write_plan(const std::string& path,
                const AllocInput& input,
                const Scope& scope,
                const MemoryPlan& plan,
                std::uint64_t alignment) {
  ordered_json blocks = ordered_json::array();
  for (std::size_t i = 0; i < plan.offsets.size(); ++i) {
    const Interval& it = scope.intervals[i];
    blocks.push_back(
        {{"begin", it.begin}, {"end", it.end}, {"bytes", it.bytes}, {"offset", plan.offsets[i]}});
  }
  const ordered_json out = {{"trace", input.name},    {"scope", scope.what},
                            {"bytes", plan.bytes},    {"max_load", plan.max_load},
                            {"alignment", alignment}, {"blocks", std::move(blocks)}};
  write_text(path, out.dump(1) + "\n");
}

struct Outcome {
  Scope scope;
  MemoryPlan plan;
  std::uint64_t alignment = kBlockBytes;
  double seconds = 0;
  bool searched = false;
  std::uint64_t greedy = 0;  // bytes of the plan that the search began with
  Followed followed;         // where a step is planned

  double ratio() const {
    if (plan.max_load == 0) return 1;
    return static_cast<double>(plan.bytes) / static_cast<double>(plan.max_load);
  }
};

ordered_json json_of(const Outcome& o, const AllocInput& input) {
  ordered_json out = {{"trace", input.name},
                      {"scope", o.scope.what},
                      {"step", o.scope.step},
                      {"notes", o.scope.notes},
                      {"blocks", o.scope.intervals.size()},
                      {"bytes", o.plan.bytes},
                      {"max_load", o.plan.max_load},
                      {"ratio", o.ratio()},
                      {"alignment", o.alignment},
                      {"seconds", o.seconds},
                      {"bytes_that_stay_out", o.scope.staying},
                      {"blocks_from_before", o.scope.came},
                      {"blocks_that_live_on", o.scope.go}};
  if (o.searched) out["bytes_before_search"] = o.greedy;
  if (o.scope.step != 0) {
    out["followed"] = {{"reserved_peak", o.followed.result.stats.reserved_peak},
                       {"peak_ratio", o.followed.result.peak_ratio()},
                       {"device_calls_in_last_step", o.followed.last_step_calls}};
  }
  return out;
}

std::string text_of(const Outcome& o) {
  std::string out;
  for (const std::string& note : o.scope.notes) out += note + "\n";
  out += str("planned ", o.scope.what, ": ", count_text(o.scope.intervals.size(), "block"), " in ",
             size_text(o.plan.bytes), ", ", fixed(o.ratio(), 4), " times their max load of ",
             size_text(o.plan.max_load), " (", fixed(1e3 * o.seconds, 0), " ms)\n");
  if (o.searched) {
    out += o.plan.bytes < o.greedy
               ? str("the search lowered it from ", size_text(o.greedy), "\n")
               : str("the search found none that is lower",
                     o.plan.bytes == o.plan.max_load ? ": there is none\n" : "\n");
  }
  if (o.scope.staying != 0)
    out += str("beside it ", size_text(o.scope.staying), " stay out all the time\n");
  if (o.scope.came + o.scope.go != 0) {
    out += str(count_text(o.scope.came, "block"), " from before, ", count_text(o.scope.go, "block"),
               " living on after it\n");
  }
  if (o.scope.step != 0) {
    out +=
        str("replayed with plan:on the trace reserves ",
            size_text(o.followed.result.stats.reserved_peak), ", ",
            fixed(o.followed.result.peak_ratio(), 4), " times its max load; its last step makes ",
            count_text(o.followed.last_step_calls, "device call"), "\n");
  }
  return out;
}

// The greedy plan, and what a search of some seconds makes of it.
void make_plan(Outcome& o, double search) {
  const auto start = std::chrono::steady_clock::now();
  o.plan = plan_offsets(o.scope.intervals, o.alignment);
  o.searched = search > 0;
  o.greedy = o.plan.bytes;
  if (o.searched) {
    LateProgress progress("searching", static_cast<std::size_t>(1e3 * search));
    o.plan = solve(o.scope.intervals, o.alignment, search, /*seed=*/1,
                   [&](double seconds, std::uint64_t bytes) {
                     progress.update(static_cast<std::size_t>(1e3 * seconds),
                                     str("lowest so far ", size_text(bytes), ", max load ",
                                         size_text(o.plan.max_load)));
                   });
  }
  o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string overlap = first_overlap(o.scope.intervals, o.plan);
  TAPER_CHECK(overlap.empty(), "the plan is wrong, please report this trace: ", overlap);
}

}  // namespace

int plan_trace(const PlanRequest& request) {
  const AllocInput input = load_input(request.input, request.device);
  Outcome o;
  o.alignment = parse_size(request.alignment);
  o.scope = scope_of(input, request.whole);
  make_plan(o, request.search);
  if (!request.out.empty()) write_plan(request.out, input, o.scope, o.plan, o.alignment);
  if (o.scope.step != 0) o.followed = follow(input.trace);
  if (request.json) {
    ordered_json out = json_of(o, input);
    if (!request.out.empty()) out["file"] = request.out;
    std::printf("%s\n", out.dump(2).c_str());
    return 0;
  }
  std::printf("%s", text_of(o).c_str());
  if (!request.out.empty()) std::printf("%s has the offsets\n", request.out.c_str());
  return 0;
}

}  // namespace taper::tools
