// The kernels group: what moves or makes 64 MB, with fresh outputs, beside a copy's speed.
#pragma once
#include "taper/benchmarks/group.h"

namespace bench {

extern const Group kKernels;

// Every kernel, as rows; and "NAME @ BYTES", the same on tensors of another size, a power of four.
std::vector<std::string> kernel_names();

}  // namespace bench
