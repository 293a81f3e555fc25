// How losses are computed, and their derivatives.
#include "taper/autograd/ops/loss.h"

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/softmax.h"
#include "taper/core/cuda_graph.h"
#include "taper/core/promote.h"

namespace taper {
namespace {

// 16-bit floats add up in f32.
DType sum_dtype(DType dtype) {
  return dtype == kFloat16 || dtype == kBFloat16 ? kFloat32 : dtype;
}

void check_weight(const Tensor& weight, std::int64_t classes) {
  TAPER_CHECK(!weight.defined() || (weight.dim() == 1 && weight.size(0) == classes),
              "the weight must have shape ", IntArrayRef(classes), ", got ",
              weight.defined() ? weight.sizes() : 0);
}

// Class labels of a loss, ready to index with; and what each one counts.
struct Labels {
  Tensor index;    // i64; 0 where ignored
  Tensor ignored;  // bool
  Tensor factor;   // the class's weight, or 1; 0 where ignored

  Labels(const Tensor& target,
         const Tensor& weight,
         std::int64_t classes,
         std::int64_t ignore_index,
         DType dtype) {
    TAPER_CHECK(is_integral(target.dtype()), "the target must hold class labels (integers), got ",
                target.dtype());
    check_weight(weight, classes);
    const Tensor labels = target.to(kInt64);
    ignored = labels == ignore_index;
    index = where(ignored, 0, labels);
    check_range(classes);
    if (weight.defined()) {
      const Tensor chosen = weight.to(dtype).index_select(0, index.reshape(-1));
      factor = where(ignored, 0, chosen.view(index.sizes()));
    } else {
      factor = logical_not(ignored).to(dtype);
    }
  }

