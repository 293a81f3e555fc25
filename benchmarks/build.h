// The build group: what Taper costs those who compile against it, start it and ship it.
#pragma once
#include "taper/benchmarks/bench.h"

namespace bench {

const std::vector<Row>& build_rows();
// `self`: the path of this program, which is started again to time its first op.
std::vector<Result> run_build(const std::string& self);
std::vector<Result> run_build_torch();  // the same of LibTorch, where its headers are installed

// What the started copy does: one op, then it prints the clock.
void print_first_op();

}  // namespace bench
