// Devices and streams: what an Exec's place is called in CUDA.
#pragma once

#include <exception>
#include <new>

#include <cuda_runtime.h>

#include "taper/core/backends.h"
#include "taper/core/exec.h"

namespace taper::cuda {

// Makes a device current for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  DeviceGuard(int device, std::nothrow_t) noexcept;  // is_set() tells whether it could
  ~DeviceGuard() noexcept(false);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

  bool is_set() const { return set_; }

 private:
  int before_ = 0;
  bool set_ = false, changed_ = false, throws_ = true;
  int exceptions_ = std::uncaught_exceptions();
};

// device_count() of a machine on which CUDA works; else throws what is the matter with it.
int checked_device_count();

// Streams are numbered for each device: 0 is its default stream, the others are made here and do
// not wait for the default one. They live as long as the process.
StreamId make_stream(int device);
cudaStream_t stream_of(Device device, StreamId id);  // throws if there is no such stream

// Work given to `waiter` after this runs when what `done` has been given before is done.
void wait_for(Device waiter_device, cudaStream_t waiter, Device done_device, cudaStream_t done);

}  // namespace taper::cuda
