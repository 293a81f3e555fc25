// The bounds of indices, checked before a kernel moves anything.
#pragma once

#include "taper/cuda/device.cuh"

namespace taper::cuda {

// An index tensor (i64) whose elements must be in [0, size), or in [-size, size) when it wraps.
struct IndexRange {
  View index;
  int dim;
  Index size;
  bool wraps;
};

// Throws unless all elements of all of them are in range. The error names the first bad one in
// row-major order of the first tensor that has any, and its dim.
void check_indices(const Exec& exec, ArrayRef<IndexRange> ranges);

}  // namespace taper::cuda
