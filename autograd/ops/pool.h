// Pooling over windows of a plane: the op classes and the public functions.
#pragma once
#include <tuple>

#include "taper/autograd/op.h"

namespace taper {

// x: (N, C, H, W) or (C, H, W). Sizes are one number or (height, width); an empty stride is the
// kernel's size. ceil_mode keeps a last window that begins inside and ends outside.
Tensor max_pool2d(const TensorArg& x,
                  IntArrayRef kernel_size,
                  IntArrayRef stride = {},
                  IntArrayRef padding = 0,
                  IntArrayRef dilation = 1,
                  bool ceil_mode = false);
// (values, indices): i64 positions in the H * W plane; the first of equals, NaN wins.
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const TensorArg& x,
                                                   IntArrayRef kernel_size,
                                                   IntArrayRef stride = {},
                                                   IntArrayRef padding = 0,
                                                   IntArrayRef dilation = 1,
                                                   bool ceil_mode = false);
// divisor_override replaces the count that the sum is divided by.
Tensor avg_pool2d(const TensorArg& x,
                  IntArrayRef kernel_size,
                  IntArrayRef stride = {},
                  IntArrayRef padding = 0,
                  bool ceil_mode = false,
                  bool count_include_pad = true,
                  std::optional<std::int64_t> divisor_override = std::nullopt);
// The plane as output_size cells, means of rows floor(i H / H') to ceil((i + 1) H / H').
Tensor adaptive_avg_pool2d(const TensorArg& x, IntArrayRef output_size);

// x: (N, C, L) or (C, L).
Tensor max_pool1d(const TensorArg& x,
                  IntArrayRef kernel_size,
                  IntArrayRef stride = {},
                  IntArrayRef padding = 0,
                  IntArrayRef dilation = 1,
                  bool ceil_mode = false);
Tensor avg_pool1d(const TensorArg& x,
                  IntArrayRef kernel_size,
                  IntArrayRef stride = {},
                  IntArrayRef padding = 0,
                  bool ceil_mode = false,
                  bool count_include_pad = true);
Tensor adaptive_avg_pool1d(const TensorArg& x, IntArrayRef output_size);

namespace ops {

// x -> (values, indices). dy is dx at the place of the maximum.
class MaxPool2d final : public OpOf<MaxPool2d> {
 public:
  static constexpr const char* kName = "max_pool2d";

  MaxPool2d(const Window2d& window, bool ceil_mode) : window_(window), ceil_mode_(ceil_mode) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Window2d window_;
  bool ceil_mode_;
  Layout x_;
};

// (g, indices) -> dx, g added at the places. dy is d g gathered from them.
class MaxPool2dGrad final : public OpOf<MaxPool2dGrad> {
 public:
  static constexpr const char* kName = "max_pool2d_grad";

  explicit MaxPool2dGrad(const Layout& x) : x_(x) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Layout x_;
};

// Linear: the derivative is the transposed map, and that one's derivative is this.
class AvgPool2d final : public OpOf<AvgPool2d> {
 public:
  static constexpr const char* kName = "avg_pool2d";

  AvgPool2d(const Window2d& window, bool ceil_mode) : window_(window), ceil_mode_(ceil_mode) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Window2d window_;
  bool ceil_mode_;
  Layout x_;
};

class AvgPool2dGrad final : public OpOf<AvgPool2dGrad> {
 public:
  static constexpr const char* kName = "avg_pool2d_grad";

  AvgPool2dGrad(const Window2d& window, bool ceil_mode, const Layout& x)
      : window_(window), ceil_mode_(ceil_mode), x_(x) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Window2d window_;
  bool ceil_mode_;
  Layout x_;
};

}  // namespace ops
}  // namespace taper
