// How the activations, losses and pools of nn::functional read their options and forward.
#include "taper/nn/functional.h"

#include "taper/autograd/grad_mode.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/pool.h"
#include "taper/autograd/ops/softmax.h"

namespace taper::nn::functional {
namespace {

// With the inplace option x takes the elements of the result. Backward needs what was there, so it
// gets a copy.
template <class F> Tensor placed(const Tensor& x, bool inplace, const F& f) {
  if (!inplace) return f(x);
  return x.copy_(f(x.requires_grad() && GradMode::is_enabled() ? x.clone() : x));
}

}  // namespace

Tensor relu(const TensorArg& x, const ReLUFuncOptions& options) {
  const Call call(x.loc);
  return options.inplace() ? x->relu_() : taper::relu(*x);
}

Tensor relu6(const TensorArg& x, const ReLU6FuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, options.inplace(), [&](const Tensor& t) { return taper::relu6(t); });
}

Tensor elu(const TensorArg& x, const ELUFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, options.inplace(),
                [&](const Tensor& t) { return taper::elu(t, options.alpha()); });
}

Tensor selu(const TensorArg& x, const SELUFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, options.inplace(), [&](const Tensor& t) { return taper::selu(t); });
}

Tensor celu(const TensorArg& x, const CELUFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, options.inplace(),
                [&](const Tensor& t) { return taper::celu(t, options.alpha()); });
}

Tensor gelu(const TensorArg& x, const GELUFuncOptions& options) {
  const Call call(x.loc);
  return taper::gelu(*x, options.approximate().c_str());
}

Tensor glu(const TensorArg& x, const GLUFuncOptions& options) {
  const Call call(x.loc);
  return taper::glu(*x, options.dim());
}

Tensor silu(const TensorArg& x) {
  const Call call(x.loc);
  return taper::silu(*x);
}

Tensor mish(const TensorArg& x) {
  const Call call(x.loc);
  return taper::mish(*x);
}

Tensor leaky_relu(const TensorArg& x, const LeakyReLUFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, options.inplace(),
                [&](const Tensor& t) { return taper::leaky_relu(t, options.negative_slope()); });
}

Tensor prelu(const TensorArg& x, const Tensor& weight) {
  const Call call(x.loc);
  return taper::prelu(*x, weight);
}

Tensor hardtanh(const TensorArg& x, const HardtanhFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, options.inplace(), [&](const Tensor& t) {
    return taper::hardtanh(t, options.min_val(), options.max_val());
  });
}

Tensor hardshrink(const TensorArg& x, const HardshrinkFuncOptions& options) {
  const Call call(x.loc);
  return taper::hardshrink(*x, options.lambda());
}

Tensor softshrink(const TensorArg& x, const SoftshrinkFuncOptions& options) {
  const Call call(x.loc);
  return taper::softshrink(*x, options.lambda());
}

Tensor softplus(const TensorArg& x, const SoftplusFuncOptions& options) {
  const Call call(x.loc);
  return taper::softplus(*x, options.beta(), options.threshold());
}

Tensor softsign(const TensorArg& x) {
  const Call call(x.loc);
  return taper::softsign(*x);
}

Tensor tanhshrink(const TensorArg& x) {
  const Call call(x.loc);
  return taper::tanhshrink(*x);
}

Tensor hardsigmoid(const TensorArg& x) {
  const Call call(x.loc);
  return taper::hardsigmoid(*x);
}

Tensor hardswish(const TensorArg& x) {
  const Call call(x.loc);
  return taper::hardswish(*x);
}

Tensor logsigmoid(const TensorArg& x) {
  const Call call(x.loc);
  return taper::log_sigmoid(*x);
}

Tensor threshold(const TensorArg& x, const ThresholdFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, options.inplace(), [&](const Tensor& t) {
    return taper::threshold(t, options.threshold(), options.value());
  });
}

Tensor softmax(const TensorArg& x, const SoftmaxFuncOptions& options) {
  const Call call(x.loc);
  return taper::softmax(*x, options.dim(), options.dtype());
}

Tensor log_softmax(const TensorArg& x, const LogSoftmaxFuncOptions& options) {
  const Call call(x.loc);
  return taper::log_softmax(*x, options.dim(), options.dtype());
}

