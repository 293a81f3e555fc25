// How each function of nn::functional reads its options and forwards.
#include "taper/nn/functional.h"

#include "taper/autograd/ops/attention.h"
#include "taper/autograd/ops/conv.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/norm.h"
#include "taper/autograd/ops/pool.h"
#include "taper/autograd/ops/random.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/softmax.h"

namespace taper::nn::functional {
namespace {

// With the inplace option, x takes the elements of the result.
Tensor placed(const Tensor& x, const Tensor& result, bool inplace) {
  return inplace ? x.copy_(result) : result;
}

}  // namespace

Tensor relu(const TensorArg& x, const ReLUFuncOptions& options) {
  const Call call(x.loc);
  return options.inplace() ? x->relu_() : taper::relu(*x);
}

Tensor relu6(const TensorArg& x, const ReLU6FuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, taper::relu6(*x), options.inplace());
}

Tensor elu(const TensorArg& x, const ELUFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, taper::elu(*x, options.alpha()), options.inplace());
}

Tensor selu(const TensorArg& x, const SELUFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, taper::selu(*x), options.inplace());
}

Tensor celu(const TensorArg& x, const CELUFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, taper::celu(*x, options.alpha()), options.inplace());
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
  return placed(*x, taper::leaky_relu(*x, options.negative_slope()), options.inplace());
}

Tensor prelu(const TensorArg& x, const Tensor& weight) {
  const Call call(x.loc);
  return taper::prelu(*x, weight);
}

Tensor hardtanh(const TensorArg& x, const HardtanhFuncOptions& options) {
  const Call call(x.loc);
  return placed(*x, taper::hardtanh(*x, options.min_val(), options.max_val()), options.inplace());
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
  return placed(*x, taper::threshold(*x, options.threshold(), options.value()), options.inplace());
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

namespace {

// A convolution's input with what kSame needs around it, and the padding that is left to do.
template <std::size_t N> struct Padded {
  Tensor x;
  ExpandingArray<N> padding = 0;

  Padded(const Tensor& in, const Tensor& weight, const ConvFuncOptions<N>& options) : x(in) {
    const PaddingRule rule = options.padding().rule();
    if (rule == PaddingRule::kNumbers) padding = options.padding().numbers();
    if (rule != PaddingRule::kSame) return;
    Sizes symmetric, rest;  // rest: (before, after) from the last dim on
    for (std::size_t d = 0; d < N; ++d) {
      TAPER_CHECK(options.stride()[d] == 1, "padding kSame needs stride 1, got ",
                  IntArrayRef(options.stride()));
      const auto window = static_cast<std::int64_t>(d) - static_cast<std::int64_t>(N);
      symmetric.push_back(options.dilation()[d] * (weight.size(window) - 1) / 2);
    }
    bool lopsided = false;
    for (std::size_t d = N; d-- > 0;) {
      const auto window = static_cast<std::int64_t>(d) - static_cast<std::int64_t>(N);
      const std::int64_t odd = options.dilation()[d] * (weight.size(window) - 1) % 2;
      rest.push_back(0);
      rest.push_back(odd);
      lopsided = lopsided || odd != 0;
    }
    if (lopsided) x = taper::pad(in, rest);
    padding = IntArrayRef(symmetric);
  }
};

}  // namespace

Tensor conv1d(const TensorArg& x, const Tensor& weight, const Conv1dFuncOptions& options) {
  const Call call(x.loc);
  const Padded<1> padded(*x, weight, options);
  return taper::conv1d(padded.x, weight, options.bias(), options.stride(), padded.padding,
                       options.dilation(), options.groups());
}

Tensor conv2d(const TensorArg& x, const Tensor& weight, const Conv2dFuncOptions& options) {
  const Call call(x.loc);
  const Padded<2> padded(*x, weight, options);
  return taper::conv2d(padded.x, weight, options.bias(), options.stride(), padded.padding,
                       options.dilation(), options.groups());
}

Tensor conv_transpose2d(const TensorArg& x,
                        const Tensor& weight,
                        const ConvTranspose2dFuncOptions& options) {
  const Call call(x.loc);
  return taper::conv_transpose2d(*x, weight, options.bias(), options.stride(), options.padding(),
                                 options.output_padding(), options.groups(), options.dilation());
}

Tensor linear(const TensorArg& x, const Tensor& weight, const Tensor& bias) {
  const Call call(x.loc);
  return taper::linear(*x, weight, bias);
}

Tensor embedding(const TensorArg& index,
                 const Tensor& weight,
                 const EmbeddingFuncOptions& options) {
  const Call call(index.loc);
  return taper::embedding(weight, *index, options.padding_idx());
}

Tensor one_hot(const TensorArg& index, std::int64_t num_classes) {
  const Call call(index.loc);
  return taper::one_hot(*index, num_classes);
}

Tensor layer_norm(const TensorArg& x, const LayerNormFuncOptions& options) {
  const Call call(x.loc);
  return taper::layer_norm(*x, options.normalized_shape(), options.weight(), options.bias(),
                           options.eps());
}

Tensor group_norm(const TensorArg& x, const GroupNormFuncOptions& options) {
  const Call call(x.loc);
  return taper::group_norm(*x, options.num_groups(), options.weight(), options.bias(),
                           options.eps());
}

Tensor batch_norm(const TensorArg& x,
                  const Tensor& running_mean,
                  const Tensor& running_var,
                  const BatchNormFuncOptions& options) {
  const Call call(x.loc);
  TAPER_CHECK(options.momentum().has_value(), "batch_norm: give a momentum");
  TAPER_CHECK(!options.training() || x->dim() < 2 || x->numel() != x->size(1),
              "batch_norm: training needs more than one value per channel, got x ", x->sizes());
  return taper::batch_norm(*x, running_mean, running_var, options.weight(), options.bias(),
                           options.training(), *options.momentum(), options.eps());
}

Tensor normalize(const TensorArg& x, const NormalizeFuncOptions& options) {
  const Call call(x.loc);
  return *x / clamp_min(taper::norm(*x, options.p(), options.dim(), true), options.eps());
}

Tensor cosine_similarity(const TensorArg& a,
                         const TensorArg& b,
                         const CosineSimilarityFuncOptions& options) {
  const Call call(a.loc);
  const auto size = [&](const Tensor& t) {
    return clamp_min(taper::norm(t, 2, options.dim()), options.eps());
  };
  const Sizes sizes = broadcast_sizes(a->sizes(), b->sizes());
  const Tensor x = a->expand(sizes), y = b->expand(sizes);
  return sum(x * y, options.dim()) / (size(x) * size(y));
}

Tensor dropout(const TensorArg& x, const DropoutFuncOptions& options) {
  const Call call(x.loc);
  const Tensor y = taper::dropout(*x, options.p(), options.training());
  return placed(*x, y, options.inplace() && !y.is_same(*x));
}

Tensor pad(const TensorArg& x, const PadFuncOptions& options) {
  const Call call(x.loc);
  return taper::pad(*x, options.pad(), options.mode(), options.value());
}

Tensor scaled_dot_product_attention(const TensorArg& q,
                                    const Tensor& k,
                                    const Tensor& v,
                                    const Tensor& attn_mask,
                                    double dropout_p,
                                    bool is_causal,
                                    std::optional<double> scale) {
  const Call call(q.loc);
  return taper::scaled_dot_product_attention(*q, k, v, attn_mask, dropout_p, is_causal, scale);
}

}  // namespace taper::nn::functional
