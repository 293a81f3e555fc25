// Softmax and its logarithm: the op classes and the public functions.
#pragma once
#include "taper/autograd/op.h"

namespace taper {

// e^x / sum e^x along dim. With a dtype, x is converted first. A row of -inf gives NaN.
Tensor softmax(const TensorArg& x, std::int64_t dim, std::optional<DType> dtype = std::nullopt);
Tensor log_softmax(const TensorArg& x, std::int64_t dim, std::optional<DType> dtype = std::nullopt);

namespace ops {

// y = e^x / sum e^x: dy = y (dx - sum y dx)
class Softmax final : public OpOf<Softmax> {
 public:
  static constexpr const char* kName = "softmax";

  // `masked`: a row of -inf gives zeros, with gradient zero, instead of NaN.
  Softmax(int dim, DType dtype, bool masked = false) : dim_(dim), dtype_(dtype), masked_(masked) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  int dim_;
  DType dtype_;
  bool masked_;
};

// y = x - ln sum e^x: dy = dx - sum e^y dx
class LogSoftmax final : public OpOf<LogSoftmax> {
 public:
  static constexpr const char* kName = "log_softmax";

  LogSoftmax(int dim, DType dtype) : dim_(dim), dtype_(dtype) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  int dim_;
  DType dtype_;
};

}  // namespace ops
}  // namespace taper
