// The lens group: what provenance costs always, and what stepping, hunt and profiler cost when on.
#pragma once
#include "taper/benchmarks/group.h"

namespace bench {

extern const Group kLens;

}  // namespace bench
