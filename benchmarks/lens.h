// The lens group: what provenance costs always, and what stepping, hunt and profiler cost when on.
#pragma once
#include "taper/benchmarks/bench.h"

namespace bench {

const std::vector<Row>& lens_rows();
std::vector<Result> run_lens();

}  // namespace bench
