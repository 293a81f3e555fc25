// Multi-head attention and the transformer block against loops in double.
#include "taper/nn/transformer.h"

#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/random.h"
#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

struct Attended {
  Numbers out, weights;  // (B, L, E), (B, L, S)
};

// What the module says it computes, from its parameters; x's are batch-first. forbid(b, l, s) is
// what is added to a score.
template <class Mask>
Attended attention(const nn::MultiheadAttentionImpl& m,
                   const Tensor& query,
                   const Tensor& key,
                   const Tensor& value,
                   const Mask& forbid) {
  const auto b_n = static_cast<std::size_t>(query.size(0)),
             l_n = static_cast<std::size_t>(query.size(1)),
             s_n = static_cast<std::size_t>(key.size(1)),
             e = static_cast<std::size_t>(m.options.embed_dim()),
             h_n = static_cast<std::size_t>(m.options.num_heads()), d = e / h_n;
  const Numbers w = values(m.in_proj_weight);
  const Numbers bias = m.in_proj_bias.defined() ? values(m.in_proj_bias) : Numbers(3 * e, 0.0);
  const auto project = [&](const Tensor& x, std::size_t part) {
    const Numbers in = values(x);
    Numbers out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::size_t row = i / e, o = part * e + i % e;
      out[i] = bias[o];
      for (std::size_t k = 0; k < e; ++k) out[i] += in[row * e + k] * w[o * e + k];
    }
    return out;
  };
  const Numbers q = project(query, 0), k = project(key, 1), v = project(value, 2);
  Attended a{Numbers(b_n * l_n * e), Numbers(b_n * l_n * s_n)};
  Numbers mixed(b_n * l_n * e);
  for (std::size_t b = 0; b < b_n; ++b) {
    for (std::size_t h = 0; h < h_n; ++h) {
      for (std::size_t l = 0; l < l_n; ++l) {
        Numbers p(s_n);
        double total = 0;
        for (std::size_t s = 0; s < s_n; ++s) {
          double score = 0;
          for (std::size_t i = 0; i < d; ++i)
            score += q[(b * l_n + l) * e + h * d + i] * k[(b * s_n + s) * e + h * d + i];
          p[s] = std::exp(score / std::sqrt(static_cast<double>(d)) + forbid(b, l, s));
          total += p[s];
        }
        for (std::size_t s = 0; s < s_n; ++s) {
          a.weights[(b * l_n + l) * s_n + s] += p[s] / total / static_cast<double>(h_n);
          for (std::size_t i = 0; i < d; ++i)
            mixed[(b * l_n + l) * e + h * d + i] += p[s] / total * v[(b * s_n + s) * e + h * d + i];
        }
      }
    }
  }
  const Tensor mix = tensor(mixed, kFloat64).view(query.sizes());
  a.out = values(m.out_proj->forward(mix));
  return a;
}

nn::MultiheadAttention attention_of(const nn::MultiheadAttentionOptions& options) {
  nn::MultiheadAttention m(options);
  m->to(kFloat64);
  if (options.bias()) {  // they begin at zero, which would hide them
    m->in_proj_bias.detach().copy_(sample({3 * options.embed_dim()}, 7));
    m->out_proj->bias.detach().copy_(sample({options.embed_dim()}, 8));
  }
  return m;
}

void expect_numbers(const Tensor& got, const Numbers& want) {
  expect_close(got, tensor(want, kFloat64).view(got.sizes()), 1e-12);
}

const auto none = [](std::size_t, std::size_t, std::size_t) { return 0.0; };

TEST(MultiheadAttention, IsSoftmaxOfScoresTimesValues) {
  for (const bool bias : {true, false}) {
    const auto m = attention_of(nn::MultiheadAttentionOptions(6, 3).bias(bias).batch_first(true));
    const Tensor q = sample({2, 4, 6}), k = sample({2, 5, 6}, 2), v = sample({2, 5, 6}, 3);
    const auto [out, weights] = m(q, k, v);
    const Attended want = attention(*m, q, k, v, none);
    ASSERT_TRUE(out.sizes() == IntArrayRef({2, 4, 6}));
    ASSERT_TRUE(weights.sizes() == IntArrayRef({2, 4, 5}));
    expect_numbers(out, want.out);
    expect_numbers(weights, want.weights);
  }
}

TEST(MultiheadAttention, TakesTheSequenceFirstByDefault) {
  const auto m = attention_of(nn::MultiheadAttentionOptions(4, 2));
  const Tensor q = sample({2, 3, 4}), k = sample({2, 5, 4}, 2);
  const auto [out, weights] =
      m->forward(q.transpose(0, 1), k.transpose(0, 1), k.transpose(0, 1), {}, false);
  EXPECT_FALSE(weights.defined());
  expect_numbers(out.transpose(0, 1), attention(*m, q, k, k, none).out);
}

