// Activations that are made of others, so that no branch that is not taken gives a NaN gradient.
#include "taper/autograd/ops/activation.h"

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"

namespace taper {
namespace {

// A parameter as x counts: integers stay integers, as in LibTorch.
Scalar for_dtype_of(const Tensor& x, double parameter) {
  if (x.is_floating_point()) return parameter;
  return static_cast<std::int64_t>(parameter);
}

}  // namespace

Tensor hardtanh(const TensorArg& x, double min, double max) {
  const Call call(x.loc);
  const Scalar low = for_dtype_of(*x, min), high = for_dtype_of(*x, max);
  // Unlike clamp it passes no gradient at the two ends themselves.
  return where(logical_and(*x > low, *x < high), *x, clamp(x->detach(), low, high));
}

Tensor relu6(const TensorArg& x) {
  const Call call(x.loc);
  return hardtanh(*x, 0, 6);
}

Tensor celu(const TensorArg& x, double alpha) {
  const Call call(x.loc);
  TAPER_CHECK(alpha != 0, "celu: alpha must not be 0");
  return relu(*x) + expm1(clamp_max(*x, 0) / alpha) * alpha;
}

Tensor selu(const TensorArg& x) {
  const Call call(x.loc);
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  constexpr double kScale = 1.0507009873554804934193349852946;
  return (relu(*x) + expm1(clamp_max(*x, 0)) * kAlpha) * kScale;
}

Tensor mish(const TensorArg& x) {
  const Call call(x.loc);
  return *x * tanh(softplus(*x));
}

Tensor softsign(const TensorArg& x) {
  const Call call(x.loc);
  return *x / (abs(*x) + 1);
}

Tensor tanhshrink(const TensorArg& x) {
  const Call call(x.loc);
  return *x - tanh(*x);
}

Tensor hardshrink(const TensorArg& x, double lambda) {
  const Call call(x.loc);
  return where(abs(x->detach()) <= lambda, 0, *x);
}

Tensor softshrink(const TensorArg& x, double lambda) {
  const Call call(x.loc);
  TAPER_CHECK(lambda >= 0, "softshrink: lambda must not be negative, got ", lambda);
  return *x - clamp(*x, -lambda, lambda);
}

Tensor hardsigmoid(const TensorArg& x) {
  const Call call(x.loc);
  return relu6(*x + 3) / 6;
}

Tensor hardswish(const TensorArg& x) {
  const Call call(x.loc);
  return *x * clamp(*x + 3, 0, 6) / 6;
}

Tensor threshold(const TensorArg& x, double threshold, double value) {
  const Call call(x.loc);
  return where(x->detach() <= threshold, for_dtype_of(*x, value), *x);
}

Tensor glu(const TensorArg& x, std::int64_t dim) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() > 0 && x->size(dim) % 2 == 0, "glu: x ", x->sizes(), " has no two halves ",
              "along dim ", dim);
  const std::int64_t half = x->size(dim) / 2;
  return x->narrow(dim, 0, half) * sigmoid(x->narrow(dim, half, half));
}

Tensor prelu(const TensorArg& x, const Tensor& weight) {
  const Call call(x.loc);
  const std::int64_t channels = x->dim() > 1 ? x->size(1) : 1;
  TAPER_CHECK(weight.numel() == 1 || (weight.dim() == 1 && weight.numel() == channels),
              "prelu: the weight ", weight.sizes(), " must have 1 element or the ", channels,
              " channels of x ", x->sizes());
  Sizes sizes(static_cast<std::size_t>(x->dim()));
  for (std::int64_t& s : sizes) s = 1;
  if (weight.numel() > 1) sizes[1] = channels;
  return where(x->detach() > 0, *x, *x * weight.reshape(sizes));
}

}  // namespace taper
