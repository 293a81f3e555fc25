// The core group: what recording, running backward and stepping an optimizer cost on tiny tensors.
#pragma once
#include "taper/benchmarks/bench.h"

namespace bench {

const std::vector<Row>& core_rows();
std::vector<Result> run_core();

}  // namespace bench
