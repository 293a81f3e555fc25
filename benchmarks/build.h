// The build group: what Taper costs those who compile against it, start it and ship it.
#pragma once
#include "taper/benchmarks/group.h"

namespace bench {

extern const Group kBuild;

// What the started copy does: one op, then it prints the clock.
void print_first_op();

}  // namespace bench
