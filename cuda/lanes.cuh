// The 64 lanes of a reduction and their tree, on a warp and on a single thread.
#pragma once

#include "taper/core/reducers.h"
#include "taper/cuda/device.cuh"

// Note [64 lanes on the device]
// core/reducers.h fixes the order. By warp: thread i holds lanes i and i + 32, joins them, and the
// rest of the tree is five shuffles. By thread: one thread takes lane after lane, in the order in
// which the tree needs them, and joins as a binary counter carries, so that six values wait at
// most. The first suits long sequences that lie densely, the second many sequences side by side.
namespace taper::cuda {

// Sizes and strides of some dims, for a kernel.
struct Dims {
  int ndim = 0;
  Index sizes[kMaxDims] = {}, strides[kMaxDims] = {};

  Dims() = default;

  explicit Dims(const Layout& layout) : ndim(layout.ndim) {
    for (int d = 0; d < ndim; ++d) {
      sizes[d] = layout.sizes[d];
      strides[d] = layout.strides[d];
    }
  }

  // Of element i in row-major order.
  __device__ Index offset(Index i) const {
    Index sum = 0;
    for (int d = ndim - 1; d > 0; --d) {
      sum += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return ndim > 0 ? sum + i * strides[0] : sum;
  }
};

// Those who reduce together: 32 threads, each with every 32nd element, or one thread alone. All of
// a team get the result. R is an operation of core/reducers.h, element(i) the i-th of `count`.
struct WarpTeam {
  static constexpr Index kSize = 32;

  __device__ static Index member() { return threadIdx.x % 32; }

  template <class R, class T> __device__ static T join(T low, T high) {
    T joined = R::join(low, high);
    for (int step = 16; step > 0; step /= 2) {
      joined = R::join(joined, __shfl_down_sync(~0u, joined, static_cast<unsigned>(step)));
    }
    return __shfl_sync(~0u, joined, 0);
  }

  template <class R, class T, class Element>
  __device__ static T reduce_block(Index count, T p, const Element& element) {
    T low = R::template identity<T>(), high = low;
    for (Index i = member(); i < count; i += fn::kReduceLanes) {
      low = R::take(low, element(i), p);
      if (i + kSize < count) high = R::take(high, element(i + kSize), p);
    }
    return join<R>(low, high);
  }
};

struct ThreadTeam {
  static constexpr Index kSize = 1;

  __device__ static Index member() { return 0; }

  template <class R, class T, class Element>
  __device__ static T reduce_block(Index count, T p, const Element& element) {
    T waiting[6], joined{};
    for (unsigned leaf = 0; leaf < fn::kReduceLanes; ++leaf) {
      // The tree meets the lanes in the order of their reversed bits.
      const unsigned lane = (leaf & 1) << 5 | (leaf & 2) << 3 | (leaf & 4) << 1 | (leaf & 8) >> 1 |
                            (leaf & 16) >> 3 | (leaf & 32) >> 5;
      joined = R::template identity<T>();
      for (Index i = lane; i < count; i += fn::kReduceLanes)
        joined = R::take(joined, element(i), p);
      bool carries = true;
      for (unsigned level = 0; level < 6; ++level) {  // without a break, for registers' sake
        if (!carries) continue;
        carries = (leaf >> level & 1) != 0;
        if (carries) joined = R::join(waiting[level], joined);
        else waiting[level] = joined;
      }
    }
    return joined;
  }
};

// A whole sequence, cut into blocks as the rule says; on one thread, a single block of it.
template <class R, class Team, class T, class Element>
__device__ T reduce_sequence(Index count, const Element& element) {
  if constexpr (std::is_same_v<Team, ThreadTeam>) {
    return Team::template reduce_block<R>(count, T(0), element);
  } else {
    if (count <= fn::kReduceBlock) return Team::template reduce_block<R>(count, T(0), element);
    T low = R::template identity<T>(), high = low;
    for (Index block = 0; block * fn::kReduceBlock < count; ++block) {
      const Index first = block * fn::kReduceBlock, left = count - first;
      const T part =
          Team::template reduce_block<R>(left < fn::kReduceBlock ? left : fn::kReduceBlock, T(0),
                                         [&](Index i) { return element(first + i); });
      const Index lane = block % fn::kReduceLanes;
      if (lane == Team::member()) low = R::join(low, part);
      if (lane == Team::member() + Team::kSize) high = R::join(high, part);
    }
    return Team::template join<R>(low, high);
  }
}

// Whether to give a sequence to a warp: it pays where neighbours of a sequence lie together, or
// where there are too few sequences for a thread each.
inline bool suits_warps(Index sequences, Index length, bool lies_densely) {
  return length > fn::kReduceBlock || (length >= 32 && (lies_densely || sequences < 1024));
}

}  // namespace taper::cuda
