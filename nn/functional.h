// The functions of networks under LibTorch's names, with option structs: nn::functional.
#pragma once
#include <tuple>
#include <vector>

#include "taper/autograd/ops/activation.h"
#include "taper/autograd/ops/pad.h"
#include "taper/nn/options_activation.h"
#include "taper/nn/options_loss.h"
#include "taper/nn/options_pool.h"

// Each forwards to taper::NAME, which says what it computes.
namespace taper::nn::functional {

// --- Activations
// ----------------------------------------------------------------------------------
using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using ELUFuncOptions = ELUOptions;
using SELUFuncOptions = SELUOptions;
using CELUFuncOptions = CELUOptions;
using GELUFuncOptions = GELUOptions;
using GLUFuncOptions = GLUOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using HardtanhFuncOptions = HardtanhOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using SoftplusFuncOptions = SoftplusOptions;
using ThresholdFuncOptions = ThresholdOptions;
using SoftmaxFuncOptions = SoftmaxOptions;
using LogSoftmaxFuncOptions = LogSoftmaxOptions;
using SoftminFuncOptions = SoftminOptions;

Tensor relu(const TensorArg& x, const ReLUFuncOptions& options = {});
Tensor relu6(const TensorArg& x, const ReLU6FuncOptions& options = {});
Tensor elu(const TensorArg& x, const ELUFuncOptions& options = {});
Tensor selu(const TensorArg& x, const SELUFuncOptions& options = {});
Tensor celu(const TensorArg& x, const CELUFuncOptions& options = {});
Tensor gelu(const TensorArg& x, const GELUFuncOptions& options = {});
Tensor glu(const TensorArg& x, const GLUFuncOptions& options = {});
Tensor silu(const TensorArg& x);
Tensor mish(const TensorArg& x);
Tensor leaky_relu(const TensorArg& x, const LeakyReLUFuncOptions& options = {});
Tensor prelu(const TensorArg& x, const Tensor& weight);
Tensor hardtanh(const TensorArg& x, const HardtanhFuncOptions& options = {});
Tensor hardshrink(const TensorArg& x, const HardshrinkFuncOptions& options = {});
Tensor softshrink(const TensorArg& x, const SoftshrinkFuncOptions& options = {});
Tensor softplus(const TensorArg& x, const SoftplusFuncOptions& options = {});
Tensor softsign(const TensorArg& x);
Tensor tanhshrink(const TensorArg& x);
Tensor hardsigmoid(const TensorArg& x);
Tensor hardswish(const TensorArg& x);
Tensor logsigmoid(const TensorArg& x);
Tensor threshold(const TensorArg& x, const ThresholdFuncOptions& options);
Tensor softmax(const TensorArg& x, const SoftmaxFuncOptions& options);
Tensor log_softmax(const TensorArg& x, const LogSoftmaxFuncOptions& options);
Tensor softmin(const TensorArg& x, const SoftminFuncOptions& options);  // softmax(-x)

// --- Losses
// ---------------------------------------------------------------------------------------
using L1LossFuncOptions = L1LossOptions;
using MSELossFuncOptions = MSELossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using KLDivFuncOptions = KLDivLossOptions;

Tensor l1_loss(const TensorArg& x, const TensorArg& target, const L1LossFuncOptions& options = {});
Tensor mse_loss(const TensorArg& x,
                const TensorArg& target,
                const MSELossFuncOptions& options = {});
Tensor nll_loss(const TensorArg& x, const Tensor& target, const NLLLossFuncOptions& options = {});
Tensor cross_entropy(const TensorArg& x,
                     const Tensor& target,
                     const CrossEntropyFuncOptions& options = {});
Tensor smooth_l1_loss(const TensorArg& x,
                      const TensorArg& target,
                      const SmoothL1LossFuncOptions& options = {});
Tensor huber_loss(const TensorArg& x,
                  const TensorArg& target,
                  const HuberLossFuncOptions& options = {});
Tensor binary_cross_entropy(const TensorArg& x,
                            const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options = {});
Tensor binary_cross_entropy_with_logits(
    const TensorArg& x,
    const Tensor& target,
    const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
Tensor kl_div(const TensorArg& x, const TensorArg& target, const KLDivFuncOptions& options = {});

// --- Pooling
// --------------------------------------------------------------------------------------
using MaxPool1dFuncOptions = MaxPool1dOptions;
using MaxPool2dFuncOptions = MaxPool2dOptions;
using AvgPool1dFuncOptions = AvgPool1dOptions;
using AvgPool2dFuncOptions = AvgPool2dOptions;
using AdaptiveAvgPool1dFuncOptions = AdaptiveAvgPool1dOptions;
using AdaptiveAvgPool2dFuncOptions = AdaptiveAvgPool2dOptions;

Tensor max_pool1d(const TensorArg& x, const MaxPool1dFuncOptions& options);
Tensor max_pool2d(const TensorArg& x, const MaxPool2dFuncOptions& options);
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const TensorArg& x,
                                                   const MaxPool2dFuncOptions& options);
Tensor avg_pool1d(const TensorArg& x, const AvgPool1dFuncOptions& options);
Tensor avg_pool2d(const TensorArg& x, const AvgPool2dFuncOptions& options);
Tensor adaptive_avg_pool1d(const TensorArg& x, const AdaptiveAvgPool1dFuncOptions& options);
Tensor adaptive_avg_pool2d(const TensorArg& x, const AdaptiveAvgPool2dFuncOptions& options);

// --- Convolution, linear, embedding
// ----------------------------------------------------------------
template <std::size_t N> class ConvFuncOptions {
 public:
  const Tensor& bias() const { return bias_; }
  ConvFuncOptions& bias(Tensor x) { return bias_ = std::move(x), *this; }
  const ExpandingArray<N>& stride() const { return stride_; }
  ConvFuncOptions& stride(ExpandingArray<N> x) { return stride_ = x, *this; }
  const ConvPadding<N>& padding() const { return padding_; }
  ConvFuncOptions& padding(ConvPadding<N> x) { return padding_ = x, *this; }
  const ExpandingArray<N>& dilation() const { return dilation_; }
  ConvFuncOptions& dilation(ExpandingArray<N> x) { return dilation_ = x, *this; }
  std::int64_t groups() const { return groups_; }
  ConvFuncOptions& groups(std::int64_t x) { return groups_ = x, *this; }

 private:
  Tensor bias_;
  ExpandingArray<N> stride_ = 1;
  ConvPadding<N> padding_ = 0;
  ExpandingArray<N> dilation_ = 1;
  std::int64_t groups_ = 1;
};

using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;

class ConvTranspose2dFuncOptions {
 public:
  const Tensor& bias() const { return bias_; }
  ConvTranspose2dFuncOptions& bias(Tensor x) { return bias_ = std::move(x), *this; }
  const ExpandingArray<2>& stride() const { return stride_; }
  ConvTranspose2dFuncOptions& stride(ExpandingArray<2> x) { return stride_ = x, *this; }
  const ExpandingArray<2>& padding() const { return padding_; }
  ConvTranspose2dFuncOptions& padding(ExpandingArray<2> x) { return padding_ = x, *this; }
  const ExpandingArray<2>& output_padding() const { return output_padding_; }
  ConvTranspose2dFuncOptions& output_padding(ExpandingArray<2> x) {
    return output_padding_ = x, *this;
  }
  std::int64_t groups() const { return groups_; }
  ConvTranspose2dFuncOptions& groups(std::int64_t x) { return groups_ = x, *this; }
  const ExpandingArray<2>& dilation() const { return dilation_; }
  ConvTranspose2dFuncOptions& dilation(ExpandingArray<2> x) { return dilation_ = x, *this; }

