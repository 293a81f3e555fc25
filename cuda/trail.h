// The latest kernels that each device was given, for errors that show later than their cause.
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime.h>

namespace taper::cuda {

// Note [What an asynchronous error tells]
// A kernel that faults is heard of at some later call, and from then on at every call on the
// device. So each launch leaves its op, the user's line and its stream in a ring of its device's,
// and a synchronisation that goes well marks those that it waited for. What is not marked when an
// error shows may have caused it; the error lists it.

// Puts a launch on the device's ring, under the name of the thread's call site.
void note_launch(int device, cudaStream_t stream);

// How many launches were noted so far: asked before a synchronisation, told after it. Those of the
// stream, or of all streams, up to that number have gone well.
std::uint64_t launches_noted(int device);
void note_success(int device, std::uint64_t launches, cudaStream_t stream);
void note_success(int device, std::uint64_t launches);

// "; kernels since the last synchronisation that went well: softmax at train.cpp:12 in main on
// stream 0, ...", newest first; empty unless the status is that of a fault in a kernel.
std::string suspects(cudaError_t status);

}  // namespace taper::cuda
