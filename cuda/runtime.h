// Devices and streams: what an Exec's place is called in CUDA.
#pragma once

#include <cuda_runtime.h>

#include "taper/core/backends.h"
#include "taper/core/exec.h"

namespace taper::cuda {

// Makes a device current for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

// Streams are numbered for each device: 0 is its default stream, the others are made here and do
// not wait for the default one. They live as long as the process.
StreamId make_stream(int device);
cudaStream_t stream_of(Device device, StreamId id);  // throws if there is no such stream

// Work given to `waiter` after this runs when what `done` has been given before is done.
void wait_for(Device waiter_device, cudaStream_t waiter, Device done_device, cudaStream_t done);

}  // namespace taper::cuda
