// How attention runs, in one kernel or out of products and a softmax, and its derivative.
#include "taper/autograd/ops/attention.h"

#include <cmath>
#include <limits>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/random.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/softmax.h"

namespace taper {
namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v) {
  const bool fit = q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2 && q.size(-1) == k.size(-1) &&
                   k.size(-2) == v.size(-2);
  TAPER_CHECK(fit, "scaled_dot_product_attention: needs q (..., L, E), k (..., S, E), v (..., S, ",
              "D), got ", q.sizes(), ", ", k.sizes(), ", ", v.sizes());
  TAPER_CHECK(q.is_floating_point() && q.dtype() == k.dtype() && q.dtype() == v.dtype(),
              "scaled_dot_product_attention: q, k and v must be one floating-point dtype, got ",
              q.dtype(), ", ", k.dtype(), ", ", v.dtype());
}

Tensor usable(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() == kBool) return mask;
  TAPER_CHECK(mask.is_floating_point(),
              "scaled_dot_product_attention: attn_mask must be bool or floating, got ",
              mask.dtype());
  return mask.to(dtype);
}

// Row i sees keys 0 to i: no row is without any.
Tensor causal_weights(const Tensor& scores) {
  const TensorOptions options = TensorOptions(kBool).device(scores.device());
  const Tensor unseen = ones({scores.size(-2), scores.size(-1)}, options).triu(1);
  return softmax(masked_fill(scores, unseen, kUnseen), -1);
}

Tensor masked_weights(const Tensor& scores, const Tensor& mask) {
  const Tensor masked =
      mask.dtype() == kBool ? masked_fill(scores, logical_not(mask), kUnseen) : scores + mask;
  const int last = static_cast<int>(masked.dim()) - 1;
  return apply(ops::Softmax(last, masked.dtype(), true), {&masked});
}

// (..., L, S); q is scaled.
Tensor weights(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal) {
  const Tensor scores = matmul(q, k.transpose(-2, -1));
  if (causal) return causal_weights(scores);
  return mask.defined() ? masked_weights(scores, mask) : softmax(scores, -1);
}

IntArrayRef front(const Tensor& t) {
  return {t.sizes().data(), t.sizes().size() - 2};
}

Sizes with(Sizes sizes, std::initializer_list<std::int64_t> last) {
  for (const std::int64_t size : last) sizes.push_back(size);
  return sizes;
}

// Whether the mask broadcasts to the weights and not the other way round.
bool fits(const Tensor& mask, const Tensor& q, const Tensor& k) {
  const auto stretches = [&](std::int64_t from_end, std::int64_t size) {
    return mask.dim() >= from_end && mask.size(-from_end) != size && mask.size(-from_end) != 1;
  };
  return !mask.defined() || (!stretches(2, q.size(-2)) && !stretches(1, k.size(-2)));
}

// The operands with all the dims in front that any of them has.
struct Operands {
  Sizes batch;
  Tensor q, k, v, mask;

  Operands(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in, const Tensor& mask_in)
      : batch(broadcast_sizes(broadcast_sizes(front(q_in), front(k_in)), front(v_in))) {
    if (mask_in.defined() && mask_in.dim() > 2) batch = broadcast_sizes(batch, front(mask_in));
    const std::int64_t l = q_in.size(-2), s = k_in.size(-2);
    q = q_in.expand(with(batch, {l, q_in.size(-1)}));
    k = k_in.expand(with(batch, {s, k_in.size(-1)}));
    v = v_in.expand(with(batch, {s, v_in.size(-1)}));
    if (mask_in.defined()) mask = mask_in.expand(with(batch, {l, s}));
  }
};

}  // namespace

