// Scaled dot-product attention out of products, a mask and a softmax.
#include "taper/autograd/ops/attention.h"

#include <cmath>
#include <limits>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/random.h"
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

// Row i sees keys 0 to i: no row is without any.
Tensor causal_weights(const Tensor& scores) {
  const TensorOptions options = TensorOptions(kBool).device(scores.device());
  const Tensor unseen = ones({scores.size(-2), scores.size(-1)}, options).triu(1);
  return softmax(masked_fill(scores, unseen, kUnseen), -1);
}

Tensor masked_weights(const Tensor& scores, const Tensor& mask) {
  const bool choice = mask.dtype() == kBool;
  TAPER_CHECK(choice || mask.is_floating_point(),
              "scaled_dot_product_attention: attn_mask must be bool or floating, got ",
              mask.dtype());
  const Tensor masked =
      choice ? masked_fill(scores, logical_not(mask), kUnseen) : scores + mask.to(scores.dtype());
  const int last = static_cast<int>(masked.dim()) - 1;
  return apply(ops::Softmax(last, masked.dtype(), true), {&masked});
}

}  // namespace

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
  const Tensor scores = matmul(*q * factor, k.transpose(-2, -1));
  const Tensor weights = is_causal             ? causal_weights(scores)
                         : attn_mask.defined() ? masked_weights(scores, attn_mask)
                                               : softmax(scores, -1);
  return matmul(dropout(weights, dropout_p, true), v);
}

}  // namespace taper
