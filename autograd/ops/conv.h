// Convolutions: three ops closed under differentiation, and the public functions.
#pragma once
#include "taper/autograd/op.h"

namespace taper {

// Cross-correlation. x: (N, C, H, W) or (C, H, W); weight: (O, C / groups, kH, kW); bias: (O).
// Stride, padding and dilation are one number or (height, width). H' = floor((H + 2 padding -
// dilation (kH - 1) - 1) / stride) + 1. The result lies in memory as x does (NCHW, channels_last).
Tensor conv2d(const TensorArg& x,
              const Tensor& weight,
              const Tensor& bias = {},
              IntArrayRef stride = 1,
              IntArrayRef padding = 0,
              IntArrayRef dilation = 1,
              std::int64_t groups = 1);

// x: (N, C, L) or (C, L); weight: (O, C / groups, k).
Tensor conv1d(const TensorArg& x,
              const Tensor& weight,
              const Tensor& bias = {},
              IntArrayRef stride = 1,
              IntArrayRef padding = 0,
              IntArrayRef dilation = 1,
              std::int64_t groups = 1);

// The transpose of conv2d as a linear map. x: (N, C, H, W) or (C, H, W); weight: (C, O / groups,
// kH, kW); bias: (O). H' = (H - 1) stride - 2 padding + dilation (kH - 1) + output_padding + 1.
Tensor conv_transpose2d(const TensorArg& x,
                        const Tensor& weight,
                        const Tensor& bias = {},
                        IntArrayRef stride = 1,
                        IntArrayRef padding = 0,
                        IntArrayRef output_padding = 0,
                        std::int64_t groups = 1,
                        IntArrayRef dilation = 1);

namespace ops {

// One number for both of (height, width), or two. Throws, naming `what`.
void read_pair(std::int64_t (&pair)[2], IntArrayRef given, const char* what);

// Note [Three convolutions]
// y = conv(x, w) is linear in x and in w. With <a, b> the sum of products, three maps say the same:
// <g, conv(x, w)> = <grad_input(g, w), x> = <grad_weight(g, x), w>. So the derivatives of each of
// the three, in either operand, are the other two.

// (x, w, bias or undefined) -> y
class Conv2d final : public OpOf<Conv2d> {
 public:
  static constexpr const char* kName = "conv2d";

  explicit Conv2d(const Window2d& window) : window_(window) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Window2d window_;
  Sizes x_sizes_, w_sizes_;
};

// (g, w) -> the x of sizes (N, C, H, W)
class Conv2dGradInput final : public OpOf<Conv2dGradInput> {
 public:
  static constexpr const char* kName = "conv2d_grad_input";

  Conv2dGradInput(const Window2d& window, Sizes x_sizes)
      : window_(window), x_sizes_(std::move(x_sizes)) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Window2d window_;
  Sizes x_sizes_, w_sizes_;
};

// (g, x) -> the w of sizes (O, C / groups, kH, kW)
class Conv2dGradWeight final : public OpOf<Conv2dGradWeight> {
 public:
  static constexpr const char* kName = "conv2d_grad_weight";

  Conv2dGradWeight(const Window2d& window, Sizes w_sizes)
      : window_(window), w_sizes_(std::move(w_sizes)) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Window2d window_;
  Sizes x_sizes_, w_sizes_;
};

}  // namespace ops
}  // namespace taper
