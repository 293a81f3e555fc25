// The operands of attention, packed for tiles, and the scores of one tile.
#pragma once
#include <atomic>

#include "taper/core/attention.h"
#include "taper/core/threads.h"
#include "taper/cpu/gemm_pack.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace attn {

using namespace taper::attn;  // NOLINT(google-build-using-namespace): one family
using gemm::Index;
using gemm::TileLeft;

template <class E> struct ComputedOf : std::type_identity<E> {};
template <> struct ComputedOf<Half> : std::type_identity<float> {};
template <> struct ComputedOf<BFloat16> : std::type_identity<float> {};
template <class E> using Computed = typename ComputedOf<E>::type;

constexpr Index kLittle = 64 * 64 * 64;  // multiply-adds that are not worth a second thread

TAPER_INLINE Index smaller(Index a, Index b) {
  return a < b ? a : b;
}

TAPER_INLINE Index tiles_in(Index n) {
  return (n + kTile - 1) / kTile;
}

// How many of `n` lie in the tile that begins at `first`.
TAPER_INLINE Index in_tile(Index first, Index n) {
  return smaller(n - first, kTile);
}

// A row of `n` numbers, as long as the products want it.
template <class T> TAPER_INLINE Index padded(Index n) {
  return (n + gemm::kTileCols<T> - 1) / gemm::kTileCols<T> * gemm::kTileCols<T>;
}

// An operand (..., rows, cols) of any strides, as a batch of matrices.
template <class E> struct Matrices {
  E* data = nullptr;
  const Layout* layout = nullptr;
  Index rows = 0, cols = 0, row = 0, col = 0;

  Matrices() = default;

  explicit Matrices(const View& view) : Matrices(view, 2) {}

  // The last `own` dims are the matrix's, the others the batch's.
  Matrices(const View& view, int own) : data(view.as<E>()), layout(view.layout), own_(own) {
    if (!view.defined()) return;
    const int last = layout->ndim - 1;
    rows = layout->sizes[last + 1 - own], row = layout->strides[last + 1 - own];
    cols = own == 2 ? layout->sizes[last] : 1, col = own == 2 ? layout->strides[last] : 0;
  }

  Index count() const {
    Index n = 1;
    for (int d = 0; d < layout->ndim - own_; ++d) n *= layout->sizes[d];
    return n;
  }

  E* at(Index batch) const {
    E* first = data;
    for (int d = layout->ndim - own_ - 1; d >= 0; --d) {
      first += batch % layout->sizes[d] * layout->strides[d];
      batch /= layout->sizes[d];
    }
    return first;
  }

 private:
  int own_ = 2;
};

// A matrix of the batch, and the place in scratch where what is packed of it lies.
struct Where {
  Index batch, place;
};

// How threads share out a batch of matrices. Where each thread gets several, it has a place, in
// which it packs one matrix and is done with it while that is in its cache, then the next. Fewer
// have a place each, are packed all, and then shared out by tiles. Bits are the same.
struct Shares {
  Index count, places, longest;
  bool by_matrix;

  // `several`: how many matrices a thread must get.
  Shares(In q, In k, In v, Index several) {
    const Matrices<const char> of_q(q), of_k(k), of_v(v);
    const Index work = of_q.rows * of_k.rows * (of_q.cols + of_v.cols);
    const Index together = 1 + kLittle / (work + 1);  // matrices that are worth a thread
    const Index threads = get_num_threads();
    places = count = of_q.count();
    longest = of_q.rows < of_k.rows ? of_k.rows : of_q.rows;
    by_matrix = count >= several * threads;
    if (by_matrix) places = smaller(threads, (count + together - 1) / together);
  }

  // matrix(where) for all of them.
  template <class Matrix> void for_each_matrix(const Matrix& matrix) const {
    std::atomic<Index> next{0};
    parallel_for(places, 1, [&](Index place, Index end) {
      for (; place < end; ++place) {
        for (Index i = next++; i < count; i = next++) matrix(Where{i, place});
      }
    });
  }

