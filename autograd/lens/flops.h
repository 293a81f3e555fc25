// How much arithmetic it takes to compute an entry's outputs again, instead of keeping them.
#pragma once
#include "taper/autograd/lens/dump.h"

namespace taper::lens {

// As text: "2 n(out) K". Null for an op that is not of Taper. Counted are floating-point
// operations, an elementary function as one; moving elements is none.
const char* flops_formula(const std::string& op);

// The same in numbers; NaN where the op is not of Taper or the tape lacks a shape that it takes.
double recompute_flops(const TapeDump& dump, const DumpEntry& entry);

}  // namespace taper::lens
