// Captures, as the rest of the column must know of them.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "taper/core/cuda_graph.h"
#include "taper/core/stream.h"

namespace taper::cuda {

// The number of the capture that writes down what the stream is given; 0: it runs.
std::uint64_t capture_of(cudaStream_t stream);

// Throws Error if the stream, or one of the device's, is being captured: what the host would wait
// for does not run.
void check_host_may_wait(Device device, cudaStream_t stream);
void check_host_may_wait(int device);

// The stream was told to wait. If that made it part of this thread's capture, it allocates from the
// graph's pool from now on.
void note_wait(const Stream& stream);

// While it lives this thread may call what CUDA forbids while it captures, though it has nothing to
// do with captured work: events of other work, memory.
class UncapturedCalls {
 public:
  UncapturedCalls() noexcept;
  ~UncapturedCalls();
  UncapturedCalls(const UncapturedCalls&) = delete;
  UncapturedCalls& operator=(const UncapturedCalls&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool set_;
};

}  // namespace taper::cuda