Tensor softmin(const TensorArg& x, const SoftminFuncOptions& options) {
  const Call call(x.loc);
  return taper::softmax(-*x, options.dim(), options.dtype());
}

Tensor l1_loss(const TensorArg& x, const TensorArg& target, const L1LossFuncOptions& options) {
  const Call call(x.loc);
  return taper::l1_loss(*x, *target, options.reduction());
}

Tensor mse_loss(const TensorArg& x, const TensorArg& target, const MSELossFuncOptions& options) {
  const Call call(x.loc);
  return taper::mse_loss(*x, *target, options.reduction());
}

Tensor nll_loss(const TensorArg& x, const Tensor& target, const NLLLossFuncOptions& options) {
  const Call call(x.loc);
  return taper::nll_loss(*x, target, options.weight(), options.reduction(), options.ignore_index());
}

Tensor cross_entropy(const TensorArg& x,
                     const Tensor& target,
                     const CrossEntropyFuncOptions& options) {
  const Call call(x.loc);
  return taper::cross_entropy(*x, target, options.weight(), options.reduction(),
                              options.ignore_index(), options.label_smoothing());
}

Tensor smooth_l1_loss(const TensorArg& x,
                      const TensorArg& target,
                      const SmoothL1LossFuncOptions& options) {
  const Call call(x.loc);
  return taper::smooth_l1_loss(*x, *target, options.reduction(), options.beta());
}

Tensor huber_loss(const TensorArg& x,
                  const TensorArg& target,
                  const HuberLossFuncOptions& options) {
  const Call call(x.loc);
  return taper::huber_loss(*x, *target, options.reduction(), options.delta());
}

Tensor binary_cross_entropy(const TensorArg& x,
                            const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options) {
  const Call call(x.loc);
  return taper::binary_cross_entropy(*x, target, options.weight(), options.reduction());
}

Tensor binary_cross_entropy_with_logits(const TensorArg& x,
                                        const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options) {
  const Call call(x.loc);
  return taper::binary_cross_entropy_with_logits(*x, target, options.weight(), options.pos_weight(),
                                                 options.reduction());
}

Tensor kl_div(const TensorArg& x, const TensorArg& target, const KLDivFuncOptions& options) {
  const Call call(x.loc);
  return taper::kl_div(*x, *target, options.reduction(), options.log_target());
}

Tensor max_pool1d(const TensorArg& x, const MaxPool1dFuncOptions& options) {
  const Call call(x.loc);
  return taper::max_pool1d(*x, options.kernel_size(), options.stride(), options.padding(),
                           options.dilation(), options.ceil_mode());
}

Tensor max_pool2d(const TensorArg& x, const MaxPool2dFuncOptions& options) {
  const Call call(x.loc);
  return taper::max_pool2d(*x, options.kernel_size(), options.stride(), options.padding(),
                           options.dilation(), options.ceil_mode());
}

std::tuple<Tensor, Tensor> max_pool2d_with_indices(const TensorArg& x,
                                                   const MaxPool2dFuncOptions& options) {
  const Call call(x.loc);
  return taper::max_pool2d_with_indices(*x, options.kernel_size(), options.stride(),
                                        options.padding(), options.dilation(), options.ceil_mode());
}

Tensor avg_pool1d(const TensorArg& x, const AvgPool1dFuncOptions& options) {
  const Call call(x.loc);
  return taper::avg_pool1d(*x, options.kernel_size(), options.stride(), options.padding(),
                           options.ceil_mode(), options.count_include_pad());
}

Tensor avg_pool2d(const TensorArg& x, const AvgPool2dFuncOptions& options) {
  const Call call(x.loc);
  return taper::avg_pool2d(*x, options.kernel_size(), options.stride(), options.padding(),
                           options.ceil_mode(), options.count_include_pad(),
                           options.divisor_override());
}

Tensor adaptive_avg_pool1d(const TensorArg& x, const AdaptiveAvgPool1dFuncOptions& options) {
  const Call call(x.loc);
  return taper::adaptive_avg_pool1d(*x, options.output_size());
}

Tensor adaptive_avg_pool2d(const TensorArg& x, const AdaptiveAvgPool2dFuncOptions& options) {
  const Call call(x.loc);
  return taper::adaptive_avg_pool2d(*x, options.output_size());
}

}  // namespace taper::nn::functional
