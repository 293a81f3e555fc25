// Records events for marks, and forgets those that have happened.
#include "taper/cuda/marks.h"

#include "taper/cuda/check.h"
#include "taper/cuda/graph.h"
#include "taper/cuda/runtime.h"

namespace taper::cuda {

StreamMark Marks::add(StreamId stream) {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  const cudaStream_t there = stream_of(Device(kCUDA, device_), stream);
  Order& order = orders_[stream];
  forget_reached(order, there);
  if (spare_.empty()) {
    cudaEvent_t event = nullptr;
    TAPER_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    spare_.push_back(event);
  }
  const std::uint64_t capture = capture_of(there);
  TAPER_CUDA_CHECK(cudaEventRecord(spare_.back(), there));
  order.pending.push_back({++order.last, spare_.back(), capture});
  spare_.pop_back();
  if (auto* o = observer())
    o->recorded({&order, order.last}, Stream(Device(kCUDA, device_), stream));
  return order.last;
}

void Marks::wait(StreamId stream, StreamId other, StreamMark mark) {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  const Device here(kCUDA, device_);
  const Order& order = orders_[other];
  if (const Pending* const from = first_from(order, mark)) {
    const cudaStream_t there = stream_of(here, stream);
    const std::uint64_t capture = capture_of(there);
    if (capture == from->capture) {
      TAPER_CUDA_CHECK(cudaStreamWaitEvent(there, from->event, 0));
    } else if (from->capture == 0) {
      const UncapturedCalls allowed;
      TAPER_CUDA_CHECK(cudaEventSynchronize(from->event));
    }
  }
  if (auto* o = observer()) o->blocked(Stream(here, stream), {&order, mark});
}

bool Marks::reached(StreamId stream, StreamMark mark) {
  const std::lock_guard lock(mutex_);
  const DeviceGuard guard(device_);
  Order& order = orders_[stream];
  forget_reached(order, stream_of(Device(kCUDA, device_), stream));
  const bool is_reached = first_from(order, mark) == nullptr;
  if (auto* o = observer(); o != nullptr && is_reached) o->reached({&order, mark});
  return is_reached;
}

void Marks::synchronize(StreamId stream, StreamMark mark) {
  const DeviceGuard guard(device_);
  cudaEvent_t event = nullptr;
  const Order* order = nullptr;
  {
    const std::lock_guard lock(mutex_);
    order = &orders_[stream];
    const Pending* const from = first_from(*order, mark);
    if (from != nullptr && from->capture != 0) return;
    if (from != nullptr) event = from->event;
  }
  const UncapturedCalls allowed;
  // Should it be recorded anew meanwhile, this waits longer than it must.
  if (event != nullptr) TAPER_CUDA_CHECK(cudaEventSynchronize(event));
  if (auto* o = observer()) o->reached({order, mark});
}

void Marks::forget_reached(Order& order, cudaStream_t stream) {
  if (order.pending.empty()) return;
  const UncapturedCalls allowed;
  while (!order.pending.empty()) {
    if (const std::uint64_t capture = order.pending.front().capture) {
      if (capture_of(stream) == capture) return;
      spare_.push_back(order.pending.front().event);
      order.pending.pop_front();
      continue;
    }
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

const Marks::Pending* Marks::first_from(const Order& order, StreamMark mark) {
  for (const Pending& p : order.pending) {
    if (p.mark >= mark) return &p;
  }
  return nullptr;
}

}  // namespace taper::cuda
