// How normalisations run, and their derivatives.
#include "taper/autograd/ops/norm.h"

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/unary.h"
#include "taper/core/promote.h"

namespace taper::ops {
namespace {

// 16-bit floats keep their statistics in f32.
DType statistics_dtype(DType dtype) {
  return dtype == kFloat16 || dtype == kBFloat16 ? kFloat32 : dtype;
}

Tensor flat(const Tensor& t) {
  return t.defined() ? t.reshape(-1) : Tensor();
}

void check_affine(const Tensor& t, IntArrayRef sizes, const char* what) {
  TAPER_CHECK(!t.defined() || t.sizes() == sizes, "the ", what, " must have shape ", sizes,
              ", got ", t.defined() ? t.sizes() : sizes);
  TAPER_CHECK(!t.defined() || t.is_floating_point(), "the ", what,
              " must be of a floating-point dtype, got ", t.defined() ? t.dtype() : kFloat32);
}

}  // namespace

void LayerNorm::forward(Frame& f) {
  const Tensor& x = f.in(0);
  const auto dims = static_cast<std::size_t>(dims_);
  const IntArrayRef shape(x.sizes().end() - dims, dims);
  check_affine(f.in(1), shape, "weight");
  check_affine(f.in(2), shape, "bias");
  columns_ = checked_numel(shape);
  rows_ = checked_numel(IntArrayRef(x.sizes().data(), x.sizes().size() - dims));
  const DType dtype = floating_type(x.dtype());
  const Tensor rows = cast(f, x, dtype).reshape({rows_, columns_});
  const Tensor weight = flat(f.in(1)), bias = flat(f.in(2));
  const Tensor mean = make_tensor(contiguous_layout(rows_), statistics_dtype(dtype), f.device());
  const Tensor rstd = make_tensor(contiguous_layout(rows_), statistics_dtype(dtype), f.device());
  const Tensor y = f.out(x.sizes(), dtype).view({rows_, columns_});
  if (x.numel() > 0) {
    f.kernels().layer_norm(f.exec(), y.as<Out>(), mean.as<Out>(), rstd.as<Out>(), rows.as<In>(),
                           weight.as<In>(), bias.as<In>(), eps_);
  }
  f.save(x);
  f.save(mean);
  f.save(rstd);
  if (f.in(1).defined()) f.save(f.in(1));
}

Grads LayerNorm::backward(const Reverse& r) const {
  const Tensor weight = r.saved_count() > 3 ? r.saved(3) : Tensor();
  const DType dtype = r.grad().dtype();
  const Tensor rows = r.saved(0).to(dtype).reshape({rows_, columns_});
  Grads out =
      GradMode::is_enabled() ? composite(r, rows, flat(weight)) : fused(r, rows, flat(weight));
  if (out[0].defined()) out[0] = out[0].reshape(r.grad().sizes());
  const auto dims = static_cast<std::size_t>(dims_);
  const IntArrayRef shape(r.grad().sizes().end() - dims, dims);
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (out[i].defined()) out[i] = out[i].reshape(shape);
  }
  return out;
}

Grads LayerNorm::composite(const Reverse& r, const Tensor& x, const Tensor& weight) const {
  const Tensor grad = r.grad().reshape({rows_, columns_});
  const Tensor centred = x - mean(x, 1, true);
  const Tensor rstd = rsqrt(mean(square(centred), 1, true) + eps_);
  const Tensor h = centred * rstd;
  Grads out(3);
  if (r.needs(0)) {
    const Tensor g = weight.defined() ? grad * weight : grad;
    out[0] = rstd * (g - mean(g, 1, true) - h * mean(g * h, 1, true));
  }
  if (r.needs(1)) out[1] = sum(grad * h, 0);
  if (r.needs(2)) out[2] = sum(grad, 0);
  return out;
}