  // tile(where, first row) for all tiles of `rows` in matrices that have a place each.
  template <class Tile> void for_each_tile(Index rows, Index work, const Tile& tile) const {
    const Index tiles = tiles_in(rows);
    parallel_for(count * tiles, 1 + kLittle / (work + 1), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) tile(Where{i / tiles, i / tiles}, i % tiles * kTile);
    });
  }
};

// Scratch for a matrix of rows x ld numbers in each place.
template <class T> struct Packed {
  T* data = nullptr;
  Index rows = 0, ld = 0;

  Packed() = default;

  Packed(const Exec& exec, Index places, Index rows_in, Index ld_in) : rows(rows_in), ld(ld_in) {
    data = static_cast<T*>(exec.scratch(static_cast<std::size_t>(places * rows * ld) * sizeof(T)));
  }

  TAPER_INLINE T* at(Index place, Index row = 0) const { return data + (place * rows + row) * ld; }
};

// An operand that is packed row-major with rows of padded(cols), times a factor.
template <class E, class T = Computed<E>> struct PackedRows : Packed<T> {
  Matrices<const E> from;
  T factor = T(1);

  PackedRows() = default;

  PackedRows(const Exec& exec, Index places, const Matrices<const E>& of, T factor_in = T(1))
      : Packed<T>(exec, places, of.rows, padded<T>(of.cols)), from(of), factor(factor_in) {}

  // A tile of rows, if there is one at `first`.
  void pack(Where where, Index first) const {
    for (Index r = first; r < first + in_tile(first, from.rows); ++r) {
      const E* x = from.at(where.batch) + r * from.row;
      T* y = this->at(where.place, r);
      if (from.col == 1) {
        for (Index c = 0; c < from.cols; ++c) y[c] = static_cast<T>(x[c]) * factor;
      } else {
        for (Index c = 0; c < from.cols; ++c) y[c] = static_cast<T>(x[c * from.col]) * factor;
      }
      for (Index c = from.cols; c < this->ld; ++c) y[c] = T(0);
    }
  }
};

// An operand of which each tile of rows is packed transposed, in panels (cols, kTileCols), one
// after another.
template <class E, class T = Computed<E>> struct PackedColumns : Packed<T> {
  Matrices<const E> from;

  PackedColumns(const Exec& exec, Index places, const Matrices<const E>& of)
      : Packed<T>(exec, places, tiles_in(of.rows) * kTile, of.cols), from(of) {}

  void pack(Where where, Index first) const {
    constexpr Index kWidth = gemm::kTileCols<T>;
    const Index end = first + in_tile(first, from.rows);
    for (Index r = first; r < end; r += kWidth) {
      gemm::pack_panel<kWidth>(this->at(where.place, r), from.at(where.batch) + r * from.row,
                               from.row, from.col, smaller(end - r, kWidth), from.cols);
    }
  }
};

// The right side of a product, padded: column j of row k is data[k * row + j], or, in panels,
// data[j / kTileCols * panel + k * row + j % kTileCols].
template <class T> struct Right {
  const T* data;
  Index row, panel;

  static Right rows_of(const Packed<T>& packed, Index place, Index first) {
    return {packed.at(place, first), packed.ld, gemm::kTileCols<T>};
  }

  static Right panels_of(const Packed<T>& packed, Index place, Index first) {
    return {packed.at(place, first), gemm::kTileCols<T>, gemm::kTileCols<T> * packed.ld};
  }
};

