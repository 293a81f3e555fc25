// The public functions and methods of elementwise ops of one operand.
#include <cstring>
#include <limits>

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/unary.h"

namespace taper {

Tensor neg(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Neg(), {&*x});
}

Tensor Tensor::neg(Loc loc) const {
  return taper::neg(TensorArg(*this, loc));
}

const Tensor& Tensor::neg_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Neg(), *this, {this});
  return *this;
}

Tensor abs(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Abs(), {&*x});
}

Tensor Tensor::abs(Loc loc) const {
  return taper::abs(TensorArg(*this, loc));
}

const Tensor& Tensor::abs_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Abs(), *this, {this});
  return *this;
}

Tensor sign(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Sign(), {&*x});
}

Tensor Tensor::sign(Loc loc) const {
  return taper::sign(TensorArg(*this, loc));
}

Tensor square(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Square(), {&*x});
}

Tensor Tensor::square(Loc loc) const {
  return taper::square(TensorArg(*this, loc));
}

const Tensor& Tensor::square_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Square(), *this, {this});
  return *this;
}

Tensor reciprocal(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Reciprocal(), {&*x});
}

Tensor Tensor::reciprocal(Loc loc) const {
  return taper::reciprocal(TensorArg(*this, loc));
}

const Tensor& Tensor::reciprocal_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Reciprocal(), *this, {this});
  return *this;
}

Tensor exp(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Exp(), {&*x});
}

Tensor Tensor::exp(Loc loc) const {
  return taper::exp(TensorArg(*this, loc));
}

const Tensor& Tensor::exp_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Exp(), *this, {this});
  return *this;
}

Tensor expm1(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Expm1(), {&*x});
}

Tensor Tensor::expm1(Loc loc) const {
  return taper::expm1(TensorArg(*this, loc));
}

Tensor log(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Log(), {&*x});
}

Tensor Tensor::log(Loc loc) const {
  return taper::log(TensorArg(*this, loc));
}

const Tensor& Tensor::log_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Log(), *this, {this});
  return *this;
}

Tensor log1p(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Log1p(), {&*x});
}

Tensor Tensor::log1p(Loc loc) const {
  return taper::log1p(TensorArg(*this, loc));
}

Tensor sqrt(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Sqrt(), {&*x});
}

Tensor Tensor::sqrt(Loc loc) const {
  return taper::sqrt(TensorArg(*this, loc));
}

const Tensor& Tensor::sqrt_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Sqrt(), *this, {this});
  return *this;
}

Tensor rsqrt(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Rsqrt(), {&*x});
}

Tensor Tensor::rsqrt(Loc loc) const {
  return taper::rsqrt(TensorArg(*this, loc));
}

const Tensor& Tensor::rsqrt_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Rsqrt(), *this, {this});
  return *this;
}

Tensor sin(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Sin(), {&*x});
}

Tensor Tensor::sin(Loc loc) const {
  return taper::sin(TensorArg(*this, loc));
}

const Tensor& Tensor::sin_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Sin(), *this, {this});
  return *this;
}

Tensor cos(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Cos(), {&*x});
}

Tensor Tensor::cos(Loc loc) const {
  return taper::cos(TensorArg(*this, loc));
}

const Tensor& Tensor::cos_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Cos(), *this, {this});
  return *this;
}

Tensor tan(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Tan(), {&*x});
}

Tensor Tensor::tan(Loc loc) const {
  return taper::tan(TensorArg(*this, loc));
}

Tensor asin(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Asin(), {&*x});
}

Tensor Tensor::asin(Loc loc) const {
  return taper::asin(TensorArg(*this, loc));
}

Tensor acos(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Acos(), {&*x});
}

Tensor Tensor::acos(Loc loc) const {
  return taper::acos(TensorArg(*this, loc));
}

Tensor atan(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Atan(), {&*x});
}

Tensor Tensor::atan(Loc loc) const {
  return taper::atan(TensorArg(*this, loc));
}

Tensor sinh(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Sinh(), {&*x});
}

Tensor Tensor::sinh(Loc loc) const {
  return taper::sinh(TensorArg(*this, loc));
}

Tensor cosh(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Cosh(), {&*x});
}

Tensor Tensor::cosh(Loc loc) const {
  return taper::cosh(TensorArg(*this, loc));
}

Tensor tanh(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Tanh(), {&*x});
}

Tensor Tensor::tanh(Loc loc) const {
  return taper::tanh(TensorArg(*this, loc));
}

const Tensor& Tensor::tanh_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Tanh(), *this, {this});
  return *this;
}

Tensor erf(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Erf(), {&*x});
}

Tensor Tensor::erf(Loc loc) const {
  return taper::erf(TensorArg(*this, loc));
}

Tensor floor(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Floor(), {&*x});
}

Tensor Tensor::floor(Loc loc) const {
  return taper::floor(TensorArg(*this, loc));
}

