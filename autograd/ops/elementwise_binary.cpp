// The public functions and methods of elementwise ops of two and three operands.
#include <cstring>
#include <limits>

#include "taper/autograd/ops/binary.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/core/promote.h"

namespace taper {

Tensor add(const TensorArg& a, const TensorArg& b, Scalar alpha) {
  const Call call(a.loc);
  if (alpha.to_double() == 1) return apply(ops::Add(), {&*a, &*b});
  const Tensor scaled = *b * alpha;
  return apply(ops::Add(), {&*a, &scaled});
}

Tensor Tensor::add(const TensorArg& other, Scalar alpha) const {
  return taper::add(TensorArg(*this, other.loc), other, alpha);
}

const Tensor& Tensor::add_(const TensorArg& other, Scalar alpha) const {
  const Call call(other.loc);
  if (alpha.to_double() == 1) {
    apply_inplace(ops::Add(), *this, {this, &*other});
  } else {
    const Tensor scaled = *other * alpha;
    apply_inplace(ops::Add(), *this, {this, &scaled});
  }
  return *this;
}

Tensor sub(const TensorArg& a, const TensorArg& b, Scalar alpha) {
  const Call call(a.loc);
  if (alpha.to_double() == 1) return apply(ops::Sub(), {&*a, &*b});
  const Tensor scaled = *b * alpha;
  return apply(ops::Sub(), {&*a, &scaled});
}

Tensor Tensor::sub(const TensorArg& other, Scalar alpha) const {
  return taper::sub(TensorArg(*this, other.loc), other, alpha);
}

const Tensor& Tensor::sub_(const TensorArg& other, Scalar alpha) const {
  const Call call(other.loc);
  if (alpha.to_double() == 1) {
    apply_inplace(ops::Sub(), *this, {this, &*other});
  } else {
    const Tensor scaled = *other * alpha;
    apply_inplace(ops::Sub(), *this, {this, &scaled});
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

Tensor eq(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Eq(), {&*a, &*b});
}

Tensor ne(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Ne(), {&*a, &*b});
}

Tensor lt(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Lt(), {&*a, &*b});
}

Tensor le(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Le(), {&*a, &*b});
}

Tensor gt(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Gt(), {&*a, &*b});
}

Tensor ge(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Ge(), {&*a, &*b});
}

Tensor logical_and(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::LogicalAnd(), {&*a, &*b});
}

Tensor logical_or(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::LogicalOr(), {&*a, &*b});
}

Tensor logical_xor(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::LogicalXor(), {&*a, &*b});
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

Tensor Tensor::eq(const TensorArg& other) const {
  return taper::eq(TensorArg(*this, other.loc), other);
}

Tensor Tensor::ne(const TensorArg& other) const {
  return taper::ne(TensorArg(*this, other.loc), other);
}

Tensor Tensor::lt(const TensorArg& other) const {
  return taper::lt(TensorArg(*this, other.loc), other);
}

Tensor Tensor::le(const TensorArg& other) const {
  return taper::le(TensorArg(*this, other.loc), other);
}

Tensor Tensor::gt(const TensorArg& other) const {
  return taper::gt(TensorArg(*this, other.loc), other);
}

Tensor Tensor::ge(const TensorArg& other) const {
  return taper::ge(TensorArg(*this, other.loc), other);
}

Tensor Tensor::logical_and(const TensorArg& other) const {
  return taper::logical_and(TensorArg(*this, other.loc), other);
}

Tensor Tensor::logical_or(const TensorArg& other) const {
  return taper::logical_or(TensorArg(*this, other.loc), other);
}

Tensor Tensor::logical_xor(const TensorArg& other) const {
  return taper::logical_xor(TensorArg(*this, other.loc), other);
}

Tensor bitwise_and(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Bitwise("bitwise_and", &Kernels::bitwise_and), {&*a, &*b});
}

Tensor Tensor::bitwise_and(const TensorArg& other) const {
  return taper::bitwise_and(TensorArg(*this, other.loc), other);
}

Tensor bitwise_or(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Bitwise("bitwise_or", &Kernels::bitwise_or), {&*a, &*b});
}

Tensor Tensor::bitwise_or(const TensorArg& other) const {
  return taper::bitwise_or(TensorArg(*this, other.loc), other);
}

Tensor bitwise_xor(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Bitwise("bitwise_xor", &Kernels::bitwise_xor), {&*a, &*b});
}

Tensor Tensor::bitwise_xor(const TensorArg& other) const {
  return taper::bitwise_xor(TensorArg(*this, other.loc), other);
}

Tensor div(const TensorArg& a, const TensorArg& b, const char* rounding_mode) {
  const Call call(a.loc);
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

Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar value) {
  const Call call(x.loc);
  return add(*x, *a * *b, value);
}

Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar value) {
  const Call call(x.loc);
  return add(*x, *a / *b, value);
}

