// Attention against a slow oracle, its masks, its derivatives.
#include <cmath>
#include <limits>

#include "taper/autograd/ops/attention.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/random.h"
#include "taper/autograd/ops/softmax.h"
#include "taper/core/memory.h"
#include "taper/core/threads.h"
#include "taper/tests/autograd/ops_testing.h"
#include "taper/tests/reference/attention.h"

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

// As products and a softmax, which is what a mask that wants a gradient takes.
Tensor composed(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const Tensor added = mask.dtype() == kBool
                           ? masked_fill(zeros(mask.sizes(), q.options()), logical_not(mask), -kInf)
                           : mask.to(q.dtype());
  return scaled_dot_product_attention(q, k, v, added.detach().clone().requires_grad_());
}

TEST(Attention, EveryMaskIsThatOfTheComposition) {
  const Tensor seen = tensor({{true, false, true, true, false},
                              {false, false, false, false, false},
                              {true, true, true, true, true}});
  const Tensor added = masked_fill(sample({3, 5}, 7), logical_not(seen), -kInf);
  const Tensor masks[] = {
      seen,
      added,
      added.to(kFloat32),
      seen.select(0, 0),
      seen.unsqueeze(0),
      seen.select(1, 0).unsqueeze(1),
      tensor({true, false}).view({2, 1, 1}),
      sample({2, 3, 5}, 8),
      sample({4, 2, 3, 5}, 9),
      full({1}, -kInf, TensorOptions(kFloat64)),
      full({1, 1}, -1e308, TensorOptions(kFloat64)),
      full({1}, -1e9, TensorOptions(kFloat64)),
      full({3, 1}, 1e9, TensorOptions(kFloat64)),
      masked_fill(zeros({3, 5}, kFloat64), logical_not(seen), -1e9),
  };
  for (const Tensor& mask : masks) {
    for (const DType dtype : {kFloat64, kFloat32}) {
      std::vector<Tensor> grads[2];
      Tensor ys[2];
      for (const int fused : {0, 1}) {
        const auto [q0, k0, v0] = Qkv();
        const Tensor q = leaf(q0.to(dtype)), k = leaf(k0.to(dtype)), v = leaf(v0.to(dtype));
        ys[fused] =
            fused == 1 ? scaled_dot_product_attention(q, k, v, mask) : composed(q, k, v, mask);
        (ys[fused] * ys[fused]).sum().backward();
        grads[fused] = {q.grad(), k.grad(), v.grad()};
      }
      const double tolerance = dtype == kFloat64 ? 1e-12 : 1e-5;
      expect_close(ys[1], ys[0], tolerance);
      for (std::size_t i = 0; i < 3; ++i) expect_close(grads[1][i], grads[0][i], tolerance);
    }
  }
}

// Rows by turns: a little, far below, below all that f32 has, unseen, seen in part, far above
// in part, far below in part.
Tensor wild_mask(std::int64_t queries, std::int64_t keys, double large) {
  Numbers rows;
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const bool part = (i + j) % 3 == 0;
      const double kinds[] = {static_cast<double>((i * j) % 5) / 5,
                              -large,
                              -1e308,
                              -kInf,
                              part ? -kInf : 0.5,
                              part ? large : 0,
                              part ? 0 : -large};
      rows.push_back(kinds[i % 7]);
    }
  }
  return tensor(rows, kFloat64).view({queries, keys});
}

// y and the gradients against a matrix of scores in double, where `grad` is that of y.
void expect_oracle(const Inputs& qkv, const Tensor& mask, const Tensor& grad, double tolerance) {
  const Tensor &q = qkv[0], &k = qkv[1], &v = qkv[2];
  const Tensor y = scaled_dot_product_attention(q, k, v, mask);
  y.backward(grad);
  for (std::int64_t b = 0; b < q.size(0); ++b) {
    const auto of = [&](const Tensor& t) { return values(t.select(0, b)); };
    const auto expect = [&](const Tensor& got, const Numbers& want) {
      const Tensor part = got.detach().select(0, b);
      expect_close(part, tensor(want, kFloat64).view(part.sizes()), tolerance);
    };
    const reference::Attention a{q.size(1),
                                 k.size(1),
                                 q.size(2),
                                 v.size(2),
                                 1 / std::sqrt(static_cast<double>(q.size(2))),
                                 of(q),
                                 of(k),
                                 of(v),
                                 values(mask.expand({q.size(1), k.size(1)})),
                                 of(grad),
                                 q.dtype() != kFloat64};
    const auto want = a.grads();
    expect(y, a.y());
    expect(q.grad(), want.dq);
    expect(k.grad(), want.dk);
    expect(v.grad(), want.dv);
  }
}

