// Options of losses, as modules and functions take them.
#pragma once
#include "taper/nn/options.h"

namespace taper::nn {

struct L1LossOptions : WithReduction<L1LossOptions> {
  using WithReduction::WithReduction;
};

struct MSELossOptions : WithReduction<MSELossOptions> {
  using WithReduction::WithReduction;
};

class NLLLossOptions : public WithReduction<NLLLossOptions> {
 public:
  using WithReduction::WithReduction;

  const Tensor& weight() const { return weight_; }
  NLLLossOptions& weight(Tensor x) { return weight_ = std::move(x), *this; }
  std::int64_t ignore_index() const { return ignore_index_; }
  NLLLossOptions& ignore_index(std::int64_t x) { return ignore_index_ = x, *this; }

 private:
  Tensor weight_;
  std::int64_t ignore_index_ = -100;
};

class CrossEntropyLossOptions : public WithReduction<CrossEntropyLossOptions> {
 public:
  using WithReduction::WithReduction;

  const Tensor& weight() const { return weight_; }
  CrossEntropyLossOptions& weight(Tensor x) { return weight_ = std::move(x), *this; }
  std::int64_t ignore_index() const { return ignore_index_; }
  CrossEntropyLossOptions& ignore_index(std::int64_t x) { return ignore_index_ = x, *this; }
  double label_smoothing() const { return label_smoothing_; }
  CrossEntropyLossOptions& label_smoothing(double x) { return label_smoothing_ = x, *this; }

 private:
  Tensor weight_;
  std::int64_t ignore_index_ = -100;
  double label_smoothing_ = 0;
};

class SmoothL1LossOptions : public WithReduction<SmoothL1LossOptions> {
 public:
  using WithReduction::WithReduction;

  double beta() const { return beta_; }
  SmoothL1LossOptions& beta(double x) { return beta_ = x, *this; }

 private:
  double beta_ = 1;
};

class HuberLossOptions : public WithReduction<HuberLossOptions> {
 public:
  using WithReduction::WithReduction;

  double delta() const { return delta_; }
  HuberLossOptions& delta(double x) { return delta_ = x, *this; }

 private:
  double delta_ = 1;
};

class BCELossOptions : public WithReduction<BCELossOptions> {
 public:
  using WithReduction::WithReduction;

  const Tensor& weight() const { return weight_; }
  BCELossOptions& weight(Tensor x) { return weight_ = std::move(x), *this; }

 private:
  Tensor weight_;
};

class BCEWithLogitsLossOptions : public WithReduction<BCEWithLogitsLossOptions> {
 public:
  using WithReduction::WithReduction;

  const Tensor& weight() const { return weight_; }
  BCEWithLogitsLossOptions& weight(Tensor x) { return weight_ = std::move(x), *this; }
  const Tensor& pos_weight() const { return pos_weight_; }
  BCEWithLogitsLossOptions& pos_weight(Tensor x) { return pos_weight_ = std::move(x), *this; }

 private:
  Tensor weight_, pos_weight_;
};

class KLDivLossOptions : public WithReduction<KLDivLossOptions> {
 public:
  using WithReduction::WithReduction;

  bool log_target() const { return log_target_; }
  KLDivLossOptions& log_target(bool x) { return log_target_ = x, *this; }

 private:
  bool log_target_ = false;
};

}  // namespace taper::nn
