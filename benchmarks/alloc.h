// The alloc group: the allocator's quick path, its twin, and training with it and without.
#pragma once
#include "taper/benchmarks/group.h"

namespace bench {

extern const Group kAlloc;

// "name<TAB>value" lines: training steps under the allocator that TAPER_ALLOC names.
void print_steps();

}  // namespace bench
