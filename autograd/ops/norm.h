// Normalisation over features, groups and batches: the op classes and the public functions.
#pragma once
#include "taper/autograd/op.h"

namespace taper {

// (x - mean) / sqrt(var + eps) * weight + bias over the last dims, whose sizes normalized_shape,
// weight and bias have (Ba et al. 2016). var is the biased one.
Tensor layer_norm(const TensorArg& x,
                  IntArrayRef normalized_shape,
                  const Tensor& weight = {},
                  const Tensor& bias = {},
                  double eps = 1e-5);

// The same over each of `groups` groups of channels of x (N, C, ...); weight, bias: (C)
// (Wu and He 2018).
Tensor group_norm(const TensorArg& x,
                  std::int64_t groups,
                  const Tensor& weight = {},
                  const Tensor& bias = {},
                  double eps = 1e-5);

// The same over all but the channels of x (N, C, ...); all others (C) or undefined (Ioffe and
// Szegedy 2015). In training the statistics are the batch's, and move the running ones by
// `momentum` in place (there var is the unbiased one); otherwise they are the running ones.
Tensor batch_norm(const TensorArg& x,
                  const Tensor& running_mean,
                  const Tensor& running_var,
                  const Tensor& weight = {},
                  const Tensor& bias = {},
                  bool training = false,
                  double momentum = 0.1,
                  double eps = 1e-5);

// The same over each channel of each sample of x (N, C, L, ...) (Ulyanov et al. 2016). With
// use_input_stats running statistics, if any, move by the mean over the samples.
Tensor instance_norm(const TensorArg& x,
                     const Tensor& weight = {},
                     const Tensor& bias = {},
                     const Tensor& running_mean = {},
                     const Tensor& running_var = {},
                     bool use_input_stats = true,
                     double momentum = 0.1,
                     double eps = 1e-5);

namespace ops {

// (x, weight, bias), over x as rows of the last dims. With h = (x - mean) rstd, g = dy weight:
// dx = rstd (g - mean g - h mean(g h)); dweight = sum dy h; dbias = sum dy
class LayerNorm final : public OpOf<LayerNorm> {
 public:
  static constexpr const char* kName = "layer_norm";

  LayerNorm(int dims, double eps) : dims_(dims), eps_(eps) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Grads composite(const Reverse& r, const Tensor& x, const Tensor& weight) const;
  Grads fused(const Reverse& r, const Tensor& x, const Tensor& weight) const;

  int dims_;  // how many are normalised
  double eps_;
  std::int64_t rows_ = 0, columns_ = 0;
};

// (x, weight, bias), running statistics aside. In training the formula of LayerNorm with means
// over all but the channels; otherwise dx = rstd g.
class BatchNorm final : public OpOf<BatchNorm> {
 public:
  static constexpr const char* kName = "batch_norm";

  BatchNorm(Tensor running_mean, Tensor running_var, bool training, double momentum, double eps)
      : running_mean_(std::move(running_mean)),
        running_var_(std::move(running_var)),
        training_(training),
        momentum_(momentum),
        eps_(eps) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  // (1, C, 1, ...) each, in the dtype that is computed in
  struct Statistics {
    Tensor mean, rstd;
  };

  Statistics batch_statistics(const Tensor& x, bool update) const;
  Statistics running_statistics(const Tensor& x) const;

  Tensor running_mean_, running_var_;  // dropped once forward has used them
  bool training_;
  double momentum_, eps_;
};

}  // namespace ops
}  // namespace taper
