// Copies between the host and a device, and between devices.
#include "taper/cuda/transfer.h"

#include "taper/core/kernels.h"
#include "taper/cuda/check.h"
#include "taper/cuda/graph.h"
#include "taper/cuda/runtime.h"

namespace taper::cuda {
namespace {

// Where memory lies; what CUDA does not know is the host's.
Device device_of(const void* data) {
  cudaPointerAttributes attributes{};
  TAPER_CUDA_CHECK(cudaPointerGetAttributes(&attributes, data));
  return attributes.type == cudaMemoryTypeDevice ? Device(kCUDA, attributes.device) : Device(kCPU);
}

bool is_pinned(const void* data) {
  cudaPointerAttributes attributes{};
  TAPER_CUDA_CHECK(cudaPointerGetAttributes(&attributes, data));
  return attributes.type == cudaMemoryTypeHost;
}

// A view without gaps of the sizes of `like`, in memory of the Exec.
struct Dense {
  Layout layout;
  View view;

  Dense(const Exec& exec, const View& like, DType dtype)
      : layout(contiguous_layout(like.layout->shape())), view{nullptr, &layout, dtype} {
    view.data = exec.scratch(static_cast<size_t>(bytes()));
  }

  Dense(const Dense&) = delete;
  Dense& operator=(const Dense&) = delete;

  std::int64_t bytes() const { return layout.numel() * element_size(view.dtype); }
};

// Copies bytes on the stream of `on`, in order with the current stream of another device that has
// the memory on one side; from or to the host, they are there when this returns, unless `on` says
// that this need not be so and the host's memory is pinned.
void move_bytes(const Exec& on, const View& to, const View& from, Device other, bool brings) {
  const DeviceGuard guard(on.device.index());
  const cudaStream_t stream = stream_of(on.device, on.stream);
  const auto bytes = static_cast<size_t>(to.layout->numel() * element_size(to.dtype));
  const Stream here(on.device, on.stream);
  if (other.is_cuda()) {
    const Stream there = current_stream(other);
    const int to_device = (brings ? on.device : other).index();
    const int from_device = (brings ? other : on.device).index();
    wait_for(here, there);
    // No device reaches another's memory, which is mapped for its own alone: CUDA must be told
    // whose each side is.
    TAPER_CUDA_CHECK(
        cudaMemcpyPeerAsync(to.data, to_device, from.data, from_device, bytes, stream));
    wait_for(there, here);
    return;
  }
  const bool waits = !(on.non_blocking && (is_pinned(to.data) || is_pinned(from.data)));
  if (waits) check_host_may_wait(on.device, stream);
  TAPER_CUDA_CHECK(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDefault, stream));
  if (!waits) return;
  synchronize(on.device, on.stream);
  if (auto* o = observer()) o->reached(here);
}

// Before CUDA is asked to order streams of two devices, which would break the capture.
void check_not_captured(const Exec& exec, Device other) {
  TAPER_CHECK(
      capture_of(stream_of(exec.device, exec.stream)) == 0 && !is_current_stream_capturing(other),
      "a graph holds the work of one device, and this copies between ", exec.device, " and ", other,
      "; do this before capture_begin or after capture_end");
}

// The host's one element, as a number.
Scalar number_of(const View& view) {
  Scalar number;
  visit_dtype(view.dtype,
              [&](auto type) { number = *view.as<const typename decltype(type)::type>(); });
  return number;
}

// Calls work(view) with a view like `view` without gaps, in memory of the Exec's device if `view`
// has gaps. Its elements are brought there before, or from there after.
template <class Work>
void with_dense(const Exec& exec, const View& view, bool is_read, const Work& work) {
  if (view.layout->is_contiguous()) return work(view);
  const Dense dense(exec, view, view.dtype);
  const Kernels& kernels = kernels_for(exec.device);
  if (is_read) kernels.copy(exec, Out{dense.view}, In{view});
  work(dense.view);
  if (!is_read) kernels.copy(exec, Out{view}, In{dense.view});
}

}  // namespace

bool lies_on_host(const void* data) {
  return device_of(data).is_cpu();
}

bool transfer(const Exec& exec, const Out& out, const In& in) {
  const Device to = device_of(out.data), from = device_of(in.data);
  if (to == exec.device && from == exec.device) return false;
  TAPER_ASSERT(to == exec.device || from == exec.device);
  const bool brings = to == exec.device;
  const Device other = brings ? from : to;
  if (other.is_cuda()) check_not_captured(exec, other);
  // One number goes as an argument of a launch: nobody waits, and a graph can hold it.
  if (brings && other.is_cpu() && in.layout->numel() == 1 && !exec.non_blocking) {
    kernels_for(exec.device).fill(exec, out, number_of(in));
    return true;
  }
  const Exec there(other);
  if (brings) {
    with_dense(there, in, true, [&](const View& source) {
      if (out.dtype == in.dtype && out.layout->is_contiguous()) {
        return move_bytes(exec, out, source, other, brings);
      }
      const Dense here(exec, in, in.dtype);
      move_bytes(exec, here.view, source, other, brings);
      kernels_for(exec.device).copy(exec, out, In{here.view});
    });
    return true;
  }
  // Converted here, so that what crosses is what is stored there.
  with_dense(there, out, false, [&](const View& target) {
    if (out.dtype == in.dtype && in.layout->is_contiguous()) {
      return move_bytes(exec, target, in, other, brings);
    }
    const Dense here(exec, in, out.dtype);
    kernels_for(exec.device).copy(exec, Out{here.view}, in);
    move_bytes(exec, target, here.view, other, brings);
  });
  return true;
}

}  // namespace taper::cuda
