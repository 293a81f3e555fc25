// Variance, standard deviation, norms and logsumexp.
#include "taper/autograd/ops/statistics.h"

#include <cmath>
#include <limits>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/unary.h"
#include "taper/core/promote.h"

namespace taper {
namespace ops {
namespace {

void check_floating(const Tensor& x) {
  TAPER_CHECK(is_floating_point(x.dtype()), "needs floating-point elements, got ", x.dtype(),
              "; convert with to(kFloat)");
}

void find_var_mean(const Frame& f,
                   const Tensor& x,
                   const Dims& dims,
                   double correction,
                   const Tensor& var,
                   const Tensor& mean) {
  if (x.numel() == 0) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    f.kernels().fill(f.exec(), var.as<Out>(), none);
    f.kernels().fill(f.exec(), mean.as<Out>(), none);
    return;
  }
  const SpreadOut v(var, x.sizes(), dims), m(mean, x.sizes(), dims);
  f.kernels().var_mean(f.exec(), v.view, m.view, x.as<In>(), correction);
}

// How many elements each result is made of.
double count(const Tensor& x, const Dims& dims) {
  double n = 1;
  for (const std::int64_t d : listed(dims, x.dim())) n *= static_cast<double>(x.size(d));
  return n;
}

Tensor deviation(const Tensor& x, const Dims& dims) {
  return x - x.mean(listed(dims, x.dim()), true);
}

}  // namespace

void VarMean::forward(Frame& f) {
  const Tensor& x = f.in(0);
  check_floating(x);
  if (f.needs(0)) f.save(x);
  const Sizes sizes = reduced_sizes(x.sizes(), dims_);
  const Tensor var = f.out(sizes, x.dtype()), mean = f.out(sizes, x.dtype());
  find_var_mean(f, x, dims_, correction_, var, mean);
}

Grads VarMean::backward(const Reverse& r) const {
  const Tensor x = r.saved(0);
  const double n = count(x, dims_);
  Tensor total;
  if (r.grad(0).defined()) {
    const Tensor scaled = r.grad(0) * (2 / (n - correction_));
    total = spread(scaled, x.sizes(), dims_) * deviation(x, dims_);
  }
  if (r.grad(1).defined()) {
    const Tensor even = spread(r.grad(1) / n, x.sizes(), dims_);
    total = total.defined() ? total + even : even;
  }
  return {total};
}

void Std::forward(Frame& f) {
  const Tensor& x = f.in(0);
  check_floating(x);
  if (f.needs(0)) {
    f.save(x);
    f.save_out(0);
  }
  const Layout result = contiguous_layout(reduced_sizes(x.sizes(), dims_));
  const Tensor var = make_tensor(result, x.dtype(), f.device());
  const Tensor mean = make_tensor(result, x.dtype(), f.device());
  find_var_mean(f, x, dims_, correction_, var, mean);
  f.kernels().sqrt(f.exec(), f.out(result, x.dtype()).as<Out>(), var.as<In>());
}

Grads Std::backward(const Reverse& r) const {
  const Tensor x = r.saved(0), y = r.saved(1);
  const Tensor flat = y == 0;
  const Tensor scaled = r.grad() / (where(flat, 1, y) * (count(x, dims_) - correction_));
  return {spread(where(flat, 0, scaled), x.sizes(), dims_) * deviation(x, dims_)};
}

namespace {

Tensor norm_of(const Tensor& x, double p, IntArrayRef dims, bool keepdim) {
  if (p == 0) return (x != 0).to(x.dtype()).sum(dims, keepdim);
  if (p == 1) return abs(x).sum(dims, keepdim);
  if (p == 2) return sqrt(square(x).sum(dims, keepdim));
  if (std::isinf(p)) return p > 0 ? abs(x).amax(dims, keepdim) : abs(x).amin(dims, keepdim);
  return pow(pow(abs(x), p).sum(dims, keepdim), 1 / p);
}

}  // namespace

void Norm::forward(Frame& f) {
  const Tensor& x = f.in(0);
  check_floating(x);
  if (p_ < 0 || std::isinf(p_)) check_not_empty(x.sizes(), dims_);
  if (f.needs(0)) {
    f.save(x);
    f.save_out(0);
  }
  const DType wide = element_size(x.dtype()) == 2 ? kFloat32 : x.dtype();
  const Sizes all = listed(dims_, x.dim());
  f.out(cast(f, norm_of(cast(f, x, wide), p_, all, dims_.keepdim), x.dtype()));
}

Grads Norm::backward(const Reverse& r) const {
  const Tensor x = r.saved(0);
  const Tensor g = spread(r.grad(), x.sizes(), dims_);
  if (p_ == 0) return {zeros_like(x)};
  if (p_ == 1) return {g * sign(x)};
  const Tensor y = spread(r.saved(1), x.sizes(), dims_);
  const Tensor flat = y == 0;
  if (p_ == 2) return {where(flat, 0, g) / where(flat, 1, y) * x};
  const Tensor size = abs(x);
  if (std::isinf(p_)) {
    const Tensor reached = logical_or(size == y, isnan(size));
    const Tensor sharing = reached.sum(listed(dims_, x.dim()), true);
    return {where(reached, g * sign(x) / sharing, 0)};
  }
  const Tensor masked = logical_or(flat, x == 0);
  const Tensor ratio = where(masked, 1, size) / where(masked, 1, y);
  return {where(masked, 0, g * sign(x) * pow(ratio, p_ - 1))};
}

void LogSumExp::forward(Frame& f) {
  const Tensor x = cast(f, f.in(0), floating_type(f.in(0).dtype()));
  if (f.needs(0)) {
    f.save(f.in(0));
    f.save_out(0);
  }
  const Sizes all = listed(dims_, x.dim());
  if (x.numel() == 0) {
    f.out(log(exp(x).sum(all, dims_.keepdim)));
    return;
  }
  const Tensor largest = x.amax(all, true);
  const Tensor shift = where(isinf(largest), 0, largest);
  const Tensor y = log(exp(x - shift).sum(all, true)) + shift;
  f.out(y.reshape(reduced_sizes(x.sizes(), dims_)));
}

Grads LogSumExp::backward(const Reverse& r) const {
  const Tensor x = r.saved(0), y = r.saved(1);
  const Tensor shift = where(y == -std::numeric_limits<double>::infinity(), 0, y);
  return {spread(r.grad(), x.sizes(), dims_) * exp(x - spread(shift, x.sizes(), dims_))};
}

}  // namespace ops

