// How convolutions check shapes and run, and the functions that stand on them.
#include "taper/autograd/ops/conv.h"

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"

namespace taper::ops {

void read_pair(std::int64_t (&pair)[2], IntArrayRef given, const char* what) {
  TAPER_CHECK(given.size() == 1 || given.size() == 2, what,
              ": expected one number or (height, width), got ", given);
  pair[0] = given[0];
  pair[1] = given[given.size() - 1];
}

namespace {

Sizes owned(IntArrayRef sizes) {
  Sizes out;
  for (const std::int64_t s : sizes) out.push_back(s);
  return out;
}

// The memory format of a result: that of `t`. What is both counts as row-major.
MemoryFormat format_of(const Tensor& t) {
  const bool last = !t.layout().is_contiguous() && is_channels_last(t.layout());
  return last ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous;
}

void check_window(const Window2d& w) {
  for (int d = 0; d < 2; ++d) {
    TAPER_CHECK(w.stride[d] > 0, "the stride must be positive, got ", IntArrayRef(w.stride, 2));
    TAPER_CHECK(w.padding[d] >= 0, "the padding must not be negative, got ",
                IntArrayRef(w.padding, 2));
    TAPER_CHECK(w.dilation[d] > 0, "the dilation must be positive, got ",
                IntArrayRef(w.dilation, 2));
  }
  TAPER_CHECK(w.groups > 0, "the number of groups must be positive, got ", w.groups);
}

void check_operands(const Tensor& x, const Tensor& w, const Window2d& window) {
  TAPER_CHECK(x.dim() == 4 && w.dim() == 4, "needs x (N, C, H, W) and weight (O, C / groups, kH, ",
              "kW), got ", x.sizes(), " and ", w.sizes());
  TAPER_CHECK(x.is_floating_point() && x.dtype() == w.dtype(), "x is ", x.dtype(),
              " and the weight ", w.dtype(), "; they must be one floating-point dtype");
  check_window(window);
  TAPER_CHECK(x.size(1) == w.size(1) * window.groups, "x ", x.sizes(), " has ", x.size(1),
              " channels, but weight ", w.sizes(), " with ", window.groups, " groups takes ",
              w.size(1) * window.groups);
  TAPER_CHECK(w.size(0) % window.groups == 0, "the ", w.size(0), " channels of the result do not ",
              "divide into ", window.groups, " groups");
}

// The sizes (N, O, H', W') of the result.
Sizes result_sizes(IntArrayRef x, IntArrayRef w, const Window2d& window) {
  Sizes sizes{x[0], w[0]};
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t in = x[2 + d] + 2 * window.padding[d];
    const std::int64_t reach = window.dilation[d] * (w[2 + d] - 1) + 1;
    TAPER_CHECK(w[2 + d] > 0, "the weight ", w, " has an empty window");
    TAPER_CHECK(in >= reach, "the window of weight ", w, " reaches over ", reach,
                " elements, but x ", x, " has ", in, " there, padding included");
    sizes.push_back((in - reach) / window.stride[d] + 1);
  }
  return sizes;
}

// That g is a gradient of conv(x, w), for tensors x and w of these sizes.
void check_gradient(
    const Tensor& g, const Tensor& other, IntArrayRef x, IntArrayRef w, const Window2d& window) {
  TAPER_CHECK(g.is_floating_point() && g.dtype() == other.dtype(), "the operands are ", g.dtype(),
              " and ", other.dtype(), "; they must be one floating-point dtype");
  TAPER_CHECK(g.dim() == 4 && x.size() == 4 && w.size() == 4 && x[1] == w[1] * window.groups &&
                  g.sizes() == IntArrayRef(result_sizes(x, w, window)),
              "sizes ", g.sizes(), " are not those of the convolution of ", x, " with weight ", w);
}

// Keeps each of two operands when the other's gradient will be asked for.
void save_pair(Frame& f) {
  if (f.needs(1)) f.save(f.in(0));
  if (f.needs(0)) f.save(f.in(1));
}

// What is read here: the operands that the needed gradients are made of.
struct Kept {
  Tensor first, second;

  explicit Kept(const Reverse& r) {
    const bool has_first = static_cast<bool>(r.entry().inputs[1]);
    if (r.needs(1)) first = r.saved(0);
    if (r.needs(0)) second = r.saved(has_first ? 1 : 0);
  }
};

}  // namespace

