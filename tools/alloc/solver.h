// Searches long for low plans, where greedy ones are not low enough.
#pragma once
#include <cstdint>

#include "taper/allocator/plan.h"

namespace taper::tools {

// The lowest plan found in `seconds` of one thread's time, at most as high as that of
// plan_offsets; ends early where it takes no more than the peak. `seed` shuffles the search. Sizes
// and errors are as for plan_offsets.
MemoryPlan solve(ArrayRef<Interval> intervals,
                 std::uint64_t alignment,
                 double seconds,
                 std::uint64_t seed);

}  // namespace taper::tools
