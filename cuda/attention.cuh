// Tiles of attention in a block of threads: how operands are brought, multiplied and masked.
#pragma once
#include "taper/core/attention.h"
#include "taper/cuda/lanes.cuh"

namespace taper::cuda::attn {

using namespace taper::attn;  // NOLINT(google-build-using-namespace): one family

constexpr int kOwn = 4;                             // rows and columns of a tile in one thread
constexpr int kSide = kTile / kOwn;                 // threads down and across
constexpr unsigned kThreadsOfTile = kSide * kSide;  // of a block
template <class T> constexpr int kSlab = 64 / sizeof(T);  // depth of one step through shared memory

// A loop that is unrolled however long its body: what it indexes by its counter stays in registers.
template <int kTimes, class Body> __device__ TAPER_INLINE void unrolled(const Body& body) {
  if constexpr (kTimes > 0) {
    unrolled<kTimes - 1>(body);
    body(kTimes - 1);
  }
}

// An operand (..., rows, cols) of any strides; data is null for no operand.
template <class E> struct Matrices {
  E* data = nullptr;
  Dims batch;
  Index rows = 0, cols = 0, row = 0, col = 0;

  __device__ E* at(Index i) const { return data + batch.offset(i); }
};

// The last `own` dims are the matrix's, the others the batch's.
template <class E> Matrices<E> matrices_of(const View& view, int own = 2) {
  Matrices<E> out;
  if (!view.defined()) return out;
  const Layout& layout = *view.layout;
  const int first = layout.ndim - own;
  out.data = view.as<E>();
  out.batch = Dims(layout);
  out.batch.ndim = first;
  out.rows = layout.sizes[first];
  out.row = layout.strides[first];
  out.cols = own == 2 ? layout.sizes[first + 1] : 1;
  out.col = own == 2 ? layout.strides[first + 1] : 0;
  return out;
}

inline Index count_of(const View& view, int own = 2) {
  Index n = 1;
  for (int d = 0; d < view.layout->ndim - own; ++d) n *= view.layout->sizes[d];
  return n;
}

inline Index tiles_in(Index n) {
  return (n + kTile - 1) / kTile;
}

__device__ inline Index in_tile(Index first, Index n) {
  return n - first < kTile ? n - first : kTile;
}

// A step of `depth` through two operands; and the weights or their gradients, for the next product.
template <class T> struct Shared {
  T slab[2][std::size_t{kSlab<T>}][kTile + 1];
  T tile[kTile][kTile + 1];
};

// Which rows and columns of a tile a thread has: down() + r * kSide, across() + s * kSide.
__device__ inline int down() {
  return static_cast<int>(threadIdx.x) / kSide;
}

__device__ inline int across() {
  return static_cast<int>(threadIdx.x) % kSide;
}

// to[k][w] = from[k * deep + w * wide] times `factor`; zeros past `depth` and `width`. Neighbouring
// threads read neighbouring elements where there are such.
template <class E, class T>
__device__ void bring(
    T (*to)[kTile + 1], const E* from, Index deep, Index wide, Index depth, Index width, T factor) {
  constexpr unsigned kDeep = kSlab<T>;
  for (unsigned at = threadIdx.x; at < kDeep * kTile; at += kThreadsOfTile) {
    const unsigned k = deep == 1 ? at % kDeep : at / kTile;
    const unsigned w = deep == 1 ? at / kDeep : at % kTile;
    const bool inside = k < depth && w < width;
    to[k][w] = inside ? static_cast<T>(from[k * deep + w * wide]) * factor : T(0);
  }
}

// Rows of an operand from one on: what bring() wants of them.
template <class E> struct Rows {
  const E* data;
  Index row, col, count;

  __device__ Rows(const Matrices<const E>& of, Index batch, Index first)
      : data(of.at(batch) + first * of.row), row(of.row), col(of.col), count(of.rows - first) {}
};

// sum[r][s] = the chain over d of (a[row][d] factor) b[column][d].
template <class E, class T>
__device__ void multiply_rows(
    T (&sum)[kOwn][kOwn], Shared<T>& shared, Rows<E> a, Rows<E> b, Index depth, T factor) {
  for (int r = 0; r < kOwn; ++r) {
    for (int s = 0; s < kOwn; ++s) sum[r][s] = T(0);
  }
  for (Index d = 0; d < depth; d += kSlab<T>) {
    __syncthreads();
    bring(shared.slab[0], a.data + d * a.col, a.col, a.row, depth - d, a.count, factor);
    bring(shared.slab[1], b.data + d * b.col, b.col, b.row, depth - d, b.count, T(1));
    __syncthreads();
    const int end = depth - d < kSlab<T> ? static_cast<int>(depth - d) : kSlab<T>;
    for (int k = 0; k < end; ++k) {
      T x[kOwn], y[kOwn];
      for (int r = 0; r < kOwn; ++r) x[r] = shared.slab[0][k][down() + r * kSide];
      for (int s = 0; s < kOwn; ++s) y[s] = shared.slab[1][k][across() + s * kSide];
      for (int r = 0; r < kOwn; ++r) {
        for (int s = 0; s < kOwn; ++s) sum[r][s] = math::fma(x[r], y[s], sum[r][s]);
      }
    }
  }
}

// Puts a thread's part of a tile where others read it.
template <class T> __device__ void share(Shared<T>& shared, const T (&part)[kOwn][kOwn]) {
  __syncthreads();
  for (int r = 0; r < kOwn; ++r) {
    for (int s = 0; s < kOwn; ++s) {
      shared.tile[down() + r * kSide][across() + s * kSide] = part[r][s];
    }
  }
}

// The columns of a product that a block makes: kWide times kTile of them.
template <class T, int kWide> using Sums = T[kOwn][std::size_t{kOwn * kWide}];

// sum[row][column] goes on with tile[row][k] b[k][column], or tile[k][row] when kTurned, for each
// of b's rows in the tile; columns from `first` on.
template <bool kTurned, int kWide, class E, class T>
__device__ void accumulate(
    Sums<T, kWide>& sum, Shared<T>& shared, Rows<E> b, Index first, Index cols, T factor) {
  const Index depth = b.count < kTile ? b.count : kTile;
  for (Index j = 0; j < depth; j += kSlab<T>) {
    __syncthreads();
    for (int part = 0; part < kWide; ++part) {
      const Index column = first + part * kTile;
      bring(shared.slab[part], b.data + j * b.row + column * b.col, b.row, b.col, depth - j,
            cols - column, factor);
    }
    __syncthreads();
    const int end = depth - j < kSlab<T> ? static_cast<int>(depth - j) : kSlab<T>;
    for (int k = 0; k < end; ++k) {
      const int at = static_cast<int>(j) + k;
      T x[kOwn];
      for (int r = 0; r < kOwn; ++r) {
        const int row = down() + r * kSide;
        x[r] = kTurned ? shared.tile[at][row] : shared.tile[row][at];
      }
      for (int s = 0; s < kOwn * kWide; ++s) {
        const T y = shared.slab[s / kOwn][k][across() + s % kOwn * kSide];
        for (int r = 0; r < kOwn; ++r) sum[r][s] = math::fma(x[r], y, sum[r][s]);
      }
    }
  }
}

// Calls element(row, column, r, s) for what a thread has of a product inside (rows, cols).
template <int kWide, class Element>
__device__ void for_each_own(
    Index row0, Index rows, Index col0, Index cols, const Element& element) {
  unrolled<kOwn>([&](int r) {
    unrolled<kOwn * kWide>([&](int s) {
      const Index row = row0 + down() + r * kSide;
      const Index col = col0 + s / kOwn * kTile + across() + s % kOwn * kSide;
      if (row < rows && col < cols) element(row, col, r, s);
    });
  });
}

// The scores of q (..., T, E) and k (..., S, E) under a mask.
template <class E> struct Scores {
  using T = Compute<E>;

  Matrices<const E> q, k, added;
  Matrices<const bool> seen;
  bool causal;
  T scale;

  __device__ bool masked() const { return added.data != nullptr || seen.data != nullptr; }

  // Whether the tile of queries at i0 meets that of keys at j0.
  __device__ bool meet(Index i0, Index j0) const {
    return !causal || j0 < i0 + in_tile(i0, q.rows);
  }

  // Past the last query or key: kUnseen.
  __device__ void compute(
      T (&s)[kOwn][kOwn], Shared<T>& shared, Index batch, Index i0, Index j0) const {
    multiply_rows<E, T>(s, shared, {q, batch, i0}, {k, batch, j0}, q.cols, scale);
    const bool* choices = seen.data != nullptr ? seen.at(batch) : nullptr;
    const E* more = added.data != nullptr ? added.at(batch) : nullptr;
    unrolled<kOwn>([&](int r) {
      unrolled<kOwn>([&](int c) {
        const Index i = i0 + down() + r * kSide, j = j0 + across() + c * kSide;
        bool sees = i < q.rows && j < k.rows && (!causal || j <= i);
        if (sees && choices != nullptr) sees = choices[i * seen.row + j * seen.col];
        if (sees && more != nullptr) {
          s[r][c] += static_cast<T>(more[i * added.row + j * added.col]);
        }
        if (!sees) s[r][c] = kUnseen<T>;
      });
    });
  }
};

template <class E>
Scores<E> scores_of(const View& q, const View& k, const View& mask, bool causal, double scale) {
  Scores<E> out;
  out.q = matrices_of<const E>(q);
  out.k = matrices_of<const E>(k);
  if (mask.defined() && mask.dtype == kBool) out.seen = matrices_of<const bool>(mask);
  else out.added = matrices_of<const E>(mask);
  out.causal = causal;
  out.scale = static_cast<Compute<E>>(scale);
  return out;
}

// One block for each tile of rows and strip of columns of each matrix.
struct Grid {
  Index tiles, strips;

  unsigned blocks(Index count) const {
    TAPER_CHECK(count * tiles * strips <= 0x7fffffff,
                "attention: the operands have too many tiles for one launch");
    return static_cast<unsigned>(count * tiles * strips);
  }

  __device__ Index batch() const { return blockIdx.x / (tiles * strips); }

  __device__ Index first_row() const { return blockIdx.x / strips % tiles * kTile; }

  __device__ Index strip() const { return blockIdx.x % strips; }
};

// Launches a kernel that has a Shared<T>; static ones would weigh on every thread when emulated.
template <class T, class... Params, class... Args>
void launch_tiles(const Exec& exec,
                  unsigned blocks,
                  void (*kernel)(Params...),
                  const Args&... args) {
  if (blocks == 0) return;
  const DeviceGuard guard(exec.device.index());
  launch({blocks, kThreadsOfTile, sizeof(Shared<T>), stream_of(exec.device, exec.stream)}, kernel,
         args...);
}

template <int kWide> Grid grid_of(Index rows, Index cols) {
  const Index width = Index{kWide} * kTile;
  return {tiles_in(rows), cols > width ? (cols + width - 1) / width : 1};
}

}  // namespace taper::cuda::attn
