// Elementwise ops of one operand: how they run, and their derivatives.
#include "taper/autograd/ops/unary.h"

#include <cmath>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/core/promote.h"

namespace taper::ops {

Tensor cast(const Frame& f, const Tensor& t, DType dtype) {
  if (t.dtype() == dtype && t.device() == f.device()) return t;
  const Tensor out = make_tensor(dense_like(t.layout()), dtype, f.device());
  if (t.is_cpu() || t.device() == f.device()) f.kernels().copy(f.exec(), out.as<Out>(), t.as<In>());
  return out;
}

void check_number(DType dtype) {
  TAPER_CHECK(dtype != kBool, "takes numbers, got bool; convert it with to()");
}

void unary_forward(Frame& f, UnarySlot slot, bool floating, Keep keep) {
  const DType dtype = floating ? floating_type(f.in(0).dtype()) : f.in(0).dtype();
  const Tensor x = cast(f, f.in(0), dtype);
  if (keep == Keep::kInput) f.save(f.in(0));
  if (keep == Keep::kOutput) f.save_out(0);
  const Tensor& y = f.out(dense_like(x.layout()), dtype);
  (f.kernels().*slot)(f.exec(), y.as<Out>(), x.as<In>());
}

Tensor fused_gradient(BinarySlot slot, const Tensor& grad, const Tensor& kept) {
  const Tensor out = make_tensor(dense_like(kept.layout()), kept.dtype(), kept.device());
  (kernels_for(kept.device()).*slot)(Exec(kept.device()), out.as<Out>(), grad.as<In>(),
                                     kept.as<In>());
  return out;
}

namespace rows {
namespace {

Tensor silu_derivative(const Tensor& g, const Tensor& x) {
  const Tensor s = sigmoid(x);
  return g * s * (1 + x * (1 - s));
}

Tensor gelu_derivative(const Tensor& g, const Tensor& x) {
  const Tensor distribution = (1 + erf(x * std::sqrt(0.5))) * 0.5;
  const Tensor density = exp(square(x) * -0.5) * (1 / std::sqrt(2 * 3.14159265358979323846));
  return g * (distribution + x * density);
}

Tensor gelu_tanh_derivative(const Tensor& g, const Tensor& x) {
  const double k = std::sqrt(2 / 3.14159265358979323846);
  const Tensor x2 = square(x);
  const Tensor t = tanh(x * (1 + x2 * 0.044715) * k);
  const Tensor inner = (1 + x2 * (3 * 0.044715)) * k;
  return g * 0.5 * (1 + t + x * (1 - square(t)) * inner);
}

}  // namespace

Tensor Neg::derivative(const Tensor& g, const Tensor&) {
  return -g;
}

Tensor Abs::derivative(const Tensor& g, const Tensor& kept) {
  return g * sign(kept);
}

Tensor Sign::derivative(const Tensor& g, const Tensor&) {
  return zeros_like(g);
}

Tensor Square::derivative(const Tensor& g, const Tensor& kept) {
  return g * kept * 2;
}

Tensor Reciprocal::derivative(const Tensor& g, const Tensor& kept) {
  return -g * square(kept);
}

Tensor Exp::derivative(const Tensor& g, const Tensor& kept) {
  return g * kept;
}

Tensor Expm1::derivative(const Tensor& g, const Tensor& kept) {
  return g * (kept + 1);
}

Tensor Log::derivative(const Tensor& g, const Tensor& kept) {
  return g / kept;
}

Tensor Log1p::derivative(const Tensor& g, const Tensor& kept) {
  return g / (kept + 1);
}

Tensor Sqrt::derivative(const Tensor& g, const Tensor& kept) {
  return g / (kept * 2);
}

Tensor Rsqrt::derivative(const Tensor& g, const Tensor& kept) {
  return g * kept * square(kept) * -0.5;
}

Tensor Sin::derivative(const Tensor& g, const Tensor& kept) {
  return g * cos(kept);
}

Tensor Cos::derivative(const Tensor& g, const Tensor& kept) {
  return -g * sin(kept);
}

Tensor Tan::derivative(const Tensor& g, const Tensor& kept) {
  return g * (square(kept) + 1);
}

Tensor Asin::derivative(const Tensor& g, const Tensor& kept) {
  return g * rsqrt(1 - square(kept));
}

Tensor Acos::derivative(const Tensor& g, const Tensor& kept) {
  return -g * rsqrt(1 - square(kept));
}

Tensor Atan::derivative(const Tensor& g, const Tensor& kept) {
  return g / (square(kept) + 1);
}

Tensor Sinh::derivative(const Tensor& g, const Tensor& kept) {
  return g * cosh(kept);
}

Tensor Cosh::derivative(const Tensor& g, const Tensor& kept) {
  return g * sinh(kept);
}

Tensor Tanh::derivative(const Tensor& g, const Tensor& kept) {
  return g * (1 - square(kept));
}

Tensor Erf::derivative(const Tensor& g, const Tensor& kept) {
  return g * exp(-square(kept)) * 1.1283791670955126;
}

Tensor Floor::derivative(const Tensor& g, const Tensor&) {
  return zeros_like(g);
}

Tensor Ceil::derivative(const Tensor& g, const Tensor&) {
  return zeros_like(g);
}

Tensor Round::derivative(const Tensor& g, const Tensor&) {
  return zeros_like(g);
}

Tensor Trunc::derivative(const Tensor& g, const Tensor&) {
  return zeros_like(g);
}

Tensor Sigmoid::derivative(const Tensor& g, const Tensor& kept) {
  return g * kept * (1 - kept);
}

Tensor Relu::derivative(const Tensor& g, const Tensor& kept) {
  return where(kept > 0, g, 0);
}

Tensor Silu::derivative(const Tensor& g, const Tensor& kept) {
  return silu_derivative(g, kept);
}

Tensor Gelu::derivative(const Tensor& g, const Tensor& kept) {
  return gelu_derivative(g, kept);
}

Tensor GeluTanh::derivative(const Tensor& g, const Tensor& kept) {
  return gelu_tanh_derivative(g, kept);
}

Tensor LogSigmoid::derivative(const Tensor& g, const Tensor& kept) {
  return g * sigmoid(-kept);
}

}  // namespace rows

template <class Row> void Unary2Op<Row>::forward(Frame& f) {
  if (!Row::kFloating) check_number(f.in(0).dtype());
  const DType dtype = Row::kFloating ? floating_type(f.in(0).dtype()) : f.in(0).dtype();
  const Tensor x = cast(f, f.in(0), dtype);
  f.save(f.in(0));
  const Tensor& y = f.out(dense_like(x.layout()), dtype);
  (f.kernels().*Row::kSlot)(f.exec(), y.as<Out>(), x.as<In>(), a_, b_);
}

template <class Row> Grads Unary2Op<Row>::backward(const Reverse& r) const {
  const Tensor x = r.saved(0);
  if (GradMode::is_enabled()) return {Row::derivative(r.grad(), x, a_, b_)};
  const Tensor out = make_tensor(dense_like(x.layout()), x.dtype(), x.device());
  (kernels_for(x.device()).*Row::kGradSlot)(Exec(x.device()), out.as<Out>(),
                                            r.grad().template as<In>(), x.as<In>(), a_, b_);
  return {out};
}

namespace rows {

Tensor LeakyRelu::derivative(const Tensor& g, const Tensor& x, double slope, double) {
  return where(x > 0, g, g * slope);
}

Tensor Elu::derivative(const Tensor& g, const Tensor& x, double alpha, double) {
  return where(x > 0, g, g * exp(clamp_max(x, 0)) * alpha);
}

Tensor Softplus::derivative(const Tensor& g, const Tensor& x, double beta, double threshold) {
  return where(x * beta > threshold, g, g * sigmoid(x * beta));
}

Tensor Clamp::derivative(const Tensor& g, const Tensor& x, double low, double high) {
  return where(logical_and(x >= low, x <= high), g, 0);
}

}  // namespace rows

template class Unary2Op<rows::LeakyRelu>;
template class Unary2Op<rows::Elu>;
template class Unary2Op<rows::Softplus>;
template class Unary2Op<rows::Clamp>;

}  // namespace taper::ops
