// The numbers of CUDA's streams, and its events.
#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

#include "taper/cuda/check.h"
#include "taper/cuda/graph.h"
#include "taper/cuda/runtime.h"
#include "taper/cuda/trail.h"

namespace taper::cuda {
namespace {

struct Streams {
  std::mutex lock;
  std::vector<cudaStream_t> made;  // number 1 first; never destroyed
};

Streams& streams(int device) {
  static auto* all = new std::deque<Streams>(static_cast<size_t>(checked_device_count()));
  if (device < 0 || static_cast<size_t>(device) >= all->size()) fail_no_device(device);
  return (*all)[static_cast<size_t>(device)];
}

cudaStream_t stream_of(const Stream& stream) {
  return cuda::stream_of(stream.device(), stream.id());
}

cudaEvent_t event_of(void* event) {
  return static_cast<cudaEvent_t>(event);
}

// cudaErrorNotReady is an answer, and must not be found by the next who asks for errors.
bool is_done(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return true;
  if (status != cudaErrorNotReady) throw_cuda_error(status, call);
  static_cast<void>(cudaGetLastError());
  return false;
}

}  // namespace

void check_device(int index) {
  static_cast<void>(streams(index));
}

StreamId make_stream(int device, int priority) {
  Streams& here = streams(device);
  const DeviceGuard guard(device);
  int least = 0, greatest = 0;
  TAPER_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  TAPER_CHECK(priority <= least && priority >= greatest, "make_stream: cuda:", device,
              " has priorities from ", greatest, " (first) to ", least, ", got ", priority);
  cudaStream_t stream = nullptr;
  TAPER_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
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

int number_of(int device, cudaStream_t stream) {
  if (stream == nullptr) return 0;
  Streams& here = streams(device);
  const std::lock_guard lock(here.lock);
  const auto found = std::find(here.made.begin(), here.made.end(), stream);
  return found == here.made.end() ? -1 : static_cast<int>(found - here.made.begin()) + 1;
}

void check_stream(const Stream& stream) {
  check_device(stream.device().index());
  static_cast<void>(stream_of(stream));
}

void synchronize(const Stream& stream) {
  check_stream(stream);
  synchronize(stream.device(), stream.id());
}

void synchronize(Device device, StreamId stream) {
  const DeviceGuard guard(device.index());
  const cudaStream_t there = stream_of(device, stream);
  check_host_may_wait(device, there);
  const std::uint64_t launches = launches_noted(device.index());
  TAPER_CUDA_CHECK(cudaStreamSynchronize(there));
  note_success(device.index(), launches, there);
}

bool is_done(const Stream& stream) {
  check_stream(stream);
  const DeviceGuard guard(stream.device().index());
  check_host_may_wait(stream.device(), stream_of(stream));
  return is_done(cudaStreamQuery(stream_of(stream)), "cudaStreamQuery");
}

void* make_event(Device device, bool with_timing) {
  cudaEvent_t event = nullptr;
  try {
    const DeviceGuard guard(device.index());
    TAPER_CUDA_CHECK(
        cudaEventCreateWithFlags(&event, with_timing ? cudaEventDefault : cudaEventDisableTiming));
  } catch (...) {  // the guard may throw as it ends
    if (event != nullptr) destroy_event(device, event);
    throw;
  }
  return event;
}

void destroy_event(Device, void* event) noexcept {
  static_cast<void>(cudaEventDestroy(event_of(event)));
}

void record(void* event, const Stream& stream) {
  const DeviceGuard guard(stream.device().index());
  TAPER_CUDA_CHECK(cudaEventRecord(event_of(event), stream_of(stream)));
}

void wait(const Stream& stream, void* event) {
  const DeviceGuard guard(stream.device().index());
  TAPER_CUDA_CHECK(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
  note_wait(stream);
}

void synchronize(Device device, void* event) {
  check_host_may_wait(device.index());
  const UncapturedCalls allowed;  // where this thread captures on another device
  const DeviceGuard guard(device.index());
  TAPER_CUDA_CHECK(cudaEventSynchronize(event_of(event)));
}

bool is_done(Device device, void* event) {
  check_host_may_wait(device.index());
  const UncapturedCalls allowed;
  const DeviceGuard guard(device.index());
  return is_done(cudaEventQuery(event_of(event)), "cudaEventQuery");
}

double milliseconds_between(Device device, void* earlier, void* later) {
  const DeviceGuard guard(device.index());
  float milliseconds = 0;
  TAPER_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, event_of(earlier), event_of(later)));
  return static_cast<double>(milliseconds);
}

}  // namespace taper::cuda