 private:
  Tensor bias_;
  ExpandingArray<2> stride_ = 1, padding_ = 0, output_padding_ = 0, dilation_ = 1;
  std::int64_t groups_ = 1;
};

class UnfoldFuncOptions {
 public:
  UnfoldFuncOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}  // NOLINT
  UnfoldFuncOptions(std::int64_t kernel_size) : kernel_size_(kernel_size) {}       // NOLINT
  UnfoldFuncOptions(std::initializer_list<std::int64_t> size) : kernel_size_(size) {}

  const ExpandingArray<2>& kernel_size() const { return kernel_size_; }
  const ExpandingArray<2>& dilation() const { return dilation_; }
  UnfoldFuncOptions& dilation(ExpandingArray<2> x) { return dilation_ = x, *this; }
  const ExpandingArray<2>& padding() const { return padding_; }
  UnfoldFuncOptions& padding(ExpandingArray<2> x) { return padding_ = x, *this; }
  const ExpandingArray<2>& stride() const { return stride_; }
  UnfoldFuncOptions& stride(ExpandingArray<2> x) { return stride_ = x, *this; }

 private:
  ExpandingArray<2> kernel_size_, dilation_ = 1, padding_ = 0, stride_ = 1;
};

class PixelShuffleFuncOptions {
 public:
  PixelShuffleFuncOptions(std::int64_t factor) : upscale_factor_(factor) {}  // NOLINT

  std::int64_t upscale_factor() const { return upscale_factor_; }

 private:
  std::int64_t upscale_factor_;
};

