// Variance, norms and logsumexp: the op classes. The public functions are in reduce.h.
#pragma once
#include "taper/autograd/ops/reduce.h"

namespace taper::ops {

// (var, mean), over n elements each, var divided by n - correction.
// d var = 2 / (n - correction) sum (x - mean) dx; d mean = 1 / n sum dx
class VarMean final : public OpOf<VarMean> {
 public:
  static constexpr const char* kName = "var_mean";

  VarMean(const char* name, Dims dims, double correction)
      : name_(name), dims_(dims), correction_(correction) {}

  const char* name() const override { return name_; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  const char* name_;
  Dims dims_;
  double correction_;
};

// y = sqrt(var): dy = sum (x - mean) dx / ((n - correction) y); 0 where y is 0, also when this is
// differentiated again.
class Std final : public OpOf<Std> {
 public:
  static constexpr const char* kName = "std";

  Std(Dims dims, double correction) : dims_(dims), correction_(correction) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Dims dims_;
  double correction_;
};

// y = (sum |x|^p)^(1/p); p = 0 counts what is not 0, +-infinity is the largest (smallest) |x|.
// dy = sum sign(x) (|x| / y)^(p-1) dx. Where the norm is not smooth - y = 0, or p < 2 and x = 0 -
// its gradient is 0, and so is the gradient of that. Equal extremes share.
class Norm final : public OpOf<Norm> {
 public:
  static constexpr const char* kName = "norm";

  Norm(double p, Dims dims) : p_(p), dims_(dims) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  double p_;
  Dims dims_;
};

// y = ln sum e^x: dy = sum e^(x - y) dx; 0 where y is -infinity.
class LogSumExp final : public OpOf<LogSumExp> {
 public:
  static constexpr const char* kName = "logsumexp";

  explicit LogSumExp(Dims dims) : dims_(dims) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Dims dims_;
};

}  // namespace taper::ops
