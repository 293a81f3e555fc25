// Attention against a slow oracle, its masks, its derivatives.
#include <limits>

#include "taper/autograd/ops/attention.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/random.h"
#include "taper/autograd/ops/softmax.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Inputs = std::vector<Tensor>;

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Qkv {
  Tensor q = sample({2, 3, 4}, 1), k = sample({2, 5, 4}, 2), v = sample({2, 5, 6}, 3);
};

TEST(Attention, Values) {
  const auto [q, k, v] = Qkv();
  expect_close(scaled_dot_product_attention(q, k, v),
               matmul(softmax(matmul(q, k.mT()) / 2, -1), v));
  expect_close(scaled_dot_product_attention(q, k, v, {}, 0, false, 1),
               matmul(softmax(matmul(q, k.mT()), -1), v));
}

TEST(Attention, Masks) {
  const auto [q, k, v] = Qkv();
  const Tensor causal = ones({3, 5}, kBool).tril();
  const Tensor want = scaled_dot_product_attention(q, k, v, {}, 0, true);
  expect_close(scaled_dot_product_attention(q, k, v, causal), want);
  const Tensor added = masked_fill(zeros({3, 5}, kFloat64), logical_not(causal), -kInf);
  expect_close(scaled_dot_product_attention(q, k, v, added), want);
  expect_close(want.select(1, 0), v.select(1, 0));
}

TEST(Attention, RowsThatSeeNothingAreZero) {
  const auto [q0, k0, v0] = Qkv();
  const Tensor mask = tensor({true, false, true}).view({3, 1}).expand({3, 5});
  const Tensor q = leaf(q0), k = leaf(k0), v = leaf(v0);
  const Tensor y = scaled_dot_product_attention(q, k, v, mask);
  EXPECT_EQ(values(y.select(1, 1)), Numbers(12, 0));
  y.sum().backward();
  for (const Tensor& t : {q, k, v}) {
    for (const double g : values(t.grad())) EXPECT_TRUE(std::isfinite(g));
  }
  EXPECT_EQ(values(q.grad().select(1, 1)), Numbers(8, 0));
}

TEST(Attention, Gradients) {
  const Tensor mask = tensor({{true, false, true}, {false, false, false}});
  const Inputs inputs{leaf({2, 2}, 1), leaf({3, 2}, 2), leaf({3, 2}, 3)};
  expect_gradients(
      [](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2]); }, inputs);
  expect_gradients(
      [](const Inputs& in) {
        return scaled_dot_product_attention(in[0], in[1], in[2], {}, 0, true);
      },
      inputs);
  expect_gradients(
      [=](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2], mask); },
      inputs);
  expect_gradients(
      [](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2], in[3]); },
      {inputs[0], inputs[1], inputs[2], leaf({2, 3}, 4)});
}

TEST(Attention, Dropout) {
  const auto [q, k, v] = Qkv();
  EXPECT_EQ(values(scaled_dot_product_attention(q, k, v, {}, 1)), Numbers(36, 0));
  manual_seed(1);
  const Tensor a = scaled_dot_product_attention(q, k, v, {}, 0.5);
  manual_seed(1);
  expect_close(scaled_dot_product_attention(q, k, v, {}, 0.5), a, 0);
}

TEST(Attention, Errors) {
  const auto [q, k, v] = Qkv();
  expect_error([q = q, v = v] { scaled_dot_product_attention(q, v, v); },
               {"(2, 3, 4)", "(2, 5, 6)", "ops_attention_test.cpp"});
  expect_error(
      [q = q, k = k, v = v] {
        scaled_dot_product_attention(q, k, v, ones({3, 5}, kBool), 0, true);
      },
      {"not both"});
}

}  // namespace
}  // namespace taper::testing
