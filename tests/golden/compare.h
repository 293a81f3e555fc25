// Builds the tensors of golden records and says how a tensor differs from one.
#pragma once
#include <string>

#include "taper/core/tensor.h"
#include "taper/tests/golden/archive.h"

namespace taper::golden {

// A leaf with the record's dtype, sizes, strides, offset and storage contents.
Tensor build(const TensorRecord& record);

// The fixed pseudo-random gradient of output `number`, of the shape of `output`; or ones.
Tensor cotangent(const Tensor& output, int number, bool ones);

// "" if got has the record's shape, dtype and elements, else what is wrong, in one line.
// Elements agree when |got - want| <= tolerance * (1 + |want|), or both are nan; integers and
// bools must be equal. Where dtype is narrower than f64 the tolerance is raised to fit it.
std::string difference(const Tensor& got, const TensorRecord& want, double tolerance);

// "" if got is the same view of base's storage as the record says.
std::string view_difference(const Tensor& got, const TensorRecord& want, const Tensor& base);

// Every element is 0.
bool is_zero(const Tensor& t);

}  // namespace taper::golden
