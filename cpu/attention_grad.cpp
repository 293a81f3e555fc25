// The gradients of attention, from the weights made again tile by tile.
#include "taper/core/threads.h"
#include "taper/cpu/attention.h"
#include "taper/cpu/lanes.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace attn {
namespace {

// delta (..., T): the sum of grad y over each row.
template <class E, class T = Computed<E>>
Packed<T> row_products(const Exec& exec, Index count, In grad, In y) {
  constexpr Index kPiece = 1024;
  const Matrices<const E> grads(grad), ys(y);
  const Packed<T> to(exec, count, grads.rows, 1);
  for_each_tile(count, grads.rows, 4 * kTile * grads.cols, [&](Index batch, Index first) {
    alignas(64) T terms[kPiece];
    for (Index r = first; r < first + in_tile(first, grads.rows); ++r) {
      const E *a = grads.at(batch) + r * grads.row, *b = ys.at(batch) + r * ys.row;
      BlockSum<T> sum;
      for (Index c = 0; c < grads.cols; c += kPiece) {
        const Index n = grads.cols - c < kPiece ? grads.cols - c : kPiece;
        for (Index i = 0; i < n; ++i) {
          terms[i] = static_cast<T>(a[(c + i) * grads.col]) * static_cast<T>(b[(c + i) * ys.col]);
        }
        sum.take(terms, n);
      }
      *to.at(batch, r) = sum.join();
    }
  });
  return to;
}

// Where one gradient (..., rows, cols) is summed.
template <class E> class Sums {
 public:
  using T = Computed<E>;

  Sums(const Exec& exec, Index count, Out out) : out_(out) {
    if (out.defined()) sums_ = Packed<T>(exec, count, out_.rows, padded<T>(out_.cols));
  }

  bool wanted() const { return out_.data != nullptr; }

  Index ld() const { return sums_.ld; }

  T* at(Index batch, Index row) const { return sums_.at(batch, row); }

  void start(Index batch, Index first, Index rows) const {
    if (!wanted()) return;
    T* sum = at(batch, first);
    for (Index i = 0; i < rows * ld(); ++i) sum[i] = T(0);
  }

  void finish(Index batch, Index first, Index rows, T factor) const {
    if (!wanted()) return;
    for (Index r = first; r < first + rows; ++r) {
      const T* sum = at(batch, r);
      E* to = out_.at(batch) + r * out_.row;
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
        delta_(row_products<E>(exec, scores.count, grad, y)),
        grad_(pack_rows<E>(exec, scores.count, Matrices<const E>(grad), T(1))),
        v_(pack_columns<E>(exec, scores.count, Matrices<const E>(v))),
        dq_(exec, scores.count, dq),
        dk_(exec, scores.count, dk),
        dv_(exec, scores.count, dv) {
    if (dq_.wanted()) k_ = pack_rows<E>(exec, scores.count, Matrices<const E>(k), T(1));
  }

  // Enough matrices keep the threads busy: each one's pairs of tiles are met once, in the order of
  // both sums. Few are shared out by tiles, once for dq and once for dk and dv; the sums and their
  // bits are the same.
  void run() {
    const Index pairs = tiles_in(scores_.queries) * tiles_in(scores_.keys);
    const Index work = 5 * kTile * kTile * (scores_.depth + grad_.ld);
    if (scores_.count >= get_num_threads()) {
      return parallel_for(scores_.count, 1 + kLittle / (pairs * work + 1),
                          [&](Index begin, Index end) {
                            for (; begin < end; ++begin) run_matrix(begin);
                          });
    }
    if (dq_.wanted()) {
      for_each_tile(scores_.count, scores_.queries, work * tiles_in(scores_.keys),
                    [&](Index batch, Index i0) { run_queries(batch, i0, false); });
    }
    if (!dk_.wanted() && !dv_.wanted()) return;
    for_each_tile(scores_.count, scores_.keys, work * tiles_in(scores_.queries),
                  [&](Index batch, Index j0) {
                    start_keys(batch, j0);
                    for (Index i0 = 0; i0 < scores_.queries; i0 += kTile) {
                      if (scores_.meet(i0, j0)) run_pair(batch, i0, j0, false, true);
                    }
                    finish_keys(batch, j0);
                  });
  }

 private:
  void run_matrix(Index batch) const {
    for (Index j0 = 0; j0 < scores_.keys; j0 += kTile) start_keys(batch, j0);
    for (Index i0 = 0; i0 < scores_.queries; i0 += kTile) run_queries(batch, i0, true);
    for (Index j0 = 0; j0 < scores_.keys; j0 += kTile) finish_keys(batch, j0);
  }

  void start_keys(Index batch, Index j0) const {
    dk_.start(batch, j0, in_tile(j0, scores_.keys));
    dv_.start(batch, j0, in_tile(j0, scores_.keys));
  }

  void finish_keys(Index batch, Index j0) const {
    dk_.finish(batch, j0, in_tile(j0, scores_.keys), T(1));
    dv_.finish(batch, j0, in_tile(j0, scores_.keys), T(1));
  }

  void run_queries(Index batch, Index i0, bool with_keys) const {
    dq_.start(batch, i0, in_tile(i0, scores_.queries));
    for (Index j0 = 0; j0 < scores_.keys && scores_.meet(i0, j0); j0 += kTile) {
      run_pair(batch, i0, j0, dq_.wanted(), with_keys);
    }
    dq_.finish(batch, i0, in_tile(i0, scores_.queries), scale_);
  }

  // Adds what queries i0.. and keys j0.. give each other.
  void run_pair(Index batch, Index i0, Index j0, bool to_queries, bool to_keys) const {
    alignas(64) Square<T> weights, grads;
    const Index rows = in_tile(i0, scores_.queries), cols = in_tile(j0, scores_.keys);
    scores_.compute(batch, i0, j0, weights);
    const T* stats = stats_.at(batch) + i0 * stats_.row;
    for (Index r = 0; r < rows; ++r) {
      const T less = shift(stats[r * stats_.row]);
      const T inverse = T(1) / stats[r * stats_.row + stats_.col];
      for (Index j = 0; j < cols; ++j) weights[r][j] = weight(weights[r][j], less, inverse);
    }
    if (to_keys && dv_.wanted()) {
      multiply<T>(cols, dv_.ld(), rows, {weights[0], 1, kTile}, Right<T>::rows_of(grad_, batch, i0),
                  dv_.at(batch, j0), dv_.ld(), true);
    }
    if (!to_queries && !(to_keys && dk_.wanted())) return;
    multiply<T>(rows, padded<T>(cols), v_.ld, {grad_.at(batch, i0), grad_.ld, 1},
                Right<T>::panels_of(v_, batch, j0), grads[0], kTile, false);
    for (Index r = 0; r < rows; ++r) {
      const T delta = *delta_.at(batch, i0 + r);
      for (Index j = 0; j < cols; ++j) {
        grads[r][j] = score_grad(weights[r][j], grads[r][j], delta);
      }
    }
    if (to_queries) {
      multiply<T>(rows, dq_.ld(), cols, {grads[0], kTile, 1}, Right<T>::rows_of(k_, batch, j0),
                  dq_.at(batch, i0), dq_.ld(), true);
    }
    if (to_keys && dk_.wanted()) {
      multiply<T>(cols, dk_.ld(), rows, {grads[0], 1, kTile},
                  Right<T>::rows_of(scores_.scaled_queries(), batch, i0), dk_.at(batch, j0),
                  dk_.ld(), true);
    }
  }

  const Scores<E>& scores_;
  Matrices<const T> stats_;
  const T scale_;
  Packed<T> delta_, grad_, v_, k_;
  Sums<E> dq_, dk_, dv_;
};

}  // namespace
}  // namespace attn

// Bytes: a few of each operand; scratch as much as all operands in f32 (f64). Flops: 5 products of
// 2 B H T S D, 7 where matrices are shared out by tiles.
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
    const attn::Scores<E> scores(exec, q, k, mask, causal, scale);
    attn::Backward<E>(exec, scores, dq, dk, dv, grad, k, v, y, stats, scale).run();
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
