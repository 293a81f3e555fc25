// Sorting the dims of a reduction into those that are kept and those that are reduced.
#include "taper/cuda/reduce_plan.cuh"

namespace taper::cuda {
namespace {

void add_dim(Layout& layout, Index size, Index stride) {
  layout.sizes[layout.ndim] = size;
  layout.strides[layout.ndim] = stride;
  ++layout.ndim;
}

}  // namespace

Reduction::Reduction(const View& in, const View* const* views, int count) {
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

void fail_empty_reduction() {
  fail("the dims to reduce hold no element, and of nothing there is no largest or smallest");
}

}  // namespace taper::cuda