// Sizes that are no multiples of a tile; one mask for all matrices, one row of it for all queries,
// one column for all keys, and one that is turned.
TEST(Attention, WildMasks) {
  struct Case {
    DType dtype;
    double large, tolerance;
  };
  for (const auto& [dtype, large, tolerance] : {Case{kFloat64, 1e9, 1e-12},
                                                {kFloat32, 1e9, 1e-5},
                                                {kBFloat16, 1e9, 0.05},
                                                {kFloat16, 6e4, 0.01}}) {
    const Tensor mask = wild_mask(70, 130, large).to(dtype);
    const Tensor masks[] = {mask, mask.narrow(0, 5, 1), mask.narrow(0, 6, 1), mask.narrow(1, 4, 1),
                            wild_mask(130, 70, large).to(dtype).mT()};
    for (const Tensor& m : masks) {
      SCOPED_TRACE(str(dtype, " mask ", m.sizes(), " strides ", m.strides()));
      const Inputs qkv{leaf(sample({2, 70, 8}, 1).to(dtype)),
                       leaf(sample({2, 130, 8}, 2).to(dtype)),
                       leaf(sample({2, 130, 9}, 3).to(dtype))};
      expect_oracle(qkv, m, sample({2, 70, 9}, 4).to(dtype), tolerance);
    }
  }
}

// A mask with more queries than q has stretches the weights, as in the composition.
TEST(Attention, MasksThatStretchTheWeights) {
  const auto [q, k, v] = Qkv();
  const Tensor one = q.narrow(1, 0, 1), mask = sample({4, 5}, 3);
  expect_close(scaled_dot_product_attention(one, k, v, mask), composed(one, k, v, mask));
}

TEST(Attention, DimsInFrontBroadcast) {
  const Tensor q = leaf({2, 3, 4, 5}, 1), k = leaf({2, 1, 6, 5}, 2), v = leaf({6, 7}, 3);
  const Tensor wide_k = k.expand({2, 3, 6, 5}).clone(), wide_v = v.expand({2, 3, 6, 7}).clone();
  expect_close(scaled_dot_product_attention(q, k, v),
               scaled_dot_product_attention(q, wide_k, wide_v));
  expect_gradients(
      [](const Inputs& in) { return scaled_dot_product_attention(in[0], in[1], in[2]); },
      {leaf({2, 2, 2, 2}, 1), leaf({2, 1, 3, 2}, 2), leaf({3, 2}, 3)});
}

TEST(Attention, NoKeys) {
  const Tensor q = leaf({2, 3, 4}, 1), k = leaf({2, 0, 4}, 2), v = leaf({2, 0, 6}, 3);
  const Tensor y = scaled_dot_product_attention(q, k, v);
  EXPECT_EQ(values(y), Numbers(36, 0));
  y.sum().backward();
  EXPECT_EQ(values(q.grad()), Numbers(24, 0));
}

// Without a mask a row of -inf is NaN, as of softmax.
TEST(Attention, RowsOfMinusInfinityAreNanWithoutAMask) {
  const auto [q, k, v] = Qkv();
  const Tensor down = full({2, 3, 4}, -kInf, TensorOptions(kFloat64)), up = ones_like(k);
  for (const double x : values(scaled_dot_product_attention(down, up, v))) {
    EXPECT_TRUE(std::isnan(x));
  }
  const Tensor seen = ones({3, 5}, kBool);
  EXPECT_EQ(values(scaled_dot_product_attention(down, up, v, seen)), Numbers(36, 0));
}

// Forward and backward over 2048 queries and keys, in less than half of one matrix of scores.
TEST(Attention, NoMatrixOfScoresInMemory) {
  constexpr std::int64_t kLength = 2048;
  const TensorOptions options = TensorOptions(kFloat32).requires_grad(true);
  const Tensor q = ones({1, kLength, 16}, options), k = ones({1, kLength, 16}, options),
               v = ones({1, kLength, 16}, options);
  const Tensor row = zeros({1, kLength}, kFloat32), choices[] = {{}, {}, row, row.to(kBool)};
  for (std::size_t i = 0; i < 4; ++i) {
    memory::reset_peak_stats();
    const std::uint64_t before = memory::stats().allocated;
    scaled_dot_product_attention(q, k, v, choices[i], 0, i == 0).sum().backward();
    EXPECT_LT(memory::stats().allocated_peak - before, kLength * kLength * 4 / 2);
  }
}

// Of many matrices a thread packs one at a time, so scratch is little beside the results.
TEST(Attention, ScratchOfAMatrixForEachThread) {
  const int threads = get_num_threads();
  set_num_threads(2);
  const TensorOptions options = TensorOptions(kFloat32).requires_grad(true);
  const Tensor q = ones({64, 64, 64}, options), grad = ones({64, 64, 64}, kFloat32);
  memory::reset_peak_stats();
  const std::uint64_t before = memory::stats().allocated, size = 64 * 64 * 64 * 4;
  const Tensor y = scaled_dot_product_attention(q, q.detach(), q.detach());
  EXPECT_LT(memory::stats().allocated_peak - before, size * 3 / 2);
  y.backward(grad);
  EXPECT_LT(memory::stats().allocated_peak - before, size * 5 / 2);
  set_num_threads(threads);
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
