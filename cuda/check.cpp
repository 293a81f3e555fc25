// The text of a CUDA error.
#include "taper/cuda/check.h"

#include "taper/core/backends.h"
#include "taper/cuda/trail.h"

namespace taper::cuda {

void throw_cuda_error(cudaError_t status, const char* call) {
  if (status == cudaErrorInsufficientDriver || status == cudaErrorNoDevice) fail(why_no_device());
  // Taken first: asking for the last error clears it, so that it is told once.
  const std::string_view text = cudaGetErrorString(status);
  static_cast<void>(cudaGetLastError());
  fail(str("CUDA error ", static_cast<int>(status), " (", text, ") in ", std::string_view(call),
           suspects(status)));
}

}  // namespace taper::cuda
