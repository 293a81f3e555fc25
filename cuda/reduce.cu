// Sums, products, extremes and variances: 64 lanes and one tree, on warps or on single threads.
#include "taper/core/functors.h"
#include "taper/cuda/reduce_plan.cuh"

namespace taper::cuda {
namespace {

// One block of one output; see core/reducers.h. With a single block that is all of its elements.
template <class T> struct Unit {
  Index output, block, first, count;
  T p;

  __device__ Unit(const ReducePlan& plan, Index blocks, Index unit, const T* ps)
      : output(unit / blocks),
        block(unit % blocks),
        first(block * fn::kReduceBlock),
        count(plan.length - first),
        p(ps != nullptr ? ps[output] : T(0)) {
    if (blocks > 1 && count > fn::kReduceBlock) count = fn::kReduceBlock;
  }
};

// partial[block * outputs + output] <- a block of an output. R is an operation of core/reducers.h.
template <class R, class Team, class T, class From>
__global__ void reduce_units(
    const From* x, T* partial, const T* ps, ReducePlan plan, Index blocks, Index units) {
  for (Index i = first_index() / Team::kSize; i < units; i += index_step() / Team::kSize) {
    const Unit<T> unit(plan, blocks, i, ps);
    const From* base = x + plan.kept.offset(unit.output);
    const T result = Team::template reduce_block<R>(unit.count, unit.p, [&](Index at) {
      return fn::Cast<T>{}(base[plan.reduced.offset(unit.first + at)]);
    });
    if (Team::member() == 0) partial[unit.block * plan.outputs + unit.output] = result;
  }
}

template <class T> __global__ void divide(T* x, T by, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) x[i] = x[i] / by;
}

template <class R, class T, class From>
void reduce_blocks(const Exec& exec,
                   const ReducePlan& plan,
                   Index blocks,
                   const From* x,
                   T* partial,
                   const T* ps) {
  const Index units = plan.outputs * blocks;
  const Index length = plan.length < fn::kReduceBlock ? plan.length : fn::kReduceBlock;
  const bool by_warp = suits_warps(units, length, plan.lies_densely());
  const auto kernel =
      by_warp ? reduce_units<R, WarpTeam, T, From> : reduce_units<R, ThreadTeam, T, From>;
  const Index threads = by_warp ? units * WarpTeam::kSize : units;
  launch_on(exec, blocks_for(threads), kThreads, kernel, x, partial, ps, plan, blocks, units);
}

// Reduces into out[output]; ps, if any, is a number of each output, such as its mean.
template <class R, class T, class From>
void reduce_to(const Exec& exec, const ReducePlan& plan, const From* x, T* out, const T* ps) {
  const Index blocks =
      plan.length > fn::kReduceBlock ? (plan.length - 1) / fn::kReduceBlock + 1 : 1;
  if (blocks == 1) return reduce_blocks<R, T>(exec, plan, 1, x, out, ps);
  const size_t bytes = static_cast<size_t>(blocks * plan.outputs) * sizeof(T);
  T* partial = static_cast<T*>(exec.scratch(bytes));
  reduce_blocks<R, T>(exec, plan, blocks, x, partial, ps);
  using Joined = std::conditional_t<std::is_same_v<R, fn::SumOfSquares>, fn::Sum, R>;
  ReducePlan join;
  join.outputs = plan.outputs;
  join.length = blocks;
  const Layout parts = contiguous_layout({blocks, plan.outputs});
  join.kept = Dims(select_layout(parts, 0, 0));
  join.reduced = Dims(select_layout(parts, 1, 0));
  const T* all = partial;
  reduce_blocks<Joined, T>(exec, join, 1, all, out, static_cast<const T*>(nullptr));
}

// R over T: what is stored as From. T is the type of the result, Work how its bits are computed.
template <class R, class T, class Work, class From>
void reduce_in(const Exec& exec, const View& out, const View& in) {
  const View* const outs[] = {&out};
  const Reduction reduction(in, outs, 1);
  const ReducePlan& plan = reduction.plan;
  if (plan.outputs == 0) return;
  if (plan.length == 0 && !fn::is_defined_on_nothing<R>) fail_empty_reduction();
  const ReduceResults<T> results(exec, reduction.outs[0], out, plan.outputs);
  const Work* none = nullptr;
  const From* from = in.as<const From>();
  reduce_to<R, Work>(exec, plan, from, results.template data<Work>(), none);
  results.store();
}

// Integer is i64 or u64: sums wrap around.
template <class R, class Integer> void reduce(const Exec& exec, const View& out, const View& in) {
  visit_dtype(in.dtype, [&](auto type) {
    using From = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<Compute<From>>) {
      reduce_in<R, Compute<From>, Compute<From>, From>(exec, out, in);
    } else {
      reduce_in<R, std::int64_t, Integer, From>(exec, out, in);
    }
  });
}

template <class T, class From>
void var_mean_in(
    const Exec& exec, const View& var, const View& mean, const View& in, double correction) {
  const View* const outs[] = {&var, &mean};
  const Reduction reduction(in, outs, 2);
  const ReducePlan& plan = reduction.plan;
  const Index n = plan.outputs;
  if (n == 0) return;
  const ReduceResults<T> vars(exec, reduction.outs[0], var, n),
      means(exec, reduction.outs[1], mean, n);
  const From* from = in.as<const From>();
  const double count = static_cast<double>(plan.length);
  const double freedom = count > correction ? count - correction : 0;
  const T* none = nullptr;
  reduce_to<fn::Sum, T>(exec, plan, from, means.data(), none);
  launch_on(exec, blocks_for(n), kThreads, divide<T>, means.data(), static_cast<T>(count), n);
  const T* center = means.data();
  reduce_to<fn::SumOfSquares, T>(exec, plan, from, vars.data(), center);
  launch_on(exec, blocks_for(n), kThreads, divide<T>, vars.data(), static_cast<T>(freedom), n);
  vars.store();
  means.store();
}

}  // namespace

void sum(const Exec& exec, Out out, In in) {
  reduce<fn::Sum, std::uint64_t>(exec, out, in);
}

void prod(const Exec& exec, Out out, In in) {
  reduce<fn::Prod, std::uint64_t>(exec, out, in);
}

void amax(const Exec& exec, Out out, In in) {
  reduce<fn::Max, std::int64_t>(exec, out, in);
}

void amin(const Exec& exec, Out out, In in) {
  reduce<fn::Min, std::int64_t>(exec, out, in);
}

void var_mean(const Exec& exec, Out var, Out mean, In in, double correction) {
  visit_floating(in.dtype, [&](auto type) {
    using From = typename decltype(type)::type;
    var_mean_in<Compute<From>, From>(exec, var, mean, in, correction);
  });
}

}  // namespace taper::cuda
