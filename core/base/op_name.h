// What a call site is called in messages.
#pragma once
#include <string>

#include "taper/core/base/source_loc.h"

namespace taper {

// "mul", "add_", or "mse_loss: sub" where one function calls another; empty where no call runs.
std::string op_name(const CallSite& site);

}  // namespace taper
