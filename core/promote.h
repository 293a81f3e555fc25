// The dtype of a result from the dtypes of its operands: LibTorch's promotion rules.
#pragma once
#include "taper/core/tensor.h"

namespace taper {

// The smallest dtype that holds both: (u8, i32) -> i32, (i64, f16) -> f16, (f16, bf16) -> f32.
DType promote_types(DType a, DType b);

// The dtype of an op over these operands. Tensors with dims outrank 0-dim tensors, which outrank
// numbers; a lower rank decides only when its category (bool < integer < floating) is higher.
DType result_type(ArrayRef<const Tensor*> operands);
DType result_type(const Tensor& a, const Tensor& b);

// Whether an in-place op may write a result of `from` into `to`: not floats into integers.
bool can_cast(DType from, DType to);

// The dtype that a function of real numbers computes in: integers become the default dtype.
inline DType floating_type(DType dtype) {
  return is_floating_point(dtype) ? dtype : get_default_dtype();
}

}  // namespace taper
