// Attention as a composite of products and a softmax.
#pragma once
#include <optional>

#include "taper/core/tensor.h"

namespace taper {

// softmax(q k^T scale + mask) v (Vaswani et al. 2017).
// q: (..., L, E), k: (..., S, E), v: (..., S, D) -> (..., L, D). attn_mask broadcasts to
// (..., L, S): bool, true where a key may be seen, or floating, added. is_causal lets row i see
// keys 0 to i, and excludes a mask. A row that sees no key gives zeros. scale: 1 / sqrt(E) unless
// given. Dropout falls on the weights whenever dropout_p is above 0.
Tensor scaled_dot_product_attention(const TensorArg& q,
                                    const Tensor& k,
                                    const Tensor& v,
                                    const Tensor& attn_mask = {},
                                    double dropout_p = 0,
                                    bool is_causal = false,
                                    std::optional<double> scale = std::nullopt);

}  // namespace taper
