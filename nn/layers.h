// Modules with parameters: linear, convolution, embedding, normalisation, attention; and dropout.
#pragma once
#include <optional>

#include "taper/nn/functional.h"
#include "taper/nn/init.h"
#include "taper/nn/module.h"

namespace taper::nn {

class LinearOptions {
 public:
  LinearOptions(std::int64_t in_features, std::int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}

  std::int64_t in_features() const { return in_features_; }
  std::int64_t out_features() const { return out_features_; }
  bool bias() const { return bias_; }
  LinearOptions& bias(bool x) { return bias_ = x, *this; }
  Activation activation() const { return activation_; }
  LinearOptions& activation(Activation x) { return activation_ = x, *this; }  // kReLU, kGELU

 private:
  std::int64_t in_features_, out_features_;
  bool bias_ = true;
  Activation activation_ = Activation::kNone;
};

// x (..., in) -> activation(x weight^T + bias) (..., out). weight (out, in), bias (out), both
// uniform in +-1 / sqrt(in).
class LinearImpl : public Cloneable<LinearImpl> {
 public:
  LinearImpl(std::int64_t in_features, std::int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options_in);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  LinearOptions options;
  Tensor weight, bias;
};
TAPER_MODULE(Linear);

class Conv2dOptions {
 public:
  Conv2dOptions(std::int64_t in_channels, std::int64_t out_channels, ExpandingArray<2> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}

  std::int64_t in_channels() const { return in_channels_; }
  std::int64_t out_channels() const { return out_channels_; }
  const ExpandingArray<2>& kernel_size() const { return kernel_size_; }
  const ExpandingArray<2>& stride() const { return stride_; }
  Conv2dOptions& stride(ExpandingArray<2> x) { return stride_ = x, *this; }
  const ConvPadding<2>& padding() const { return padding_; }
  Conv2dOptions& padding(ConvPadding<2> x) { return padding_ = x, *this; }
  const ExpandingArray<2>& dilation() const { return dilation_; }
  Conv2dOptions& dilation(ExpandingArray<2> x) { return dilation_ = x, *this; }
  std::int64_t groups() const { return groups_; }
  Conv2dOptions& groups(std::int64_t x) { return groups_ = x, *this; }
  bool bias() const { return bias_; }
  Conv2dOptions& bias(bool x) { return bias_ = x, *this; }

 private:
  std::int64_t in_channels_, out_channels_;
  ExpandingArray<2> kernel_size_, stride_ = 1, dilation_ = 1;
  ConvPadding<2> padding_ = 0;
  std::int64_t groups_ = 1;
  bool bias_ = true;
};

// x (N, C, H, W) -> (N, O, H', W'). weight (O, C / groups, kH, kW), bias (O), both uniform in
// +-1 / sqrt(C / groups kH kW).
class Conv2dImpl : public Cloneable<Conv2dImpl> {
 public:
  Conv2dImpl(std::int64_t in_channels, std::int64_t out_channels, ExpandingArray<2> kernel_size)
      : Conv2dImpl(Conv2dOptions(in_channels, out_channels, kernel_size)) {}
  explicit Conv2dImpl(const Conv2dOptions& options_in);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  Conv2dOptions options;
  Tensor weight, bias;
};
TAPER_MODULE(Conv2d);

class EmbeddingOptions {
 public:
  EmbeddingOptions(std::int64_t num_embeddings, std::int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}

  std::int64_t num_embeddings() const { return num_embeddings_; }
  std::int64_t embedding_dim() const { return embedding_dim_; }
  std::optional<std::int64_t> padding_idx() const { return padding_idx_; }
  EmbeddingOptions& padding_idx(std::optional<std::int64_t> x) { return padding_idx_ = x, *this; }

 private:
  std::int64_t num_embeddings_, embedding_dim_;
  std::optional<std::int64_t> padding_idx_;
};

// index (...) of integers -> rows of weight (..., dim). weight (num, dim) is N(0, 1); the row
// padding_idx is zero and gets no gradient.
class EmbeddingImpl : public Cloneable<EmbeddingImpl> {
 public:
  EmbeddingImpl(std::int64_t num_embeddings, std::int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(const EmbeddingOptions& options_in);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& index);

  EmbeddingOptions options;
  Tensor weight;
};
TAPER_MODULE(Embedding);

class LayerNormOptions {
 public:
  LayerNormOptions(std::vector<std::int64_t> normalized_shape)  // NOLINT
      : normalized_shape_(std::move(normalized_shape)) {}

