// Modules without parameters: activations, pooling, flatten and losses.
#pragma once
#include "taper/nn/functional.h"
#include "taper/nn/module.h"

namespace taper::nn {

class ReLUImpl : public Stateless<ReLUImpl> {
 public:
  explicit ReLUImpl(ReLUOptions options_in = {}) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  ReLUOptions options;
};
TAPER_MODULE(ReLU);

class ReLU6Impl : public Stateless<ReLU6Impl> {
 public:
  explicit ReLU6Impl(ReLU6Options options_in = {}) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  ReLU6Options options;
};
TAPER_MODULE(ReLU6);

class GELUImpl : public Stateless<GELUImpl> {
 public:
  explicit GELUImpl(GELUOptions options_in = {}) : options(std::move(options_in)) {}

  Tensor forward(const TensorArg& x);

  GELUOptions options;
};
TAPER_MODULE(GELU);

class LeakyReLUImpl : public Stateless<LeakyReLUImpl> {
 public:
  explicit LeakyReLUImpl(LeakyReLUOptions options_in = {}) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  LeakyReLUOptions options;
};
TAPER_MODULE(LeakyReLU);

class ELUImpl : public Stateless<ELUImpl> {
 public:
  explicit ELUImpl(ELUOptions options_in = {}) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  ELUOptions options;
};
TAPER_MODULE(ELU);

class SoftplusImpl : public Stateless<SoftplusImpl> {
 public:
  explicit SoftplusImpl(SoftplusOptions options_in = {}) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  SoftplusOptions options;
};
TAPER_MODULE(Softplus);

class HardtanhImpl : public Stateless<HardtanhImpl> {
 public:
  explicit HardtanhImpl(HardtanhOptions options_in = {}) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  HardtanhOptions options;
};
TAPER_MODULE(Hardtanh);

class SoftmaxImpl : public Stateless<SoftmaxImpl> {
 public:
  explicit SoftmaxImpl(SoftmaxOptions options_in) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  SoftmaxOptions options;
};
TAPER_MODULE(Softmax);

class LogSoftmaxImpl : public Stateless<LogSoftmaxImpl> {
 public:
  explicit LogSoftmaxImpl(LogSoftmaxOptions options_in) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  LogSoftmaxOptions options;
};
TAPER_MODULE(LogSoftmax);

class SiLUImpl : public Stateless<SiLUImpl> {
 public:
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(SiLU);

class TanhImpl : public Stateless<TanhImpl> {
 public:
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(Tanh);

class SigmoidImpl : public Stateless<SigmoidImpl> {
 public:
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(Sigmoid);

class LogSigmoidImpl : public Stateless<LogSigmoidImpl> {
 public:
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(LogSigmoid);

class IdentityImpl : public Stateless<IdentityImpl> {
 public:
  Tensor forward(const TensorArg& x);
};
TAPER_MODULE(Identity);

class MaxPool2dImpl : public Stateless<MaxPool2dImpl> {
 public:
  explicit MaxPool2dImpl(MaxPool2dOptions options_in) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  MaxPool2dOptions options;
};
TAPER_MODULE(MaxPool2d);

class AvgPool2dImpl : public Stateless<AvgPool2dImpl> {
 public:
  explicit AvgPool2dImpl(AvgPool2dOptions options_in) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  AvgPool2dOptions options;
};
TAPER_MODULE(AvgPool2d);

class AdaptiveAvgPool2dImpl : public Stateless<AdaptiveAvgPool2dImpl> {
 public:
  explicit AdaptiveAvgPool2dImpl(AdaptiveAvgPool2dOptions options_in)
      : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
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

class FlattenImpl : public Stateless<FlattenImpl> {
 public:
  explicit FlattenImpl(FlattenOptions options_in = {}) : options(std::move(options_in)) {}

  void pretty_print(std::ostream& out) const override;
  Tensor forward(const TensorArg& x);

  FlattenOptions options;
};
TAPER_MODULE(Flatten);

class CrossEntropyLossImpl : public Stateless<CrossEntropyLossImpl> {
 public:
  explicit CrossEntropyLossImpl(CrossEntropyLossOptions options_in = {})
      : options(std::move(options_in)) {}

  Tensor forward(const TensorArg& x, const Tensor& target);

  CrossEntropyLossOptions options;
};
TAPER_MODULE(CrossEntropyLoss);

class NLLLossImpl : public Stateless<NLLLossImpl> {
 public:
  explicit NLLLossImpl(NLLLossOptions options_in = {}) : options(std::move(options_in)) {}

  Tensor forward(const TensorArg& x, const Tensor& target);

  NLLLossOptions options;
};
TAPER_MODULE(NLLLoss);

class MSELossImpl : public Stateless<MSELossImpl> {
 public:
  explicit MSELossImpl(MSELossOptions options_in = {}) : options(std::move(options_in)) {}

  Tensor forward(const TensorArg& x, const Tensor& target);

  MSELossOptions options;
};
TAPER_MODULE(MSELoss);

class L1LossImpl : public Stateless<L1LossImpl> {
 public:
  explicit L1LossImpl(L1LossOptions options_in = {}) : options(std::move(options_in)) {}

  Tensor forward(const TensorArg& x, const Tensor& target);

  L1LossOptions options;
};
TAPER_MODULE(L1Loss);

class SmoothL1LossImpl : public Stateless<SmoothL1LossImpl> {
 public:
  explicit SmoothL1LossImpl(SmoothL1LossOptions options_in = {}) : options(std::move(options_in)) {}

  Tensor forward(const TensorArg& x, const Tensor& target);

  SmoothL1LossOptions options;
};
TAPER_MODULE(SmoothL1Loss);

class HuberLossImpl : public Stateless<HuberLossImpl> {
 public:
  explicit HuberLossImpl(HuberLossOptions options_in = {}) : options(std::move(options_in)) {}

  Tensor forward(const TensorArg& x, const Tensor& target);

  HuberLossOptions options;
};
TAPER_MODULE(HuberLoss);

class BCELossImpl : public Stateless<BCELossImpl> {
 public:
  explicit BCELossImpl(BCELossOptions options_in = {}) : options(std::move(options_in)) {}

  Tensor forward(const TensorArg& x, const Tensor& target);

  BCELossOptions options;
};
TAPER_MODULE(BCELoss);

class BCEWithLogitsLossImpl : public Stateless<BCEWithLogitsLossImpl> {
 public:
  explicit BCEWithLogitsLossImpl(BCEWithLogitsLossOptions options_in = {})
      : options(std::move(options_in)) {}

  Tensor forward(const TensorArg& x, const Tensor& target);

  BCEWithLogitsLossOptions options;
};
TAPER_MODULE(BCEWithLogitsLoss);

}  // namespace taper::nn
