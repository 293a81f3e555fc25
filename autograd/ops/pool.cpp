// How pooling checks shapes and runs, and the functions that stand on it.
#include "taper/autograd/ops/pool.h"

#include <vector>

#include "taper/autograd/ops/conv.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"

namespace taper::ops {
namespace {

std::int64_t pooled_size(const Tensor& x, const Window2d& w, bool ceil_mode, int d) {
  const std::int64_t size = x.size(2 + d), step = w.stride[d];
  const std::int64_t reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
  const std::int64_t room = size + 2 * w.padding[d] - reach;
  TAPER_CHECK(room >= 0, "a window of ", IntArrayRef(w.kernel, 2), " does not fit into ", x.sizes(),
              " with padding ", IntArrayRef(w.padding, 2));
  std::int64_t n = (room + (ceil_mode ? step - 1 : 0)) / step + 1;
  if (ceil_mode && (n - 1) * step >= size + w.padding[d]) --n;  // it would begin in the padding
  return n;
}

// The layout of the result, in x's memory format.
Layout pooled_layout(const Tensor& x, const Window2d& w, bool ceil_mode) {
  TAPER_CHECK(x.dim() == 4, "needs x (N, C, H, W) or (C, H, W), got ", x.sizes());
  TAPER_CHECK(x.size(1) > 0 && x.size(2) > 0 && x.size(3) > 0, "x ", x.sizes(),
              " is empty outside the batch");
  for (int d = 0; d < 2; ++d) {
    TAPER_CHECK(w.kernel[d] > 0 && w.stride[d] > 0 && w.dilation[d] > 0, "kernel ",
                IntArrayRef(w.kernel, 2), ", stride ", IntArrayRef(w.stride, 2), " and dilation ",
                IntArrayRef(w.dilation, 2), " must be positive");
    TAPER_CHECK(w.padding[d] >= 0 && 2 * w.padding[d] <= w.kernel[d], "padding ",
                IntArrayRef(w.padding, 2), " must lie between 0 and half of the kernel ",
                IntArrayRef(w.kernel, 2));
  }
  const Sizes sizes{x.size(0), x.size(1), pooled_size(x, w, ceil_mode, 0),
                    pooled_size(x, w, ceil_mode, 1)};
  const bool last = !x.layout().is_contiguous() && is_channels_last(x.layout());
  return contiguous_layout(sizes, last ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous);
}

}  // namespace

void MaxPool2d::forward(Frame& f) {
  const Tensor& x = f.in(0);
  TAPER_CHECK(x.is_floating_point(), "needs a floating-point x, got ", x.dtype(), " ", x.sizes());
  const Layout layout = pooled_layout(x, window_, ceil_mode_);
  x_ = dense_like(x.layout());
  const Tensor y = f.out(layout, x.dtype()), indices = f.out(layout, kInt64);
  f.save(indices);
  if (y.numel() == 0) return;
  f.kernels().max_pool2d(f.exec(), y.as<Out>(), indices.as<Out>(), x.as<In>(), window_);
}

Grads MaxPool2d::backward(const Reverse& r) const {
  if (!r.grad().defined()) return Grads(1);
  const Tensor indices = r.saved(0);
  return {apply(MaxPool2dGrad(x_), {&r.grad(), &indices})};
}

void MaxPool2dGrad::forward(Frame& f) {
  const Tensor &g = f.in(0), &indices = f.in(1);
  f.save(indices);
  const Tensor& dx = f.out(x_, g.dtype());
  if (dx.numel() == 0) return;
  f.kernels().max_pool2d_grad(f.exec(), dx.as<Out>(), g.as<In>(), indices.as<In>());
}

Grads MaxPool2dGrad::backward(const Reverse& r) const {
  const Tensor indices = r.saved(0);
  Grads out(2);
  out[0] = r.grad().flatten(2).gather(2, indices.flatten(2)).view(indices.sizes());
  return out;
}

void AvgPool2d::forward(Frame& f) {
  const Tensor& x = f.in(0);
  TAPER_CHECK(x.is_floating_point(), "needs floating-point elements, got ", x.dtype());
  const Layout layout = pooled_layout(x, window_, ceil_mode_);
  x_ = dense_like(x.layout());
  const Tensor& y = f.out(layout, x.dtype());
  if (y.numel() > 0) f.kernels().avg_pool2d(f.exec(), y.as<Out>(), x.as<In>(), window_);
}

Grads AvgPool2d::backward(const Reverse& r) const {
  return {apply(AvgPool2dGrad(window_, ceil_mode_, x_), {&r.grad()})};
}

void AvgPool2dGrad::forward(Frame& f) {
  const Tensor& g = f.in(0);
  const Tensor& dx = f.out(x_, g.dtype());
  if (dx.numel() > 0) f.kernels().avg_pool2d_grad(f.exec(), dx.as<Out>(), g.as<In>(), window_);
}

Grads AvgPool2dGrad::backward(const Reverse& r) const {
  return {apply(AvgPool2d(window_, ceil_mode_), {&r.grad()})};
}

}  // namespace taper::ops

