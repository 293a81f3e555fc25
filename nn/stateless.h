// Modules without parameters: activations, pooling, flatten and losses.
#pragma once
#include "taper/nn/functional.h"
#include "taper/nn/module.h"

namespace taper::nn {

class ReLUImpl : public Cloneable<ReLUImpl> {
 public:
  explicit ReLUImpl(ReLUOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  ReLUOptions options;
};
TAPER_MODULE(ReLU);

class ReLU6Impl : public Cloneable<ReLU6Impl> {
 public:
  explicit ReLU6Impl(ReLU6Options options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  ReLU6Options options;
};
TAPER_MODULE(ReLU6);

class GELUImpl : public Cloneable<GELUImpl> {
 public:
  explicit GELUImpl(GELUOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  GELUOptions options;
};
TAPER_MODULE(GELU);

class LeakyReLUImpl : public Cloneable<LeakyReLUImpl> {
 public:
  explicit LeakyReLUImpl(LeakyReLUOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  LeakyReLUOptions options;
};
TAPER_MODULE(LeakyReLU);

class ELUImpl : public Cloneable<ELUImpl> {
 public:
  explicit ELUImpl(ELUOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  ELUOptions options;
};
TAPER_MODULE(ELU);

class SoftplusImpl : public Cloneable<SoftplusImpl> {
 public:
  explicit SoftplusImpl(SoftplusOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  SoftplusOptions options;
};
TAPER_MODULE(Softplus);

class HardtanhImpl : public Cloneable<HardtanhImpl> {
 public:
  explicit HardtanhImpl(HardtanhOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  HardtanhOptions options;
};
TAPER_MODULE(Hardtanh);

class SoftmaxImpl : public Cloneable<SoftmaxImpl> {
 public:
  explicit SoftmaxImpl(SoftmaxOptions options_in) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  SoftmaxOptions options;
};
TAPER_MODULE(Softmax);

class LogSoftmaxImpl : public Cloneable<LogSoftmaxImpl> {
 public:
  explicit LogSoftmaxImpl(LogSoftmaxOptions options_in) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  LogSoftmaxOptions options;
};
TAPER_MODULE(LogSoftmax);

class SiLUImpl : public Cloneable<SiLUImpl> {
 public:
  void reset() override {}
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(SiLU);

class TanhImpl : public Cloneable<TanhImpl> {
 public:
  void reset() override {}
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(Tanh);

class SigmoidImpl : public Cloneable<SigmoidImpl> {
 public:
  void reset() override {}
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(Sigmoid);

class LogSigmoidImpl : public Cloneable<LogSigmoidImpl> {
 public:
  void reset() override {}
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(LogSigmoid);

class IdentityImpl : public Cloneable<IdentityImpl> {
 public:
  void reset() override {}
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(Identity);

class MaxPool2dImpl : public Cloneable<MaxPool2dImpl> {
 public:
  explicit MaxPool2dImpl(MaxPool2dOptions options_in) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  MaxPool2dOptions options;
};
TAPER_MODULE(MaxPool2d);

class AvgPool2dImpl : public Cloneable<AvgPool2dImpl> {
 public:
  explicit AvgPool2dImpl(AvgPool2dOptions options_in) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  AvgPool2dOptions options;
};
TAPER_MODULE(AvgPool2d);

class AdaptiveAvgPool2dImpl : public Cloneable<AdaptiveAvgPool2dImpl> {
 public:
  explicit AdaptiveAvgPool2dImpl(AdaptiveAvgPool2dOptions options_in)
      : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  AdaptiveAvgPool2dOptions options;
};
TAPER_MODULE(AdaptiveAvgPool2d);

class FlattenOptions {
 public:
  std::int64_t start_dim() const { return start_dim_; }
  FlattenOptions& start_dim(std::int64_t x) { return start_dim_ = x, *this; }
  std::int64_t end_dim() const { return end_dim_; }
  FlattenOptions& end_dim(std::int64_t x) { return end_dim_ = x, *this; }

 private:
  std::int64_t start_dim_ = 1, end_dim_ = -1;
};

class FlattenImpl : public Cloneable<FlattenImpl> {
 public:
  explicit FlattenImpl(FlattenOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x);

  FlattenOptions options;
};
TAPER_MODULE(Flatten);

class CrossEntropyLossImpl : public Cloneable<CrossEntropyLossImpl> {
 public:
  explicit CrossEntropyLossImpl(CrossEntropyLossOptions options_in = {})
      : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x, const Tensor& target);

  CrossEntropyLossOptions options;
};
TAPER_MODULE(CrossEntropyLoss);

class NLLLossImpl : public Cloneable<NLLLossImpl> {
 public:
  explicit NLLLossImpl(NLLLossOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x, const Tensor& target);

  NLLLossOptions options;
};
TAPER_MODULE(NLLLoss);

class MSELossImpl : public Cloneable<MSELossImpl> {
 public:
  explicit MSELossImpl(MSELossOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x, const Tensor& target);

  MSELossOptions options;
};
TAPER_MODULE(MSELoss);

class L1LossImpl : public Cloneable<L1LossImpl> {
 public:
  explicit L1LossImpl(L1LossOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x, const Tensor& target);

  L1LossOptions options;
};
TAPER_MODULE(L1Loss);

class SmoothL1LossImpl : public Cloneable<SmoothL1LossImpl> {
 public:
  explicit SmoothL1LossImpl(SmoothL1LossOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x, const Tensor& target);

  SmoothL1LossOptions options;
};
TAPER_MODULE(SmoothL1Loss);

class HuberLossImpl : public Cloneable<HuberLossImpl> {
 public:
  explicit HuberLossImpl(HuberLossOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x, const Tensor& target);

  HuberLossOptions options;
};
TAPER_MODULE(HuberLoss);

class BCELossImpl : public Cloneable<BCELossImpl> {
 public:
  explicit BCELossImpl(BCELossOptions options_in = {}) : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x, const Tensor& target);

  BCELossOptions options;
};
TAPER_MODULE(BCELoss);

class BCEWithLogitsLossImpl : public Cloneable<BCEWithLogitsLossImpl> {
 public:
  explicit BCEWithLogitsLossImpl(BCEWithLogitsLossOptions options_in = {})
      : options(std::move(options_in)) {}

  void reset() override {}
  Tensor forward(const TensorArg& x, const Tensor& target);

  BCEWithLogitsLossOptions options;
};
TAPER_MODULE(BCEWithLogitsLoss);

}  // namespace taper::nn
