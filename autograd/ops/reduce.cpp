// Sums, means and products, and the arithmetic of reduced dims.
#include "taper/autograd/ops/reduce.h"

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/unary.h"
#include "taper/core/promote.h"

namespace taper::ops {

Dims reduced_dims(IntArrayRef dim, bool keepdim, IntArrayRef sizes) {
  Dims dims;
  dims.keepdim = keepdim;
  if (dim.empty()) dims.mask = (1U << sizes.size()) - 1;
  for (const std::int64_t d : dim) {
    const unsigned bit = 1U << wrap_dim(d, sizes);
    TAPER_CHECK((dims.mask & bit) == 0, "dim ", d, " of shape ", sizes, " appears twice in ", dim);
    dims.mask |= bit;
  }
  return dims;
}

Sizes reduced_sizes(IntArrayRef sizes, const Dims& dims) {
  Sizes out;
  for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
    if (!dims.has(d)) out.push_back(sizes[static_cast<std::size_t>(d)]);
    else if (dims.keepdim) out.push_back(1);
  }
  return out;
}

Layout spread_layout(const Layout& result, IntArrayRef sizes, const Dims& dims) {
  Layout out;
  out.offset = result.offset;
  out.ndim = static_cast<std::int32_t>(sizes.size());
  int from = 0;
  for (int d = 0; d < out.ndim; ++d) {
    out.sizes[d] = sizes[static_cast<std::size_t>(d)];
    if (!dims.has(d)) out.strides[d] = result.strides[from];
    if (!dims.has(d) || dims.keepdim) ++from;
  }
  return out;
}

Tensor spread(const Tensor& reduced, IntArrayRef sizes, const Dims& dims) {
  Tensor t = reduced;
  if (!dims.keepdim) {
    for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
      if (dims.has(d)) t = t.unsqueeze(d);
    }
  }
  return t.expand(sizes);
}

Sizes listed(const Dims& dims, std::int64_t ndim) {
  Sizes out;
  for (int d = 0; d < ndim; ++d) {
    if (dims.has(d)) out.push_back(d);
  }
  return out;
}

void check_not_empty(IntArrayRef sizes, const Dims& dims) {
  for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
    TAPER_CHECK(!dims.has(d) || sizes[static_cast<std::size_t>(d)] != 0, "dim ", d, " of ", sizes,
                " is reduced but has size 0; there is no result for no elements");
  }
}

void Sum::forward(Frame& f) {
  const Tensor& in = f.in(0);
  for (const std::int64_t s : in.sizes()) sizes_.push_back(s);
  const DType natural = is_integral(in.dtype(), true) ? kInt64 : in.dtype();
  const DType dtype = dtype_.value_or(natural);
  const Tensor x = dtype == natural ? in : cast(f, in, dtype);
  const Tensor& out = f.out(reduced_sizes(sizes_, dims_), dtype);
  if (x.numel() == 0) f.kernels().fill(f.exec(), out.as<Out>(), 0);
  else f.kernels().sum(f.exec(), SpreadOut(out, sizes_, dims_).view, x.as<In>());
}

Grads Sum::backward(const Reverse& r) const {
  return {spread(r.grad(), sizes_, dims_)};
}

void Prod::forward(Frame& f) {
  const Tensor& in = f.in(0);
  const DType dtype = is_integral(in.dtype(), true) ? kInt64 : in.dtype();
  if (f.needs(0)) f.save(in);
  const Tensor& out = f.out(reduced_sizes(in.sizes(), dims_), dtype);
  if (in.numel() == 0) f.kernels().fill(f.exec(), out.as<Out>(), 1);
  else f.kernels().prod(f.exec(), SpreadOut(out, in.sizes(), dims_).view, in.as<In>());
}

namespace {

// At each place along dim, the product of what lies before it.
Tensor product_before(const Tensor& x, std::int64_t dim) {
  const Tensor none = ones_like(x.narrow(dim, 0, 1));
  return cat({none, x.narrow(dim, 0, x.size(dim) - 1).cumprod(dim)}, dim);
}

Tensor product_of_others(const Tensor& x, std::int64_t dim) {
  return product_before(x, dim) * product_before(x.flip(dim), dim).flip(dim);
}

}  // namespace

