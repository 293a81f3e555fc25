// LibTorch's promotion table, and its ranking of operands.
#include "taper/core/promote.h"

#include <optional>

namespace taper {

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  const auto category_a = info(a).category, category_b = info(b).category;
  if (category_a != category_b) return category_a > category_b ? a : b;
  if (category_a == DTypeCategory::kFloating) {
    if (element_size(a) == element_size(b)) return kFloat32;  // f16 with bf16
    return element_size(a) > element_size(b) ? a : b;
  }
  return element_size(a) > element_size(b) ? a : b;  // i64 > i32 > u8
}

namespace {

using Maybe = std::optional<DType>;

Maybe promote(Maybe a, Maybe b) {
  if (!a || !b) return a ? a : b;
  return promote_types(*a, *b);
}

Maybe outrank(Maybe higher, Maybe lower) {
  if (!higher || !lower) return higher ? higher : lower;
  return info(*lower).category > info(*higher).category ? promote(higher, lower) : higher;
}

}  // namespace

DType result_type(ArrayRef<const Tensor*> operands) {
  Maybe with_dims, zero_dim, number;
  for (const Tensor* t : operands) {
    if (!t->defined()) continue;
    if (t->impl().wrapped_number) {
      number = promote(number, t->is_floating_point() ? get_default_dtype() : t->dtype());
    } else if (t->dim() == 0) {
      zero_dim = promote(zero_dim, t->dtype());
    } else {
      with_dims = promote(with_dims, t->dtype());
    }
  }
  return outrank(with_dims, outrank(zero_dim, number)).value_or(get_default_dtype());
}

DType result_type(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype() && !a.impl().wrapped_number) return a.dtype();
  const Tensor* both[] = {&a, &b};
  return result_type(ArrayRef<const Tensor*>(both, 2));
}

bool can_cast(DType from, DType to) {
  if (info(from).category == DTypeCategory::kFloating) return taper::is_floating_point(to);
  return info(from).category == DTypeCategory::kBoolean || to != kBool;
}

}  // namespace taper