// y = x * w + b: dx = grad_input(dy, w), dw = grad_weight(dy, x), db = sum dy
void Conv2d::forward(Frame& f) {
  const Tensor &x = f.in(0), &w = f.in(1), &bias = f.in(2);
  check_operands(x, w, window_);
  TAPER_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == w.size(0)), "the bias must ",
              "have shape ", IntArrayRef(w.size(0)), ", got ", bias.defined() ? bias.sizes() : 0);
  TAPER_CHECK(!bias.defined() || bias.dtype() == x.dtype(), "x is ", x.dtype(), " and the bias ",
              bias.defined() ? bias.dtype() : x.dtype());
  x_sizes_ = owned(x.sizes());
  w_sizes_ = owned(w.sizes());
  save_pair(f);
  const Sizes sizes = result_sizes(x.sizes(), w.sizes(), window_);
  const Tensor& y = f.out(contiguous_layout(sizes, format_of(x)), x.dtype());
  if (y.numel() == 0) return;
  f.kernels().conv2d(f.exec(), y.as<Out>(), x.as<In>(), w.as<In>(), bias.as<In>(), window_);
}

Grads Conv2d::backward(const Reverse& r) const {
  const Kept kept(r);
  Grads out(3);
  if (r.needs(0)) out[0] = apply(Conv2dGradInput(window_, x_sizes_), {&r.grad(), &kept.second});
  if (r.needs(1)) out[1] = apply(Conv2dGradWeight(window_, w_sizes_), {&r.grad(), &kept.first});
  if (r.needs(2)) out[2] = r.grad().sum({0, 2, 3});
  return out;
}

// x = grad_input(g, w): dg = conv(dx, w), dw = grad_weight(g, dx)
void Conv2dGradInput::forward(Frame& f) {
  const Tensor &g = f.in(0), &w = f.in(1);
  w_sizes_ = owned(w.sizes());
  check_gradient(g, w, x_sizes_, w_sizes_, window_);
  save_pair(f);
  const Tensor& dx = f.out(contiguous_layout(x_sizes_, format_of(g)), g.dtype());
  if (g.numel() == 0) f.kernels().fill(f.exec(), dx.as<Out>(), 0);
  else f.kernels().conv2d_grad_input(f.exec(), dx.as<Out>(), g.as<In>(), w.as<In>(), window_);
}

Grads Conv2dGradInput::backward(const Reverse& r) const {
  const Kept kept(r);
  const Tensor none;
  Grads out(2);
  if (r.needs(0)) out[0] = apply(Conv2d(window_), {&r.grad(), &kept.second, &none});
  if (r.needs(1)) out[1] = apply(Conv2dGradWeight(window_, w_sizes_), {&kept.first, &r.grad()});
  return out;
}

// w = grad_weight(g, x): dg = conv(x, dw), dx = grad_input(g, dw)
void Conv2dGradWeight::forward(Frame& f) {
  const Tensor &g = f.in(0), &x = f.in(1);
  x_sizes_ = owned(x.sizes());
  check_gradient(g, x, x_sizes_, w_sizes_, window_);
  save_pair(f);
  const Tensor& dw = f.out(w_sizes_, g.dtype());
  if (g.numel() == 0) f.kernels().fill(f.exec(), dw.as<Out>(), 0);
  else f.kernels().conv2d_grad_weight(f.exec(), dw.as<Out>(), g.as<In>(), x.as<In>(), window_);
}

Grads Conv2dGradWeight::backward(const Reverse& r) const {
  const Kept kept(r);
  const Tensor none;
  Grads out(2);
  if (r.needs(0)) out[0] = apply(Conv2d(window_), {&kept.second, &r.grad(), &none});
  if (r.needs(1)) out[1] = apply(Conv2dGradInput(window_, x_sizes_), {&kept.first, &r.grad()});
  return out;
}

}  // namespace taper::ops

