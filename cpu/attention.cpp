// Attention over tiles that stay in the caches: no matrix of scores.
#include "taper/cpu/attention.h"

#include "taper/cpu/lanes.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace attn {
namespace {

// The greatest of n numbers, as many as some vectors hold; the order does not matter.
template <class T> TAPER_INLINE T max_of(const T* x, Index n) {
  auto top = gemm::load(x);
  for (Index i = gemm::kLanes<T>; i < n; i += gemm::kLanes<T>) {
    top = fn::Max::join(top, gemm::load(x + i));
  }
  T lane[std::size_t{gemm::kLanes<T>}];
  gemm::store(lane, top);
  for (int w = gemm::kLanes<T> / 2; w > 0; w /= 2) {
    for (int i = 0; i < w; ++i) lane[i] = fn::Max::join(lane[i], lane[i + w]);
  }
  return lane[0];
}

// The queries of one tile, as they go through the keys. Pass by pass over all rows, since what one
// row needs next waits for what it did last.
template <class T> struct Running {
  alignas(64) Square<T> scores, lanes;
  alignas(64) T max[std::size_t{kTile}], factor[std::size_t{kTile}];

  Running() {
    for (T& x : max) x = kUnseen<T>;
    for (auto& row : lanes) {
      for (T& lane : row) lane = T(0);
    }
  }

  // Turns the scores, `width` in a row, into exponentials, and finds what the sums are multiplied
  // by.
  void take(Index rows, Index width) {
    alignas(64) T less[std::size_t{kTile}], top[std::size_t{kTile}];
    for (int r = 0; r < kTile; ++r) top[r] = r < rows ? max_of(scores[r], width) : max[r];
    for (int r = 0; r < kTile; ++r) {
      const T before = max[r];
      max[r] = fn::Max::join(before, top[r]);
      less[r] = shift(max[r]);
      factor[r] = rescale(before, max[r]);
    }
    for (Index r = 0; r < rows; ++r) {
      T *p = scores[r], *lane = lanes[r];
      const T m = less[r], f = factor[r];
      for (Index j = 0; j < width; ++j) {
        p[j] = math::exp(p[j] - m);
        lane[j] = math::fma(lane[j], f, p[j]);
      }
      for (Index j = width; j < kTile; ++j) lane[j] *= f;
    }
  }
};

template <class E> class Forward {
 public:
  using T = Computed<E>;

  Forward(const Exec& exec, Out y, Out stats, const Scores<E>& scores, In v)
      : scores_(scores),
        y_(y),
        stats_(stats),
        v_(exec, scores.shares.places, Matrices<const E>(v)),
        acc_(exec, scores.shares.places, scores.queries, v_.ld) {}

  void run() {
    const Shares& shares = scores_.shares;
    if (shares.by_matrix) {
      return shares.for_each_matrix([&](Where where) {
        for (Index first = 0; first < shares.longest; first += kTile) pack(where, first);
        for (Index i0 = 0; i0 < scores_.queries; i0 += kTile) run_tile(where, i0);
      });
    }
    const Index depth = scores_.depth + v_.ld;
    shares.for_each_tile(shares.longest, 8 * kTile * depth,
                         [&](Where where, Index first) { pack(where, first); });
    shares.for_each_tile(scores_.queries, kTile * scores_.keys * depth,
                         [&](Where where, Index i0) { run_tile(where, i0); });
  }

 private:
  void pack(Where where, Index first) const {
    scores_.pack(where, first);
    v_.pack(where, first);
  }

  void run_tile(Where where, Index i0) const {
    const Index rows = in_tile(i0, scores_.queries);
    Running<T> running;
    T* acc = acc_.at(where.place, i0);
    for (Index j0 = 0; j0 < scores_.keys && scores_.meet(i0, j0); j0 += kTile) {
      scores_.compute(where, i0, j0, running.scores);
      const Index keys = in_tile(j0, scores_.keys);
      running.take(rows, padded<T>(keys));
      const bool begun = j0 > 0;  // before that acc is 0, and what multiplies it does not matter
      for (Index r = 0; begun && r < rows; ++r) {
        const T factor = running.factor[r];
        if (factor == T(1)) continue;
        for (Index c = 0; c < acc_.ld; ++c) acc[r * acc_.ld + c] *= factor;
      }
      multiply<T>(rows, v_.ld, keys, {running.scores[0], kTile, 1},
                  Right<T>::rows_of(v_, where.place, j0), acc, acc_.ld, begun);
    }
    for (Index r = 0; r < rows; ++r) finish(running, where, i0 + r, r);
  }

  void finish(const Running<T>& running, Where where, Index i, Index r) const {
    const T sum = total(reduce_dense<fn::Sum>(running.lanes[r], kTile, T(0)), scores_.is_masked);
    const T* acc = acc_.at(where.place, i);
    E* y = y_.at(where.batch) + i * y_.row;
    for (Index c = 0; c < y_.cols; ++c) {
      y[c * y_.col] = static_cast<E>(output(acc[c], sum));
    }
    T* stats = stats_.at(where.batch) + i * stats_.row;
    stats[0] = running.max[r];
    stats[stats_.col] = sum;
  }

  const Scores<E>& scores_;
  Matrices<E> y_;
  Matrices<T> stats_;
  PackedRows<E> v_;
  Packed<T> acc_;
};

}  // namespace
}  // namespace attn

// Bytes: q and y once, k and v once for each 64 queries, from the caches. Flops: 2 B H T S (E + D).
void attention(
    const Exec& exec, Out y, Out stats, In q, In k, In v, In mask, bool causal, double scale) {
  if (stats.layout->numel() == 0) return;
  visit_floating(q.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const attn::Shares shares(q, k, v, 4);  // fewer even out better by tiles
    const attn::Scores<E> scores(exec, shares, q, k, mask, causal, scale);
    attn::Forward<E>(exec, y, stats, scores, v).run();
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