Tensor Tensor::addcmul(const TensorArg& a, const TensorArg& b, Scalar value) const {
  return taper::addcmul(TensorArg(*this, a.loc), a, b, value);
}

Tensor Tensor::addcdiv(const TensorArg& a, const TensorArg& b, Scalar value) const {
  return taper::addcdiv(TensorArg(*this, a.loc), a, b, value);
}

const Tensor& Tensor::addcmul_(const TensorArg& a, const TensorArg& b, Scalar value) const {
  const Call call(a.loc);
  return add_(*a * *b, value);
}

const Tensor& Tensor::addcdiv_(const TensorArg& a, const TensorArg& b, Scalar value) const {
  const Call call(a.loc);
  return add_(*a / *b, value);
}

Tensor logical_not(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Not(false), {&*x});
}

Tensor bitwise_not(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Not(true), {&*x});
}

Tensor Tensor::logical_not(Loc loc) const {
  return taper::logical_not(TensorArg(*this, loc));
}

Tensor Tensor::bitwise_not(Loc loc) const {
  return taper::bitwise_not(TensorArg(*this, loc));
}

Tensor isnan(const TensorArg& x) {
  const Call call(x.loc);
  return *x != *x;
}

Tensor isinf(const TensorArg& x) {
  const Call call(x.loc);
  return abs(*x) == std::numeric_limits<double>::infinity();
}

Tensor isfinite(const TensorArg& x) {
  const Call call(x.loc);
  return abs(*x) < std::numeric_limits<double>::infinity();
}

Tensor Tensor::isnan(Loc loc) const {
  return taper::isnan(TensorArg(*this, loc));
}

Tensor Tensor::isinf(Loc loc) const {
  return taper::isinf(TensorArg(*this, loc));
}

Tensor Tensor::isfinite(Loc loc) const {
  return taper::isfinite(TensorArg(*this, loc));
}

bool equal(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return a->sizes() == b->sizes() && all(*a == *b).item<bool>();
}

bool Tensor::equal(const Tensor& other, Loc loc) const {
  return taper::equal(TensorArg(*this, loc), other);
}

bool allclose(const TensorArg& a, const TensorArg& b, double rtol, double atol, bool equal_nan) {
  const Call call(a.loc);
  const NoGradGuard no_grad;
  Tensor close = abs(*a - *b) <= atol + rtol * abs(*b);
  close = logical_and(close, isfinite(*b));
  close = logical_or(close, *a == *b);
  if (equal_nan) close = logical_or(close, logical_and(isnan(*a), isnan(*b)));
  return all(close).item<bool>();
}

bool Tensor::allclose(
    const Tensor& other, double rtol, double atol, bool equal_nan, Loc loc) const {
  return taper::allclose(TensorArg(*this, loc), other, rtol, atol, equal_nan);
}

Tensor where(const TensorArg& condition, const TensorArg& a, const TensorArg& b) {
  const Call call(condition.loc);
  return apply(ops::Where(), {&*condition, &*a, &*b});
}

Tensor Tensor::where(const TensorArg& condition, const TensorArg& other) const {
  const Call call(condition.loc);
  return taper::where(*condition, *this, *other);
}

Tensor masked_fill(const TensorArg& x, const TensorArg& mask, const TensorArg& value) {
  const Call call(x.loc);
  return apply(ops::MaskedFill(), {&*x, &*mask, &*value});
}

Tensor Tensor::masked_fill(const TensorArg& mask, const TensorArg& value) const {
  return taper::masked_fill(TensorArg(*this, mask.loc), mask, value);
}

const Tensor& Tensor::masked_fill_(const TensorArg& mask, const TensorArg& value) const {
  const Call call(mask.loc);
  apply_inplace(ops::MaskedFill(), *this, {this, &*mask, &*value});
  return *this;
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

Tensor operator==(const TensorArg& a, const TensorArg& b) {
  return eq(a, b);
}

Tensor operator!=(const TensorArg& a, const TensorArg& b) {
  return ne(a, b);
}

Tensor operator<(const TensorArg& a, const TensorArg& b) {
  return lt(a, b);
}

Tensor operator<=(const TensorArg& a, const TensorArg& b) {
  return le(a, b);
}

Tensor operator>(const TensorArg& a, const TensorArg& b) {
  return gt(a, b);
}

Tensor operator>=(const TensorArg& a, const TensorArg& b) {
  return ge(a, b);
}

Tensor operator&(const TensorArg& a, const TensorArg& b) {
  return bitwise_and(a, b);
}

Tensor operator|(const TensorArg& a, const TensorArg& b) {
  return bitwise_or(a, b);
}

Tensor operator^(const TensorArg& a, const TensorArg& b) {
  return bitwise_xor(a, b);
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

Tensor operator~(const TensorArg& a) {
  return bitwise_not(a);
}

}  // namespace taper
