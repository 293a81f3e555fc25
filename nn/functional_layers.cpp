// How the layers of nn::functional read their options and forward: convolution to attention.
#include "taper/autograd/ops/attention.h"
#include "taper/autograd/ops/conv.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/norm.h"
#include "taper/autograd/ops/patches.h"
#include "taper/autograd/ops/random.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/nn/functional.h"

namespace taper::nn::functional {
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

Tensor unfold(const TensorArg& x, const UnfoldFuncOptions& options) {
  const Call call(x.loc);
  return im2col(*x, options.kernel_size(), options.dilation(), options.padding(), options.stride());
}

Tensor pixel_shuffle(const TensorArg& x, const PixelShuffleFuncOptions& options) {
  const Call call(x.loc);
  return taper::pixel_shuffle(*x, options.upscale_factor());
}

Tensor pixel_unshuffle(const TensorArg& x, const PixelUnshuffleFuncOptions& options) {
  const Call call(x.loc);
  return taper::pixel_unshuffle(*x, options.downscale_factor());
}

Tensor bilinear(const TensorArg& a, const TensorArg& b, const Tensor& weight, const Tensor& bias) {
  const Call call(a.loc);
  const Tensor y = einsum("...i,oij,...j->...o", {*a, weight, *b});
  return bias.defined() ? y + bias : y;
}

Tensor linear(const TensorArg& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  const Call call(x.loc);
  return taper::linear(*x, weight, bias, activation);
}

Tensor embedding(const TensorArg& index,
                 const Tensor& weight,
                 const EmbeddingFuncOptions& options) {
  const Call call(index.loc);
  std::int64_t none_or_row = -1;
  if (const auto pad = options.padding_idx()) {
    const std::int64_t n = weight.size(0);
    TAPER_CHECK(*pad >= -n && *pad < n, "embedding: padding_idx ", *pad, " is out of range for ", n,
                " rows");
    none_or_row = *pad < 0 ? *pad + n : *pad;
  }
  return taper::embedding(weight, *index, none_or_row);
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
  return taper::batch_norm(*x, running_mean, running_var, options.weight(), options.bias(),
                           options.training(), *options.momentum(), options.eps());
}

Tensor instance_norm(const TensorArg& x, const InstanceNormFuncOptions& options) {
  const Call call(x.loc);
  return taper::instance_norm(*x, options.weight(), options.bias(), options.running_mean(),
                              options.running_var(), options.use_input_stats(), options.momentum(),
                              options.eps());
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
  return options.inplace() && !y.is_same(*x) ? x->copy_(y) : y;
}

Tensor dropout2d(const TensorArg& x, const Dropout2dFuncOptions& options) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() == 3 || x->dim() == 4, "dropout2d: expected (N, C, H, W) or (C, H, W), got ",
              x->sizes());
  Sizes channels;
  for (std::int64_t d = 0; d < x->dim(); ++d) channels.push_back(d < x->dim() - 2 ? x->size(d) : 1);
  const Tensor kept = taper::dropout(x->new_ones(channels), options.p(), options.training());
  if (!options.training() || options.p() == 0) return *x;
  return options.inplace() ? x->mul_(kept) : *x * kept;
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