TEST(MultiheadAttention, MasksForbidAndAdd) {
  const auto m = attention_of(nn::MultiheadAttentionOptions(4, 2).batch_first(true));
  const Tensor q = sample({2, 3, 4}), k = sample({2, 3, 4}, 2);
  const Tensor later = tensor({{0, 1, 1}, {0, 0, 1}, {0, 0, 0}}, kBool);
  const Tensor padding = tensor({{0, 0, 1}, {0, 0, 0}}, kBool);
  const auto causal = [](std::size_t, std::size_t l, std::size_t s) {
    return s > l ? kForbidden : 0;
  };
  const auto padded = [](std::size_t b, std::size_t, std::size_t s) {
    return b == 0 && s == 2 ? kForbidden : 0;
  };
  const auto both = [&](std::size_t b, std::size_t l, std::size_t s) {
    return causal(b, l, s) + padded(b, l, s);
  };
  expect_numbers(std::get<0>(m->forward(q, k, k, {}, true, later)),
                 attention(*m, q, k, k, causal).out);
  expect_numbers(std::get<0>(m->forward(q, k, k, padding)), attention(*m, q, k, k, padded).out);
  const auto [out, weights] = m->forward(q, k, k, padding, true, later);
  const Attended want = attention(*m, q, k, k, both);
  expect_numbers(out, want.out);
  expect_numbers(weights, want.weights);
  const Tensor bias = sample({3, 3}, 4);
  const auto added = [&, b = values(bias)](std::size_t, std::size_t l, std::size_t s) {
    return b[3 * l + s];
  };
  expect_numbers(std::get<0>(m->forward(q, k, k, {}, false, bias)),
                 attention(*m, q, k, k, added).out);
}

// A mask (B H, L, S) differs by batch and head; here all heads of a batch share one.
TEST(MultiheadAttention, AMaskOfThreeDimsIsOneForEachHead) {
  const auto m = attention_of(nn::MultiheadAttentionOptions(4, 2).batch_first(true));
  const Tensor x = sample({3, 2, 4}), mask = sample({3, 2, 2}, 5);
  const auto added = [b = values(mask)](std::size_t n, std::size_t l, std::size_t s) {
    return b[4 * n + 2 * l + s];
  };
  const Tensor each = mask.unsqueeze(1).expand({3, 2, 2, 2}).reshape({6, 2, 2});
  const auto [out, weights] = m->forward(x, x, x, {}, true, each);
  const Attended want = attention(*m, x, x, x, added);
  expect_numbers(out, want.out);
  expect_numbers(weights, want.weights);
}

TEST(MultiheadAttention, CausalSeesOnlyWhatCameBefore) {
  const auto m = attention_of(nn::MultiheadAttentionOptions(4, 2).batch_first(true));
  const Tensor x = sample({2, 5, 4});
  const auto causal = [](std::size_t, std::size_t l, std::size_t s) {
    return s > l ? kForbidden : 0;
  };
  expect_numbers(m->causal(x), attention(*m, x, x, x, causal).out);
}

TEST(MultiheadAttention, GradientsReachEveryParameter) {
  const auto m = attention_of(nn::MultiheadAttentionOptions(4, 2).batch_first(true));
  const Tensor q = sample({2, 3, 4}), k = sample({2, 2, 4}, 2), v = sample({2, 2, 4}, 3);
  expect_parameter_gradients(*m, [&] { return std::get<0>(m(q, k, v)); });
  m->zero_grad();
  expect_parameter_gradients(*m, [&] { return m->causal(q); });
}

TEST(MultiheadAttention, BeginsAsPyTorchs) {
  manual_seed(4);
  const nn::MultiheadAttention m(60, 3);
  expect_uniform(m->in_proj_weight, std::sqrt(6.0 / (4 * 60)));
  expect_uniform(m->out_proj->weight, 1 / std::sqrt(60));
  EXPECT_EQ(values(m->in_proj_bias), Numbers(180, 0));
  EXPECT_EQ(values(m->out_proj->bias), Numbers(60, 0));
  EXPECT_EQ(m->state_dict().keys(), (std::vector<std::string>{"in_proj_weight", "in_proj_bias",
                                                              "out_proj.weight", "out_proj.bias"}));
}

