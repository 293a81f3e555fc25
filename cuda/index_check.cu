// Looks at every index of an index tensor once, and says which one is out of range.
#include "taper/cuda/graph.h"
#include "taper/cuda/index_check.cuh"
#include "taper/cuda/lanes.cuh"

// Note [When a bad index is found]
// Before the slot returns, as on the CPU: the error then has the line of the user who passed the
// index, and nothing has been written. So a slot that takes indices waits for the stream, once,
// however many index tensors it has. The kernels that move elements trust their indices. In a
// capture nothing is checked: the indices of a replay are not known yet, and a replay can tell
// nobody.
namespace taper::cuda {
namespace {

// `first` starts as the largest number.
__global__ void find_bad(
    const Index* index, Dims dims, Index n, Index low, Index size, unsigned long long* first) {
  for (Index i = first_index(); i < n; i += index_step()) {
    const Index value = index[dims.offset(i)];
    if (value >= low && value < size) continue;
    atomicMin(first, static_cast<unsigned long long>(i));
    return;  // its later elements come later
  }
}

// What there is to look at: a stride of 0 leads to the same ones again.
Layout without_repeats(Layout layout) {
  for (int d = 0; d < layout.ndim; ++d) {
    if (layout.strides[d] == 0 && layout.sizes[d] > 0) layout.sizes[d] = 1;
  }
  return layout;
}

// Brings numbers to the host, and waits for what was on the stream before.
void bring(const Exec& exec, void* to, const void* from, size_t bytes) {
  const cudaStream_t stream = stream_of(exec.device, exec.stream);
  TAPER_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream));
  synchronize(exec.device, exec.stream);
  if (auto* o = observer()) o->reached(Stream(exec.device, exec.stream));
}

[[noreturn]] void fail_at(const Exec& exec, const IndexRange& range, Index i) {
  const Layout layout = without_repeats(*range.index.layout);
  const Index* at = range.index.as<const Index>();
  for (int d = layout.ndim - 1; d >= 0; --d) {
    at += i % layout.sizes[d] * layout.strides[d];
    i /= layout.sizes[d];
  }
  Index bad = 0;
  bring(exec, &bad, at, sizeof(bad));
  fail(str("index ", bad, " is out of range for dim ", range.dim, " of size ", range.size));
}

}  // namespace

void check_indices(const Exec& exec, ArrayRef<IndexRange> ranges) {
  const DeviceGuard guard(exec.device.index());
  if (capture_of(stream_of(exec.device, exec.stream)) != 0) return;
  const size_t bytes = ranges.size() * sizeof(unsigned long long);
  auto* first = static_cast<unsigned long long*>(exec.scratch(bytes));
  TAPER_CUDA_CHECK(cudaMemsetAsync(first, 0xff, bytes, stream_of(exec.device, exec.stream)));
  bool any = false;
  for (size_t k = 0; k < ranges.size(); ++k) {
    Layout layout = without_repeats(*ranges[k].index.layout);
    const Index n = layout.numel();
    if (n == 0) continue;
    any = true;
    Layout* const one[] = {&layout};
    coalesce(one, 1);
    const Index low = ranges[k].wraps ? -ranges[k].size : 0;
    launch_on(exec, blocks_for(n), kThreads, find_bad, ranges[k].index.as<const Index>(),
              Dims(layout), n, low, ranges[k].size, first + k);
  }
  if (!any) return;
  Index found[kMaxDims];
  bring(exec, found, first, bytes);
  for (size_t k = 0; k < ranges.size(); ++k) {
    if (found[k] >= 0) fail_at(exec, ranges[k], found[k]);
  }
}

}  // namespace taper::cuda
