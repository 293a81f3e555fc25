// Searches long for low plans, where greedy ones are not low enough.
#pragma once
#include <cstdint>
#include <functional>

#include "taper/allocator/plan.h"

namespace taper::tools {

// The lowest plan found in `seconds` of one thread's time, at most as high as that of
// plan_offsets; ends early where it takes no more than the peak. `seed` shuffles the search.
// `watch`, if any, is told now and then how many seconds are gone, and what the plan takes so far.
// Sizes and errors are as for plan_offsets; more than 10,000 intervals are an error too.
MemoryPlan solve(ArrayRef<Interval> intervals,
                 std::uint64_t alignment,
                 double seconds,
                 std::uint64_t seed,
                 const std::function<void(double, std::uint64_t)>& watch = nullptr);

}  // namespace taper::tools
