// The public functions and methods of arithmetic on two and three operands.
#include <cstring>

#include "taper/autograd/ops/binary.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/core/promote.h"

namespace taper {
namespace {

bool is_one(const Scalar& alpha) {
  return alpha.to_double() == 1;
}

// b times alpha, as add and sub take it. A fraction of integers would be lost silently.
Tensor scaled(const char* op, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType dtype = result_type(a, b);
  TAPER_CHECK(!alpha.is_floating_point() || is_floating_point(dtype), op, ": alpha ", alpha,
              " is not an integer, but the operands are ", a.dtype(), " and ", b.dtype());
  return b * alpha;
}

// LibTorch refuses it too: 1 - mask is nearly always meant as the inverted mask.
void check_sub(const Tensor& a, const Tensor& b) {
  TAPER_CHECK(a.dtype() != kBool && b.dtype() != kBool, "sub: the operands are ", a.dtype(), " ",
              a.sizes(), " and ", b.dtype(), " ", b.sizes(),
              "; invert a mask with ~, or convert the bool one to a number");
}

// An integer to the power of a negative number would be 0 nearly always.
void check_pow(const Tensor& base, const Tensor& exponent) {
  if (!exponent.impl().wrapped_number || !is_integral(result_type(base, exponent), true)) return;
  const auto power = exponent.item<std::int64_t>();
  TAPER_CHECK(power >= 0, "pow: an integer cannot be raised to ", power, "; convert the base (",
              base.dtype(), " ", base.sizes(), ") to a floating type");
}

}  // namespace

Tensor add(const TensorArg& a, const TensorArg& b, Scalar alpha) {
  const Call call(a.loc);
  if (is_one(alpha)) return apply(ops::Add(), {&*a, &*b});
  const Tensor other = scaled("add", *a, *b, alpha);
  return apply(ops::Add(), {&*a, &other});
}

Tensor Tensor::add(const TensorArg& other, Scalar alpha) const {
  return taper::add(TensorArg(*this, other.loc), other, alpha);
}

const Tensor& Tensor::add_(const TensorArg& other, Scalar alpha) const {
  const Call call(other.loc);
  if (is_one(alpha)) {
    apply_inplace(ops::Add(), *this, {this, &*other});
  } else {
    const Tensor by = scaled("add_", *this, *other, alpha);
    apply_inplace(ops::Add(), *this, {this, &by});
  }
  return *this;
}

Tensor sub(const TensorArg& a, const TensorArg& b, Scalar alpha) {
  const Call call(a.loc);
  check_sub(*a, *b);
  if (is_one(alpha)) return apply(ops::Sub(), {&*a, &*b});
  const Tensor other = scaled("sub", *a, *b, alpha);
  return apply(ops::Sub(), {&*a, &other});
}

Tensor Tensor::sub(const TensorArg& other, Scalar alpha) const {
  return taper::sub(TensorArg(*this, other.loc), other, alpha);
}

const Tensor& Tensor::sub_(const TensorArg& other, Scalar alpha) const {
  const Call call(other.loc);
  check_sub(*this, *other);
  if (is_one(alpha)) {
    apply_inplace(ops::Sub(), *this, {this, &*other});
  } else {
    const Tensor by = scaled("sub_", *this, *other, alpha);
    apply_inplace(ops::Sub(), *this, {this, &by});
  }
  return *this;
}

Tensor mul(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Mul(), {&*a, &*b});
}

Tensor Tensor::mul(const TensorArg& other) const {
  return taper::mul(TensorArg(*this, other.loc), other);
}

const Tensor& Tensor::mul_(const TensorArg& other) const {
  const Call call(other.loc);
  apply_inplace(ops::Mul(), *this, {this, &*other});
  return *this;
}

Tensor div(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Div(), {&*a, &*b});
}

Tensor Tensor::div(const TensorArg& other) const {
  return taper::div(TensorArg(*this, other.loc), other);
}

const Tensor& Tensor::div_(const TensorArg& other) const {
  const Call call(other.loc);
  apply_inplace(ops::Div(), *this, {this, &*other});
  return *this;
}

Tensor floor_divide(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::FloorDivide(), {&*a, &*b});
}

Tensor remainder(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Remainder(), {&*a, &*b});
}

Tensor fmod(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Fmod(), {&*a, &*b});
}

Tensor pow(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  check_pow(*a, *b);
  return apply(ops::Pow(), {&*a, &*b});
}

Tensor maximum(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Maximum(), {&*a, &*b});
}

Tensor minimum(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Minimum(), {&*a, &*b});
}

Tensor atan2(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Atan2(), {&*a, &*b});
}

Tensor Tensor::floor_divide(const TensorArg& other) const {
  return taper::floor_divide(TensorArg(*this, other.loc), other);
}

Tensor Tensor::remainder(const TensorArg& other) const {
  return taper::remainder(TensorArg(*this, other.loc), other);
}

Tensor Tensor::fmod(const TensorArg& other) const {
  return taper::fmod(TensorArg(*this, other.loc), other);
}

Tensor Tensor::pow(const TensorArg& other) const {
  return taper::pow(TensorArg(*this, other.loc), other);
}