namespace taper {
namespace {

Window2d read_window(IntArrayRef kernel_size,
                     IntArrayRef stride,
                     IntArrayRef padding,
                     IntArrayRef dilation) {
  Window2d w;
  ops::read_pair(w.kernel, kernel_size, "kernel_size");
  ops::read_pair(w.stride, stride.empty() ? kernel_size : stride, "stride");
  ops::read_pair(w.padding, padding, "padding");
  ops::read_pair(w.dilation, dilation, "dilation");
  return w;
}

// Row i of the result is the mean over cell i of `size` elements cut into `cells`: (cells, size).
Tensor cell_means(std::int64_t size, std::int64_t cells, const Tensor& like) {
  std::vector<double> weights(static_cast<std::size_t>(size * cells));
  for (std::int64_t i = 0; i < cells; ++i) {
    const std::int64_t begin = i * size / cells, end = ((i + 1) * size + cells - 1) / cells;
    for (std::int64_t k = begin; k < end; ++k) {
      weights[static_cast<std::size_t>(i * size + k)] = 1 / static_cast<double>(end - begin);
    }
  }
  return tensor(weights, like.options()).view({cells, size});
}

// A 1-d pooling seen as a 2-d one over rows of height 1.
Sizes along_row(IntArrayRef given, std::int64_t other, const char* what) {
  if (given.empty()) return {};
  TAPER_CHECK(given.size() == 1, what, ": expected one number, got ", given);
  return {other, given[0]};
}

void check_row(const Tensor& x, const char* op) {
  TAPER_CHECK(x.dim() == 2 || x.dim() == 3, op, ": needs x (N, C, L) or (C, L), got ", x.sizes());
}

}  // namespace

std::tuple<Tensor, Tensor> max_pool2d_with_indices(const TensorArg& x,
                                                   IntArrayRef kernel_size,
                                                   IntArrayRef stride,
                                                   IntArrayRef padding,
                                                   IntArrayRef dilation,
                                                   bool ceil_mode) {
  const Call call(x.loc);
  const Window2d window = read_window(kernel_size, stride, padding, dilation);
  const bool single = x->dim() == 3;
  const Tensor batch = single ? x->unsqueeze(0) : *x;
  const Tensors out = apply_n(ops::MaxPool2d(window, ceil_mode), ArrayRef<const Tensor*>(&batch));
  return {single ? out[0].squeeze(0) : out[0], single ? out[1].squeeze(0) : out[1]};
}

Tensor max_pool2d(const TensorArg& x,
                  IntArrayRef kernel_size,
                  IntArrayRef stride,
                  IntArrayRef padding,
                  IntArrayRef dilation,
                  bool ceil_mode) {
  const Call call(x.loc);
  return std::get<0>(
      max_pool2d_with_indices(*x, kernel_size, stride, padding, dilation, ceil_mode));
}

Tensor avg_pool2d(const TensorArg& x,
                  IntArrayRef kernel_size,
                  IntArrayRef stride,
                  IntArrayRef padding,
                  bool ceil_mode,
                  bool count_include_pad,
                  std::optional<std::int64_t> divisor_override) {
  const Call call(x.loc);
  TAPER_CHECK(!divisor_override || *divisor_override != 0,
              "avg_pool2d: divisor_override must not be 0");
  Window2d window = read_window(kernel_size, stride, padding, 1);
  window.count_include_pad = count_include_pad;
  window.divisor_override = divisor_override.value_or(0);
  const bool single = x->dim() == 3;
  const Tensor batch = single ? x->unsqueeze(0) : *x;
  const Tensor y = apply(ops::AvgPool2d(window, ceil_mode), {&batch});
  return single ? y.squeeze(0) : y;
}

Tensor adaptive_avg_pool2d(const TensorArg& x, IntArrayRef output_size) {
  const Call call(x.loc);
  std::int64_t cells[2];
  ops::read_pair(cells, output_size, "output_size");
  TAPER_CHECK((x->dim() == 3 || x->dim() == 4) && x->is_floating_point(),
              "adaptive_avg_pool2d: needs floating x (N, C, H, W) or (C, H, W), got ", x->dtype(),
              " ", x->sizes());
  const std::int64_t height = x->size(-2), width = x->size(-1);
  TAPER_CHECK(height > 0 && width > 0 && cells[0] >= 0 && cells[1] >= 0,
              "adaptive_avg_pool2d: cannot cut a plane of ", x->sizes(), " into ", output_size,
              " cells");
  if (cells[0] == 1 && cells[1] == 1) return mean(*x, {-2, -1}, true);
  if (cells[0] > 0 && cells[1] > 0 && height % cells[0] == 0 && width % cells[1] == 0) {
    return avg_pool2d(*x, {height / cells[0], width / cells[1]});
  }
  // 16-bit floats are averaged in f32 and rounded once.
  const Tensor wide = x->itemsize() == 2 ? x->to(kFloat32) : *x;
  const Tensor rows = cell_means(height, cells[0], wide),
               columns = cell_means(width, cells[1], wide);
  return matmul(rows, matmul(wide, columns.t())).to(x->dtype());
}

Tensor max_pool1d(const TensorArg& x,
                  IntArrayRef kernel_size,
                  IntArrayRef stride,
                  IntArrayRef padding,
                  IntArrayRef dilation,
                  bool ceil_mode) {
  const Call call(x.loc);
  check_row(*x, "max_pool1d");
  return max_pool2d(x->unsqueeze(-2), along_row(kernel_size, 1, "max_pool1d: kernel_size"),
                    along_row(stride, 1, "max_pool1d: stride"),
                    along_row(padding, 0, "max_pool1d: padding"),
                    along_row(dilation, 1, "max_pool1d: dilation"), ceil_mode)
      .squeeze(-2);
}

Tensor avg_pool1d(const TensorArg& x,
                  IntArrayRef kernel_size,
                  IntArrayRef stride,
                  IntArrayRef padding,
                  bool ceil_mode,
                  bool count_include_pad) {
  const Call call(x.loc);
  check_row(*x, "avg_pool1d");
  return avg_pool2d(x->unsqueeze(-2), along_row(kernel_size, 1, "avg_pool1d: kernel_size"),
                    along_row(stride, 1, "avg_pool1d: stride"),
                    along_row(padding, 0, "avg_pool1d: padding"), ceil_mode, count_include_pad)
      .squeeze(-2);
}

Tensor adaptive_avg_pool1d(const TensorArg& x, IntArrayRef output_size) {
  const Call call(x.loc);
  check_row(*x, "adaptive_avg_pool1d");
  return adaptive_avg_pool2d(x->unsqueeze(-2),
                             along_row(output_size, 1, "adaptive_avg_pool1d: output_size"))
      .squeeze(-2);
}

}  // namespace taper
