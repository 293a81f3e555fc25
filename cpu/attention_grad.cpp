// The gradients of attention, from the weights made again tile by tile.
#include "taper/cpu/attention.h"
#include "taper/cpu/lanes.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace attn {
namespace {

// Packs delta, the sum of grad y, of a tile of rows.
template <class E, class T = Computed<E>>
void pack_delta(const Packed<T>& to,
                const Matrices<const E>& grad,
                const Matrices<const E>& y,
                Where where,
                Index first) {
  constexpr Index kPiece = 1024;
  alignas(64) T terms[kPiece];
  for (Index r = first; r < first + in_tile(first, grad.rows); ++r) {
    const E *a = grad.at(where.batch) + r * grad.row, *b = y.at(where.batch) + r * y.row;
    BlockSum<T> sum;
    for (Index c = 0; c < grad.cols; c += kPiece) {
      const Index n = smaller(grad.cols - c, kPiece);
      for (Index i = 0; i < n; ++i) {
        terms[i] = static_cast<T>(a[(c + i) * grad.col]) * static_cast<T>(b[(c + i) * y.col]);
      }
      sum.take(terms, n);
    }
    *to.at(where.place, r) = sum.join();
  }
}

// Where one gradient (..., rows, cols) is summed.
template <class E> class Sums {
 public:
  using T = Computed<E>;

  Sums(const Exec& exec, Index places, Out out) : out_(out) {
    if (out.defined()) sums_ = Packed<T>(exec, places, out_.rows, padded<T>(out_.cols));
  }

  bool wanted() const { return out_.data != nullptr; }

  Index ld() const { return sums_.ld; }

  T* at(Where where, Index row) const { return sums_.at(where.place, row); }

  void start(Where where, Index first, Index rows) const {
    if (!wanted()) return;
    T* sum = at(where, first);
    for (Index i = 0; i < rows * ld(); ++i) sum[i] = T(0);
  }

  void finish(Where where, Index first, Index rows, T factor) const {
    if (!wanted()) return;
    for (Index r = first; r < first + rows; ++r) {
      const T* sum = at(where, r);
      E* to = out_.at(where.batch) + r * out_.row;
      for (Index c = 0; c < out_.cols; ++c) to[c * out_.col] = static_cast<E>(sum[c] * factor);
    }
  }

 private:
  Matrices<E> out_;
  Packed<T> sums_;
};

template <class E> class Backward {
 public:
  using T = Computed<E>;

  Backward(const Exec& exec,
           const Scores<E>& scores,
           Out dq,
           Out dk,
           Out dv,
           In grad,
           In k,
           In v,
           In y,
           In stats,
           double scale)
      : scores_(scores),
        stats_(stats),
        scale_(static_cast<T>(scale)),
        y_(y),
        delta_(exec, scores.shares.places, scores.queries, 1),
        grad_(exec, scores.shares.places, Matrices<const E>(grad)),
        v_(exec, scores.shares.places, Matrices<const E>(v)),
        dq_(exec, scores.shares.places, dq),
        dk_(exec, scores.shares.places, dk),
        dv_(exec, scores.shares.places, dv) {
    if (dq_.wanted()) k_ = PackedRows<E>(exec, scores.shares.places, Matrices<const E>(k));
  }

  // A matrix's pairs of tiles are met once, in the order of both sums; when tiles are shared out,
  // once for dq and once for dk and dv. The sums and their bits are the same.
  void run() {
    const Shares& shares = scores_.shares;
    if (shares.by_matrix) {
      return shares.for_each_matrix([&](Where where) {
        for (Index first = 0; first < shares.longest; first += kTile) pack(where, first);
        run_matrix(where);
      });
    }
    const Index depth = scores_.depth + grad_.ld, work = 5 * kTile * kTile * depth;
    shares.for_each_tile(shares.longest, 16 * kTile * depth,
                         [&](Where where, Index first) { pack(where, first); });
    if (dq_.wanted()) {
      shares.for_each_tile(scores_.queries, work * tiles_in(scores_.keys),
                           [&](Where where, Index i0) { run_queries(where, i0, false); });
    }
    if (!dk_.wanted() && !dv_.wanted()) return;
    shares.for_each_tile(scores_.keys, work * tiles_in(scores_.queries),
                         [&](Where where, Index j0) { run_keys(where, j0); });
  }

 private:
  void pack(Where where, Index first) const {
    scores_.pack(where, first);
    pack_delta<E>(delta_, grad_.from, y_, where, first);
    grad_.pack(where, first);
    v_.pack(where, first);
    if (dq_.wanted()) k_.pack(where, first);
  }

  void run_matrix(Where where) const {
    for (Index j0 = 0; j0 < scores_.keys; j0 += kTile) start_keys(where, j0);
    for (Index i0 = 0; i0 < scores_.queries; i0 += kTile) run_queries(where, i0, true);
    for (Index j0 = 0; j0 < scores_.keys; j0 += kTile) finish_keys(where, j0);
  }

  void run_keys(Where where, Index j0) const {
    start_keys(where, j0);
    for (Index i0 = 0; i0 < scores_.queries; i0 += kTile) {
      if (scores_.meet(i0, j0)) run_pair(where, i0, j0, false, true);
    }
    finish_keys(where, j0);
  }

  void start_keys(Where where, Index j0) const {
    dk_.start(where, j0, in_tile(j0, scores_.keys));
    dv_.start(where, j0, in_tile(j0, scores_.keys));
  }

  void finish_keys(Where where, Index j0) const {
    dk_.finish(where, j0, in_tile(j0, scores_.keys), T(1));
    dv_.finish(where, j0, in_tile(j0, scores_.keys), T(1));
  }

  void run_queries(Where where, Index i0, bool with_keys) const {
    dq_.start(where, i0, in_tile(i0, scores_.queries));
    for (Index j0 = 0; j0 < scores_.keys && scores_.meet(i0, j0); j0 += kTile) {
      run_pair(where, i0, j0, dq_.wanted(), with_keys);
    }
    dq_.finish(where, i0, in_tile(i0, scores_.queries), scale_);
  }

  // Adds what queries i0.. and keys j0.. give each other.
  void run_pair(Where where, Index i0, Index j0, bool to_queries, bool to_keys) const {
    alignas(64) Square<T> weights, grads;
    const Index rows = in_tile(i0, scores_.queries), cols = in_tile(j0, scores_.keys);
    scores_.compute(where, i0, j0, weights);
    const T* stats = stats_.at(where.batch) + i0 * stats_.row;
    for (Index r = 0; r < rows; ++r) {
      const T less = shift(stats[r * stats_.row]);
      const T inverse = T(1) / stats[r * stats_.row + stats_.col];
      for (Index j = 0; j < cols; ++j) weights[r][j] = weight(weights[r][j], less, inverse);
    }
    if (to_keys && dv_.wanted()) {
      multiply<T>(cols, dv_.ld(), rows, {weights[0], 1, kTile},
                  Right<T>::rows_of(grad_, where.place, i0), dv_.at(where, j0), dv_.ld(), true);
    }
    if (!to_queries && !(to_keys && dk_.wanted())) return;
    multiply<T>(rows, padded<T>(cols), v_.ld, {grad_.at(where.place, i0), grad_.ld, 1},
                Right<T>::panels_of(v_, where.place, j0), grads[0], kTile, false);
    for (Index r = 0; r < rows; ++r) {
      const T delta = *delta_.at(where.place, i0 + r);
      for (Index j = 0; j < cols; ++j) {
        grads[r][j] = score_grad(weights[r][j], grads[r][j], delta);
      }
    }
    if (to_queries) {
      multiply<T>(rows, dq_.ld(), cols, {grads[0], kTile, 1},
                  Right<T>::rows_of(k_, where.place, j0), dq_.at(where, i0), dq_.ld(), true);
    }
    if (to_keys && dk_.wanted()) {
      multiply<T>(cols, dk_.ld(), rows, {grads[0], 1, kTile},
                  Right<T>::rows_of(scores_.scaled_queries(), where.place, i0), dk_.at(where, j0),
                  dk_.ld(), true);
    }
  }

  const Scores<E>& scores_;
  Matrices<const T> stats_;
  const T scale_;
  Matrices<const E> y_;
  Packed<T> delta_;
  PackedRows<E> grad_, k_;
  PackedColumns<E> v_;
  Sums<E> dq_, dk_, dv_;
};

}  // namespace
}  // namespace attn

// Bytes: a few of each operand; scratch: all operands in f32 (f64), of one matrix for each thread,
// or of all where they are shared out by tiles. Flops: 5 products of 2 B H T S D, by tiles 7.
void attention_grad(const Exec& exec,
                    Out dq,
                    Out dk,
                    Out dv,
                    In grad,
                    In q,
                    In k,
                    In v,
                    In y,
                    In stats,
                    In mask,
                    bool causal,
                    double scale) {
  visit_floating(q.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const attn::Shares shares(q, k, v, 1);  // by tiles there are two products more
    const attn::Scores<E> scores(exec, shares, q, k, mask, causal, scale);
    attn::Backward<E>(exec, scores, dq, dk, dv, grad, k, v, y, stats, scale).run();
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