namespace taper {
namespace {

Window2d read_window(const Tensor& weight,
                     IntArrayRef stride,
                     IntArrayRef padding,
                     IntArrayRef dilation,
                     std::int64_t groups) {
  Window2d w;
  for (int d = 0; d < 2 && weight.dim() == 4; ++d) w.kernel[d] = weight.size(2 + d);
  ops::read_pair(w.stride, stride, "stride");
  ops::read_pair(w.padding, padding, "padding");
  ops::read_pair(w.dilation, dilation, "dilation");
  w.groups = groups;
  return w;
}

// Runs f over x with a batch dim in front; `dims` is how many x has with it.
template <class F> Tensor batched(const Tensor& x, std::int64_t dims, const F& f) {
  return x.dim() == dims - 1 ? f(x.unsqueeze(0)).squeeze(0) : f(x);
}

// A number along the one dim of a 1-d convolution, with `other` along the dim made for it.
Sizes along_row(IntArrayRef given, std::int64_t other, const char* what) {
  TAPER_CHECK(given.size() == 1, "conv1d: ", what, ": expected one number, got ", given);
  return {other, given[0]};
}

}  // namespace

Tensor conv2d(const TensorArg& x,
              const Tensor& weight,
              const Tensor& bias,
              IntArrayRef stride,
              IntArrayRef padding,
              IntArrayRef dilation,
              std::int64_t groups) {
  const Call call(x.loc);
  const Window2d window = read_window(weight, stride, padding, dilation, groups);
  return batched(*x, 4, [&](const Tensor& t) {
    return apply(ops::Conv2d(window), {&t, &weight, &bias});
  });
}

Tensor conv1d(const TensorArg& x,
              const Tensor& weight,
              const Tensor& bias,
              IntArrayRef stride,
              IntArrayRef padding,
              IntArrayRef dilation,
              std::int64_t groups) {
  const Call call(x.loc);
  TAPER_CHECK((x->dim() == 2 || x->dim() == 3) && weight.dim() == 3,
              "conv1d: needs x (N, C, L) or (C, L) and weight (O, C / groups, k), got ", x->sizes(),
              " and ", weight.sizes());
  TAPER_CHECK(x->size(-2) == weight.size(1) * groups, "conv1d: x ", x->sizes(), " and weight ",
              weight.sizes(), " with ", groups, " groups differ in their channels");
  return conv2d(x->unsqueeze(-2), weight.unsqueeze(-2), bias, along_row(stride, 1, "stride"),
                along_row(padding, 0, "padding"), along_row(dilation, 1, "dilation"), groups)
      .squeeze(-2);
}

Tensor conv_transpose2d(const TensorArg& x,
                        const Tensor& weight,
                        const Tensor& bias,
                        IntArrayRef stride,
                        IntArrayRef padding,
                        IntArrayRef output_padding,
                        std::int64_t groups,
                        IntArrayRef dilation) {
  const Call call(x.loc);
  const Window2d window = read_window(weight, stride, padding, dilation, groups);
  std::int64_t extra[2];
  ops::read_pair(extra, output_padding, "output_padding");
  ops::check_window(window);
  return batched(*x, 4, [&](const Tensor& t) {
    TAPER_CHECK(t.dim() == 4 && weight.dim() == 4 && t.size(1) == weight.size(0) &&
                    weight.size(0) % groups == 0,
                "conv_transpose2d: needs x (N, C, H, W) and weight (C, O / groups, kH, kW), C a ",
                "multiple of groups, got ", x->sizes(), " and ", weight.sizes(), " with ", groups,
                " groups");
    TAPER_CHECK(t.size(2) > 0 && t.size(3) > 0 && weight.size(2) > 0 && weight.size(3) > 0,
                "conv_transpose2d: x ", x->sizes(), " or weight ", weight.sizes(),
                " has an empty plane");
    TAPER_CHECK(t.dtype() == weight.dtype(), "conv_transpose2d: x is ", t.dtype(),
                " and the weight ", weight.dtype());
    Sizes sizes{t.size(0), weight.size(1) * groups};
    for (int d = 0; d < 2; ++d) {
      TAPER_CHECK(extra[d] >= 0 && extra[d] < window.stride[d], "conv_transpose2d: output_padding ",
                  output_padding, " must lie in [0, stride), stride being ", stride);
      sizes.push_back((t.size(2 + d) - 1) * window.stride[d] - 2 * window.padding[d] +
                      window.dilation[d] * (weight.size(2 + d) - 1) + extra[d] + 1);
      TAPER_CHECK(sizes.back() > 0, "conv_transpose2d: x ", x->sizes(), " and weight ",
                  weight.sizes(), " give a result without elements");
    }
    TAPER_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == sizes[1]),
                "conv_transpose2d: the bias must have shape ", IntArrayRef(sizes[1]), ", got ",
                bias.defined() ? bias.sizes() : 0);
    const Tensor y = apply(ops::Conv2dGradInput(window, sizes), {&t, &weight});
    return bias.defined() ? y + bias.reshape({-1, 1, 1}) : y;
  });
}

}  // namespace taper
