// Sums, products, extremes and variances: 64 lanes and one tree, on warps or on single threads.
#include "taper/core/functors.h"
#include "taper/cuda/lanes.cuh"

namespace taper::cuda {
namespace {

// Which elements each output takes: `kept` finds its first one, `reduced` the others from there.
struct Plan {
  Index outputs = 1, length = 1;
  Dims kept, reduced;
};

// One block of one output; see core/reducers.h. With a single block that is all of its elements.
template <class T> struct Unit {
  Index output, block, first, count;
  T p;

  __device__ Unit(const Plan& plan, Index blocks, Index unit, const T* ps)
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
    const From* x, T* partial, const T* ps, Plan plan, Index blocks, Index units) {
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
void reduce_blocks(
    const Exec& exec, const Plan& plan, Index blocks, const From* x, T* partial, const T* ps) {
  const Index units = plan.outputs * blocks;
  const bool lies_densely = plan.reduced.ndim <= 1 && plan.reduced.strides[0] == 1;
  const Index length = plan.length < fn::kReduceBlock ? plan.length : fn::kReduceBlock;
  const bool by_warp = suits_warps(units, length, lies_densely);
  const auto kernel =
      by_warp ? reduce_units<R, WarpTeam, T, From> : reduce_units<R, ThreadTeam, T, From>;
  const Index threads = by_warp ? units * WarpTeam::kSize : units;
  launch_on(exec, blocks_for(threads), kThreads, kernel, x, partial, ps, plan, blocks, units);
}

// Reduces into out[output]; ps, if any, is a number of each output, such as its mean.
template <class R, class T, class From>
void reduce_to(const Exec& exec, const Plan& plan, const From* x, T* out, const T* ps) {
  const Index blocks =
      plan.length > fn::kReduceBlock ? (plan.length - 1) / fn::kReduceBlock + 1 : 1;
  if (blocks == 1) return reduce_blocks<R, T>(exec, plan, 1, x, out, ps);
  const size_t bytes = static_cast<size_t>(blocks * plan.outputs) * sizeof(T);
  T* partial = static_cast<T*>(exec.scratch(bytes));
  reduce_blocks<R, T>(exec, plan, blocks, x, partial, ps);
  using Joined = std::conditional_t<std::is_same_v<R, fn::SumOfSquares>, fn::Sum, R>;
  Plan join;
  join.outputs = plan.outputs;
  join.length = blocks;
  const Layout parts = contiguous_layout({blocks, plan.outputs});
  join.kept = Dims(select_layout(parts, 0, 0));
  join.reduced = Dims(select_layout(parts, 1, 0));
  const T* all = partial;
  reduce_blocks<Joined, T>(exec, join, 1, all, out, static_cast<const T*>(nullptr));
}

void add_dim(Layout& layout, Index size, Index stride) {
  layout.sizes[layout.ndim] = size;
  layout.strides[layout.ndim] = stride;
  ++layout.ndim;
}

// A reduction over its dims: the plan of the kernels, and the outputs over the dims that are kept,
// in the order in which the kernels make them.
struct Reduction {
  Plan plan;
  Layout outs[2];

  Reduction(const View& in, const View* const* views, int count) {
    Layout kept, reduced;
    for (int d = 0; d < in.layout->ndim; ++d) {
      const Index size = in.layout->sizes[d], stride = in.layout->strides[d];
      if (size != 1 && views[0]->layout->strides[d] == 0) {
        add_dim(reduced, size, stride);
        continue;
      }
      add_dim(kept, size, stride);
      for (int k = 0; k < count; ++k) add_dim(outs[k], size, views[k]->layout->strides[d]);
    }
    plan.outputs = kept.numel();
    plan.length = reduced.numel();
    if (plan.outputs == 0) return;
    Layout* const all[] = {&kept, &outs[0], &outs[1]};
    order_dims(all, 1 + count);
    Layout* const one[] = {&reduced};
    if (plan.length > 0) coalesce(one, 1);
    plan.kept = Dims(kept);
    plan.reduced = Dims(reduced);
  }
};

// Where results of type T are made: in place if the output lies so, or else in scratch, from where
// store() copies and converts them.
template <class T> class Results {
 public:
  Results(const Exec& exec, const Layout& layout, const View& out, Index count)
      : exec_(exec), layout_(layout), out_(out), type_(dtype_of<T>()) {
    apart_ = out.dtype != type_ || !layout.is_contiguous();
    data_ = apart_ ? exec.scratch(static_cast<size_t>(count) * sizeof(T)) : out.data;
  }

  template <class As = T> As* data() const { return static_cast<As*>(data_); }

  void store() const {
    if (!apart_) return;
    const Layout dense = contiguous_layout(layout_.shape());
    copy(exec_, Out{{out_.data, &layout_, out_.dtype}}, In{{data_, &dense, type_}});
  }

 private:
  const Exec& exec_;
  const Layout& layout_;
  const View& out_;
  DType type_;
  bool apart_;
  void* data_;
};

// R over T: what is stored as From. T is the type of the result, Work how its bits are computed.
template <class R, class T, class Work, class From>
void reduce_in(const Exec& exec, const View& out, const View& in) {
  const View* const outs[] = {&out};
  const Reduction reduction(in, outs, 1);
  const Plan& plan = reduction.plan;
  if (plan.outputs == 0) return;
  TAPER_CHECK(plan.length > 0 || fn::is_defined_on_nothing<R>,
              "the dims to reduce hold no element, and of nothing there is no largest or smallest");
  const Results<T> results(exec, reduction.outs[0], out, plan.outputs);
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
  const Plan& plan = reduction.plan;
  const Index n = plan.outputs;
  if (n == 0) return;
  const Results<T> vars(exec, reduction.outs[0], var, n), means(exec, reduction.outs[1], mean, n);
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