Tensor Tensor::maximum(const TensorArg& other) const {
  return taper::maximum(TensorArg(*this, other.loc), other);
}

Tensor Tensor::minimum(const TensorArg& other) const {
  return taper::minimum(TensorArg(*this, other.loc), other);
}

Tensor Tensor::atan2(const TensorArg& other) const {
  return taper::atan2(TensorArg(*this, other.loc), other);
}

Tensor div(const TensorArg& a, const TensorArg& b, const char* rounding_mode) {
  const Call call(a.loc);
  TAPER_CHECK(rounding_mode != nullptr,
              "div: rounding_mode is a null pointer, not \"floor\" or \"trunc\"");
  if (std::strcmp(rounding_mode, "floor") == 0) return floor_divide(*a, *b);
  TAPER_CHECK(std::strcmp(rounding_mode, "trunc") == 0,
              "div: rounding_mode is \"floor\" or \"trunc\", not \"", rounding_mode, "\"");
  const DType dtype = result_type(*a, *b);
  if (taper::is_floating_point(dtype)) return trunc(*a / *b);
  return floor_divide(*a - fmod(*a, *b), *b);  // exact for integers, where a / b would round
}

Tensor Tensor::div(const TensorArg& other, const char* rounding_mode) const {
  return taper::div(TensorArg(*this, other.loc), other, rounding_mode);
}

const Tensor& Tensor::pow_(const TensorArg& exponent) const {
  const Call call(exponent.loc);
  check_pow(*this, *exponent);
  apply_inplace(ops::Pow(), *this, {this, &*exponent});
  return *this;
}

Tensor lerp(const TensorArg& start, const TensorArg& end, const TensorArg& weight) {
  const Call call(start.loc);
  // Exact at both ends: counts from the nearer one.
  const Tensor span = *end - *start;
  return where(abs(*weight) < 0.5, *start + *weight * span, *end - span * (1 - *weight));
}

Tensor Tensor::lerp(const TensorArg& end, const TensorArg& weight) const {
  return taper::lerp(TensorArg(*this, end.loc), end, weight);
}

const Tensor& Tensor::lerp_(const TensorArg& end, const TensorArg& weight) const {
  const Call call(end.loc);
  return copy_(lerp(end, weight));
}

namespace {

// The factors of addcmul and addcdiv in the common dtype of all three operands, so that nothing is
// rounded before it is added; among integers the number is truncated (LibTorch's choice).
struct Factors {
  Tensor a, b;
  Scalar value;

  Factors(const Tensor& x, const Tensor& first, const Tensor& second, const Scalar& number)
      : value(number) {
    const Tensor* all[] = {&x, &first, &second};
    const DType dtype = result_type(ArrayRef<const Tensor*>(all, 3));
    a = first.to(dtype);
    b = second.to(dtype);
    if (!is_floating_point(dtype)) value = number.to<std::int64_t>();
  }
};

}  // namespace

Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar value) {
  const Call call(x.loc);
  const Factors f(*x, *a, *b, value);
  return add(*x, f.a * f.b, f.value);
}

Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar value) {
  const Call call(x.loc);
  const Factors f(*x, *a, *b, value);
  return add(*x, f.a / f.b, f.value);
}

Tensor Tensor::addcmul(const TensorArg& a, const TensorArg& b, Scalar value) const {
  return taper::addcmul(TensorArg(*this, a.loc), a, b, value);
}

Tensor Tensor::addcdiv(const TensorArg& a, const TensorArg& b, Scalar value) const {
  return taper::addcdiv(TensorArg(*this, a.loc), a, b, value);
}

const Tensor& Tensor::addcmul_(const TensorArg& a, const TensorArg& b, Scalar value) const {
  const Call call(a.loc);
  const Factors f(*this, *a, *b, value);
  return add_(f.a * f.b, f.value);
}

const Tensor& Tensor::addcdiv_(const TensorArg& a, const TensorArg& b, Scalar value) const {
  const Call call(a.loc);
  const Factors f(*this, *a, *b, value);
  return add_(f.a / f.b, f.value);
}

Tensor& Tensor::operator+=(const TensorArg& other) {
  add_(other);
  return *this;
}

Tensor& Tensor::operator-=(const TensorArg& other) {
  sub_(other);
  return *this;
}

Tensor& Tensor::operator*=(const TensorArg& other) {
  mul_(other);
  return *this;
}

Tensor& Tensor::operator/=(const TensorArg& other) {
  div_(other);
  return *this;
}

Tensor operator*(const TensorArg& a, const TensorArg& b) {
  return mul(a, b);
}

Tensor operator/(const TensorArg& a, const TensorArg& b) {
  return div(a, b);
}

Tensor operator%(const TensorArg& a, const TensorArg& b) {
  return remainder(a, b);
}

Tensor operator+(const TensorArg& a, const TensorArg& b) {
  return add(a, b);
}

Tensor operator-(const TensorArg& a, const TensorArg& b) {
  return sub(a, b);
}

Tensor operator-(const TensorArg& a) {
  return neg(a);
}

}  // namespace taper
