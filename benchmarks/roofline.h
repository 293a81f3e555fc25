// A picture of each training step: its ops under the roofs that this machine has.
#pragma once
#include <string>

#include "taper/benchmarks/group.h"

namespace bench {

// A panel for each model of the train group, on setup.threads.
void draw_rooflines(const Setup& setup, const std::string& path);

}  // namespace bench