 private:
  void check_range(std::int64_t classes) const {
    if (index.is_meta() || index.numel() == 0) return;
    if (is_current_stream_capturing(index.device())) return;  // a replay can tell nobody
    const Tensor bad = logical_or(index < 0, index >= classes);
    if (!any(bad).item<bool>()) return;
    const auto label = masked_select(index, bad).select(0, 0).item<std::int64_t>();
    fail(str("label ", label, " is none of the ", classes, " classes, 0 to ", classes - 1,
             ", and is not ignore_index"));
  }
};

Tensor reduced(const Tensor& losses, Reduction reduction) {
  TAPER_CHECK(reduction != Reduction::kBatchMean, "kBatchMean is a reduction of kl_div alone");
  if (reduction == Reduction::kNone) return losses;
  return reduction == Reduction::kMean ? mean(losses) : sum(losses);
}

}  // namespace

namespace ops {

void NllLoss::forward(Frame& f) {
  const Tensor &x = f.in(0), &target = f.in(1);
  TAPER_CHECK(!f.needs(2), "the weight takes no gradient; give weight.detach()");
  TAPER_CHECK(reduction_ != Reduction::kBatchMean, "kBatchMean is a reduction of kl_div alone");
  TAPER_CHECK(x.dim() >= 2 && x.is_floating_point(), "needs floating x (N, C, ...) or (C), got ",
              x.dtype(), " ", x.sizes());
  for (const std::int64_t s : x.sizes()) sizes_.push_back(s);
  Sizes wanted{x.size(0)};
  for (int d = 2; d < x.dim(); ++d) wanted.push_back(x.size(d));
  TAPER_CHECK(target.sizes() == IntArrayRef(wanted), "scores ", x.sizes(), " need labels of shape ",
              IntArrayRef(wanted), ", got ", target.sizes());
  const DType dtype = sum_dtype(x.dtype());
  const Labels labels(target, f.in(2), x.size(1), ignore_index_, dtype);
  const Tensor chosen = x.gather(1, labels.index.unsqueeze(1)).squeeze(1).to(dtype);
  const Tensor losses = where(labels.ignored, 0, chosen * -labels.factor);
  Tensor factor = labels.factor, y = losses;
  if (reduction_ != Reduction::kNone) y = sum(losses);
  if (reduction_ == Reduction::kMean) {
    const Tensor total = sum(factor);
    factor = where(labels.ignored, 0, factor / total);
    y = y / total;
  }
  f.out(y.to(x.dtype()));
  f.save(labels.index);
  f.save(factor);
}

Grads NllLoss::backward(const Reverse& r) const {
  const Tensor index = r.saved(0), factor = r.saved(1);
  const Tensor parts = (r.grad() * -factor).to(r.grad().dtype());
  const Tensor none = zeros(sizes_, r.grad().options());
  Grads out(3);
  out[0] = none.scatter(1, index.unsqueeze(1), parts.unsqueeze(1));
  return out;
}

void Huber::forward(Frame& f) {
  const Tensor& d = f.in(0);
  f.save(d);
  const Tensor size = abs(d);
  f.out(where(size < delta_, square(d) * 0.5, (size - 0.5 * delta_) * delta_));
}

Grads Huber::backward(const Reverse& r) const {
  return {r.grad() * clamp(r.saved(0), -delta_, delta_)};
}

void BinaryCrossEntropy::forward(Frame& f) {
  const Tensor &x = f.in(0), &target = f.in(1);
  TAPER_CHECK(x.sizes() == target.sizes(), "x has shape ", x.sizes(), ", the target ",
              target.sizes(), "; they must be equal");
  TAPER_CHECK(x.is_floating_point() && target.is_floating_point(),
              "needs floating-point operands, got ", x.dtype(), " and ", target.dtype());
  f.save(x);
  f.save(target);
  const Tensor ln_x = clamp_min(log(x), -100), ln_rest = clamp_min(log1p(-x), -100);
  f.out((target - 1) * ln_rest - target * ln_x);
}

Grads BinaryCrossEntropy::backward(const Reverse& r) const {
  const Tensor x = r.saved(0), target = r.saved(1);
  Grads out(2);
  if (r.needs(0)) out[0] = r.grad() * (x - target) / clamp_min((1 - x) * x, 1e-12);
  if (r.needs(1)) {
    out[1] = r.grad() * (clamp_min(log1p(-x), -100) - clamp_min(log(x), -100));
  }
  return out;
}

}  // namespace ops

Tensor nll_loss(const TensorArg& x,
                const Tensor& target,
                const Tensor& weight,
                Reduction reduction,
                std::int64_t ignore_index) {
  const Call call(x.loc);
  const bool single = x->dim() == 1;
  TAPER_CHECK(!single || target.dim() == 0, "nll_loss: scores ", x->sizes(),
              " of one sample need a label of shape (), got ", target.sizes());
  const Tensor batch = single ? x->unsqueeze(0) : *x;
  const Tensor labels = single ? target.unsqueeze(0) : target;
  const Tensor y = apply(ops::NllLoss(reduction, ignore_index), {&batch, &labels, &weight});
  return single && reduction == Reduction::kNone ? y.squeeze(0) : y;
}

namespace {

// weight (C) along dim of a tensor of `ndim` dims; or a number when there is none.
Tensor along_classes(const Tensor& weight, std::int64_t dim, std::int64_t ndim) {
  Sizes sizes(static_cast<std::size_t>(ndim));
  for (std::int64_t& s : sizes) s = 1;
  sizes[static_cast<std::size_t>(dim)] = -1;
  return weight.reshape(sizes);
}

// -sum over classes of target * log_p, target being probabilities.
Tensor soft_cross_entropy(const Tensor& log_p,
                          const Tensor& target,
                          const Tensor& weight,
                          Reduction reduction,
                          double smoothing) {
  const std::int64_t dim = log_p.dim() == 1 ? 0 : 1, classes = log_p.size(dim);
  check_weight(weight, classes);
  const Tensor smooth =
      smoothing == 0 ? target : target * (1 - smoothing) + smoothing / static_cast<double>(classes);
  Tensor terms = log_p * smooth;
  if (weight.defined()) terms = terms * along_classes(weight, dim, log_p.dim());
  if (reduction == Reduction::kNone) return -sum(terms, dim);
  if (reduction == Reduction::kSum) return -sum(terms);
  return -sum(terms) / (static_cast<double>(log_p.numel()) / static_cast<double>(classes));
}

// The part that label smoothing takes from the uniform distribution: -sum over classes of log_p.
Tensor uniform_loss(const Tensor& log_p,
                    const Tensor& target,
                    const Tensor& weight,
                    Reduction reduction,
                    std::int64_t ignore_index) {
  const std::int64_t dim = log_p.dim() == 1 ? 0 : 1;
  const Labels labels(target, weight, log_p.size(dim), ignore_index, log_p.dtype());
  const Tensor terms = weight.defined() ? log_p * along_classes(weight, dim, log_p.dim()) : log_p;
  const Tensor losses = where(labels.ignored, 0, -sum(terms, dim));
  if (reduction != Reduction::kMean) return reduced(losses, reduction);
  return sum(losses) / sum(labels.factor);
}

}  // namespace

Tensor cross_entropy(const TensorArg& x,
                     const Tensor& target,
                     const Tensor& weight,
                     Reduction reduction,
                     std::int64_t ignore_index,
                     double label_smoothing) {
  const Call call(x.loc);
  TAPER_CHECK(label_smoothing >= 0 && label_smoothing <= 1,
              "cross_entropy: label_smoothing must lie in [0, 1], got ", label_smoothing);
  TAPER_CHECK(x->dim() > 0, "cross_entropy: needs scores (N, C, ...) or (C), got a number");
  const std::int64_t dim = x->dim() == 1 ? 0 : 1;
  const Tensor log_p = log_softmax(*x, dim);
  if (target.is_floating_point()) {
    TAPER_CHECK(target.sizes() == x->sizes(), "cross_entropy: scores have shape ", x->sizes(),
                ", the target probabilities ", target.sizes(), "; they must be equal");
    return soft_cross_entropy(log_p, target, weight, reduction, label_smoothing);
  }
  Tensor hard = nll_loss(log_p, target, weight, reduction, ignore_index);
  if (label_smoothing == 0) return hard;
  const Tensor uniform = uniform_loss(log_p, target, weight, reduction, ignore_index);
  const double share = label_smoothing / static_cast<double>(x->size(dim));
  return hard * (1 - label_smoothing) + uniform * share;
}

Tensor mse_loss(const TensorArg& x, const TensorArg& target, Reduction reduction) {
  const Call call(x.loc);
  return reduced(square(*x - *target), reduction);
}

Tensor l1_loss(const TensorArg& x, const TensorArg& target, Reduction reduction) {
  const Call call(x.loc);
  return reduced(abs(*x - *target), reduction);
}

namespace {

Tensor huber(const Tensor& x, const Tensor& target, double delta) {
  const Tensor difference = x - target;
  return apply(ops::Huber(delta), {&difference});
}

}  // namespace

Tensor smooth_l1_loss(const TensorArg& x,
                      const TensorArg& target,
                      Reduction reduction,
                      double beta) {
  const Call call(x.loc);
  TAPER_CHECK(beta >= 0, "smooth_l1_loss: beta must not be negative, got ", beta);
  if (beta == 0) return l1_loss(*x, *target, reduction);
  return reduced(huber(*x, *target, beta) / beta, reduction);
}

Tensor huber_loss(const TensorArg& x, const TensorArg& target, Reduction reduction, double delta) {
  const Call call(x.loc);
  TAPER_CHECK(delta > 0, "huber_loss: delta must be positive, got ", delta);
  return reduced(huber(*x, *target, delta), reduction);
}

Tensor binary_cross_entropy(const TensorArg& x,
                            const Tensor& target,
                            const Tensor& weight,
                            Reduction reduction) {
  const Call call(x.loc);
  const Tensor losses = apply(ops::BinaryCrossEntropy(), {&*x, &target});
  return reduced(weight.defined() ? losses * weight : losses, reduction);
}

// With s = ln sigmoid(x): ln(1 - sigmoid(x)) = s - x.
Tensor binary_cross_entropy_with_logits(const TensorArg& x,
                                        const Tensor& target,
                                        const Tensor& weight,
                                        const Tensor& pos_weight,
                                        Reduction reduction) {
  const Call call(x.loc);
  TAPER_CHECK(x->sizes() == target.sizes(), "binary_cross_entropy_with_logits: x has shape ",
              x->sizes(), ", the target ", target.sizes(), "; they must be equal");
  const Tensor factor = pos_weight.defined() ? 1 + (pos_weight - 1) * target : Tensor();
  const Tensor s = log_sigmoid(*x);
  const Tensor losses = (1 - target) * *x - (factor.defined() ? factor * s : s);
  return reduced(weight.defined() ? losses * weight : losses, reduction);
}

Tensor kl_div(const TensorArg& x, const TensorArg& target, Reduction reduction, bool log_target) {
  const Call call(x.loc);
  Tensor losses;
  if (log_target) {
    losses = exp(*target) * (*target - *x);
  } else {
    const Tensor positive = *target > 0;  // t ln t is 0 at 0
    losses = *target * log(where(positive, *target, 1)) - *target * *x;
  }
  if (reduction != Reduction::kBatchMean) return reduced(losses, reduction);
  TAPER_CHECK(losses.dim() > 0, "kl_div: kBatchMean needs a batch dim, got a number");
  return sum(losses) / static_cast<double>(losses.size(0));
}

}  // namespace taper
