// How elements reach memory that is not the device's own.
#pragma once

#include "taper/core/exec.h"

namespace taper::cuda {

// Copies, if either side lies on the host or on another device than `exec`'s; else returns false.
// What is copied to the host is there when this returns, and what is copied from it may be changed.
bool transfer(const Exec& exec, const Out& out, const In& in);

}  // namespace taper::cuda