namespace {

ops::Dims dims_of(const Tensor& x, IntArrayRef dim, bool keepdim) {
  return ops::reduced_dims(dim, keepdim, x.sizes());
}

Tensors apply_var_mean(
    const char* name, const Tensor& x, IntArrayRef dim, bool unbiased, bool keepdim) {
  const Tensor* in[] = {&x};
  return apply_n(ops::VarMean(name, dims_of(x, dim, keepdim), unbiased ? 1 : 0),
                 ArrayRef<const Tensor*>(in, 1));
}

}  // namespace

Tensor var(const TensorArg& x, bool unbiased) {
  return var(TensorArg(*x, x.loc), {}, unbiased);
}

Tensor var(const TensorArg& x, IntArrayRef dim, bool unbiased, bool keepdim) {
  const Call call(x.loc);
  return apply_var_mean("var", *x, dim, unbiased, keepdim)[0];
}

std::tuple<Tensor, Tensor> var_mean(const TensorArg& x,
                                    IntArrayRef dim,
                                    bool unbiased,
                                    bool keepdim) {
  const Call call(x.loc);
  const Tensors out = apply_var_mean("var_mean", *x, dim, unbiased, keepdim);
  return {out[0], out[1]};
}

Tensor std(const TensorArg& x, bool unbiased) {
  return taper::std(TensorArg(*x, x.loc), {}, unbiased);
}

Tensor std(const TensorArg& x, IntArrayRef dim, bool unbiased, bool keepdim) {
  const Call call(x.loc);
  return apply(ops::Std(dims_of(*x, dim, keepdim), unbiased ? 1 : 0), {&*x});
}

Tensor norm(const TensorArg& x, Scalar p) {
  return norm(TensorArg(*x, x.loc), p, {});
}

Tensor norm(const TensorArg& x, Scalar p, IntArrayRef dim, bool keepdim) {
  const Call call(x.loc);
  return apply(ops::Norm(p.to_double(), dims_of(*x, dim, keepdim)), {&*x});
}

Tensor logsumexp(const TensorArg& x, IntArrayRef dim, bool keepdim) {
  const Call call(x.loc);
  return apply(ops::LogSumExp(dims_of(*x, dim, keepdim)), {&*x});
}

Tensor Tensor::var(bool unbiased, Loc loc) const {
  return taper::var(TensorArg(*this, loc), unbiased);
}

Tensor Tensor::var(IntArrayRef dim, bool unbiased, bool keepdim, Loc loc) const {
  return taper::var(TensorArg(*this, loc), dim, unbiased, keepdim);
}

Tensor Tensor::std(bool unbiased, Loc loc) const {
  return taper::std(TensorArg(*this, loc), unbiased);
}

Tensor Tensor::std(IntArrayRef dim, bool unbiased, bool keepdim, Loc loc) const {
  return taper::std(TensorArg(*this, loc), dim, unbiased, keepdim);
}

Tensor Tensor::norm(Scalar p, Loc loc) const {
  return taper::norm(TensorArg(*this, loc), p);
}

Tensor Tensor::norm(Scalar p, IntArrayRef dim, bool keepdim, Loc loc) const {
  return taper::norm(TensorArg(*this, loc), p, dim, keepdim);
}

Tensor Tensor::logsumexp(IntArrayRef dim, bool keepdim, Loc loc) const {
  return taper::logsumexp(TensorArg(*this, loc), dim, keepdim);
}

}  // namespace taper
