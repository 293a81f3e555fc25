// Where each thread of a block stands: the sum of what the threads before it have.
#pragma once

#include "taper/cuda/device.cuh"

namespace taper::cuda {

// The sum of what the threads before this one have, and of what all have.
template <class T> struct Standing { T before, total; };

// All threads of a block call it together, whole warps of them. For numbers whose sums do not
// depend on their order. `sums` is shared and holds a number for each warp of the block.
template <class T> __device__ Standing<T> stand_in_block(T x, T* sums) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T running = x;
  for (unsigned step = 1; step < 32; step *= 2) {
    const T left = __shfl_up_sync(~0u, running, step);
    if (lane >= step) running += left;
  }
  __syncthreads();  // an earlier call's sums have been read
  if (lane == 31) sums[warp] = running;
  __syncthreads();
  T before = 0, total = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) {
    if (i == warp) before = total;
    total += sums[i];
  }
  return {before + running - x, total};
}

// Replaces the n numbers at `x` by the sums of those before them; all threads of a block call it.
// Gives the sum of all.
template <class T> __device__ T sum_before_each(T* x, Index n, T* sums) {
  T before = 0;
  for (Index first = 0; first < n; first += blockDim.x) {
    const Index i = first + threadIdx.x;
    const T mine = i < n ? x[i] : T(0);
    const Standing<T> standing = stand_in_block(mine, sums);
    if (i < n) x[i] = before + standing.before;
    before += standing.total;
  }
  return before;
}

}  // namespace taper::cuda