Grads LayerNorm::fused(const Reverse& r, const Tensor& x, const Tensor& weight) const {
  const Tensor grad = r.grad().reshape({rows_, columns_}), mean = r.saved(1), rstd = r.saved(2);
  Grads out(3);
  if (r.needs(0)) out[0] = empty_like(x);
  const TensorOptions wide = x.options().dtype(statistics_dtype(x.dtype()));
  if (r.needs(1)) out[1] = zeros(columns_, wide);
  if (r.needs(2)) out[2] = zeros(columns_, wide);
  if (x.numel() == 0) return out;
  const auto part = [&](std::size_t i) { return out[i].as<Out>(); };
  kernels_for(x.device())
      .layer_norm_grad(Exec(x.device()), part(0), part(1), part(2), grad.as<In>(), x.as<In>(),
                       mean.as<In>(), rstd.as<In>(), weight.as<In>());
  return out;
}

namespace {

// All dims but that of the channels.
Sizes other_dims(const Tensor& x) {
  Sizes dims{0};
  for (std::int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

// A tensor (C) beside x (N, C, ...).
Tensor along_channels(const Tensor& t, std::int64_t ndim) {
  Sizes sizes(static_cast<std::size_t>(ndim));
  for (std::int64_t& s : sizes) s = 1;
  sizes[1] = -1;
  return t.reshape(sizes);
}

double per_channel(const Tensor& x) {
  double n = static_cast<double>(x.size(0));
  for (std::int64_t d = 2; d < x.dim(); ++d) n *= static_cast<double>(x.size(d));
  return n;
}

void move_towards(const Tensor& running, const Tensor& batch, double momentum) {
  if (!running.defined()) return;
  running.mul_(1 - momentum).add_(batch.reshape(-1).to(running.dtype()), momentum);
}

}  // namespace

BatchNorm::Statistics BatchNorm::batch_statistics(const Tensor& x, bool update) const {
  const auto [var, mean] = var_mean(x, other_dims(x), false, true);
  if (update) {
    const double n = per_channel(x);
    move_towards(running_mean_, mean, momentum_);
    move_towards(running_var_, var * (n / (n - 1)), momentum_);
  }
  return {mean, rsqrt(var + eps_)};
}

BatchNorm::Statistics BatchNorm::running_statistics(const Tensor& x) const {
  const Tensor mean = running_mean_.to(x.dtype()), var = running_var_.to(x.dtype());
  return {along_channels(mean, x.dim()).clone(), rsqrt(along_channels(var, x.dim()) + eps_)};
}

void BatchNorm::forward(Frame& f) {
  const Tensor &in = f.in(0), &weight = f.in(1), &bias = f.in(2);
  TAPER_CHECK(in.dim() >= 2, "needs x (N, C, ...), got ", in.sizes());
  const DType dtype = floating_type(in.dtype()), wide = statistics_dtype(dtype);
  const IntArrayRef channels(in.sizes().begin() + 1, 1);
  check_affine(weight, channels, "weight");
  check_affine(bias, channels, "bias");
  check_affine(running_mean_, channels, "running mean");
  check_affine(running_var_, channels, "running variance");
  TAPER_CHECK(training_ || (running_mean_.defined() && running_var_.defined()),
              "needs running statistics when it is not training");
  const Tensor x = cast(f, in, wide);
  TAPER_CHECK(!training_ || per_channel(x) != 1,
              "training needs more than one value per channel, got x ", x.sizes());
  const Statistics s = training_ ? batch_statistics(x, true) : running_statistics(x);
  running_mean_ = running_var_ = Tensor();
  Tensor scale = s.rstd;
  if (weight.defined()) scale = scale * along_channels(weight.to(wide), x.dim());
  Tensor shift = -(s.mean * scale);
  if (bias.defined()) shift = shift + along_channels(bias.to(wide), x.dim());
  f.out((x * scale).add_(shift).to(dtype));
  f.save(in);
  f.save(s.mean);
  f.save(s.rstd);
  if (weight.defined()) f.save(weight);
}

Grads BatchNorm::backward(const Reverse& r) const {
  const DType wide = statistics_dtype(r.grad().dtype());
  const Tensor x = r.saved(0).to(wide), grad = r.grad().to(wide);
  // Statistics of the batch have gradients of their own, so a graph needs them made from x.
  const Statistics s = training_ && GradMode::is_enabled() ? batch_statistics(x, false)
                                                           : Statistics{r.saved(1), r.saved(2)};
  const Sizes dims = other_dims(x);
  const Tensor centred = x - s.mean;
  const Tensor sum_grad = sum(grad, dims, true);
  Grads out(3);
  if (r.needs(2)) out[2] = sum_grad.reshape(-1);
  if (!r.needs(0) && !r.needs(1)) return out;
  const Tensor sum_product = sum(grad * centred, dims, true);
  if (r.needs(1)) out[1] = (sum_product * s.rstd).reshape(-1);
  if (!r.needs(0)) return out;
  Tensor scale = s.rstd;
  if (r.saved_count() > 3) scale = scale * along_channels(r.saved(3).to(wide), x.dim());
  out[0] = grad * scale;
  if (!training_) return out;
  const Tensor per_element = scale / per_channel(x);
  const Tensor slope = per_element * square(s.rstd) * sum_product;
  out[0] = out[0] - centred * slope - per_element * sum_grad;
  return out;
}

}  // namespace taper::ops

namespace taper {

Tensor layer_norm(const TensorArg& x,
                  IntArrayRef normalized_shape,
                  const Tensor& weight,
                  const Tensor& bias,
                  double eps) {
  const Call call(x.loc);
  const auto n = normalized_shape.size(), ndim = x->sizes().size();
  TAPER_CHECK(n > 0 && n <= ndim && IntArrayRef(x->sizes().end() - n, n) == normalized_shape,
              "layer_norm: normalized_shape ", normalized_shape, " must be the last sizes of x ",
              x->sizes());
  return apply(ops::LayerNorm(static_cast<int>(n), eps), {&*x, &weight, &bias});
}

Tensor group_norm(
    const TensorArg& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() >= 2, "group_norm: needs x (N, C, ...), got ", x->sizes());
  const std::int64_t channels = x->size(1);
  TAPER_CHECK(groups > 0 && channels % groups == 0, "group_norm: ", channels, " channels of x ",
              x->sizes(), " do not divide into ", groups, " groups");
  ops::check_affine(weight, channels, "weight");
  ops::check_affine(bias, channels, "bias");
  const std::int64_t rows = x->size(0) * groups;
  std::int64_t columns = channels / groups;
  for (std::int64_t d = 2; d < x->dim(); ++d) columns *= x->size(d);
  Tensor y = layer_norm(x->reshape({rows, columns}), columns, {}, {}, eps).reshape(x->sizes());
  if (weight.defined()) y = y * ops::along_channels(weight, x->dim());
  return bias.defined() ? y + ops::along_channels(bias, x->dim()) : y;
}

Tensor batch_norm(const TensorArg& x,
                  const Tensor& running_mean,
                  const Tensor& running_var,
                  const Tensor& weight,
                  const Tensor& bias,
                  bool training,
                  double momentum,
                  double eps) {
  const Call call(x.loc);
  return apply(ops::BatchNorm(running_mean, running_var, training, momentum, eps),
               {&*x, &weight, &bias});
}

// Each channel of each sample is a channel of a batch of one.
Tensor instance_norm(const TensorArg& x,
                     const Tensor& weight,
                     const Tensor& bias,
                     const Tensor& running_mean,
                     const Tensor& running_var,
                     bool use_input_stats,
                     double momentum,
                     double eps) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() >= 3, "instance_norm: needs x (N, C, L, ...), got ", x->sizes());
  const std::int64_t samples = x->size(0), channels = x->size(1);
  Sizes sizes{1, samples * channels};
  for (std::int64_t d = 2; d < x->dim(); ++d) sizes.push_back(x->size(d));
  const auto each = [&](const Tensor& t) { return t.defined() ? t.repeat(samples) : t; };
  const Tensor mean = each(running_mean), var = each(running_var);
  const Tensor y = batch_norm(x->reshape(sizes), mean, var, each(weight), each(bias),
                              use_input_stats, momentum, eps);
  const auto keep = [&](const Tensor& running, const Tensor& moved) {
    if (use_input_stats && running.defined()) {
      running.copy_(taper::mean(moved.view({samples, channels}), 0));
    }
  };
  keep(running_mean, mean);
  keep(running_var, var);
  return y.view(x->sizes());
}

}  // namespace taper
