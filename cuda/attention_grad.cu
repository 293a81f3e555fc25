// The gradients of attention, from the weights made again tile by tile: no atomics.
#include "taper/cuda/attention.cuh"

// The order of all sums is that of core/attention.h. A block makes dq of 64 queries, or dk and dv
// of 64 keys, for 64 columns; each strip of columns makes the weights again.
namespace taper::cuda {
namespace attn {
namespace {

// One warp for a row: delta is the sum of grad y over it.
template <class E, class T = Compute<E>>
__global__ void row_products(T* delta, Matrices<const E> grad, Matrices<const E> y, Index count) {
  for (Index i = first_index() / WarpTeam::kSize; i < count; i += index_step() / WarpTeam::kSize) {
    const E* a = grad.at(i / grad.rows) + i % grad.rows * grad.row;
    const E* b = y.at(i / y.rows) + i % y.rows * y.row;
    const T sum = reduce_sequence<fn::Sum, WarpTeam, T>(grad.cols, [&](Index c) {
      return static_cast<T>(a[c * grad.col]) * static_cast<T>(b[c * y.col]);
    });
    if (WarpTeam::member() == 0) delta[i] = sum;
  }
}

// What both kernels make the weights and their gradients of.
template <class E> struct Weights {
  using T = Compute<E>;

  Scores<E> scores;
  Matrices<const E> v, grad;
  Matrices<const T> stats;
  const T* delta;  // (count, T)

  __device__ void compute(
      T (&w)[kOwn][kOwn], Shared<T>& shared, Index batch, Index i0, Index j0) const {
    scores.compute(w, shared, batch, i0, j0);
    const T* kept = stats.at(batch);
    unrolled<kOwn>([&](int r) {
      const Index i = i0 + down() + r * kSide;
      const bool inside = i < stats.rows;
      const T less = inside ? shift(kept[i * stats.row]) : T(0);
      const T inverse = inside ? T(1) / kept[i * stats.row + stats.col] : T(0);
      unrolled<kOwn>([&](int s) { w[r][s] = weight(w[r][s], less, inverse); });
    });
  }

  __device__ void differentiate(
      T (&w)[kOwn][kOwn], Shared<T>& shared, Index batch, Index i0, Index j0) const {
    T of_weights[kOwn][kOwn];
    multiply_rows<E, T>(of_weights, shared, {grad, batch, i0}, {v, batch, j0}, v.cols, T(1));
    unrolled<kOwn>([&](int r) {
      const Index i = i0 + down() + r * kSide;
      const T less = i < stats.rows ? delta[batch * stats.rows + i] : T(0);
      for (int s = 0; s < kOwn; ++s) w[r][s] = score_grad(w[r][s], of_weights[r][s], less);
    });
  }
};

template <class E, class T>
__device__ void write(
    const Matrices<E>& to, const Sums<T, 1>& sum, Index batch, Index row0, Index col0, T factor) {
  E* first = to.at(batch);
  for_each_own<1>(row0, to.rows, col0, to.cols, [&](Index i, Index c, int r, int s) {
    first[i * to.row + c * to.col] = static_cast<E>(sum[r][s] * factor);
  });
}

template <class E, class T = Compute<E>>
__global__ void __launch_bounds__(kThreadsOfTile)
    grad_queries(Matrices<E> dq, Weights<E> weights, Grid grid) {
  TAPER_DYNAMIC_SHARED(Shared<T>, room);
  Shared<T>& shared = *room;
  const Scores<E>& scores = weights.scores;
  const Index batch = grid.batch(), i0 = grid.first_row(), first = grid.strip() * kTile;
  Sums<T, 1> sum = {};
  for (Index j0 = 0; j0 < scores.k.rows && scores.meet(i0, j0); j0 += kTile) {
    T w[kOwn][kOwn];
    weights.compute(w, shared, batch, i0, j0);
    weights.differentiate(w, shared, batch, i0, j0);
    share(shared, w);
    accumulate<false, 1, E, T>(sum, shared, {scores.k, batch, j0}, first, dq.cols, T(1));
  }
  write(dq, sum, batch, i0, first, scores.scale);
}

// dk or dv may have no data.
template <class E, class T = Compute<E>>
__global__ void __launch_bounds__(kThreadsOfTile)
    grad_keys(Matrices<E> dk, Matrices<E> dv, Weights<E> weights, Grid grid) {
  TAPER_DYNAMIC_SHARED(Shared<T>, room);
  Shared<T>& shared = *room;
  const Scores<E>& scores = weights.scores;
  const Index batch = grid.batch(), j0 = grid.first_row(), first = grid.strip() * kTile;
  const bool to_keys = dk.data != nullptr && first < dk.cols;
  const bool to_values = dv.data != nullptr && first < dv.cols;
  Sums<T, 1> of_keys = {}, of_values = {};
  for (Index i0 = 0; i0 < scores.q.rows; i0 += kTile) {
    if (!scores.meet(i0, j0)) continue;
    T w[kOwn][kOwn];
    weights.compute(w, shared, batch, i0, j0);
    if (to_values) {
      share(shared, w);
      accumulate<true, 1, E, T>(of_values, shared, {weights.grad, batch, i0}, first, dv.cols, T(1));
    }
    if (!to_keys) continue;
    weights.differentiate(w, shared, batch, i0, j0);
    share(shared, w);
    accumulate<true, 1, E, T>(of_keys, shared, {scores.q, batch, i0}, first, dk.cols, scores.scale);
  }
  if (to_keys) write(dk, of_keys, batch, j0, first, T(1));
  if (to_values) write(dv, of_values, batch, j0, first, T(1));
}

}  // namespace
}  // namespace attn

// Bytes: a tile of the one operand for each 64 rows of the other. Flops: 3 and 4 products of
// 2 B H T S D.
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
    using T = Compute<E>;
    const Index count = attn::count_of(q), rows = stats.layout->numel() / 2;
    auto* delta = static_cast<T*>(exec.scratch(static_cast<size_t>(rows) * sizeof(T)));
    const attn::Matrices<const E> grads = attn::matrices_of<const E>(grad);
    launch_on(exec, blocks_for(rows * WarpTeam::kSize), kThreads, attn::row_products<E>, delta,
              grads, attn::matrices_of<const E>(y), rows);
    const attn::Weights<E> weights{attn::scores_of<E>(q, k, mask, causal, scale),
                                   attn::matrices_of<const E>(v), grads,
                                   attn::matrices_of<const T>(stats), delta};
    const attn::Matrices<E> to_q = attn::matrices_of<E>(dq), to_k = attn::matrices_of<E>(dk),
                            to_v = attn::matrices_of<E>(dv);
    if (dq.defined()) {
      const attn::Grid grid = attn::grid_of<1>(to_q.rows, to_q.cols);
      attn::launch_tiles<T>(exec, grid.blocks(count), attn::grad_queries<E>, to_q, weights, grid);
    }
    if (!dk.defined() && !dv.defined()) return;
    const Index cols = to_k.cols > to_v.cols ? to_k.cols : to_v.cols;
    const attn::Grid grid = attn::grid_of<1>(weights.v.rows, cols);
    attn::launch_tiles<T>(exec, grid.blocks(count), attn::grad_keys<E>, to_k, to_v, weights, grid);
  });
}

}  // namespace taper::cuda
