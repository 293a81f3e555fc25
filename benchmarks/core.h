// The core group: what recording, running backward and stepping an optimizer cost on tiny tensors.
#pragma once
#include "taper/benchmarks/group.h"

namespace bench {

extern const Group kCore;

}  // namespace bench
