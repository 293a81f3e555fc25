// The current device, and the numbers of streams.
#include "taper/cuda/runtime.h"

#include <deque>
#include <mutex>
#include <vector>

#include "taper/cuda/check.h"

namespace taper::cuda {
namespace {

struct Streams {
  std::mutex lock;
  std::vector<cudaStream_t> made;  // number 1 first
};

Streams& streams(int device) {
  static auto* all = new std::deque<Streams>(static_cast<size_t>(device_count()));
  TAPER_CHECK(device >= 0 && static_cast<size_t>(device) < all->size(),
              "there is no device cuda:", device, "; this machine has ", all->size());
  return (*all)[static_cast<size_t>(device)];
}

}  // namespace

DeviceGuard::DeviceGuard(int device) {
  TAPER_CUDA_CHECK(cudaGetDevice(&before_));
  if (before_ == device) return;
  TAPER_CUDA_CHECK(cudaSetDevice(device));
  changed_ = true;
}

DeviceGuard::~DeviceGuard() {
  if (changed_) cudaSetDevice(before_);
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}

bool is_available() {
#ifdef TAPER_CUDA_EMULATED
  return false;
#else
  return device_count() > 0;
#endif
}

StreamId make_stream(int device) {
  Streams& here = streams(device);
  const DeviceGuard guard(device);
  cudaStream_t stream = nullptr;
  TAPER_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const std::lock_guard lock(here.lock);
  here.made.push_back(stream);
  return static_cast<StreamId>(here.made.size());
}

cudaStream_t stream_of(Device device, StreamId id) {
  if (id == 0) return nullptr;
  Streams& here = streams(device.index());
  const std::lock_guard lock(here.lock);
  TAPER_CHECK(id <= here.made.size(), "there is no stream ", id, " on ", device);
  return here.made[id - 1];
}

void wait_for(Device waiter_device, cudaStream_t waiter, Device done_device, cudaStream_t done) {
  cudaEvent_t event = nullptr;
  {
    const DeviceGuard guard(done_device.index());
    TAPER_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    TAPER_CUDA_CHECK(cudaEventRecord(event, done));
  }
  const DeviceGuard guard(waiter_device.index());
  TAPER_CUDA_CHECK(cudaStreamWaitEvent(waiter, event));
  TAPER_CUDA_CHECK(cudaEventDestroy(event));
}

}  // namespace taper::cuda
