// How elements move between strided layouts and dense buffers, whatever their type.
#pragma once
#include <cstddef>
#include <cstdint>

#include "taper/core/exec.h"

namespace taper::cpu {

// A position in row-major order over `ndim` sizes. Inlined always: kernel files use it (base/hd.h).
struct Cursor {
  int ndim;
  const std::int64_t* sizes;
  std::int64_t at[kMaxDims] = {};

  TAPER_INLINE Cursor(int dims, const std::int64_t* extents, std::int64_t first)
      : ndim(dims), sizes(extents) {
    advance(first);
  }

  TAPER_INLINE std::int64_t offset(const std::int64_t* strides) const {
    std::int64_t sum = 0;
    for (int d = 0; d < ndim; ++d) sum += at[d] * strides[d];
    return sum;
  }

  TAPER_INLINE std::int64_t left_in_row() const {
    return ndim == 0 ? 1 : sizes[ndim - 1] - at[ndim - 1];
  }

  TAPER_INLINE void advance(std::int64_t n) {
    if (ndim == 0) return;
    at[ndim - 1] += n;
    for (int d = ndim - 1; d > 0 && at[d] >= sizes[d]; --d) {
      at[d - 1] += at[d] / sizes[d];
      at[d] %= sizes[d];
    }
  }
};

// Elements of `size` bytes at `data`, by strides in bytes.
struct Strided {
  std::byte* data;
  std::int64_t size;
  std::int64_t strides[kMaxDims];
};

Strided strided(const View& view);

// The n elements from the cursor on, one after another: into a dense buffer, or out of one.
void pack(void* dense, const Strided& in, const Cursor& cursor, std::int64_t n);
void unpack(const Strided& out, const void* dense, const Cursor& cursor, std::int64_t n);

// A matrix of at most kTileRows x kTileCols, whose strides are the first two; dense is row-major.
// Reads in the order of memory: along columns, if these are what lies dense.
inline constexpr std::int64_t kTileRows = 64, kTileCols = 16;
void pack_tile(void* dense, const Strided& in, std::int64_t rows, std::int64_t cols);
void unpack_tile(const Strided& out, const void* dense, std::int64_t rows, std::int64_t cols);

// Orders the dims of all layouts, whose sizes are equal, by falling stride of the first, and merges
// what lies as one: the innermost loop then writes neighbours.
void order_dims(Layout* layouts, int count);

// Copies all elements; both have the same sizes and elements of the same size. In parallel.
void move(const View& out, const View& in);

}  // namespace taper::cpu
