// Attention with several heads, and the pre-norm transformer block.
#include "taper/nn/transformer.h"

#include <cmath>
#include <limits>
#include <ostream>

#include "taper/autograd/ops/attention.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/nn/init.h"

namespace taper::nn {

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& options_in)
    : options(options_in) {
  TAPER_CHECK(options.num_heads() > 0 && options.embed_dim() >= 0 &&
                  options.embed_dim() % options.num_heads() == 0,
              "MultiheadAttention: embed_dim ", options.embed_dim(), " must be a multiple of the ",
              options.num_heads(), " heads");
  reset();
}

void MultiheadAttentionImpl::reset() {
  const std::int64_t e = options.embed_dim();
  in_proj_weight = register_parameter("in_proj_weight", empty({3 * e, e}));
  in_proj_bias = register_parameter("in_proj_bias", options.bias() ? empty({3 * e}) : Tensor());
  out_proj = register_module("out_proj", Linear(LinearOptions(e, e).bias(options.bias())));
  reset_parameters();
}

void MultiheadAttentionImpl::reset_parameters() {
  init::xavier_uniform_(in_proj_weight);
  if (!options.bias()) return;
  init::zeros_(in_proj_bias);
  init::zeros_(out_proj->bias);
}

Tensor MultiheadAttentionImpl::heads(const Tensor& x, std::int64_t part) const {
  const std::int64_t e = options.embed_dim(), h = options.num_heads();
  const Tensor weight = in_proj_weight.narrow(0, part * e, e);
  const Tensor bias = in_proj_bias.defined() ? in_proj_bias.narrow(0, part * e, e) : Tensor();
  return taper::linear(x, weight, bias).view({x.size(0), x.size(1), h, e / h}).transpose(1, 2);
}

Tensor MultiheadAttentionImpl::added_mask(const Tensor& q,
                                          const Tensor& k,
                                          const Tensor& key_padding_mask,
                                          const Tensor& attn_mask) const {
  const std::int64_t b = q.size(0), h = q.size(1), l = q.size(2), s = k.size(2);
  const auto added = [&](const Tensor& mask) {
    if (mask.dtype() != kBool) return mask;
    const double forbidden = -std::numeric_limits<double>::infinity();
    return zeros(mask.sizes(), q.options()).masked_fill(mask, forbidden);
  };
  Tensor mask;
  if (attn_mask.defined()) {
    const bool each_head = attn_mask.sizes() == IntArrayRef({b * h, l, s});
    TAPER_CHECK(each_head || attn_mask.sizes() == IntArrayRef({l, s}),
                "MultiheadAttention: expected attn_mask (", l, ", ", s, ") or (", b * h, ", ", l,
                ", ", s, "), got ", attn_mask.sizes());
    mask = added(each_head ? attn_mask.reshape({b, h, l, s}) : attn_mask);
  }
  if (key_padding_mask.defined()) {
    TAPER_CHECK(key_padding_mask.sizes() == IntArrayRef({b, s}),
                "MultiheadAttention: expected key_padding_mask (", b, ", ", s, "), got ",
                key_padding_mask.sizes());
    const Tensor padded = added(key_padding_mask).unsqueeze(1).unsqueeze(1);
    mask = mask.defined() ? mask + padded : padded;
  }
  return mask;
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const TensorArg& query,
                                                           const Tensor& key,
                                                           const Tensor& value,
                                                           const Tensor& key_padding_mask,
                                                           bool need_weights,
                                                           const Tensor& attn_mask) {
  const Call call(query.loc);
  const ModuleScope scope(*this);
  const bool swap = !options.batch_first();
  const auto batch_first = [&](const Tensor& t) { return swap ? t.transpose(0, 1) : t; };
  const std::int64_t e = options.embed_dim(), batch = swap ? 1 : 0;
  TAPER_CHECK(query->dim() == 3 && key.dim() == 3 && query->size(2) == e && key.size(2) == e &&
                  key.sizes() == value.sizes() && key.size(batch) == query->size(batch),
              "MultiheadAttention: expected query ", swap ? "(L, B, " : "(B, L, ", e,
              "), key and value ", swap ? "(S, B, " : "(B, S, ", e, "), got ", query->sizes(), ", ",
              key.sizes(), " and ", value.sizes());
  const Tensor q = heads(batch_first(*query), 0), k = heads(batch_first(key), 1),
               v = heads(batch_first(value), 2);
  const Tensor mask = added_mask(q, k, key_padding_mask, attn_mask);
  const double dropout = is_training() ? options.dropout() : 0;
  Tensor out = scaled_dot_product_attention(q, k, v, mask, dropout);
  Tensor weights;
  if (need_weights) {
    Tensor scores =
        matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(e / options.num_heads()));
    if (mask.defined()) scores = scores + mask;
    weights = scores.softmax(-1).mean(1);
  }
  out = out.transpose(1, 2).reshape({q.size(0), q.size(2), e});
  return {batch_first(out_proj(out)), weights};
}

Tensor MultiheadAttentionImpl::causal(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  TAPER_CHECK(x->dim() == 3 && x->size(2) == options.embed_dim(),
              "MultiheadAttention: expected (B, T, ", options.embed_dim(), "), got ", x->sizes());
  const std::int64_t b = x->size(0), t = x->size(1), e = options.embed_dim(),
                     h = options.num_heads();
  // One product for all three projections: (B, T, 3 E) -> 3 of (B, H, T, E / H).
  const Tensor qkv = taper::linear(*x, in_proj_weight, in_proj_bias)
                         .view({b, t, 3, h, e / h})
                         .permute({2, 0, 3, 1, 4});
  const double dropout = is_training() ? options.dropout() : 0;
  const Tensor out = scaled_dot_product_attention(qkv.select(0, 0), qkv.select(0, 1),
                                                  qkv.select(0, 2), {}, dropout, true);
  return out_proj(out.transpose(1, 2).reshape({b, t, e}));
}

TransformerBlockImpl::TransformerBlockImpl(const TransformerBlockOptions& options_in)
    : options(options_in) {
  reset();
}

void TransformerBlockImpl::reset() {
  const std::int64_t e = options.embed_dim();
  norm1 = register_module("norm1", LayerNorm(LayerNormOptions({e})));
  attn =
      register_module("attn", MultiheadAttention(MultiheadAttentionOptions(e, options.num_heads())
                                                     .dropout(options.dropout())
                                                     .batch_first(true)));
  norm2 = register_module("norm2", LayerNorm(LayerNormOptions({e})));
  fc1 = register_module("fc1", Linear(e, options.hidden_dim()));
  fc2 = register_module("fc2", Linear(options.hidden_dim(), e));
  drop = register_module("drop", Dropout(options.dropout()));
}

Tensor TransformerBlockImpl::forward(const TensorArg& x) {
  const Call call(x.loc);
  const ModuleScope scope(*this);
  const Tensor normed = norm1(*x);
  const Tensor attended = options.causal()
                              ? attn->causal(normed)
                              : std::get<0>(attn->forward(normed, normed, normed, {}, false));
  const Tensor y = *x + drop(attended);
  return y + drop(fc2(gelu(fc1(norm2(y)))));
}

}  // namespace taper::nn
