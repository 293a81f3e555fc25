// The current device, and the numbers of streams.
#include "taper/cuda/runtime.h"

#include <deque>
#include <exception>
#include <mutex>
#include <vector>

#include "taper/cuda/check.h"

namespace taper::cuda {
namespace {

struct Streams {
  std::mutex lock;
  std::vector<cudaStream_t> made;  // number 1 first
};

struct Event {
  cudaEvent_t name = nullptr;

  Event() = default;

  // What waits for it goes on waiting.
  ~Event() {
    if (name != nullptr) cudaEventDestroy(name);
  }

  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

Streams& streams(int device) {
  static auto* all = new std::deque<Streams>(static_cast<size_t>(checked_device_count()));
  TAPER_CHECK(device >= 0 && static_cast<size_t>(device) < all->size(),
              "there is no device cuda:", device, "; this machine has ", all->size());
  return (*all)[static_cast<size_t>(device)];
}

}  // namespace

DeviceGuard::DeviceGuard(int device) {
  TAPER_CUDA_CHECK(cudaGetDevice(&before_));
  if (before_ != device) {
    TAPER_CUDA_CHECK(cudaSetDevice(device));
    changed_ = true;
  }
  set_ = true;
}

DeviceGuard::DeviceGuard(int device, std::nothrow_t) noexcept : throws_(false) {
  set_ = cudaGetDevice(&before_) == cudaSuccess;
  if (set_ && before_ != device) set_ = changed_ = cudaSetDevice(device) == cudaSuccess;
  if (!set_) static_cast<void>(cudaGetLastError());
}

// Work meant for the device before would go to this one, unseen: so this throws, unless an error is
// on its way already.
DeviceGuard::~DeviceGuard() noexcept(false) {
  if (!changed_) return;
  const cudaError_t status = cudaSetDevice(before_);
  if (status == cudaSuccess || !throws_ || std::uncaught_exceptions() != exceptions_) return;
  throw_cuda_error(status, "cudaSetDevice");
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}

int checked_device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count;
  if (status != cudaErrorNoDevice) throw_cuda_error(status, "cudaGetDeviceCount");
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
  Event event;
  {
    const DeviceGuard guard(done_device.index());
    TAPER_CUDA_CHECK(cudaEventCreateWithFlags(&event.name, cudaEventDisableTiming));
    TAPER_CUDA_CHECK(cudaEventRecord(event.name, done));
  }
  const DeviceGuard guard(waiter_device.index());
  TAPER_CUDA_CHECK(cudaStreamWaitEvent(waiter, event.name));
}

}  // namespace taper::cuda
