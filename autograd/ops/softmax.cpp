// How softmax and log_softmax run, and their derivatives.
#include "taper/autograd/ops/softmax.h"

#include <limits>

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/unary.h"
#include "taper/core/promote.h"

namespace taper::ops {
namespace {

using ForwardSlot = Kernel<void(const Exec&, Out, In, int)> Kernels::*;
using GradSlot = Kernel<void(const Exec&, Out, In, In, int)> Kernels::*;

const Tensor& run(Frame& f, ForwardSlot slot, int dim, DType dtype) {
  const Tensor x = cast(f, f.in(0), dtype);
  if (f.needs(0)) f.save_out(0);
  const Tensor& y = f.out(dense_like(x.layout()), dtype);
  if (x.numel() > 0) (f.kernels().*slot)(f.exec(), y.as<Out>(), x.as<In>(), dim);
  return y;
}

Tensor run_grad(GradSlot slot, const Tensor& grad, const Tensor& y, int dim) {
  const Tensor dx = make_tensor(dense_like(y.layout()), y.dtype(), y.device());
  if (y.numel() == 0) return dx;
  (kernels_for(y.device()).*slot)(Exec(y.device()), dx.as<Out>(), grad.as<In>(), y.as<In>(), dim);
  return dx;
}

}  // namespace

void Softmax::forward(Frame& f) {
  const Tensor& y = run(f, &Kernels::softmax, dim_, dtype_);
  if (!masked_ || y.numel() == 0) return;
  const double lowest = -std::numeric_limits<double>::infinity();
  y.masked_fill_(amax(f.in(0), dim_, true) == lowest, 0);
}

Grads Softmax::backward(const Reverse& r) const {
  const Tensor y = r.saved(0);
  if (!GradMode::is_enabled()) return {run_grad(&Kernels::softmax_grad, r.grad(), y, dim_)};
  const Tensor weighted = r.grad() * y;
  return {weighted - y * sum(weighted, dim_, true)};
}

void LogSoftmax::forward(Frame& f) {
  run(f, &Kernels::log_softmax, dim_, dtype_);
}

Grads LogSoftmax::backward(const Reverse& r) const {
  const Tensor y = r.saved(0);
  if (!GradMode::is_enabled()) return {run_grad(&Kernels::log_softmax_grad, r.grad(), y, dim_)};
  return {r.grad() - exp(y) * sum(r.grad(), dim_, true)};
}

}  // namespace taper::ops

namespace taper {
namespace {

// A number is a row of one element.
template <class OpType>
Tensor along(const Tensor& x, std::int64_t dim, std::optional<DType> dtype) {
  const int d = wrap_dim(dim, x.sizes());
  OpType op(d, floating_type(dtype.value_or(x.dtype())));
  if (x.dim() > 0) return apply(std::move(op), {&x});
  const Tensor row = x.reshape(1);
  return apply(std::move(op), {&row}).reshape({});
}

}  // namespace

Tensor softmax(const TensorArg& x, std::int64_t dim, std::optional<DType> dtype) {
  const Call call(x.loc);
  return along<ops::Softmax>(*x, dim, dtype);
}

Tensor log_softmax(const TensorArg& x, std::int64_t dim, std::optional<DType> dtype) {
  const Call call(x.loc);
  return along<ops::LogSoftmax>(*x, dim, dtype);
}

Tensor Tensor::softmax(std::int64_t dim, std::optional<DType> dtype, Loc loc) const {
  return taper::softmax(TensorArg(*this, loc), dim, dtype);
}

Tensor Tensor::log_softmax(std::int64_t dim, std::optional<DType> dtype, Loc loc) const {
  return taper::log_softmax(TensorArg(*this, loc), dim, dtype);
}

}  // namespace taper
