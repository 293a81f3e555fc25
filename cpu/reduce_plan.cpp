// Sorting a reduction's dims into kept and reduced ones.
#include "taper/cpu/reduce_plan.h"

namespace taper::cpu {
namespace {

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

}  // namespace

ReducePlan reduce_plan(const View& in, const View* const* outs, int count) {
  ReducePlan plan;
  Layout kept[3], reduced;  // kept: the input, then the outputs
  for (int d = 0; d < in.layout->ndim; ++d) {
    const std::int64_t size = in.layout->sizes[d], stride = in.layout->strides[d];
    if (size != 1 && outs[0]->layout->strides[d] == 0) {
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
  const std::int64_t step = inner_step(plan.reduced, plan.reduced_ndim);
  plan.dense = plan.reduced_ndim == 0 ||
               (plan.reduced_ndim == 1 && plan.reduced.strides[0] == plan.reduced.size);
  plan.by_column = plan.kept_ndim > 0 && plan.kept_sizes[plan.kept_ndim - 1] > 3 &&
                   inner_step(plan.kept, plan.kept_ndim) < step;
  return plan;
}

void fail_empty_reduction() {
  fail("the dims to reduce hold no element, and of nothing there is no largest or smallest");
}

}  // namespace taper::cpu