TEST(MultiheadAttention, ErrorsNameShapesAndLine) {
  const nn::MultiheadAttention m(4, 2);
  const Tensor x = ones({3, 2, 4}), wide = ones({3, 2, 5});
  const Error width = error_of([&] { m(wide, wide, wide); });
  expect_names(width, __LINE__ - 1, "", {"MultiheadAttention", "(L, B, 4)", "(3, 2, 5)"});
  const Error dims = error_of([&] { m(x, x[0], x); });
  expect_names(dims, __LINE__ - 1, "", {"MultiheadAttention", "(2, 4)"});
  const Error key = error_of([&] { m(x, wide, x); });
  expect_names(key, __LINE__ - 1, "", {"(3, 2, 5)"});
  const Error batch = error_of([&] { m(x, ones({3, 1, 4}), ones({3, 1, 4})); });
  expect_names(batch, __LINE__ - 1, "", {"MultiheadAttention", "(3, 1, 4)"});
  const Error lengths = error_of([&] { m(x, x, ones({4, 2, 4})); });
  expect_names(lengths, __LINE__ - 1, "", {"MultiheadAttention", "(4, 2, 4)"});
  const Error mask = error_of([&] { m->forward(x, x, x, {}, true, ones({2, 3})); });
  expect_names(mask, __LINE__ - 1, "", {"attn_mask", "(3, 3)", "(4, 3, 3)", "(2, 3)"});
  const Error padding = error_of([&] { m(x, x, x, zeros({3, 2}, kBool)); });
  expect_names(padding, __LINE__ - 1, "", {"key_padding_mask", "(2, 3)", "(3, 2)"});
  expect_error([] { nn::MultiheadAttention(5, 2); }, {"MultiheadAttention", "5", "2"});
}

// --- TransformerBlock
// -----------------------------------------------------------------------------

nn::TransformerBlock block_of(const nn::TransformerBlockOptions& options) {
  nn::TransformerBlock block(options);
  block->to(kFloat64);
  unsigned seed = 20;
  for (const Tensor& p : block->parameters()) p.detach().copy_(sample(p.sizes(), ++seed));
  return block;
}

TEST(TransformerBlock, IsAttentionThenPerceptronEachAddedToItsInput) {
  for (const bool causal : {true, false}) {
    const auto block = block_of(nn::TransformerBlockOptions(4, 2).hidden_dim(6).causal(causal));
    const Tensor x = sample({2, 3, 4});
    const auto later = [&](std::size_t, std::size_t l, std::size_t s) {
      return causal && s > l ? kForbidden : 0;
    };
    const auto normed = [](nn::LayerNorm norm, const Tensor& t) {
      const Tensor mean = t.mean({-1}, true), centred = t - mean;
      return centred / (centred.square().mean({-1}, true) + 1e-5).sqrt() * norm->weight +
             norm->bias;
    };
    const Tensor n = normed(block->norm1, x);
    const Tensor attended =
        tensor(attention(*block->attn, n, n, n, later).out, kFloat64).view(x.sizes());
    const Tensor y = x + attended;
    Tensor hidden = block->fc1(normed(block->norm2, y));
    hidden = hidden * 0.5 * (1 + (hidden / std::sqrt(2.0)).erf());
    expect_close(block(x), y + block->fc2(hidden), 1e-10);
  }
}

TEST(TransformerBlock, GradientsReachEveryParameter) {
  const auto block = block_of(nn::TransformerBlockOptions(4, 2).hidden_dim(5));
  const Tensor x = sample({2, 3, 4});
  expect_parameter_gradients(*block, [&] { return block(x); });
}

TEST(TransformerBlock, DropsOnlyWhileTraining) {
  const auto block = block_of(nn::TransformerBlockOptions(4, 2).dropout(0.5));
  const Tensor x = sample({2, 3, 4});
  EXPECT_NE(values(block(x)), values(block(x)));
  block->eval();
  EXPECT_EQ(values(block(x)), values(block(x)));
  EXPECT_FALSE(block->attn->is_training());
}

TEST(TransformerBlock, ErrorsNameTheModuleInside) {
  struct GptImpl : nn::Module {
    GptImpl() : block(register_module("block", nn::TransformerBlock(4, 2))) {}
    const unsigned line = __LINE__ + 1;
    Tensor forward(const Tensor& x) { return block(x); }
    nn::TransformerBlock block;
  };
  const nn::ModuleHolder<GptImpl> gpt;
  const Error e = error_of([&] { gpt(ones({1, 2, 5})); });
  expect_names(e, gpt->line, "block.norm1", {"layer_norm", "(1, 2, 5)"});
}

}  // namespace
}  // namespace taper::testing
