// The bounds of indices, checked before a kernel moves anything.
#pragma once
#include "taper/core/exec.h"

namespace taper::cpu {

// Throws unless every element of `index` (i64) is in [0, size), or in [-size, size) when `wraps`.
// The error names the first bad one in row-major order, and `dim`.
void check_indices(const View& index, int dim, std::int64_t size, bool wraps);

}  // namespace taper::cpu