Grads Prod::backward(const Reverse& r) const {
  const Tensor x = r.saved(0);
  if (x.numel() == 0) return {zeros_like(x)};
  for (int d = 0; d < x.dim(); ++d) {
    if (dims_.mask == 1U << d) {
      return {spread(r.grad(), x.sizes(), dims_) * product_of_others(x, d)};
    }
  }
  const Tensor others = product_of_others(x.flatten(), 0).reshape(x.sizes());
  return {spread(r.grad(), x.sizes(), dims_) * others};
}

}  // namespace taper::ops

namespace taper {

Tensor sum(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Sum(ops::reduced_dims({}, false, x->sizes())), {&*x});
}

Tensor sum(const TensorArg& x, DType dtype) {
  const Call call(x.loc);
  return apply(ops::Sum(ops::reduced_dims({}, false, x->sizes()), dtype), {&*x});
}

Tensor sum(const TensorArg& x, IntArrayRef dim, bool keepdim, std::optional<DType> dtype) {
  const Call call(x.loc);
  return apply(ops::Sum(ops::reduced_dims(dim, keepdim, x->sizes()), dtype), {&*x});
}

Tensor mean(const TensorArg& x) {
  return mean(TensorArg(*x, x.loc), {}, false);
}

Tensor mean(const TensorArg& x, IntArrayRef dim, bool keepdim, std::optional<DType> dtype) {
  const Call call(x.loc);
  const DType result = dtype.value_or(x->dtype());
  TAPER_CHECK(is_floating_point(result), "mean: needs floating-point elements, got ", result,
              "; convert with to(kFloat) or give a dtype");
  const Tensor total = sum(*x, dim, keepdim, dtype);
  const double count =
      x->numel() == 0 ? 0 : static_cast<double>(x->numel()) / static_cast<double>(total.numel());
  return total / count;
}

Tensor prod(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Prod(ops::reduced_dims({}, false, x->sizes())), {&*x});
}

Tensor prod(const TensorArg& x, std::int64_t dim, bool keepdim) {
  const Call call(x.loc);
  return apply(ops::Prod(ops::reduced_dims(dim, keepdim, x->sizes())), {&*x});
}

Tensor Tensor::sum(Loc loc) const {
  return taper::sum(TensorArg(*this, loc));
}

Tensor Tensor::sum(DType dtype, Loc loc) const {
  return taper::sum(TensorArg(*this, loc), dtype);
}

Tensor Tensor::sum(IntArrayRef dim, bool keepdim, std::optional<DType> dtype, Loc loc) const {
  return taper::sum(TensorArg(*this, loc), dim, keepdim, dtype);
}

Tensor Tensor::mean(Loc loc) const {
  return taper::mean(TensorArg(*this, loc));
}

Tensor Tensor::mean(IntArrayRef dim, bool keepdim, std::optional<DType> dtype, Loc loc) const {
  return taper::mean(TensorArg(*this, loc), dim, keepdim, dtype);
}

Tensor Tensor::prod(Loc loc) const {
  return taper::prod(TensorArg(*this, loc));
}

Tensor Tensor::prod(std::int64_t dim, bool keepdim, Loc loc) const {
  return taper::prod(TensorArg(*this, loc), dim, keepdim);
}

// Note [Sums to a smaller shape]
// What was stretched by broadcasting takes the sum of the gradients of its copies: over the dims
// that were added in front, and over those of size 1.
Tensor sum_to(const Tensor& grad, IntArrayRef sizes) {
  if (grad.sizes() == sizes) return grad;
  const auto added = grad.dim() - static_cast<std::int64_t>(sizes.size());
  TAPER_CHECK(added >= 0, "a gradient of shape ", grad.sizes(), " does not fit a tensor of shape ",
              sizes);
  ops::Dims dims;
  dims.keepdim = true;
  for (std::int64_t d = 0; d < grad.dim(); ++d) {
    const bool stretched =
        d < added || (sizes[static_cast<std::size_t>(d - added)] == 1 && grad.size(d) != 1);
    TAPER_CHECK(stretched || sizes[static_cast<std::size_t>(d - added)] == grad.size(d),
                "a gradient of shape ", grad.sizes(), " does not fit a tensor of shape ", sizes);
    if (stretched) dims.mask |= 1U << d;
  }
  const Tensor total = apply(ops::Sum(dims), {&grad});
  return added == 0 ? total : total.reshape(sizes);
}

}  // namespace taper
