// The alloc group: the allocator's quick path, its twin, and training with it and without.
#pragma once
#include "taper/benchmarks/bench.h"

namespace bench {

const std::vector<Row>& alloc_rows();
// `self` is this program, which is run again under other allocators.
std::vector<Result> run_alloc(const char* self);
// "name<TAB>value" lines: training steps under the allocator that TAPER_ALLOC names.
void print_steps();

}  // namespace bench
