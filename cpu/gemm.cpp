// Matrix products of every dtype: the same bits on every instruction set and thread count.
#include <utility>

#include "taper/core/functors_activation.h"
#include "taper/core/precision.h"
#include "taper/cpu/finite.h"
#include "taper/cpu/gemm_blas.h"
#include "taper/cpu/gemm_pack.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/parallel.h"

// Note [One chain of fmas]
// Every element of C starts as the bias, or zero, and is then one fma for each k, in order. Tiles,
// panels, threads and K-blocks (which leave C in memory and go on from there) do not change that
// chain, so that the bits depend on the operands alone. 16-bit types convert to f32 when they are
// packed, and round once at the end; what an activation then does is done to the rounded sum, while
// the part of C that is finished is in the cache.
namespace taper::cpu {
inline namespace TAPER_ISA {
namespace gemm {
namespace {

constexpr Index kDepth = 256;           // k of one block: a panel of B stays in the first cache
constexpr Index kBlockRows = 96;        // rows of one task; a multiple of every kTileRows
constexpr Index kChunkRows = 2304;      // rows of A that are packed at a time
constexpr Index kChunkCols = 2048;      // columns of B that are packed at a time
constexpr Index kRowChunk = 512;        // columns that multiply_row keeps in the first cache
constexpr Index kSmall = 64 * 64 * 64;  // multiply-adds that are not worth a second thread

// A batch of matrices: element (i, j) of one is data[i * row + j * col], the next is `batch` on.
template <class E> struct Matrix {
  E* data;
  Index batch, row, col;

  TAPER_INLINE E* at(Index i, Index j) const { return data + i * row + j * col; }

  TAPER_INLINE Matrix transposed() const { return {data, batch, col, row}; }

  TAPER_INLINE Matrix moved(Index offset) const {
    return {data == nullptr ? data : data + offset, batch, row, col};
  }
};

// c (m, n) = activation(a (m, k) b (k, n) + bias (m, n)); bias.data may be null.
template <class E> struct Product {
  Index m, n, k;
  Matrix<const E> a, b, bias;
  Matrix<E> c;
  Activation activation;
  FiniteWatch* watch = nullptr;  // of c, whose rows then have no gaps

  TAPER_INLINE Product transposed() const {
    return {n,          m,    k, b.transposed(), a.transposed(), bias.transposed(), c.transposed(),
            activation, watch};
  }

  TAPER_INLINE Product columns(Index begin, Index end) const {
    return {m,
            end - begin,
            k,
            a,
            b.moved(begin * b.col),
            bias.moved(begin * bias.col),
            c.moved(begin * c.col),
            activation,
            watch};
  }

  TAPER_INLINE Product of_batch(Index i) const {
    return {m,
            n,
            k,
            a.moved(i * a.batch),
            b.moved(i * b.batch),
            bias.moved(i * bias.batch),
            c.moved(i * c.batch),
            activation,
            watch};
  }
};

// What an element type is summed in. Unsigned, so that overflow wraps.
template <class E> struct AccumulatorOf : std::type_identity<E> {};
template <> struct AccumulatorOf<Half> : std::type_identity<float> {};
template <> struct AccumulatorOf<BFloat16> : std::type_identity<float> {};
template <> struct AccumulatorOf<std::int64_t> : std::type_identity<std::uint64_t> {};
template <> struct AccumulatorOf<std::int32_t> : std::type_identity<std::uint32_t> {};
template <> struct AccumulatorOf<std::uint8_t> : std::type_identity<std::uint32_t> {};
template <class E> using Accumulator = typename AccumulatorOf<E>::type;

template <class T> TAPER_INLINE T multiply_add(T a, T b, T c) {
  if constexpr (std::is_same_v<T, bool>) return c || (a && b);
  else if constexpr (std::is_floating_point_v<T>) return math::fma(a, b, c);
  else return a * b + c;
}

// The start of the chains of c (rows, cols), which lies ldc apart: the bias at (i, j), or zero.
template <class E, class T>
void start_tile(const Product<E>& p, Index i, Index rows, Index j, Index cols, T* c, Index ldc) {
  for (Index r = 0; r < rows; ++r) {
    T* to = c + r * ldc;
    if (p.bias.data == nullptr) {
      for (Index s = 0; s < cols; ++s) to[s] = T(0);
      continue;
    }
    const E* from = p.bias.at(i + r, j);
    for (Index s = 0; s < cols; ++s) to[s] = static_cast<T>(from[s * p.bias.col]);
  }
}

template <class E, class T>
void store_tile(
    const Product<E>& p, Index i, Index rows, Index j, Index cols, const T* c, Index ldc) {
  for (Index r = 0; r < rows; ++r) {
    const T* from = c + r * ldc;
    E* to = p.c.at(i + r, j);
    if (p.c.col == 1) {
      for (Index s = 0; s < cols; ++s) to[s] = static_cast<E>(from[s]);
    } else {
      for (Index s = 0; s < cols; ++s) to[s * p.c.col] = static_cast<E>(from[s]);
    }
  }
}

// Row i of C by whole rows of B: for one or two rows, where packing B would cost more than it
// saves, and for integers. Reads B once for each row, and A once.
template <class E> void multiply_row(const Product<E>& p, Index i) {
  using T = Accumulator<E>;
  T sum[kRowChunk];
  for (Index j = 0; j < p.n; j += kRowChunk) {
    const Index cols = p.n - j < kRowChunk ? p.n - j : kRowChunk;
    start_tile(p, i, 1, j, cols, sum, kRowChunk);
    Index k = 0;
    for (; p.b.col == 1 && k + 4 <= p.k; k += 4) {
      T left[4];
      for (int q = 0; q < 4; ++q) left[q] = static_cast<T>(*p.a.at(i, k + q));
      const E* b0 = p.b.at(k, j);
      const E *b1 = b0 + p.b.row, *b2 = b1 + p.b.row, *b3 = b2 + p.b.row;
      for (Index s = 0; s < cols; ++s) {
        T x = multiply_add(left[0], static_cast<T>(b0[s]), sum[s]);
        x = multiply_add(left[1], static_cast<T>(b1[s]), x);
        x = multiply_add(left[2], static_cast<T>(b2[s]), x);
        sum[s] = multiply_add(left[3], static_cast<T>(b3[s]), x);
      }
    }
    for (; k < p.k; ++k) {
      const T left = static_cast<T>(*p.a.at(i, k));
      const E* right = p.b.at(k, j);
      for (Index s = 0; s < cols; ++s) {
        sum[s] = multiply_add(left, static_cast<T>(right[s * p.b.col]), sum[s]);
      }
    }
    store_tile(p, i, 1, j, cols, sum, kRowChunk);
  }
}

// Looks at rows [i, i + rows) and columns [j, j + cols) of C, which are done.
template <class E> void look_at(const Product<E>& p, Index i, Index rows, Index j, Index cols) {
  if (p.watch == nullptr) return;
  visit_bits(dtype_of<E>(), [&](auto lowest) {
    using U = decltype(lowest);
    U any = 0;
    for (Index r = i; r < i + rows; ++r) {
      any |= carries_of<U>(reinterpret_cast<const Bits<U>*>(p.c.at(r, j)), 1, cols, lowest);
    }
    if (has_carried(any)) p.watch->found.store(true, std::memory_order_relaxed);
  });
}

// What multiply_tile has seen of C. An activation may yet make it finite; who watches looks again.
template <class E> void note_seen(const Product<E>& p, const Vector<Accumulator<E>>& seen) {
  if (!all_finite<Accumulator<E>>(seen)) p.watch->found.store(true, std::memory_order_relaxed);
}

// Columns [j, j + cols) of C, at most one tile wide; one thread, no memory but the stack's. Reads
// A in place, and B too where few rows would not repay packing it.
// NOLINTNEXTLINE(readability-function-cognitive-complexity): the cases of one tile
template <class E> void multiply_sliver(const Product<E>& p, Index j, Index cols) {
  using T = Accumulator<E>;
  constexpr bool kSame = std::is_same_v<E, T>;
  constexpr Index kCols = kTileCols<T>;
  alignas(64) T right[std::size_t{kDepth * kCols}];
  alignas(64) T tile[std::size_t{kBlockRows * kCols}];
  alignas(64) T left[kSame ? 1 : kTileRows * kDepth];
  const bool narrow = cols <= kLanes<T>;
  const bool whole = cols == kCols || cols == kLanes<T>;
  const bool in_place = kSame && whole && p.c.col == 1;
  const bool looks = in_place && p.watch != nullptr && p.k > 0;
  Vector<T> seen{};
  const bool keep =
      kSame && whole && p.b.col == 1 && (p.m <= 2 * kTileRows || p.b.row <= 2 * kCols);
  for (Index i0 = 0; i0 < p.m; i0 += kBlockRows) {
    const Index rows = p.m - i0 < kBlockRows ? p.m - i0 : kBlockRows;
    T* c = tile;
    Index ldc = kCols;
    if constexpr (kSame) {
      if (in_place) c = p.c.at(i0, j), ldc = p.c.row;
    }
    const bool biased = p.bias.data != nullptr || p.k == 0;
    if (biased) start_tile(p, i0, rows, j, cols, c, ldc);
    for (Index k = 0; k < p.k; k += kDepth) {
      const Index depth = p.k - k < kDepth ? p.k - k : kDepth;
      const T* b = right;
      Index ldb = kCols;
      if constexpr (kSame) {
        if (keep) b = p.b.at(k, j), ldb = p.b.row;
      }
      if (b == right) pack_panel<kCols>(right, p.b.at(k, j), p.b.col, p.b.row, cols, depth);
      for (Index i = 0; i < rows; i += kTileRows) {
        const Index height = rows - i < kTileRows ? rows - i : kTileRows;
        TileLeft<T> a{left, 1, kTileRows};
        if constexpr (kSame) a = {p.a.at(i0 + i, k), p.a.row, p.a.col};
        else pack_panel<kTileRows>(left, p.a.at(i0 + i, k), p.a.row, p.a.col, height, depth);
        const auto multiply = narrow ? multiply_rows<T, 1> : multiply_rows<T, kTileVectors>;
        multiply(height, depth, a, b, ldb, c + i * ldc, ldc, biased || k > 0,
                 looks && k + depth == p.k ? &seen : nullptr);
      }
    }
    if (!in_place) store_tile(p, i0, rows, j, cols, c, ldc);
    if (!looks) look_at(p, i0, rows, j, cols);
  }
  if (looks) note_seen<E>(p, seen);
}

// Runs the activation's own slot on rows [i, i + rows) and columns [j, j + cols) of C.
template <class E> void activate(const Product<E>& p, Index i, Index rows, Index j, Index cols) {
  if (p.activation == Activation::kNone) return;
  Layout layout;
  layout.ndim = 2;
  layout.sizes[0] = rows, layout.strides[0] = p.c.row;
  layout.sizes[1] = cols, layout.strides[1] = p.c.col;
  const View part{p.c.at(i, j), &layout, dtype_of<E>()};
  FiniteWatch* const watch = std::exchange(finite_watch, nullptr);  // it watches the product
  fn::visit_activation(p.activation,
                       [&](auto f) { unary<decltype(f)>(Exec(kCPU), Out{part}, In{part}); });
  finite_watch = watch;
}

// Rows [i, i + rows) and columns [j, j + cols) of C hold their sums.
template <class E> void finish(const Product<E>& p, Index i, Index rows, Index j, Index cols) {
  activate(p, i, rows, j, cols);
  look_at(p, i, rows, j, cols);
}

// All of C on one thread.
template <class E> void multiply_alone(const Product<E>& p) {
  if constexpr (std::is_floating_point_v<Accumulator<E>>) {
    if (p.m > 2 || p.b.col != 1) {
      constexpr Index kCols = kTileCols<Accumulator<E>>;
      for (Index j = 0; j < p.n; j += kCols) {
        multiply_sliver(p, j, p.n - j < kCols ? p.n - j : kCols);
      }
      return activate(p, 0, p.m, 0, p.n);
    }
  }
  for (Index i = 0; i < p.m; ++i) multiply_row(p, i);
  finish(p, 0, p.m, 0, p.n);
}

// The way for large products: chunks of A and B are packed by all threads, then multiplied tile by
// tile. Scratch: at most kChunkRows + kChunkCols panels of kDepth, and a chunk of C when C itself
// cannot hold the sums (16-bit types, or no dim without gaps).
template <class E> class PackedProduct {
 public:
  PackedProduct(const Exec& exec, const Product<E>& p) : p_(p) {
    const Index rows = padded(p.m < kChunkRows ? p.m : kChunkRows, kTileRows);
    const Index cols = padded(p.n < kChunkCols ? p.n : kChunkCols, kCols);
    const Index depth = p.k < kDepth ? p.k : kDepth;
    staged_ = !std::is_same_v<E, T> || p.c.col != 1;
    if (!in_place_a()) a_ = scratch(exec, rows * depth);
    b_ = scratch(exec, cols * depth);
    if (staged_) stage_ = scratch(exec, rows * cols);
  }

  void run() {
    for (m0_ = 0; m0_ < p_.m; m0_ += kChunkRows) {
      m1_ = m0_ + kChunkRows < p_.m ? m0_ + kChunkRows : p_.m;
      for (n0_ = 0; n0_ < p_.n; n0_ += kChunkCols) {
        n1_ = n0_ + kChunkCols < p_.n ? n0_ + kChunkCols : p_.n;
        ld_stage_ = padded(n1_ - n0_, kCols);
        for (k0_ = 0; k0_ < p_.k; k0_ += kDepth) {
          depth_ = p_.k - k0_ < kDepth ? p_.k - k0_ : kDepth;
          pack();
          multiply();
        }
      }
    }
  }

 private:
  using T = Accumulator<E>;
  static constexpr Index kCols = kTileCols<T>;

  static Index padded(Index n, Index unit) { return (n + unit - 1) / unit * unit; }

  static T* scratch(const Exec& exec, Index n) {
    return static_cast<T*>(exec.scratch(static_cast<std::size_t>(n) * sizeof(T)));
  }

  // With few columns each element of A is used too rarely to repay packing it.
  bool in_place_a() const { return std::is_same_v<E, T> && p_.a.col == 1 && p_.n <= 8 * kCols; }

  void pack() {
    const bool packs_a = a_ != nullptr && (n0_ == 0 || p_.k > kDepth);
    const Index panels_a = packs_a ? padded(m1_ - m0_, kTileRows) / kTileRows : 0;
    const Index panels_b = padded(n1_ - n0_, kCols) / kCols;
    parallel_for(panels_a + panels_b, 1 + kGrain / (8 * kDepth), [&](Index begin, Index end) {
      for (; begin < end && begin < panels_a; ++begin) {
        const Index i = m0_ + begin * kTileRows;
        pack_panel<kTileRows>(a_ + begin * kTileRows * depth_, p_.a.at(i, k0_), p_.a.row, p_.a.col,
                              p_.m - i < kTileRows ? p_.m - i : kTileRows, depth_);
      }
      if (begin < end) pack_b(begin - panels_a, end - panels_a);
    });
  }

  void pack_b(Index begin, Index end) {
    if (p_.b.col == 1) {
      const Index whole = (p_.n - n0_) / kCols < end ? (p_.n - n0_) / kCols : end;
      if (begin < whole) {
        pack_rows<kCols>(b_ + begin * kCols * depth_, kCols * depth_, whole - begin,
                         p_.b.at(k0_, n0_ + begin * kCols), p_.b.row, depth_);
        begin = whole;
      }
    }
    for (; begin < end; ++begin) {
      const Index j = n0_ + begin * kCols;
      pack_panel<kCols>(b_ + begin * kCols * depth_, p_.b.at(k0_, j), p_.b.col, p_.b.row,
                        p_.n - j < kCols ? p_.n - j : kCols, depth_);
    }
  }

  // Tasks of kBlockRows rows (a block of A for the second cache) by up to 16 panels of B.
  void multiply() {
    const Index tall = padded(m1_ - m0_, kBlockRows) / kBlockRows;
    const Index panels = padded(n1_ - n0_, kCols) / kCols;
    const Index width = tall * panels >= 16 * 8 ? 16 : 1 + (tall * panels - 1) / 16;
    const Index wide = padded(panels, width) / width;
    parallel_for(tall * wide, 1, [&](Index begin, Index end) {
      for (Index task = begin; task < end; ++task) {
        const Index i = m0_ + task / wide * kBlockRows;
        const Index j = n0_ + task % wide * width * kCols;
        multiply_block(i, m1_ - i < kBlockRows ? m1_ - i : kBlockRows, j,
                       n1_ - j < width * kCols ? n1_ - j : width * kCols);
      }
    });
  }

  void multiply_block(Index i0, Index rows, Index j0, Index cols) {
    const bool looks = !staged_ && is_last() && p_.watch != nullptr;
    Vector<T> seen{};
    for (Index j = j0; j < j0 + cols; j += kCols) {
      for (Index i = i0; i < i0 + rows; i += kTileRows) {
        multiply_tile_at(i, p_.m - i < kTileRows ? p_.m - i : kTileRows, j,
                         p_.n - j < kCols ? p_.n - j : kCols, looks ? &seen : nullptr);
      }
    }
    if (looks) note_seen(p_, seen);
    if (!is_last()) return;
    if (staged_) {
      store_tile(p_, i0, rows, j0, cols, stage_ + (i0 - m0_) * ld_stage_ + (j0 - n0_), ld_stage_);
      finish(p_, i0, rows, j0, cols);
    } else {
      activate(p_, i0, rows, j0, cols);
    }
  }

  void multiply_tile_at(Index i, Index rows, Index j, Index cols, Vector<T>* seen) {
    alignas(64) T edge[std::size_t{kTileRows * kCols}];
    T* c = edge;
    Index ldc = kCols;
    const bool biased = p_.bias.data != nullptr, accumulates = biased || k0_ > 0;
    if (staged_) {
      c = stage_ + (i - m0_) * ld_stage_ + (j - n0_);
      ldc = ld_stage_;
    } else if constexpr (std::is_same_v<E, T>) {
      if (rows == kTileRows && cols == kCols) {
        c = p_.c.at(i, j);
        ldc = p_.c.row;
      } else if (accumulates) {
        for (T& x : edge) x = T(0);  // what lies beyond C is summed too
        for (Index r = 0; k0_ > 0 && r < rows; ++r) {
          for (Index s = 0; s < cols; ++s) edge[r * kCols + s] = *p_.c.at(i + r, j + s);
        }
      }
    }
    // The tile below comes next; its sums would be waited for.
    for (Index r = kTileRows; r < 2 * kTileRows; ++r) __builtin_prefetch(c + r * ldc, 1);
    if (biased && k0_ == 0) start_tile(p_, i, rows, j, cols, c, ldc);
    const T* b = b_ + (j - n0_) * depth_;
    if (a_ != nullptr) {
      multiply_panels(depth_, a_ + (i - m0_) * depth_, b, c, ldc, accumulates, seen);
    } else if constexpr (std::is_same_v<E, T>) {
      const TileLeft<T> left{p_.a.at(i, k0_), p_.a.row, p_.a.col};
      multiply_rows<T, kTileVectors>(rows, depth_, left, b, kCols, c, ldc, accumulates, seen);
    }
    if (c == edge) store_tile(p_, i, rows, j, cols, edge, kCols);
  }

  bool is_last() const { return k0_ + depth_ == p_.k; }  // block of k

  const Product<E>& p_;
  T *a_ = nullptr, *b_ = nullptr, *stage_ = nullptr;
  bool staged_;
  Index m0_ = 0, m1_ = 0, n0_ = 0, n1_ = 0, k0_ = 0, depth_ = 0, ld_stage_ = 0;
};

// True when OpenBLAS was asked for and took the product.
template <class E> bool multiply_by_blas(const Product<E>& p) {
  if constexpr (std::is_floating_point_v<E>) {
    const auto fits = [](const auto& x, Index rows, Index cols) {
      return (x.col == 1 && x.row >= cols) || (x.row == 1 && x.col >= rows);
    };
    if (!blas_selected() || p.k == 0 || p.c.col != 1 || p.c.row < p.n) return false;
    if (!fits(p.a, p.m, p.k) || !fits(p.b, p.k, p.n)) return false;
    const auto matrix = [](const auto& x, Index cols) {
      const bool row_major = x.col == 1 && x.row >= cols;
      return BlasMatrix<const E>{x.data, row_major ? x.row : x.col, !row_major};
    };
    start_tile(p, 0, p.m, 0, p.n, p.c.data, p.c.row);
    if (!blas_multiply(p.m, p.n, p.k, matrix(p.a, p.k), matrix(p.b, p.n),
                       BlasMatrix<E>{p.c.data, p.c.row, false})) {
      return false;
    }
    activate(p, 0, p.m, 0, p.n);
    return true;
  }
  return false;
}

template <class E> void multiply(const Exec& exec, const Product<E>& p) {
  if (multiply_by_blas(p)) return;
  const Index work = p.m * p.k;  // for each column
  if (p.k == 0 || work * p.n <= kSmall) return multiply_alone(p);
  if constexpr (std::is_floating_point_v<Accumulator<E>>) {
    if (p.m > kBlockRows) return PackedProduct<E>(exec, p).run();
    const Index unit = p.m <= 2 ? kRowChunk : kTileCols<Accumulator<E>>;
    const Index units = (p.n + unit - 1) / unit;
    parallel_for(units, 1 + kSmall / (4 * work * unit), [&](Index begin, Index end) {
      multiply_alone(p.columns(begin * unit, end * unit < p.n ? end * unit : p.n));
    });
  } else {
    parallel_for(p.m, 1 + kSmall / (1 + p.k * p.n), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) multiply_row(p, i);
    });
  }
}

// The view as a batch of matrices of `sizes`; what it lacks of them has stride 0.
template <class E> Matrix<E> matrix_of(const View& view, const std::int64_t* sizes) {
  if (!view.defined()) return {nullptr, 0, 0, 0};
  const Layout& layout = *view.layout;
  Index stride[3] = {};
  for (int d = 0; d < 3; ++d) {
    const int own = d + layout.ndim - 3;
    if (own >= 0 && layout.sizes[own] == sizes[d]) stride[d] = layout.strides[own];
  }
  return {view.as<E>(), stride[0], stride[1], stride[2]};
}

// Makes one tall product of a batch that shares b, where the rows of a and c go on from one matrix
// to the next at the same step. True when it did.
template <class E> bool merge_batch(Product<E>& p, Index batch) {
  const auto merges = [&](Index& row, Index step) {
    if (p.m == 1) row = step;
    return step == p.m * row;
  };
  if (p.b.batch != 0) return false;
  if (!merges(p.a.row, p.a.batch) || !merges(p.c.row, p.c.batch)) return false;
  if (!merges(p.bias.row, p.bias.batch)) return false;
  p.m *= batch;
  return true;
}

// Turns the product so that C has rows without gaps, where it can; a column becomes a row.
template <class E> void turn(Product<E>& p) {
  if (p.n == 1 || (p.m > 1 && p.c.col != 1 && p.c.row == 1)) p = p.transposed();
  if (p.n == 1) p.c.col = 1;
}

// The matrices of a batch with their numbers rounded to tf32; one that all share stays one.
Matrix<const float> rounded_to_tf32(
    const Exec& exec, const Matrix<const float>& x, Index batch, Index rows, Index cols) {
  if (x.batch == 0) batch = 1;
  auto* to = static_cast<float*>(
      exec.scratch(static_cast<std::size_t>(batch * rows * cols) * sizeof(float)));
  parallel_for(batch * rows, 1 + kGrain / (cols + 1), [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r) {
      const float* from = x.data + r / rows * x.batch + r % rows * x.row;
      for (Index s = 0; s < cols; ++s) to[r * cols + s] = round_to_tf32(from[s * x.col]);
    }
  });
  return {to, x.batch == 0 ? 0 : rows * cols, cols, 1};
}

template <class E>
void multiply_batch(const Exec& exec, Out out, In a, In b, In bias, Activation activation) {
  const std::int64_t* sizes = out.layout->sizes;
  const Index m = sizes[1], n = sizes[2], k = a.layout->sizes[2];
  const std::int64_t sizes_a[] = {sizes[0], m, k}, sizes_b[] = {sizes[0], k, n};
  Index batch = sizes[0];
  Product<E> p{m,
               n,
               k,
               matrix_of<const E>(a, sizes_a),
               matrix_of<const E>(b, sizes_b),
               matrix_of<const E>(bias, sizes),
               matrix_of<E>(out, sizes),
               activation};
  if constexpr (std::is_same_v<E, float>) {
    if (matmul_rounds_to_tf32()) {
      p.a = rounded_to_tf32(exec, p.a, batch, m, k);
      p.b = rounded_to_tf32(exec, p.b, batch, k, n);
    }
  }
  if (batch > 1 && merge_batch(p, batch)) batch = 1;
  turn(p);
  if (is_floating_point(out.dtype) && p.c.col == 1 && !blas_selected()) p.watch = finite_watch;
  if (p.watch != nullptr) p.watch->looked_at = out.data;
  const Index work = p.m * p.n * p.k;
  if (batch > 1 && work <= 8 * kSmall && !blas_selected()) {
    parallel_for(batch, 1 + kSmall / (4 * (work + 64)), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) multiply_alone(p.of_batch(i));
    });
  } else {
    for (Index i = 0; i < batch; ++i) multiply(exec, p.of_batch(i));
  }
}

}  // namespace
}  // namespace gemm

// Bytes: each operand once, when they fit the caches. Flops: 2 B M N K.
void matmul(const Exec& exec, Out out, In a, In b, In bias, Activation activation) {
  TAPER_ASSERT(out.layout->ndim == 3 && a.layout->ndim == 3 && b.layout->ndim == 3);
  if (out.layout->numel() == 0) return;
  visit_dtype(out.dtype, [&](auto type) {
    gemm::multiply_batch<typename decltype(type)::type>(exec, out, a, b, bias, activation);
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
