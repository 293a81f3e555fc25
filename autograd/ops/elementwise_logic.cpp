// The public functions and methods of comparisons, logic, masks and choices.
#include <limits>

#include "taper/autograd/ops/binary.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"

namespace taper {

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

Tensor operator~(const TensorArg& a) {
  return bitwise_not(a);
}

}  // namespace taper
