// Attention: the op class and the public function.
#pragma once
#include "taper/autograd/op.h"

namespace taper {

// softmax(q k^T scale + mask) v (Vaswani et al. 2017), without a matrix of scores in memory.
// q: (..., L, E), k: (..., S, E), v: (..., S, D) -> (..., L, D). attn_mask broadcasts to
// (..., L, S): bool, true where a key may be seen, or floating, added. is_causal lets row i see
// keys 0 to i, and excludes a mask. A row that sees no key gives zeros. scale: 1 / sqrt(E) unless
// given. Dropout falls on the weights whenever dropout_p is above 0.
//
// With dropout, or a mask that wants a gradient, it is composed of products and a softmax, and the
// scores do lie in memory.
Tensor scaled_dot_product_attention(const TensorArg& q,
                                    const Tensor& k,
                                    const Tensor& v,
                                    const Tensor& attn_mask = {},
                                    double dropout_p = 0,
                                    bool is_causal = false,
                                    std::optional<double> scale = std::nullopt);

namespace ops {

// (q, k, v, mask): w = softmax(q k^T scale + mask), y = w v. The mask, which may be undefined, is
// bool or of q's dtype, and gets no gradient. With ds = w (dy v^T - sum over a row of dy y):
// dv = w^T dy; dq = ds k scale; dk = ds^T q scale
class Attention final : public OpOf<Attention> {
 public:
  static constexpr const char* kName = "scaled_dot_product_attention";

  Attention(bool causal, double scale) : causal_(causal), scale_(scale) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Grads composite(const Reverse& r) const;
  Grads fused(const Reverse& r) const;

  bool causal_;
  double scale_;
};

}  // namespace ops
}  // namespace taper
