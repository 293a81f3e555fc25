// Finds the first NaN or infinity: every thread looks at its elements, the smallest index stays.
#include "taper/cuda/device.cuh"

namespace taper::cuda {
namespace {

// `first` starts as the largest number, which read as i64 is -1. `exponent`: its bits.
template <class Word>
__global__ void find_nonfinite(const Word* x, Index n, Word exponent, unsigned long long* first) {
  for (Index i = first_index(); i < n; i += index_step()) {
    if ((x[i] & exponent) != exponent) continue;
    atomicMin(first, static_cast<unsigned long long>(i));
    return;  // its later elements have larger indices
  }
}

template <class Word>
void find(const Exec& exec, const In& x, std::uint64_t exponent, unsigned long long* first) {
  const Index n = x.layout->numel();
  launch_on(exec, blocks_for(n), kThreads, find_nonfinite<Word>,
            static_cast<const Word*>(dense(exec, x)), n, static_cast<Word>(exponent), first);
}

}  // namespace

void first_nonfinite(const Exec& exec, Out index, In x) {
  if (!is_floating_point(x.dtype)) fail_dtype("a floating-point", info(x.dtype).name);
  const DeviceGuard guard(exec.device.index());
  TAPER_CUDA_CHECK(
      cudaMemsetAsync(index.data, 0xff, sizeof(Index), stream_of(exec.device, exec.stream)));
  auto* first = static_cast<unsigned long long*>(index.data);
  if (x.dtype == kFloat64) find<std::uint64_t>(exec, x, 0x7ff0000000000000, first);
  else if (x.dtype == kFloat32) find<std::uint32_t>(exec, x, 0x7f800000, first);
  else find<std::uint16_t>(exec, x, x.dtype == kFloat16 ? 0x7c00 : 0x7f80, first);
}

}  // namespace taper::cuda
