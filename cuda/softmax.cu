// Softmax, its logarithm, and their gradients: a warp or a thread for each line.
#include "taper/core/functors.h"
#include "taper/cuda/lines.cuh"

// The formulas, and the order of the sums, are those of cpu/softmax.cpp, Note [Softmax]. A line is
// read three times and written once; its exponentials are taken twice.
namespace taper::cuda {
namespace {

template <bool kLog, class Team, class E>
__global__ void softmax_lines(Lined<E> out, Lined<const E> in, Lines lines) {
  using T = Compute<E>;
  for (Index i = first_index() / Team::kSize; i < lines.count; i += index_step() / Team::kSize) {
    const E* x = in.line(i);
    E* y = out.line(i);
    const auto element = [&](Index k) { return static_cast<T>(x[k * in.step]); };
    const T max = reduce_sequence<fn::Max, Team, T>(lines.length, element);
    const T sum = reduce_sequence<fn::Sum, Team, T>(
        lines.length, [&](Index k) { return math::exp(element(k) - max); });
    const T log_sum = kLog ? math::log(sum) : T(0);
    for (Index k = Team::member(); k < lines.length; k += Team::kSize) {
      const T shifted = element(k) - max;
      y[k * out.step] = static_cast<E>(kLog ? shifted - log_sum : math::exp(shifted) / sum);
    }
  }
}

template <bool kLog, class Team, class E>
__global__ void softmax_grad_lines(Lined<E> out,
                                   Lined<const E> grad,
                                   Lined<const E> y,
                                   Lines lines) {
  using T = Compute<E>;
  for (Index i = first_index() / Team::kSize; i < lines.count; i += index_step() / Team::kSize) {
    const E *g = grad.line(i), *v = y.line(i);
    E* dx = out.line(i);
    const auto of_grad = [&](Index k) { return static_cast<T>(g[k * grad.step]); };
    const auto of_y = [&](Index k) { return static_cast<T>(v[k * y.step]); };
    const T total = reduce_sequence<fn::Sum, Team, T>(
        lines.length, [&](Index k) { return kLog ? of_grad(k) : of_grad(k) * of_y(k); });
    for (Index k = Team::member(); k < lines.length; k += Team::kSize) {
      const T result =
          kLog ? of_grad(k) - math::exp(of_y(k)) * total : (of_grad(k) - total) * of_y(k);
      dx[k * out.step] = static_cast<E>(result);
    }
  }
}

template <class... Params, class... Args>
void launch_lines(const Exec& exec,
                  const Lines& lines,
                  void (*by_warp)(Params...),
                  void (*by_thread)(Params...),
                  const Args&... args) {
  const bool warps = suits_warps(lines.count, lines.length, lines.dense);
  const Index threads = warps ? lines.count * WarpTeam::kSize : lines.count;
  launch_on(exec, blocks_for(threads), kThreads, warps ? by_warp : by_thread, args..., lines);
}

template <bool kLog> void softmax_in(const Exec& exec, const View& out, const View& in, int dim) {
  TAPER_ASSERT(out.dtype == in.dtype);
  const View* const views[] = {&out, &in};
  Layout others[2];
  Index steps[2];
  const Lines lines = take_lines(views, dim, others, steps);
  if (lines.length == 0) return;
  visit_floating(in.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_lines(exec, lines, softmax_lines<kLog, WarpTeam, E>, softmax_lines<kLog, ThreadTeam, E>,
                 Lined<E>{out.as<E>(), Dims(others[0]), steps[0]},
                 Lined<const E>{in.as<const E>(), Dims(others[1]), steps[1]});
  });
}

template <bool kLog>
void grad_in(const Exec& exec, const View& out, const View& grad, const View& y, int dim) {
  TAPER_ASSERT(out.dtype == y.dtype && grad.dtype == y.dtype);
  const View* const views[] = {&out, &grad, &y};
  Layout others[3];
  Index steps[3];
  const Lines lines = take_lines(views, dim, others, steps);
  if (lines.length == 0) return;
  visit_floating(y.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_lines(exec, lines, softmax_grad_lines<kLog, WarpTeam, E>,
                 softmax_grad_lines<kLog, ThreadTeam, E>,
                 Lined<E>{out.as<E>(), Dims(others[0]), steps[0]},
                 Lined<const E>{grad.as<const E>(), Dims(others[1]), steps[1]},
                 Lined<const E>{y.as<const E>(), Dims(others[2]), steps[2]});
  });
}

}  // namespace

void softmax(const Exec& exec, Out out, In in, int dim) {
  softmax_in<false>(exec, out, in, dim);
}

void log_softmax(const Exec& exec, Out out, In in, int dim) {
  softmax_in<true>(exec, out, in, dim);
}

void softmax_grad(const Exec& exec, Out out, In grad, In y, int dim) {
  grad_in<false>(exec, out, grad, y, dim);
}

void log_softmax_grad(const Exec& exec, Out out, In grad, In y, int dim) {
  grad_in<true>(exec, out, grad, y, dim);
}

}  // namespace taper::cuda