class PixelUnshuffleFuncOptions {
 public:
  PixelUnshuffleFuncOptions(std::int64_t factor) : downscale_factor_(factor) {}  // NOLINT

  std::int64_t downscale_factor() const { return downscale_factor_; }

 private:
  std::int64_t downscale_factor_;
};

class EmbeddingFuncOptions {
 public:
  // The row that gets no gradient; a negative one counts from the end.
  std::optional<std::int64_t> padding_idx() const { return padding_idx_; }
  EmbeddingFuncOptions& padding_idx(std::optional<std::int64_t> x) {
    return padding_idx_ = x, *this;
  }

 private:
  std::optional<std::int64_t> padding_idx_;
};

Tensor conv1d(const TensorArg& x, const Tensor& weight, const Conv1dFuncOptions& options = {});
Tensor conv2d(const TensorArg& x, const Tensor& weight, const Conv2dFuncOptions& options = {});
Tensor conv_transpose2d(const TensorArg& x,
                        const Tensor& weight,
                        const ConvTranspose2dFuncOptions& options = {});
Tensor unfold(const TensorArg& x, const UnfoldFuncOptions& options);  // taper::im2col
Tensor pixel_shuffle(const TensorArg& x, const PixelShuffleFuncOptions& options);
Tensor pixel_unshuffle(const TensorArg& x, const PixelUnshuffleFuncOptions& options);
Tensor linear(const TensorArg& x,
              const Tensor& weight,
              const Tensor& bias = {},
              Activation activation = Activation::kNone);
// a (..., I), b (..., J), weight (O, I, J), bias (O) -> (..., O): sum over i, j of a weight b
Tensor bilinear(const TensorArg& a,
                const TensorArg& b,
                const Tensor& weight,
                const Tensor& bias = {});
Tensor embedding(const TensorArg& index,
                 const Tensor& weight,
                 const EmbeddingFuncOptions& options = {});
Tensor one_hot(const TensorArg& index, std::int64_t num_classes = -1);

// --- Normalisation, dropout, padding, attention
// -----------------------------------------------------
class LayerNormFuncOptions {
 public:
  LayerNormFuncOptions(std::vector<std::int64_t> normalized_shape)  // NOLINT
      : normalized_shape_(std::move(normalized_shape)) {}

  const std::vector<std::int64_t>& normalized_shape() const { return normalized_shape_; }
  const Tensor& weight() const { return weight_; }
  LayerNormFuncOptions& weight(Tensor x) { return weight_ = std::move(x), *this; }
  const Tensor& bias() const { return bias_; }
  LayerNormFuncOptions& bias(Tensor x) { return bias_ = std::move(x), *this; }
  double eps() const { return eps_; }
  LayerNormFuncOptions& eps(double x) { return eps_ = x, *this; }

 private:
  std::vector<std::int64_t> normalized_shape_;
  Tensor weight_, bias_;
  double eps_ = 1e-5;
};

class GroupNormFuncOptions {
 public:
  GroupNormFuncOptions(std::int64_t num_groups) : num_groups_(num_groups) {}  // NOLINT

  std::int64_t num_groups() const { return num_groups_; }
  const Tensor& weight() const { return weight_; }
  GroupNormFuncOptions& weight(Tensor x) { return weight_ = std::move(x), *this; }
  const Tensor& bias() const { return bias_; }
  GroupNormFuncOptions& bias(Tensor x) { return bias_ = std::move(x), *this; }
  double eps() const { return eps_; }
  GroupNormFuncOptions& eps(double x) { return eps_ = x, *this; }

 private:
  std::int64_t num_groups_;
  Tensor weight_, bias_;
  double eps_ = 1e-5;
};

class BatchNormFuncOptions {
 public:
  const Tensor& weight() const { return weight_; }
  BatchNormFuncOptions& weight(Tensor x) { return weight_ = std::move(x), *this; }
  const Tensor& bias() const { return bias_; }
  BatchNormFuncOptions& bias(Tensor x) { return bias_ = std::move(x), *this; }
  bool training() const { return training_; }
  BatchNormFuncOptions& training(bool x) { return training_ = x, *this; }
  std::optional<double> momentum() const { return momentum_; }
  BatchNormFuncOptions& momentum(std::optional<double> x) { return momentum_ = x, *this; }
  double eps() const { return eps_; }
  BatchNormFuncOptions& eps(double x) { return eps_ = x, *this; }

 private:
  Tensor weight_, bias_;
  bool training_ = false;
  std::optional<double> momentum_ = 0.1;
  double eps_ = 1e-5;
};

