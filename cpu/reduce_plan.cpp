// Sorting a reduction's dims into kept and reduced ones.
#include "taper/cpu/reduce_plan.h"

namespace taper::cpu {
namespace {

constexpr std::int64_t kLine = 64;            // bytes of a cache line
constexpr std::int64_t kLarge = 128 * 1024;   // bytes that do not stay in the nearest caches
constexpr std::int64_t kFew = 32;             // elements whose lanes are not worth setting up
constexpr std::int64_t kReduceTogether = 16;  // outputs, for reductions of few elements

void add_dim(Layout& layout, std::int64_t size, std::int64_t stride) {
  layout.sizes[layout.ndim] = size;
  layout.strides[layout.ndim] = stride;
  ++layout.ndim;
}

std::int64_t inner_step(const Strided& view, int ndim) {
  if (ndim == 0) return 0;
  const std::int64_t step = view.strides[ndim - 1];
  return step < 0 ? -step : step;
}

bool is_reduced(const View& in, const View& out, int d) {
  return in.layout->sizes[d] != 1 && out.layout->strides[d] == 0;
}

ReducePlan plan_of(const View& in, const View* const* outs, int count) {
  ReducePlan plan;
  Layout kept[3], reduced;  // kept: the input, then the outputs
  for (int d = 0; d < in.layout->ndim; ++d) {
    const std::int64_t size = in.layout->sizes[d], stride = in.layout->strides[d];
    if (is_reduced(in, *outs[0], d)) {
      add_dim(reduced, size, stride);
      continue;
    }
    add_dim(kept[0], size, stride);
    for (int k = 0; k < count; ++k) add_dim(kept[k + 1], size, outs[k]->layout->strides[d]);
  }
  plan.outputs = kept[0].numel();
  plan.length = reduced.numel();
  order_dims(kept, count + 1);
  Layout* one = &reduced;
  if (plan.length > 0) coalesce(&one, 1);
  plan.kept_ndim = kept[0].ndim;
  plan.reduced_ndim = reduced.ndim;
  for (int d = 0; d < kMaxDims; ++d) {
    plan.kept_sizes[d] = kept[0].sizes[d];
    plan.reduced_sizes[d] = reduced.sizes[d];
  }
  plan.kept = strided({in.data, &kept[0], in.dtype});
  plan.reduced = strided({in.data, &reduced, in.dtype});
  for (int k = 0; k < count; ++k) plan.out[k] = kept[k + 1];
  plan.dense = plan.reduced_ndim == 0 ||
               (plan.reduced_ndim == 1 && plan.reduced.strides[0] == plan.reduced.size);
  if (plan.kept_ndim > 0 && plan.reduced_ndim > 0) {
    const std::int64_t neighbours = plan.kept_sizes[plan.kept_ndim - 1];
    const bool closer =
        inner_step(plan.kept, plan.kept_ndim) < inner_step(plan.reduced, plan.reduced_ndim);
    plan.by_column =
        (closer && neighbours > 3) || (plan.length <= kFew && neighbours >= kReduceTogether);
  }
  return plan;
}

// The input's elements, ordered by output and then as they are reduced.
Layout in_order(const View& in, const View& out) {
  Layout layout = *in.layout;
  std::int64_t stride = 1;
  for (const bool reduced : {true, false}) {
    for (int d = layout.ndim - 1; d >= 0; --d) {
      if (is_reduced(in, out, d) != reduced) continue;
      layout.strides[d] = stride;
      stride *= layout.sizes[d];
    }
  }
  return layout;
}

}  // namespace

ReducePlan reduce_plan(const Exec& exec, const View& in, const View* const* outs, int count) {
  const ReducePlan plan = plan_of(in, outs, count);
  const std::int64_t bytes = plan.outputs * plan.length * plan.reduced.size;
  const bool jumps = inner_step(plan.reduced, plan.reduced_ndim) >= kLine;
  if (plan.dense || plan.by_column || !jumps || bytes < kLarge) return plan;
  const Layout layout = in_order(in, *outs[0]);
  const View ordered{exec.scratch(static_cast<std::size_t>(bytes)), &layout, in.dtype};
  move(ordered, in);
  return plan_of(ordered, outs, count);
}

void fail_empty_reduction() {
  fail("the dims to reduce hold no element, and of nothing there is no largest or smallest");
}

}  // namespace taper::cpu
