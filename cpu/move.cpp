// Moving elements by their size alone: gather, scatter, copy and transpose. 1 read, 1 write each.
#include "taper/cpu/move.h"

#include <cstring>
#include <utility>

#include "taper/cpu/parallel.h"

namespace taper::cpu {
namespace {

// These may stand for any type of their size.
using U8 [[gnu::may_alias]] = std::uint8_t;
using U16 [[gnu::may_alias]] = std::uint16_t;
using U32 [[gnu::may_alias]] = std::uint32_t;
using U64 [[gnu::may_alias]] = std::uint64_t;

constexpr std::int64_t kLongRow = 16;  // elements from which memcpy pays

// Calls fn with a null pointer to the type that moves elements of `size` bytes.
template <class Fn> void visit_size(std::int64_t size, const Fn& fn) {
  switch (size) {
    case 1: return fn(static_cast<U8*>(nullptr));
    case 2: return fn(static_cast<U16*>(nullptr));
    case 4: return fn(static_cast<U32*>(nullptr));
    default: return fn(static_cast<U64*>(nullptr));
  }
}

// One row; steps in bytes.
template <class U>
void move_row(std::byte* out,
              std::int64_t out_step,
              const std::byte* in,
              std::int64_t in_step,
              std::int64_t n) {
  constexpr std::int64_t kSize = sizeof(U);
  if (out_step == kSize && in_step == kSize && n >= kLongRow) {
    std::memcpy(out, in, static_cast<std::size_t>(n * kSize));
  } else if (out_step == kSize && in_step == 0) {
    const U value = *reinterpret_cast<const U*>(in);
    for (std::int64_t i = 0; i < n; ++i) reinterpret_cast<U*>(out)[i] = value;
  } else if (out_step == kSize) {
    for (std::int64_t i = 0; i < n; ++i) {
      reinterpret_cast<U*>(out)[i] = *reinterpret_cast<const U*>(in + i * in_step);
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<U*>(out + i * out_step) = *reinterpret_cast<const U*>(in + i * in_step);
    }
  }
}

std::int64_t inner_step(const Strided& view, int ndim) {
  return ndim == 0 ? view.size : view.strides[ndim - 1];
}

// Calls row(at, m, i): the next m elements lie at `at`, and are the i-th and following.
template <class Row>
void for_each_row(const Strided& view, Cursor cursor, std::int64_t n, const Row& row) {
  const int last = cursor.ndim - 1;
  std::byte* at = view.data + cursor.offset(view.strides);
  std::int64_t left = cursor.left_in_row();
  for (std::int64_t i = 0;;) {
    const std::int64_t m = left < n - i ? left : n - i;
    row(at, m, i);
    i += m;
    if (i >= n) return;
    at -= cursor.at[last] * view.strides[last];
    cursor.at[last] = 0;
    left = cursor.sizes[last];
    for (int d = last - 1; d >= 0; --d) {  // one row on
      at += view.strides[d];
      if (++cursor.at[d] < cursor.sizes[d]) break;
      at -= cursor.sizes[d] * view.strides[d];
      cursor.at[d] = 0;
    }
  }
}

std::int64_t magnitude(std::int64_t x) {
  return x < 0 ? -x : x;
}

struct Pair {
  int ndim;
  std::int64_t numel;
  std::int64_t sizes[kMaxDims];
  Strided out, in;
};

Pair make_pair(const View& out, const View& in) {
  Layout layouts[2] = {*out.layout, *in.layout};
  order_dims(layouts, 2);
  Pair pair;
  pair.ndim = layouts[0].ndim;
  pair.numel = layouts[0].numel();
  pair.out = strided({out.data, &layouts[0], out.dtype});
  pair.in = strided({in.data, &layouts[1], in.dtype});
  for (int d = 0; d < pair.ndim; ++d) pair.sizes[d] = layouts[0].sizes[d];
  return pair;
}

// The dim along which the input lies dense, if it is not the innermost but the output's is.
int transposed_dim(const Pair& pair) {
  const int last = pair.ndim - 1;
  if (last < 1 || pair.out.strides[last] != pair.out.size) return -1;
  if (pair.in.strides[last] == pair.in.size || pair.in.strides[last] == 0) return -1;
  for (int d = 0; d < last; ++d) {
    if (pair.in.strides[d] == pair.in.size && pair.sizes[d] >= 4) return d;
  }
  return -1;
}

// A matrix of 4-byte elements, transposed by 4 x 4 in registers.
template <class U>
void write_quads(std::byte* out,
                 std::int64_t out_step,
                 const U (*tile)[kTileRows],
                 std::int64_t rows,
                 std::int64_t cols) {
  typedef U Quad [[gnu::vector_size(16)]];  // NOLINT: `using` cannot carry the attribute
  for (std::int64_t i = 0; i < rows; i += 4) {
    for (std::int64_t j = 0; j < cols; j += 4) {
      Quad q[4];
      for (int k = 0; k < 4; ++k) std::memcpy(&q[k], &tile[j + k][i], sizeof(Quad));
      const Quad low01 = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5);
      const Quad high01 = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
      const Quad low23 = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5);
      const Quad high23 = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
      q[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
      q[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
      q[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
      q[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
      for (int k = 0; k < 4; ++k)
        std::memcpy(out + (i + k) * out_step + j * 4, &q[k], sizeof(Quad));
    }
  }
}

// out[i][j] = in[j][i] for i < rows <= kTileRows, j < cols <= kTileCols; both dense along their
// last index. By way of a tile on the stack: whole cache lines are read, many at a time, whatever
// their neighbours push out of the cache.
template <class U>
void transpose_tile(std::byte* out,
                    std::int64_t out_step,
                    const std::byte* in,
                    std::int64_t in_step,
                    std::int64_t rows,
                    std::int64_t cols) {
  U tile[kTileCols][kTileRows];
  for (std::int64_t j = 0; j < cols; ++j) {
    if (rows == kTileRows) std::memcpy(tile[j], in + j * in_step, sizeof(tile[j]));
    else std::memcpy(tile[j], in + j * in_step, static_cast<std::size_t>(rows) * sizeof(U));
  }
  if constexpr (sizeof(U) == 4) {
    if (rows % 4 == 0 && cols % 4 == 0) return write_quads(out, out_step, tile, rows, cols);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    U* row = reinterpret_cast<U*>(out + i * out_step);
    if (cols == kTileCols) {
      for (std::int64_t j = 0; j < kTileCols; ++j) row[j] = tile[j][i];
    } else {
      for (std::int64_t j = 0; j < cols; ++j) row[j] = tile[j][i];
    }
  }
}

// Dim `d` and the innermost are transposed to each other; all others are walked.
template <class U> void move_transposed(Pair pair, int d) {
  const int last = pair.ndim - 1;
  const std::int64_t rows = pair.sizes[d], cols = pair.sizes[last];
  const std::int64_t out_step = pair.out.strides[d], in_step = pair.in.strides[last];
  const std::int64_t strips = (rows - 1) / kTileRows + 1;
  pair.sizes[d] = strips;
  pair.out.strides[d] *= kTileRows;
  pair.in.strides[d] *= kTileRows;
  const std::int64_t count = pair.numel / (rows * cols) * strips;
  parallel_for(count, grain_of(kTileRows * cols), [&](std::int64_t begin, std::int64_t end) {
    Cursor cursor(last, pair.sizes, begin);
    for (std::int64_t i = begin; i < end; ++i, cursor.advance(1)) {
      const std::int64_t left = rows - cursor.at[d] * kTileRows;
      std::byte* out = pair.out.data + cursor.offset(pair.out.strides);
      const std::byte* in = pair.in.data + cursor.offset(pair.in.strides);
      for (std::int64_t j = 0; j < cols; j += kTileCols) {
        transpose_tile<U>(out + j * std::int64_t{sizeof(U)}, out_step, in + j * in_step, in_step,
                          left < kTileRows ? left : kTileRows,
                          cols - j < kTileCols ? cols - j : kTileCols);
      }
    }
  });
}

template <class U> void move_rows(const Pair& pair) {
  const std::int64_t out_step = inner_step(pair.out, pair.ndim);
  const std::int64_t in_step = inner_step(pair.in, pair.ndim);
  parallel_for(pair.numel, kGrain, [&](std::int64_t begin, std::int64_t end) {
    Cursor cursor(pair.ndim, pair.sizes, begin);
    while (begin < end) {
      const std::int64_t left = cursor.left_in_row();
      const std::int64_t n = left < end - begin ? left : end - begin;
      move_row<U>(pair.out.data + cursor.offset(pair.out.strides), out_step,
                  pair.in.data + cursor.offset(pair.in.strides), in_step, n);
      begin += n;
      cursor.advance(n);
    }
  });
}

}  // namespace

Strided strided(const View& view) {
  Strided out{view.as<std::byte>(), element_size(view.dtype), {}};
  for (int d = 0; d < view.layout->ndim; ++d) out.strides[d] = view.layout->strides[d] * out.size;
  return out;
}

void pack(void* dense, const Strided& in, const Cursor& cursor, std::int64_t n) {
  const std::int64_t step = inner_step(in, cursor.ndim);
  visit_size(in.size, [&](auto* type) {
    using U = std::remove_pointer_t<decltype(type)>;
    U* out = static_cast<U*>(dense);
    for_each_row(in, cursor, n, [&](const std::byte* at, std::int64_t m, std::int64_t i) {
      move_row<U>(reinterpret_cast<std::byte*>(out + i), sizeof(U), at, step, m);
    });
  });
}

void unpack(const Strided& out, const void* dense, const Cursor& cursor, std::int64_t n) {
  const std::int64_t step = inner_step(out, cursor.ndim);
  visit_size(out.size, [&](auto* type) {
    using U = std::remove_pointer_t<decltype(type)>;
    const U* in = static_cast<const U*>(dense);
    for_each_row(out, cursor, n, [&](std::byte* at, std::int64_t m, std::int64_t i) {
      move_row<U>(at, step, reinterpret_cast<const std::byte*>(in + i), sizeof(U), m);
    });
  });
}

void pack_tile(void* dense, const Strided& in, std::int64_t rows, std::int64_t cols) {
  const std::int64_t down = in.strides[0], across = in.strides[1];
  if (magnitude(down) >= magnitude(across) || down == 0) {
    const std::int64_t sizes[] = {rows, cols};
    return pack(dense, in, Cursor(2, sizes, 0), rows * cols);
  }
  visit_size(in.size, [&](auto* type) {
    using U = std::remove_pointer_t<decltype(type)>;
    if (down == in.size) {
      return transpose_tile<U>(static_cast<std::byte*>(dense), cols * in.size, in.data, across,
                               rows, cols);
    }
    U* out = static_cast<U*>(dense);  // column by column, as they lie
    for (std::int64_t j = 0; j < cols; ++j) {
      const std::byte* at = in.data + j * across;
      for (std::int64_t i = 0; i < rows; ++i) {
        out[i * cols + j] = *reinterpret_cast<const U*>(at + i * down);
      }
    }
  });
}

void unpack_tile(const Strided& out, const void* dense, std::int64_t rows, std::int64_t cols) {
  const std::int64_t sizes[] = {rows, cols};
  unpack(out, dense, Cursor(2, sizes, 0), rows * cols);
}

void order_dims(Layout* layouts, int count) {
  Layout* pointers[kMaxDims];
  for (int i = 0; i < count; ++i) pointers[i] = &layouts[i];
  coalesce(pointers, count);
  const Layout& first = layouts[0];
  for (int d = 1; d < first.ndim; ++d) {
    for (int k = d; k > 0 && magnitude(first.strides[k - 1]) < magnitude(first.strides[k]); --k) {
      for (int i = 0; i < count; ++i) {
        std::swap(layouts[i].sizes[k - 1], layouts[i].sizes[k]);
        std::swap(layouts[i].strides[k - 1], layouts[i].strides[k]);
      }
    }
  }
  coalesce(pointers, count);
}

void move(const View& out, const View& in) {
  const Pair pair = make_pair(out, in);
  const int d = transposed_dim(pair);
  visit_size(pair.out.size, [&](auto* type) {
    using U = std::remove_pointer_t<decltype(type)>;
    if (d >= 0) move_transposed<U>(pair, d);
    else move_rows<U>(pair);
  });
}

}  // namespace taper::cpu
