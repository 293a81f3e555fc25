// The largest and the smallest, where they are, and whether any or all.
#include "taper/autograd/ops/extremes.h"

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/unary.h"

namespace taper {
namespace ops {

void Extreme::forward(Frame& f) {
  const Tensor& x = f.in(0);
  check_not_empty(x.sizes(), dims_);
  if (f.needs(0)) {
    f.save(x);
    f.save_out(0);
  }
  const Tensor& out = f.out(reduced_sizes(x.sizes(), dims_), x.dtype());
  const Kernels::Unary& slot = which_ == Which::kLargest ? f.kernels().amax : f.kernels().amin;
  if (x.numel() != 0) slot(f.exec(), SpreadOut(out, x.sizes(), dims_).view, x.as<In>());
}

Grads Extreme::backward(const Reverse& r) const {
  const Tensor x = r.saved(0).detach(), y = r.saved(1).detach();
  const Tensor reached = logical_or(x == spread(y, x.sizes(), dims_), isnan(x));
  const Tensor sharing = reached.sum(listed(dims_, x.dim()), dims_.keepdim);
  return {where(reached, spread(r.grad() / sharing, x.sizes(), dims_), 0)};
}

namespace {

// Fills `indices`, whose sizes are x's with 1 at dim, or x's without dim.
void find_extreme(const Frame& f, Which which, const Tensor& indices, const Tensor& x, int dim) {
  if (x.numel() == 0) return;
  const Layout from = x.dim() == 0 ? unsqueeze_layout(x.layout(), 0) : x.layout();
  Dims dims;
  dims.mask = 1U << dim;
  dims.keepdim = indices.dim() == from.ndim;
  const SpreadOut out(indices, from.shape(), dims);
  In in = x.as<In>();
  in.layout = &from;
  const auto& slot = which == Which::kLargest ? f.kernels().argmax : f.kernels().argmin;
  slot(f.exec(), out.view, in, dim);
}

// The dim that was removed, back with size 1.
Layout with_dim(const Layout& layout, std::int64_t dim, bool has_it) {
  return has_it ? layout : unsqueeze_layout(layout, dim);
}

}  // namespace

void ExtremeAlong::forward(Frame& f) {
  const Tensor& x = f.in(0);
  const Dims dims = reduced_dims(dim_, keepdim_, x.sizes());
  dim_ = wrap_dim(dim_, x.sizes());
  check_not_empty(x.sizes(), dims);
  for (const std::int64_t s : x.sizes()) sizes_.push_back(s);
  const Sizes sizes = reduced_sizes(sizes_, dims);
  const Tensor values = f.out(sizes, x.dtype()), indices = f.out(sizes, kInt64);
  if (f.needs(0)) f.save(indices);
  if (x.numel() == 0) return;
  find_extreme(f, which_, indices, x, static_cast<int>(dim_));
  const bool has_it = keepdim_ && x.dim() > 0;
  const Layout v = with_dim(values.layout(), dim_, has_it);
  const Layout i = with_dim(indices.layout(), dim_, has_it);
  const Layout from = with_dim(x.layout(), 0, x.dim() > 0);
  Out to = values.as<Out>();
  In in = x.as<In>(), at = indices.as<In>();
  to.layout = &v, in.layout = &from, at.layout = &i;
  f.kernels().gather(f.exec(), to, in, at, static_cast<int>(dim_));
}

Grads ExtremeAlong::backward(const Reverse& r) const {
  Tensor g = r.grad(), indices = r.saved(0);
  if (!keepdim_ && !sizes_.empty()) {
    g = g.unsqueeze(dim_);
    indices = indices.unsqueeze(dim_);
  }
  const Tensor none = zeros(sizes_, TensorOptions(g.dtype()).device(g.device()));
  return {none.scatter(dim_, indices, g)};
}

void ArgExtreme::forward(Frame& f) {
  const Tensor& x = f.in(0);
  if (dim_) {
    const Dims dims = reduced_dims(*dim_, keepdim_, x.sizes());
    check_not_empty(x.sizes(), dims);
    find_extreme(f, which_, f.out(reduced_sizes(x.sizes(), dims), kInt64), x,
                 wrap_dim(*dim_, x.sizes()));
    return;
  }
  const Dims dims = reduced_dims({}, keepdim_, x.sizes());
  check_not_empty(x.sizes(), dims);
  const Tensor& out = f.out(reduced_sizes(x.sizes(), dims), kInt64);
  find_extreme(f, which_, make_tensor(out.storage(), Layout(), kInt64), x.flatten(), 0);
}

void AnyAll::forward(Frame& f) {
  const Tensor& in = f.in(0);
  const Tensor x = cast(f, in, kBool);
  const bool bytes = in.dtype() == kUInt8;
  const Sizes sizes = reduced_sizes(x.sizes(), dims_);
  const Tensor out =
      bytes ? make_tensor(contiguous_layout(sizes), kBool, f.device()) : f.out(sizes, kBool);
  const Kernels::Unary& slot = all_ ? f.kernels().amin : f.kernels().amax;
  if (x.numel() == 0) f.kernels().fill(f.exec(), out.as<Out>(), all_);
  else slot(f.exec(), SpreadOut(out, x.sizes(), dims_).view, x.as<In>());
  if (bytes) f.out(cast(f, out, kUInt8));
}

}  // namespace ops

namespace {

using ops::Which;

std::tuple<Tensor, Tensor> along(Which which, const Tensor& x, std::int64_t dim, bool keepdim) {
  const Tensor* in[] = {&x};
  Tensors out = apply_n(ops::ExtremeAlong(which, dim, keepdim), ArrayRef<const Tensor*>(in, 1));
  return {out[0], out[1]};
}

Tensor any_all(bool all, const Tensor& x, IntArrayRef dim, bool keepdim) {
  return apply(ops::AnyAll(all, ops::reduced_dims(dim, keepdim, x.sizes())), {&x});
}

}  // namespace

Tensor amax(const TensorArg& x, IntArrayRef dim, bool keepdim) {
  const Call call(x.loc);
  const ops::Dims dims = ops::reduced_dims(dim, keepdim, x->sizes());
  return apply(ops::Extreme("amax", Which::kLargest, dims), {&*x});
}

Tensor amin(const TensorArg& x, IntArrayRef dim, bool keepdim) {
  const Call call(x.loc);
  const ops::Dims dims = ops::reduced_dims(dim, keepdim, x->sizes());
  return apply(ops::Extreme("amin", Which::kSmallest, dims), {&*x});
}

Tensor max(const TensorArg& x) {
  const Call call(x.loc);
  const ops::Dims all = ops::reduced_dims({}, false, x->sizes());
  return apply(ops::Extreme("max", Which::kLargest, all), {&*x});
}

Tensor min(const TensorArg& x) {
  const Call call(x.loc);
  const ops::Dims all = ops::reduced_dims({}, false, x->sizes());
  return apply(ops::Extreme("min", Which::kSmallest, all), {&*x});
}

Tensor max(const TensorArg& a, const TensorArg& b) {
  return maximum(TensorArg(*a, a.loc), *b);
}

Tensor min(const TensorArg& a, const TensorArg& b) {
  return minimum(TensorArg(*a, a.loc), *b);
}

std::tuple<Tensor, Tensor> max(const TensorArg& x, std::int64_t dim, bool keepdim) {
  const Call call(x.loc);
  return along(Which::kLargest, *x, dim, keepdim);
}

std::tuple<Tensor, Tensor> min(const TensorArg& x, std::int64_t dim, bool keepdim) {
  const Call call(x.loc);
  return along(Which::kSmallest, *x, dim, keepdim);
}

Tensor argmax(const TensorArg& x, std::optional<std::int64_t> dim, bool keepdim) {
  const Call call(x.loc);
  return apply(ops::ArgExtreme(Which::kLargest, dim, keepdim), {&*x});
}

Tensor argmin(const TensorArg& x, std::optional<std::int64_t> dim, bool keepdim) {
  const Call call(x.loc);
  return apply(ops::ArgExtreme(Which::kSmallest, dim, keepdim), {&*x});
}

Tensor any(const TensorArg& x) {
  const Call call(x.loc);
  return any_all(false, *x, {}, false);
}

Tensor any(const TensorArg& x, std::int64_t dim, bool keepdim) {
  const Call call(x.loc);
  return any_all(false, *x, dim, keepdim);
}

Tensor all(const TensorArg& x) {
  const Call call(x.loc);
  return any_all(true, *x, {}, false);
}

Tensor all(const TensorArg& x, std::int64_t dim, bool keepdim) {
  const Call call(x.loc);
  return any_all(true, *x, dim, keepdim);
}

Tensor Tensor::amax(IntArrayRef dim, bool keepdim, Loc loc) const {
  return taper::amax(TensorArg(*this, loc), dim, keepdim);
}

Tensor Tensor::amin(IntArrayRef dim, bool keepdim, Loc loc) const {
  return taper::amin(TensorArg(*this, loc), dim, keepdim);
}

Tensor Tensor::max(Loc loc) const {
  return taper::max(TensorArg(*this, loc));
}

Tensor Tensor::min(Loc loc) const {
  return taper::min(TensorArg(*this, loc));
}

Tensor Tensor::max(const Tensor& other, Loc loc) const {
  return taper::maximum(TensorArg(*this, loc), other);
}

Tensor Tensor::min(const Tensor& other, Loc loc) const {
  return taper::minimum(TensorArg(*this, loc), other);
}

std::tuple<Tensor, Tensor> Tensor::max(std::int64_t dim, bool keepdim, Loc loc) const {
  return taper::max(TensorArg(*this, loc), dim, keepdim);
}

std::tuple<Tensor, Tensor> Tensor::min(std::int64_t dim, bool keepdim, Loc loc) const {
  return taper::min(TensorArg(*this, loc), dim, keepdim);
}

Tensor Tensor::argmax(std::optional<std::int64_t> dim, bool keepdim, Loc loc) const {
  return taper::argmax(TensorArg(*this, loc), dim, keepdim);
}

Tensor Tensor::argmin(std::optional<std::int64_t> dim, bool keepdim, Loc loc) const {
  return taper::argmin(TensorArg(*this, loc), dim, keepdim);
}

Tensor Tensor::any(Loc loc) const {
  return taper::any(TensorArg(*this, loc));
}

Tensor Tensor::any(std::int64_t dim, bool keepdim, Loc loc) const {
  return taper::any(TensorArg(*this, loc), dim, keepdim);
}

Tensor Tensor::all(Loc loc) const {
  return taper::all(TensorArg(*this, loc));
}

Tensor Tensor::all(std::int64_t dim, bool keepdim, Loc loc) const {
  return taper::all(TensorArg(*this, loc), dim, keepdim);
}

}  // namespace taper
