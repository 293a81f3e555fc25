// Options of activations, as modules and functions take them.
#pragma once
#include <optional>
#include <string>

#include "taper/nn/options.h"

namespace taper::nn {

struct ReLUOptions : WithInplace<ReLUOptions> {
  ReLUOptions() = default;
  ReLUOptions(bool on) { inplace(on); }  // NOLINT(google-explicit-constructor)
};

struct ReLU6Options : WithInplace<ReLU6Options> {
  ReLU6Options() = default;
  ReLU6Options(bool on) { inplace(on); }  // NOLINT(google-explicit-constructor)
};

struct SELUOptions : WithInplace<SELUOptions> {
  SELUOptions() = default;
  SELUOptions(bool on) { inplace(on); }  // NOLINT(google-explicit-constructor)
};

class ELUOptions : public WithInplace<ELUOptions> {
 public:
  double alpha() const { return alpha_; }
  ELUOptions& alpha(double x) { return alpha_ = x, *this; }

 private:
  double alpha_ = 1;
};

class CELUOptions : public WithInplace<CELUOptions> {
 public:
  double alpha() const { return alpha_; }
  CELUOptions& alpha(double x) { return alpha_ = x, *this; }

 private:
  double alpha_ = 1;
};

class GELUOptions {
 public:
  const std::string& approximate() const { return approximate_; }
  GELUOptions& approximate(std::string x) { return approximate_ = std::move(x), *this; }

 private:
  std::string approximate_ = "none";  // or "tanh"
};

class GLUOptions {
 public:
  GLUOptions() = default;
  GLUOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT(google-explicit-constructor)

  std::int64_t dim() const { return dim_; }
  GLUOptions& dim(std::int64_t x) { return dim_ = x, *this; }

 private:
  std::int64_t dim_ = -1;
};

class LeakyReLUOptions : public WithInplace<LeakyReLUOptions> {
 public:
  double negative_slope() const { return negative_slope_; }
  LeakyReLUOptions& negative_slope(double x) { return negative_slope_ = x, *this; }

 private:
  double negative_slope_ = 0.01;
};

class HardtanhOptions : public WithInplace<HardtanhOptions> {
 public:
  double min_val() const { return min_val_; }
  HardtanhOptions& min_val(double x) { return min_val_ = x, *this; }
  double max_val() const { return max_val_; }
  HardtanhOptions& max_val(double x) { return max_val_ = x, *this; }

 private:
  double min_val_ = -1, max_val_ = 1;
};

class HardshrinkOptions {
 public:
  HardshrinkOptions() = default;
  HardshrinkOptions(double lambda) : lambda_(lambda) {}  // NOLINT(google-explicit-constructor)

  double lambda() const { return lambda_; }
  HardshrinkOptions& lambda(double x) { return lambda_ = x, *this; }

 private:
  double lambda_ = 0.5;
};

class SoftshrinkOptions {
 public:
  SoftshrinkOptions() = default;
  SoftshrinkOptions(double lambda) : lambda_(lambda) {}  // NOLINT(google-explicit-constructor)

  double lambda() const { return lambda_; }
  SoftshrinkOptions& lambda(double x) { return lambda_ = x, *this; }

 private:
  double lambda_ = 0.5;
};

class SoftplusOptions {
 public:
  double beta() const { return beta_; }
  SoftplusOptions& beta(double x) { return beta_ = x, *this; }
  double threshold() const { return threshold_; }
  SoftplusOptions& threshold(double x) { return threshold_ = x, *this; }

 private:
  double beta_ = 1, threshold_ = 20;
};

class ThresholdOptions : public WithInplace<ThresholdOptions> {
 public:
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}

  double threshold() const { return threshold_; }
  ThresholdOptions& threshold(double x) { return threshold_ = x, *this; }
  double value() const { return value_; }
  ThresholdOptions& value(double x) { return value_ = x, *this; }

 private:
  double threshold_, value_;
};

// Softmax, LogSoftmax and Softmin.
class SoftmaxOptions {
 public:
  SoftmaxOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT(google-explicit-constructor)

  std::int64_t dim() const { return dim_; }
  SoftmaxOptions& dim(std::int64_t x) { return dim_ = x, *this; }
  std::optional<DType> dtype() const { return dtype_; }
  SoftmaxOptions& dtype(std::optional<DType> x) { return dtype_ = x, *this; }

 private:
  std::int64_t dim_;
  std::optional<DType> dtype_;
};

using LogSoftmaxOptions = SoftmaxOptions;
using SoftminOptions = SoftmaxOptions;

}  // namespace taper::nn