namespace ops {

// Saved: q, k, v, y, the statistics of the rows, and the mask if there is one.
void Attention::forward(Frame& f) {
  const Operands of(f.in(0), f.in(1), f.in(2), f.in(3));
  const std::int64_t queries = of.q.size(-2), keys = of.k.size(-2), columns = of.v.size(-1);
  const DType dtype = of.q.dtype(), wide = dtype == kFloat64 ? kFloat64 : kFloat32;
  const Tensor stats =
      make_tensor(contiguous_layout(with(of.batch, {queries, 2})), wide, f.device());
  const Tensor& y = f.out(with(of.batch, {queries, columns}), dtype);
  if (keys == 0) {
    y.zero_();
  } else if (y.numel() > 0) {
    f.kernels().attention(f.exec(), y.as<Out>(), stats.as<Out>(), of.q.as<In>(), of.k.as<In>(),
                          of.v.as<In>(), of.mask.as<In>(), causal_, scale_);
  }
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) f.save(f.in(i));
  f.save_out(0);
  f.save(stats);
  if (f.in(3).defined()) f.save(f.in(3));
}

Grads Attention::backward(const Reverse& r) const {
  return GradMode::is_enabled() ? composite(r) : fused(r);
}

Grads Attention::composite(const Reverse& r) const {
  const Tensor& grad = r.grad();
  const Tensor q = r.saved(0) * scale_, k = r.saved(1), v = r.saved(2);
  const Tensor w = weights(q, k, r.saved_count() > 5 ? r.saved(5) : Tensor(), causal_);
  Grads out(4);
  if (r.needs(2)) out[2] = matmul(w.transpose(-2, -1), grad);
  if (!r.needs(0) && !r.needs(1)) return out;
  const Tensor weighted = w * matmul(grad, v.transpose(-2, -1));
  const Tensor ds = weighted - w * sum(weighted, -1, true);
  if (r.needs(0)) out[0] = matmul(ds, k) * scale_;
  if (r.needs(1)) out[1] = matmul(ds.transpose(-2, -1), q);
  return out;
}

Grads Attention::fused(const Reverse& r) const {
  const Operands of(r.saved(0), r.saved(1), r.saved(2),
                    r.saved_count() > 5 ? r.saved(5) : Tensor());
  const Tensor& grad = r.grad();
  const Tensor y = r.saved(3), stats = r.saved(4);
  Grads out(4);
  const bool empty = of.k.size(-2) == 0 || y.numel() == 0;
  const auto make = [&](std::size_t i, const Tensor& like) {
    if (!r.needs(i)) return;
    out[i] = make_tensor(contiguous_layout(like.sizes()), like.dtype(), like.device());
    if (empty) out[i].zero_();
  };
  make(0, of.q);
  make(1, of.k);
  make(2, of.v);
  if (empty) return out;
  const auto part = [&](std::size_t i) { return out[i].as<Out>(); };
  kernels_for(y.device())
      .attention_grad(Exec(y.device()), part(0), part(1), part(2), grad.as<In>(), of.q.as<In>(),
                      of.k.as<In>(), of.v.as<In>(), y.as<In>(), stats.as<In>(), of.mask.as<In>(),
                      causal_, scale_);
  return out;
}

}  // namespace ops

Tensor scaled_dot_product_attention(const TensorArg& q,
                                    const Tensor& k,
                                    const Tensor& v,
                                    const Tensor& attn_mask,
                                    double dropout_p,
                                    bool is_causal,
                                    std::optional<double> scale) {
  const Call call(q.loc);
  check_operands(*q, k, v);
  TAPER_CHECK(!is_causal || !attn_mask.defined(),
              "scaled_dot_product_attention: give attn_mask or is_causal, not both");
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(q->size(-1))));
  const Tensor mask = usable(attn_mask, q->dtype());
  const bool mask_learns = mask.defined() && mask.requires_grad() && GradMode::is_enabled();
  if (dropout_p == 0 && !mask_learns && fits(mask, *q, k)) {
    return apply(ops::Attention(is_causal, factor), {&*q, &k, &v, &mask});
  }
  return matmul(dropout(weights(*q * factor, k, mask, is_causal), dropout_p, true), v);
}

}  // namespace taper