const Tensor& Tensor::floor_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Floor(), *this, {this});
  return *this;
}

Tensor ceil(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Ceil(), {&*x});
}

Tensor Tensor::ceil(Loc loc) const {
  return taper::ceil(TensorArg(*this, loc));
}

const Tensor& Tensor::ceil_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Ceil(), *this, {this});
  return *this;
}

Tensor round(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Round(), {&*x});
}

Tensor Tensor::round(Loc loc) const {
  return taper::round(TensorArg(*this, loc));
}

const Tensor& Tensor::round_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Round(), *this, {this});
  return *this;
}

Tensor trunc(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Trunc(), {&*x});
}

Tensor Tensor::trunc(Loc loc) const {
  return taper::trunc(TensorArg(*this, loc));
}

const Tensor& Tensor::trunc_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Trunc(), *this, {this});
  return *this;
}

Tensor sigmoid(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Sigmoid(), {&*x});
}

Tensor Tensor::sigmoid(Loc loc) const {
  return taper::sigmoid(TensorArg(*this, loc));
}

const Tensor& Tensor::sigmoid_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Sigmoid(), *this, {this});
  return *this;
}

Tensor relu(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Relu(), {&*x});
}

Tensor Tensor::relu(Loc loc) const {
  return taper::relu(TensorArg(*this, loc));
}

const Tensor& Tensor::relu_(Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Relu(), *this, {this});
  return *this;
}

Tensor relu_(const TensorArg& x) {
  return x->relu_(x.loc);
}

Tensor silu(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Silu(), {&*x});
}

Tensor Tensor::silu(Loc loc) const {
  return taper::silu(TensorArg(*this, loc));
}

Tensor log_sigmoid(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::LogSigmoid(), {&*x});
}

Tensor gelu(const TensorArg& x, const char* approximate) {
  const Call call(x.loc);
  TAPER_CHECK(approximate != nullptr,
              "gelu: approximate is a null pointer, not \"none\" or \"tanh\"");
  if (std::strcmp(approximate, "none") == 0) return apply(ops::Gelu(), {&*x});
  TAPER_CHECK(std::strcmp(approximate, "tanh") == 0,
              "gelu: approximate is \"none\" or \"tanh\", not \"", approximate, "\"");
  return apply(ops::GeluTanh(), {&*x});
}

Tensor Tensor::gelu(const char* approximate, Loc loc) const {
  return taper::gelu(TensorArg(*this, loc), approximate);
}

Tensor leaky_relu(const TensorArg& x, double negative_slope) {
  const Call call(x.loc);
  return apply(ops::LeakyRelu(negative_slope, 0), {&*x});
}

Tensor elu(const TensorArg& x, double alpha) {
  const Call call(x.loc);
  return apply(ops::Elu(alpha, 0), {&*x});
}

Tensor softplus(const TensorArg& x, double beta, double threshold) {
  const Call call(x.loc);
  return apply(ops::Softplus(beta, threshold), {&*x});
}

namespace {

ops::Clamp clamp_op(std::optional<Scalar> min, std::optional<Scalar> max) {
  TAPER_CHECK(min || max, "clamp: give min, max, or both");
  const double inf = std::numeric_limits<double>::infinity();
  return ops::Clamp(min ? min->to_double() : -inf, max ? max->to_double() : inf);
}

bool is_real(const std::optional<Scalar>& s) {
  return s && s->is_floating_point();
}

}  // namespace

Tensor clamp(const TensorArg& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  const Call call(x.loc);
  const bool becomes_real = !x->is_floating_point() && (is_real(min) || is_real(max));
  const Tensor t = becomes_real ? x->to(get_default_dtype()) : *x;
  return apply(clamp_op(min, max), {&t});
}

Tensor clamp_min(const TensorArg& x, Scalar min) {
  const Call call(x.loc);
  return clamp(*x, min, std::nullopt);
}

Tensor clamp_max(const TensorArg& x, Scalar max) {
  const Call call(x.loc);
  return clamp(*x, std::nullopt, max);
}

Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max, Loc loc) const {
  return taper::clamp(TensorArg(*this, loc), min, max);
}

Tensor Tensor::clamp_min(Scalar min, Loc loc) const {
  return taper::clamp_min(TensorArg(*this, loc), min);
}

Tensor Tensor::clamp_max(Scalar max, Loc loc) const {
  return taper::clamp_max(TensorArg(*this, loc), max);
}

const Tensor& Tensor::clamp_(std::optional<Scalar> min, std::optional<Scalar> max, Loc loc) const {
  const Call call(loc);
  apply_inplace(clamp_op(min, max), *this, {this});
  return *this;
}

const Tensor& Tensor::clamp_min_(Scalar min, Loc loc) const {
  return clamp_(min, std::nullopt, loc);
}

const Tensor& Tensor::clamp_max_(Scalar max, Loc loc) const {
  return clamp_(std::nullopt, max, loc);
}

}  // namespace taper