// c (rows, cols) = [c or 0] + a (rows, depth) b (depth, cols), one chain of fmas for each element;
// rows of c, ldc apart, are padded too. Not inlined: the tiles of all heights are 20 kB of code.
template <class T>
[[gnu::noinline, gnu::noclone]] void multiply(Index rows,
                                              Index cols,
                                              Index depth,
                                              TileLeft<T> a,
                                              Right<T> b,
                                              T* c,
                                              Index ldc,
                                              bool accumulate) {
  for (Index j = 0; j < cols; j += gemm::kTileCols<T>) {
    for (Index i = 0; i < rows; i += gemm::kTileRows) {
      const TileLeft<T> left{a.data + i * a.row, a.row, a.col};
      gemm::multiply_rows<T, gemm::kTileVectors>(smaller(rows - i, gemm::kTileRows), depth, left,
                                                 b.data, b.row, c + i * ldc + j, ldc, accumulate);
    }
    b.data += b.panel;
  }
}

// A matrix of one tile of queries by one of keys.
template <class T> using Square = T[std::size_t{kTile}][std::size_t{kTile}];

// The scores of q (..., T, E) and k (..., S, E) under a mask.
template <class E> class Scores {
 public:
  using T = Computed<E>;

  Scores(const Exec& exec, const Shares& how, In q, In k, In mask, bool causal, double scale)
      : shares(how),
        queries(Matrices<const E>(q).rows),
        keys(Matrices<const E>(k).rows),
        depth(Matrices<const E>(q).cols),
        is_causal(causal),
        is_masked(mask.defined()),
        q_(exec, shares.places, Matrices<const E>(q), static_cast<T>(scale)),
        k_(exec, shares.places, Matrices<const E>(k)) {
    if (!is_masked) return;
    if (mask.dtype == kBool) seen_ = Matrices<const bool>(mask);
    else added_ = Matrices<const E>(mask);
  }

  const Shares shares;
  const Index queries, keys, depth;
  const bool is_causal, is_masked;

  const Packed<T>& scaled_queries() const { return q_; }

  void pack(Where where, Index first) const {
    q_.pack(where, first);
    k_.pack(where, first);
  }

  // Whether the tile of queries at i0 meets that of keys at j0.
  bool meet(Index i0, Index j0) const { return !is_causal || j0 < i0 + in_tile(i0, queries); }

  // Of padded(in_tile(j0, keys)) columns; those past the last key are kUnseen.
  void compute(Where where, Index i0, Index j0, Square<T>& s) const {
    const Index rows = in_tile(i0, queries), cols = in_tile(j0, keys);
    multiply<T>(rows, padded<T>(cols), depth, {q_.at(where.place, i0), q_.ld, 1},
                Right<T>::panels_of(k_, where.place, j0), s[0], kTile, false);
    if (seen_.data != nullptr) {
      apply_mask(seen_, where.batch, i0, j0, s,
                 [](T x, bool seen) { return seen ? x : kUnseen<T>; });
    }
    if (added_.data != nullptr) {
      apply_mask(added_, where.batch, i0, j0, s,
                 [](T x, E more) { return x + static_cast<T>(more); });
    }
    for (Index r = 0; r < rows; ++r) {
      Index end = cols;
      if (is_causal && i0 + r - j0 + 1 < cols) end = i0 + r - j0 + 1;
      for (Index j = end; j < padded<T>(cols); ++j) s[r][j] = kUnseen<T>;
    }
  }

 private:
  template <class M, class Fn>
  void apply_mask(const Matrices<const M>& mask,
                  Index batch,
                  Index i0,
                  Index j0,
                  Square<T>& s,
                  const Fn& fn) const {
    const Index cols = in_tile(j0, keys);
    const M* first = mask.at(batch) + i0 * mask.row + j0 * mask.col;
    for (Index r = 0; r < in_tile(i0, queries); ++r) {
      const M* from = first + r * mask.row;
      T* row = s[r];
      if (mask.col == 1) {
        for (Index j = 0; j < cols; ++j) row[j] = fn(row[j], from[j]);
      } else {
        for (Index j = 0; j < cols; ++j) row[j] = fn(row[j], from[j * mask.col]);
      }
    }
  }

  PackedRows<E> q_;
  PackedColumns<E> k_;
  Matrices<const bool> seen_;
  Matrices<const E> added_;
};

}  // namespace attn
}  // namespace TAPER_ISA
}  // namespace taper::cpu
