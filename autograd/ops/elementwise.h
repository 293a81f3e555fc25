// Elementwise functions of tensors.
#pragma once
#include "taper/core/tensor.h"

namespace taper {

// --- Public functions
// ----------------------------------------------------------------------------- Operands broadcast
// (numpy's rule) and promote (core/promote.h).
Tensor add(const TensorArg& a, const TensorArg& b, Scalar alpha = 1);  // a + alpha * b
Tensor sub(const TensorArg& a, const TensorArg& b, Scalar alpha = 1);
Tensor mul(const TensorArg& a, const TensorArg& b);
Tensor div(const TensorArg& a, const TensorArg& b);  // integers give floats
Tensor div(const TensorArg& a, const TensorArg& b, const char* rounding_mode);
Tensor floor_divide(const TensorArg& a, const TensorArg& b);
Tensor remainder(const TensorArg& a, const TensorArg& b);  // the sign of b, as Python's %
Tensor fmod(const TensorArg& a, const TensorArg& b);       // the sign of a, as C's
Tensor pow(const TensorArg& base, const TensorArg& exponent);
Tensor maximum(const TensorArg& a, const TensorArg& b);
Tensor minimum(const TensorArg& a, const TensorArg& b);
Tensor atan2(const TensorArg& y, const TensorArg& x);
Tensor lerp(const TensorArg& start, const TensorArg& end, const TensorArg& weight);
Tensor addcmul(const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar value = 1);
Tensor addcdiv(const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar value = 1);

Tensor eq(const TensorArg& a, const TensorArg& b);
Tensor ne(const TensorArg& a, const TensorArg& b);
Tensor lt(const TensorArg& a, const TensorArg& b);
Tensor le(const TensorArg& a, const TensorArg& b);
Tensor gt(const TensorArg& a, const TensorArg& b);
Tensor ge(const TensorArg& a, const TensorArg& b);
Tensor logical_and(const TensorArg& a, const TensorArg& b);
Tensor logical_or(const TensorArg& a, const TensorArg& b);
Tensor logical_xor(const TensorArg& a, const TensorArg& b);
Tensor logical_not(const TensorArg& x);
Tensor bitwise_and(const TensorArg& a, const TensorArg& b);
Tensor bitwise_or(const TensorArg& a, const TensorArg& b);
Tensor bitwise_xor(const TensorArg& a, const TensorArg& b);
Tensor bitwise_not(const TensorArg& x);
Tensor isnan(const TensorArg& x);
Tensor isinf(const TensorArg& x);
Tensor isfinite(const TensorArg& x);
bool equal(const TensorArg& a, const TensorArg& b);
bool allclose(const TensorArg& a,
              const TensorArg& b,
              double rtol = 1e-5,
              double atol = 1e-8,
              bool equal_nan = false);

Tensor neg(const TensorArg& x);
Tensor abs(const TensorArg& x);
Tensor sign(const TensorArg& x);
Tensor square(const TensorArg& x);
Tensor reciprocal(const TensorArg& x);
Tensor exp(const TensorArg& x);
Tensor expm1(const TensorArg& x);
Tensor log(const TensorArg& x);
Tensor log1p(const TensorArg& x);
Tensor sqrt(const TensorArg& x);
Tensor rsqrt(const TensorArg& x);
Tensor sin(const TensorArg& x);
Tensor cos(const TensorArg& x);
Tensor tan(const TensorArg& x);
Tensor asin(const TensorArg& x);
Tensor acos(const TensorArg& x);
Tensor atan(const TensorArg& x);
Tensor sinh(const TensorArg& x);
Tensor cosh(const TensorArg& x);
Tensor tanh(const TensorArg& x);
Tensor erf(const TensorArg& x);
Tensor floor(const TensorArg& x);
Tensor ceil(const TensorArg& x);
Tensor round(const TensorArg& x);
Tensor trunc(const TensorArg& x);
Tensor sigmoid(const TensorArg& x);
Tensor relu(const TensorArg& x);
Tensor relu_(const TensorArg& x);  // in place
Tensor silu(const TensorArg& x);
Tensor gelu(const TensorArg& x, const char* approximate = "none");  // or "tanh"
Tensor log_sigmoid(const TensorArg& x);
Tensor leaky_relu(const TensorArg& x, double negative_slope = 0.01);
Tensor elu(const TensorArg& x, double alpha = 1);
Tensor softplus(const TensorArg& x, double beta = 1, double threshold = 20);
Tensor hardtanh(const TensorArg& x, double min = -1, double max = 1);
Tensor clamp(const TensorArg& x,
             std::optional<Scalar> min,
             std::optional<Scalar> max = std::nullopt);
Tensor clamp_min(const TensorArg& x, Scalar min);
Tensor clamp_max(const TensorArg& x, Scalar max);
Tensor where(const TensorArg& condition, const TensorArg& a, const TensorArg& b);
Tensor masked_fill(const TensorArg& x, const TensorArg& mask, const TensorArg& value);

}  // namespace taper