  const std::vector<std::int64_t>& normalized_shape() const { return normalized_shape_; }
  double eps() const { return eps_; }
  LayerNormOptions& eps(double x) { return eps_ = x, *this; }
  bool elementwise_affine() const { return affine_; }
  LayerNormOptions& elementwise_affine(bool x) { return affine_ = x, *this; }

 private:
  std::vector<std::int64_t> normalized_shape_;
  double eps_ = 1e-5;
  bool affine_ = true;
};

// Ba, Kiros and Hinton 2016: (x - mean) / sqrt(var + eps) weight + bias over the last dims.
class LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  LayerNormImpl(std::vector<std::int64_t> normalized_shape)  // NOLINT
      : LayerNormImpl(LayerNormOptions(std::move(normalized_shape))) {}
  explicit LayerNormImpl(LayerNormOptions options_in);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  LayerNormOptions options;
  Tensor weight, bias;
};
TAPER_MODULE(LayerNorm);

class BatchNormOptions {
 public:
  BatchNormOptions(std::int64_t num_features) : num_features_(num_features) {}  // NOLINT

  std::int64_t num_features() const { return num_features_; }
  double eps() const { return eps_; }
  BatchNormOptions& eps(double x) { return eps_ = x, *this; }
  std::optional<double> momentum() const { return momentum_; }
  BatchNormOptions& momentum(std::optional<double> x) { return momentum_ = x, *this; }
  bool affine() const { return affine_; }
  BatchNormOptions& affine(bool x) { return affine_ = x, *this; }
  bool track_running_stats() const { return track_; }
  BatchNormOptions& track_running_stats(bool x) { return track_ = x, *this; }

 private:
  std::int64_t num_features_;
  double eps_ = 1e-5;
  std::optional<double> momentum_ = 0.1;  // nullopt: the plain average of all batches
  bool affine_ = true, track_ = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;

// What the sizes of batch normalisation share: parameters, running statistics, the formula.
template <class Derived> class BatchNormImplBase : public Cloneable<Derived> {
 public:
  explicit BatchNormImplBase(const BatchNormOptions& options_in);

  void reset() override;
  void reset_parameters();
  void reset_running_stats();
  void pretty_print(std::ostream& out) const override;

  BatchNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  Tensor normalised(const Tensor& x);
};

// Ioffe and Szegedy 2015, over (N) or (N, L) for each channel of x (N, C) or (N, C, L).
class BatchNorm1dImpl : public BatchNormImplBase<BatchNorm1dImpl> {
 public:
  BatchNorm1dImpl(std::int64_t num_features)  // NOLINT(google-explicit-constructor)
      : BatchNorm1dImpl(BatchNormOptions(num_features)) {}
  explicit BatchNorm1dImpl(const BatchNormOptions& options_in) : BatchNormImplBase(options_in) {}

  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(BatchNorm1d);

// The same over (N, H, W) for each channel of x (N, C, H, W).
class BatchNorm2dImpl : public BatchNormImplBase<BatchNorm2dImpl> {
 public:
  BatchNorm2dImpl(std::int64_t num_features)  // NOLINT(google-explicit-constructor)
      : BatchNorm2dImpl(BatchNormOptions(num_features)) {}
  explicit BatchNorm2dImpl(const BatchNormOptions& options_in) : BatchNormImplBase(options_in) {}

  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(BatchNorm2d);

extern template class BatchNormImplBase<BatchNorm1dImpl>;
extern template class BatchNormImplBase<BatchNorm2dImpl>;

class DropoutOptions : public WithInplace<DropoutOptions> {
 public:
  DropoutOptions(double p = 0.5) : p_(p) {}  // NOLINT(google-explicit-constructor)

  double p() const { return p_; }
  DropoutOptions& p(double x) { return p_ = x, *this; }

 private:
  double p_;
};

// Srivastava et al. 2014: while training zeroes elements with probability p, scales the rest.
class DropoutImpl : public Cloneable<DropoutImpl> {
 public:
  DropoutImpl(double p) : DropoutImpl(DropoutOptions(p)) {}  // NOLINT
  explicit DropoutImpl(const DropoutOptions& options_in = {});

  void reset() override {}
  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  DropoutOptions options;
};
TAPER_MODULE(Dropout);

using Dropout2dOptions = DropoutOptions;

// Tompson et al. 2015: the same to whole channels of x (N, C, H, W) or (C, H, W).
class Dropout2dImpl : public Cloneable<Dropout2dImpl> {
 public:
  Dropout2dImpl(double p) : Dropout2dImpl(Dropout2dOptions(p)) {}  // NOLINT
  explicit Dropout2dImpl(const Dropout2dOptions& options_in = {});

  void reset() override {}
  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  Dropout2dOptions options;
};
TAPER_MODULE(Dropout2d);

}  // namespace taper::nn
