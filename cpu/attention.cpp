// Attention over tiles that stay in the caches: no matrix of scores.
#include "taper/cpu/attention.h"

#include "taper/cpu/lanes.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace attn {
namespace {

// The queries of one tile, as they go through the keys.
template <class T> struct Running {
  alignas(64) Square<T> scores, lanes;
  T max[std::size_t{kTile}];

  explicit Running(Index rows) {
    for (Index r = 0; r < rows; ++r) {
      max[r] = kUnseen<T>;
      for (T& lane : lanes[r]) lane = T(0);
    }
  }

  // Turns the scores of row r into exponentials; returns what its sums are multiplied by.
  T take(Index r) {
    const T before = max[r];
    max[r] = fn::Max::join(before, reduce_dense<fn::Max>(scores[r], kTile, T(0)));
    const T less = shift(max[r]), factor = rescale(before, max[r]);
    T *p = scores[r], *lane = lanes[r];
    for (int j = 0; j < kTile; ++j) {
      p[j] = math::exp(p[j] - less);
      lane[j] = math::fma(lane[j], factor, p[j]);
    }
    return factor;
  }
};

template <class E> class Forward {
 public:
  using T = Computed<E>;

  Forward(const Exec& exec, Out y, Out lse, const Scores<E>& scores, In v)
      : scores_(scores),
        y_(y),
        lse_(lse, 1),
        v_(pack_rows<E>(exec, scores.count, Matrices<const E>(v), T(1))),
        acc_(exec, scores.count, scores.queries, v_.ld) {}

  void run() {
    const Index work = kTile * scores_.keys * (scores_.depth + v_.ld);
    for_each_tile(scores_.count, scores_.queries, work,
                  [&](Index batch, Index i0) { run_tile(batch, i0); });
  }

 private:
  void run_tile(Index batch, Index i0) {
    const Index rows = in_tile(i0, scores_.queries);
    Running<T> running(rows);
    T* acc = acc_.at(batch, i0);
    for (Index i = 0; i < rows * acc_.ld; ++i) acc[i] = T(0);
    for (Index j0 = 0; j0 < scores_.keys && scores_.meet(i0, j0); j0 += kTile) {
      scores_.compute(batch, i0, j0, running.scores);
      for (Index r = 0; r < rows; ++r) {
        const T factor = running.take(r);
        if (factor == T(1)) continue;
        for (Index c = 0; c < acc_.ld; ++c) acc[r * acc_.ld + c] *= factor;
      }
      multiply<T>(rows, v_.ld, in_tile(j0, scores_.keys), {running.scores[0], kTile, 1},
                  v_.at(batch, j0), v_.ld, acc, acc_.ld, true);
    }
    for (Index r = 0; r < rows; ++r) finish(running, batch, i0 + r, r);
  }

  void finish(const Running<T>& running, Index batch, Index i, Index r) {
    const T sum = reduce_dense<fn::Sum>(running.lanes[r], kTile, T(0));
    const T* acc = acc_.at(batch, i);
    E* y = y_.at(batch) + i * y_.row;
    for (Index c = 0; c < y_.cols; ++c) {
      y[c * y_.col] = static_cast<E>(output(acc[c], sum, scores_.is_masked));
    }
    lse_.at(batch)[i * lse_.row] = log_sum(running.max[r], sum, scores_.is_masked);
  }

  const Scores<E>& scores_;
  Matrices<E> y_;
  Matrices<T> lse_;
  Packed<T> v_, acc_;
};

}  // namespace
}  // namespace attn

// Bytes: q and y once, k and v once for each 64 queries, from the caches. Flops: 2 B H T S (E + D).
void attention(
    const Exec& exec, Out y, Out lse, In q, In k, In v, In mask, bool causal, double scale) {
  if (lse.layout->numel() == 0) return;
  visit_floating(q.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const attn::Scores<E> scores(exec, q, k, mask, causal, scale);
    attn::Forward<E>(exec, y, lse, scores, v).run();
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
