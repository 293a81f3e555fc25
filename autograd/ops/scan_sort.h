// Running sums and products, and sorting: the op classes. The public functions are in reduce.h.
#pragma once
#include "taper/autograd/ops/reduce.h"

namespace taper::ops {

// y_i = x_0 + ... + x_i: dL/dx_i = sum of dL/dy_k over k >= i.
class Cumsum final : public OpOf<Cumsum> {
 public:
  static constexpr const char* kName = "cumsum";

  explicit Cumsum(std::int64_t dim) : dim_(dim) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t dim_;
};

// y_i = x_0 ... x_i: dL/dx_i = y_{i-1} R_i, where R_i = dL/dy_i + x_{i+1} R_{i+1}.
class Cumprod final : public OpOf<Cumprod> {
 public:
  static constexpr const char* kName = "cumprod";

  explicit Cumprod(std::int64_t dim) : dim_(dim) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t dim_;
};

// (values, indices), stable, NaN last; the first when descending. The gradient goes back to where
// each value came from.
class Sort final : public OpOf<Sort> {
 public:
  static constexpr const char* kName = "sort";

  Sort(std::int64_t dim, bool descending) : dim_(dim), descending_(descending) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t dim_;
  bool descending_;
};

// The k largest, or smallest, in order.
class TopK final : public OpOf<TopK> {
 public:
  static constexpr const char* kName = "topk";

  TopK(std::int64_t k, std::int64_t dim, bool largest) : k_(k), dim_(dim), largest_(largest) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t k_, dim_;
  bool largest_;
  Sizes sizes_;  // of the input
};

}  // namespace taper::ops
