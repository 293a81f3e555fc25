// `taper alloc plan`: where the blocks of a step would lie if all of it were known beforehand.
#include <chrono>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "taper/allocator/options.h"
#include "taper/allocator/plan.h"
#include "taper/core/base/error.h"
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
  if (!whole && all.steps.size() < 2)
    scope.notes.push_back(
        str("the trace has ", count_text(all.steps.size(), "step"), ", not two to compare"));
  else if (!whole) scope.notes.emplace_back("no two steps in a row are equal");
  scope.what = "the whole trace";
  scope.intervals = intervals_of(input.trace);
  return scope;
}

void write_plan(const std::string& path,
                const AllocInput& input,
                const Scope& scope,
                const MemoryPlan& plan) {
  ordered_json blocks = ordered_json::array();
  for (std::size_t i = 0; i < plan.offsets.size(); ++i) {
    const Interval& it = scope.intervals[i];
    blocks.push_back(
        {{"begin", it.begin}, {"end", it.end}, {"bytes", it.bytes}, {"offset", plan.offsets[i]}});
  }
  const ordered_json out = {{"trace", input.name},      {"scope", scope.what},
                            {"bytes", plan.bytes},      {"max_load", plan.max_load},
                            {"alignment", kBlockBytes}, {"blocks", std::move(blocks)}};
  write_text(path, out.dump(1) + "\n");
}

}  // namespace

int plan_trace(const PlanRequest& request) {
  const AllocInput input = load_input(request.input, request.device);
  const Scope scope = scope_of(input, request.whole);
  const auto start = std::chrono::steady_clock::now();
  const MemoryPlan plan = plan_offsets(scope.intervals, kBlockBytes);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::string overlap = first_overlap(scope.intervals, plan);
  TAPER_CHECK(overlap.empty(), "the plan is wrong, please report this trace: ", overlap);
  const double ratio =
      plan.max_load == 0 ? 1 : static_cast<double>(plan.bytes) / static_cast<double>(plan.max_load);
  if (!request.out.empty()) write_plan(request.out, input, scope, plan);
  if (request.json) {
    ordered_json out = {{"trace", input.name},
                        {"scope", scope.what},
                        {"step", scope.step},
                        {"notes", scope.notes},
                        {"blocks", scope.intervals.size()},
                        {"bytes", plan.bytes},
                        {"max_load", plan.max_load},
                        {"ratio", ratio},
                        {"seconds", took.count()},
                        {"bytes_that_stay_out", scope.staying},
                        {"blocks_from_before", scope.came},
                        {"blocks_that_live_on", scope.go}};
    if (!request.out.empty()) out["file"] = request.out;
    std::printf("%s\n", out.dump(2).c_str());
    return 0;
  }
  for (const std::string& note : scope.notes) std::printf("%s\n", note.c_str());
  std::printf("planned %s: %s in %s, %s times their max load of %s (%.0f ms)\n", scope.what.c_str(),
              count_text(scope.intervals.size(), "block").c_str(), size_text(plan.bytes).c_str(),
              fixed(ratio, 4).c_str(), size_text(plan.max_load).c_str(), 1e3 * took.count());
  if (scope.staying != 0)
    std::printf("beside it %s stay out all the time\n", size_text(scope.staying).c_str());
  if (scope.came + scope.go != 0)
    std::printf("%s from before, %s on after it\n",
                (count_text(scope.came, "block") + (scope.came == 1 ? " comes" : " come")).c_str(),
                (count_text(scope.go, "block") + (scope.go == 1 ? " lives" : " live")).c_str());
  if (!request.out.empty()) std::printf("%s has the offsets\n", request.out.c_str());
  return 0;
}

}  // namespace taper::tools
