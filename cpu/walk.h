// A walk over the indices of several operands at once, in row-major order.
#pragma once
#include "taper/core/base/layout.h"

namespace taper::cpu {
inline namespace TAPER_ISA {

// Keeps, for each of `count` operands, the offset of the present index. Offsets are in whatever
// unit the strides are given in.
template <std::size_t Most> struct Walk {
  int ndim = 0, count = 0;
  std::int64_t sizes[kMaxDims] = {};
  std::int64_t strides[Most][kMaxDims] = {};
  std::int64_t at[kMaxDims] = {};
  std::int64_t offset[Most] = {};

  TAPER_INLINE std::int64_t numel() const {
    std::int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }

  // To the index that is number `n` in row-major order.
  TAPER_INLINE void seek(std::int64_t n) {
    for (int k = 0; k < count; ++k) offset[k] = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      at[d] = n % sizes[d];
      n /= sizes[d];
      for (int k = 0; k < count; ++k) offset[k] += at[d] * strides[k][d];
    }
  }

  // To the next index; from the last one, back to the first.
  TAPER_INLINE void next() {
    for (int d = ndim - 1; d >= 0; --d) {
      for (int k = 0; k < count; ++k) offset[k] += strides[k][d];
      if (++at[d] < sizes[d]) return;
      at[d] = 0;
      for (int k = 0; k < count; ++k) offset[k] -= sizes[d] * strides[k][d];
    }
  }
};

}  // namespace TAPER_ISA
}  // namespace taper::cpu
