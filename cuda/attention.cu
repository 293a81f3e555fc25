// Attention over tiles in shared memory: a block for 64 queries and up to 128 columns of v.
#include "taper/cuda/attention.cuh"

// The order of all sums is that of core/attention.h. A thread keeps 4 x 4 scores, as many lanes of
// its rows' sums, and 4 rows of the output's columns; 16 threads share a row. Where v has more
// columns than a block makes, each strip of them makes the scores again.
namespace taper::cuda {
namespace attn {
namespace {

// What a thread knows of its 4 rows.
template <class T> struct Running {
  T max[kOwn], lanes[kOwn][kOwn];

  __device__ Running() {
    for (int r = 0; r < kOwn; ++r) {
      max[r] = kUnseen<T>;
      for (int s = 0; s < kOwn; ++s) lanes[r][s] = T(0);
    }
  }

  // Turns the scores of row r into exponentials; returns what its sums are multiplied by.
  __device__ T take(int r, T (&scores)[kOwn]) {
    const T before = max[r];
    T top = before;
    for (int s = 0; s < kOwn; ++s) top = fn::Max::join(top, scores[s]);
    for (int step = kSide / 2; step > 0; step /= 2) {
      top = fn::Max::join(top, __shfl_xor_sync(~0u, top, step));
    }
    max[r] = top;
    const T less = shift(top), factor = rescale(before, top);
    unrolled<kOwn>([&](int s) {
      scores[s] = math::exp(scores[s] - less);
      lanes[r][s] = math::fma(lanes[r][s], factor, scores[s]);
    });
    return factor;
  }

  // Column across() + s * 16 is lane across() + s * 16 of the tree.
  __device__ T sum(int r) const {
    const T low = lanes[r][0] + lanes[r][2], high = lanes[r][1] + lanes[r][3];
    T all = low + high;
    for (int step = kSide / 2; step > 0; step /= 2) all += __shfl_xor_sync(~0u, all, step);
    return all;
  }
};

template <int kWide, class E, class T = Compute<E>>
__global__ void __launch_bounds__(kThreadsOfTile, 1)
    attend(Matrices<E> y, Matrices<T> stats, Scores<E> scores, Matrices<const E> v, Grid grid) {
  TAPER_DYNAMIC_SHARED(Shared<T>, room);
  Shared<T>& shared = *room;
  const Index batch = grid.batch(), i0 = grid.first_row(), keys = scores.k.rows;
  const Index first = grid.strip() * kWide * kTile;
  Running<T> running;
  Sums<T, kWide> acc = {};
  for (Index j0 = 0; j0 < keys && scores.meet(i0, j0); j0 += kTile) {
    T p[kOwn][kOwn];
    scores.compute(p, shared, batch, i0, j0);
    unrolled<kOwn>([&](int r) {
      const T factor = running.take(r, p[r]);
      for (int s = 0; s < kOwn * kWide; ++s) acc[r][s] *= factor;
    });
    share(shared, p);
    accumulate<false, kWide, E, T>(acc, shared, {v, batch, j0}, first, v.cols, T(1));
  }
  T sums[kOwn];
  unrolled<kOwn>([&](int r) { sums[r] = total(running.sum(r), scores.masked()); });
  E* to = y.at(batch);
  for_each_own<kWide>(i0, y.rows, first, y.cols, [&](Index i, Index c, int r, int s) {
    to[i * y.row + c * y.col] = static_cast<E>(output(acc[r][s], sums[r]));
  });
  if (first > 0 || across() > 0) return;
  unrolled<kOwn>([&](int r) {
    const Index i = i0 + down() + r * kSide;
    if (i >= stats.rows) return;
    T* kept = stats.at(batch) + i * stats.row;
    kept[0] = running.max[r];
    kept[stats.col] = sums[r];
  });
}

template <int kWide, class E>
void launch_attend(
    const Exec& exec, const View& y, const View& stats, const Scores<E>& scores, const View& v) {
  const Matrices<E> to = matrices_of<E>(y);
  const Grid grid = grid_of<kWide>(to.rows, to.cols);
  launch_tiles<Compute<E>>(exec, grid.blocks(count_of(y)), attend<kWide, E>, to,
                           matrices_of<Compute<E>>(stats), scores, matrices_of<const E>(v), grid);
}

}  // namespace
}  // namespace attn

// Bytes: q and y once, k and v once for each 64 queries. Flops: 2 B H T S (E + D).
void attention(
    const Exec& exec, Out y, Out stats, In q, In k, In v, In mask, bool causal, double scale) {
  if (stats.layout->numel() == 0) return;
  visit_floating(q.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const attn::Scores<E> scores = attn::scores_of<E>(q, k, mask, causal, scale);
    const Index cols = v.layout->sizes[v.layout->ndim - 1];
    if (sizeof(E) == 8 || cols <= attn::kTile) {
      return attn::launch_attend<1>(exec, y, stats, scores, v);
    }
    if constexpr (sizeof(E) < 8) attn::launch_attend<2>(exec, y, stats, scores, v);
  });
}

}  // namespace taper::cuda
