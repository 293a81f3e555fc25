// Calls that fail because somebody told them to: what the library makes of each error can be seen.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <cuda_runtime.h>

namespace taper::emulated {

// From now on calls are counted by their name, "cudaMemcpyAsync", "cuMemMap", "cudaLaunchKernel",
// from 1; those of the past are forgotten, and so is what was told to fail.
void count_calls();
std::map<std::string, long> counted_calls();

// The number-th call of the name returns the error, once, and does nothing else. For a process from
// its start: TAPER_EMULATED_FAIL=cudaMemcpyAsync:3=2.
void fail_call(const std::string& name, long number, int error);

// Whether calls of this name are counted; the names of all that are, with spaces between.
bool is_call(std::string_view name);
std::string_view all_calls();

// What every call begins with: the error that it is to return, or cudaSuccess.
cudaError_t injected(const char* name);

}  // namespace taper::emulated
