// Devices and streams: what an Exec's place is called in CUDA.
#pragma once

#include <exception>
#include <new>

#include <cuda_runtime.h>

#include "taper/core/backends.h"
#include "taper/core/exec.h"
#include "taper/core/stream_backend.h"

namespace taper::cuda {

// device_count() of a machine on which CUDA works; else throws what is the matter with it.
int checked_device_count();

// "there is no device cuda:7; this machine has 2", and if it has none, why.
[[noreturn]] void fail_no_device(int index);
void check_device(int index);  // throws that if there is no such device

// Null for the default stream. Throws if there is no such stream.
cudaStream_t stream_of(Device device, StreamId id);

// The other way round; -1: a stream that is not ours.
int number_of(int device, cudaStream_t stream);

// Waits for all work of a stream.
void synchronize(Device device, StreamId stream);

}  // namespace taper::cuda
