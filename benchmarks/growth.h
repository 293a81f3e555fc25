// A picture of how cost grows: each kernel over sizes, and each op over lengths of the tape.
#pragma once
#include <string>

#include "taper/benchmarks/group.h"

namespace bench {

// Beside LibTorch at its best where it is built. Sizes go from 1 KB to 1 GB, as far as memory does;
// tapes from 10 to 10^6 entries.
void draw_growth(const Setup& setup, const std::string& path);

}  // namespace bench