class InstanceNormFuncOptions {
 public:
  const Tensor& running_mean() const { return running_mean_; }
  InstanceNormFuncOptions& running_mean(Tensor x) { return running_mean_ = std::move(x), *this; }
  const Tensor& running_var() const { return running_var_; }
  InstanceNormFuncOptions& running_var(Tensor x) { return running_var_ = std::move(x), *this; }
  const Tensor& weight() const { return weight_; }
  InstanceNormFuncOptions& weight(Tensor x) { return weight_ = std::move(x), *this; }
  const Tensor& bias() const { return bias_; }
  InstanceNormFuncOptions& bias(Tensor x) { return bias_ = std::move(x), *this; }
  bool use_input_stats() const { return use_input_stats_; }
  InstanceNormFuncOptions& use_input_stats(bool x) { return use_input_stats_ = x, *this; }
  double momentum() const { return momentum_; }
  InstanceNormFuncOptions& momentum(double x) { return momentum_ = x, *this; }
  double eps() const { return eps_; }
  InstanceNormFuncOptions& eps(double x) { return eps_ = x, *this; }

 private:
  Tensor running_mean_, running_var_, weight_, bias_;
  bool use_input_stats_ = true;
  double momentum_ = 0.1, eps_ = 1e-5;
};

class NormalizeFuncOptions {
 public:
  double p() const { return p_; }
  NormalizeFuncOptions& p(double x) { return p_ = x, *this; }
  double eps() const { return eps_; }
  NormalizeFuncOptions& eps(double x) { return eps_ = x, *this; }
  std::int64_t dim() const { return dim_; }
  NormalizeFuncOptions& dim(std::int64_t x) { return dim_ = x, *this; }

 private:
  double p_ = 2, eps_ = 1e-12;
  std::int64_t dim_ = 1;
};

class CosineSimilarityFuncOptions {
 public:
  std::int64_t dim() const { return dim_; }
  CosineSimilarityFuncOptions& dim(std::int64_t x) { return dim_ = x, *this; }
  double eps() const { return eps_; }
  CosineSimilarityFuncOptions& eps(double x) { return eps_ = x, *this; }

 private:
  std::int64_t dim_ = 1;
  double eps_ = 1e-8;
};

class DropoutFuncOptions : public WithInplace<DropoutFuncOptions> {
 public:
  double p() const { return p_; }
  DropoutFuncOptions& p(double x) { return p_ = x, *this; }
  bool training() const { return training_; }
  DropoutFuncOptions& training(bool x) { return training_ = x, *this; }

 private:
  double p_ = 0.5;
  bool training_ = true;
};

using Dropout2dFuncOptions = DropoutFuncOptions;

class PadFuncOptions {
 public:
  PadFuncOptions(std::vector<std::int64_t> pad) : pad_(std::move(pad)) {}  // NOLINT

  const std::vector<std::int64_t>& pad() const { return pad_; }
  PadMode mode() const { return mode_; }
  PadFuncOptions& mode(PadMode x) { return mode_ = x, *this; }
  double value() const { return value_; }
  PadFuncOptions& value(double x) { return value_ = x, *this; }

 private:
  std::vector<std::int64_t> pad_;
  PadMode mode_ = PadMode::kConstant;
  double value_ = 0;
};

Tensor layer_norm(const TensorArg& x, const LayerNormFuncOptions& options);
Tensor group_norm(const TensorArg& x, const GroupNormFuncOptions& options);
Tensor batch_norm(const TensorArg& x,
                  const Tensor& running_mean,
                  const Tensor& running_var,
                  const BatchNormFuncOptions& options = {});
Tensor instance_norm(const TensorArg& x, const InstanceNormFuncOptions& options = {});
// x / max(norm of x along dim, eps)
Tensor normalize(const TensorArg& x, const NormalizeFuncOptions& options = {});
// a b / (max(|a|, eps) max(|b|, eps)) along dim
Tensor cosine_similarity(const TensorArg& a,
                         const TensorArg& b,
                         const CosineSimilarityFuncOptions& options = {});
Tensor dropout(const TensorArg& x, const DropoutFuncOptions& options = {});
// Zeroes whole channels of x (N, C, H, W) or (C, H, W) (Tompson et al. 2015).
Tensor dropout2d(const TensorArg& x, const Dropout2dFuncOptions& options = {});
Tensor pad(const TensorArg& x, const PadFuncOptions& options);
Tensor scaled_dot_product_attention(const TensorArg& q,
                                    const Tensor& k,
                                    const Tensor& v,
                                    const Tensor& attn_mask = {},
                                    double dropout_p = 0,
                                    bool is_causal = false,
                                    std::optional<double> scale = std::nullopt);

}  // namespace taper::nn::functional
