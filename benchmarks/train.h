// The train group: whole training steps beside LibTorch's and the sum of their matrix products.
#pragma once
#include "taper/benchmarks/group.h"

namespace bench {

extern const Group kTrain;

}  // namespace bench
