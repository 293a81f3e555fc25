// Attention with several heads, and the pre-norm transformer block.
#pragma once
#include <tuple>

#include "taper/nn/layers.h"

namespace taper::nn {

class MultiheadAttentionOptions {
 public:
  MultiheadAttentionOptions(std::int64_t embed_dim, std::int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads) {}

  std::int64_t embed_dim() const { return embed_dim_; }
  std::int64_t num_heads() const { return num_heads_; }
  double dropout() const { return dropout_; }
  MultiheadAttentionOptions& dropout(double x) { return dropout_ = x, *this; }
  bool bias() const { return bias_; }
  MultiheadAttentionOptions& bias(bool x) { return bias_ = x, *this; }
  bool batch_first() const { return batch_first_; }
  MultiheadAttentionOptions& batch_first(bool x) { return batch_first_ = x, *this; }

 private:
  std::int64_t embed_dim_, num_heads_;
  double dropout_ = 0;
  bool bias_ = true, batch_first_ = false;
};

// Vaswani et al. 2017. query (L, B, E), key and value (S, B, E), or with batch_first (B, L, E) and
// (B, S, E) -> (output like query, weights (B, L, S) averaged over heads, undefined unless asked).
// in_proj_weight (3 E, E) holds the projections of query, key and value, as in PyTorch.
class MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(std::int64_t embed_dim, std::int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options_in);

  void reset() override;
  void reset_parameters();
  // key_padding_mask (B, S): true where a key is padding. attn_mask (L, S), or (B H, L, S) for one
  // to each head: bool, true where attention is forbidden (PyTorch's convention here), or floating,
  // added.
  std::tuple<Tensor, Tensor> forward(const TensorArg& query,
                                     const Tensor& key,
                                     const Tensor& value,
                                     const Tensor& key_padding_mask = {},
                                     bool need_weights = true,
                                     const Tensor& attn_mask = {});
  // Self-attention of x (B, T, E) in which row t sees 0 to t; x and the result are batch-first.
  Tensor causal(const TensorArg& x);

  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias;
  Linear out_proj{nullptr};

 private:
  Tensor heads(const Tensor& x, std::int64_t part) const;  // (B, T, E) -> (B, H, T, E / H)
  // Both masks as one that is added to scores (B, H, L, S); undefined when there is none.
  Tensor added_mask(const Tensor& q,
                    const Tensor& k,
                    const Tensor& key_padding_mask,
                    const Tensor& attn_mask) const;
};
TAPER_MODULE(MultiheadAttention);

class TransformerBlockOptions {
 public:
  TransformerBlockOptions(std::int64_t embed_dim, std::int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), hidden_dim_(4 * embed_dim) {}

  std::int64_t embed_dim() const { return embed_dim_; }
  std::int64_t num_heads() const { return num_heads_; }
  std::int64_t hidden_dim() const { return hidden_dim_; }
  TransformerBlockOptions& hidden_dim(std::int64_t x) { return hidden_dim_ = x, *this; }
  double dropout() const { return dropout_; }
  TransformerBlockOptions& dropout(double x) { return dropout_ = x, *this; }
  bool causal() const { return causal_; }
  TransformerBlockOptions& causal(bool x) { return causal_ = x, *this; }

 private:
  std::int64_t embed_dim_, num_heads_, hidden_dim_;
  double dropout_ = 0;
  bool causal_ = true;
};

// x (B, T, E) -> (B, T, E): x += attention(norm1 x); x += fc2 gelu(fc1 norm2 x). The norms come
// first (Xiong et al. 2020).
class TransformerBlockImpl : public Cloneable<TransformerBlockImpl> {
 public:
  TransformerBlockImpl(std::int64_t embed_dim, std::int64_t num_heads)
      : TransformerBlockImpl(TransformerBlockOptions(embed_dim, num_heads)) {}
  explicit TransformerBlockImpl(const TransformerBlockOptions& options_in);

  void reset() override;
  Tensor forward(const TensorArg& x);

  TransformerBlockOptions options;
  LayerNorm norm1{nullptr}, norm2{nullptr};
  MultiheadAttention attn{nullptr};
  Linear fc1{nullptr}, fc2{nullptr};
  Dropout drop{nullptr};
};
TAPER_MODULE(TransformerBlock);

}  // namespace taper::nn
