// How a failed call of CUDA becomes a taper::Error that names the call.
#pragma once

#include <cuda_runtime.h>

#include "taper/core/base/error.h"

namespace taper::cuda {

// Throws Error "CUDA error 2 (out of memory) in cudaMalloc(&p, n)". If a kernel has faulted, it
// names those that may have; where there is no device at all, it says why instead. See Note [What
// an asynchronous error tells].
[[noreturn]] void throw_cuda_error(cudaError_t status, const char* call);

}  // namespace taper::cuda

// Runs one call of the CUDA runtime; throws taper::Error if it fails.
#define TAPER_CUDA_CHECK(call)                              \
  do {                                                      \
    const cudaError_t taper_status = (call);                \
    if (taper_status != cudaSuccess) {                      \
      ::taper::cuda::throw_cuda_error(taper_status, #call); \
    }                                                       \
  } while (false)
