// Records events for marks, and forgets those that have happened.
#include "taper/cuda/marks.h"

#include "taper/cuda/check.h"
#include "taper/cuda/runtime.h"

namespace taper::cuda {

StreamMark Marks::add(StreamId stream) {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  const cudaStream_t there = stream_of(Device(kCUDA, device_), stream);
  Order& order = orders_[stream];
  forget_reached(order);
  if (spare_.empty()) {
    cudaEvent_t event = nullptr;
    TAPER_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    spare_.push_back(event);
  }
  TAPER_CUDA_CHECK(cudaEventRecord(spare_.back(), there));
  order.pending.push_back({++order.last, spare_.back()});
  spare_.pop_back();
  return order.last;
}

void Marks::wait(StreamId stream, StreamId other, StreamMark mark) {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  if (cudaEvent_t event = first_from(orders_[other], mark))
    TAPER_CUDA_CHECK(cudaStreamWaitEvent(stream_of(Device(kCUDA, device_), stream), event, 0));
}

bool Marks::reached(StreamId stream, StreamMark mark) {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  Order& order = orders_[stream];
  forget_reached(order);
  return first_from(order, mark) == nullptr;
}

void Marks::synchronize(StreamId stream, StreamMark mark) {
  const DeviceGuard guard(device_);
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    event = first_from(orders_[stream], mark);
  }
  // Should it be recorded anew meanwhile, this waits longer than it must.
  if (event != nullptr) TAPER_CUDA_CHECK(cudaEventSynchronize(event));
}

void Marks::forget_reached(Order& order) {
  while (!order.pending.empty()) {
    const cudaError_t status = cudaEventQuery(order.pending.front().event);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return;
    }
    if (status != cudaSuccess) throw_cuda_error(status, "cudaEventQuery");
    spare_.push_back(order.pending.front().event);
    order.pending.pop_front();
  }
}

cudaEvent_t Marks::first_from(Order& order, StreamMark mark) {
  for (const Pending& p : order.pending) {
    if (p.mark >= mark) return p.event;
  }
  return nullptr;
}

}  // namespace taper::cuda
