// Normalisations against slow oracles, their derivatives, running statistics.
#include "taper/autograd/ops/norm.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Inputs = std::vector<Tensor>;

// (x - mean) / sqrt(var + eps) over `dims`, by the definition.
Tensor slow_normalised(const Tensor& x, IntArrayRef dims, double eps = 1e-5) {
  const Tensor centred = x - mean(x, dims, true);
  return centred / sqrt(mean(centred * centred, dims, true) + eps);
}

TEST(LayerNorm, Values) {
  const Tensor x = sample({2, 3, 4}, 1, -3, 5), w = sample({3, 4}, 2), b = sample({3, 4}, 3);
  expect_close(layer_norm(x, {3, 4}, w, b), slow_normalised(x, {1, 2}) * w + b);
  expect_close(layer_norm(x, 4), slow_normalised(x, 2));
  expect_close(layer_norm(x.transpose(0, 2), 2, {}, {}, 0.1),
               slow_normalised(x.transpose(0, 2), 2, 0.1));
  EXPECT_EQ(values(layer_norm(ones({2, 3}), 3)), Numbers(6, 0));
}

TEST(LayerNorm, Gradients) {
  const auto affine = [](const Inputs& in) { return layer_norm(in[0], {2, 3}, in[1], in[2]); };
  const Inputs inputs{leaf({3, 2, 3}, 1, -2, 2), leaf({2, 3}, 2), leaf({2, 3}, 3)};
  expect_gradients(affine, inputs);
  expect_same_with_graph(affine, inputs);
  const auto plain = [](const Inputs& in) { return layer_norm(in[0].t(), 3); };
  expect_gradients(plain, {leaf({3, 4}, 1, -2, 2)});
  expect_same_with_graph(plain, {leaf({3, 4}, 1, -2, 2)});
}

TEST(LayerNorm, DtypesEmptyAndMeta) {
  EXPECT_EQ(layer_norm(ones({2, 3}, kBFloat16), 3).dtype(), kBFloat16);
  const Tensor w = ones({3}, TensorOptions(kFloat32).requires_grad(true));
  const Tensor y = layer_norm(sample({2, 3}).to(kFloat16), 3, w);
  EXPECT_EQ(y.dtype(), kFloat16);
  y.sum().backward();
  EXPECT_EQ(w.grad().dtype(), kFloat32);
  const Tensor none = zeros({0, 3}, TensorOptions().requires_grad(true));
  layer_norm(none, 3, w).sum().backward();
  EXPECT_TRUE(none.grad().sizes() == IntArrayRef({0, 3}));
  EXPECT_TRUE(layer_norm(zeros({2, 3}, kMeta), 3).sizes() == IntArrayRef({2, 3}));
}

TEST(LayerNorm, Errors) {
  const Tensor x = sample({2, 3});
  expect_error([&] { layer_norm(x, 4); }, {"(4)", "(2, 3)", "ops_norm_test.cpp"});
  expect_error([&] { layer_norm(x, 3, sample({2})); }, {"weight", "(3)", "(2)"});
}

TEST(GroupNorm, ValuesAndGradients) {
  const Tensor x = sample({2, 4, 3}, 1, -3, 5), w = sample({4}, 2), b = sample({4}, 3);
  const Tensor h = slow_normalised(x.view({2, 2, 6}), 2).view({2, 4, 3});
  expect_close(group_norm(x, 2, w, b), h * w.view({4, 1}) + b.view({4, 1}));
  expect_gradients([](const Inputs& in) { return group_norm(in[0], 2, in[1], in[2]); },
                   {leaf({2, 4, 2}), leaf({4}, 2), leaf({4}, 3)});
  expect_error([&] { group_norm(x, 3); }, {"4 channels", "3 groups"});
}

TEST(BatchNorm, TrainingValues) {
  const Tensor x = sample({4, 3, 2}, 1, -3, 5), w = sample({3}, 2), b = sample({3}, 3);
  const Tensor h = slow_normalised(x, {0, 2});
  expect_close(batch_norm(x, {}, {}, w, b, true), h * w.view({3, 1}) + b.view({3, 1}));
  expect_close(batch_norm(x, {}, {}, {}, {}, true), h);
}

TEST(BatchNorm, RunningStatistics) {
  const Tensor x = sample({4, 3, 2}, 1, -3, 5);
  const Tensor m = zeros({3}, kFloat64), v = ones({3}, kFloat64);
  batch_norm(x, m, v, {}, {}, true, 0.25);
  expect_close(m, mean(x, {0, 2}) * 0.25);
  expect_close(v, var(x, {0, 2}) * 0.25 + 0.75);
  const Tensor y = batch_norm(x, m, v, {}, {}, false);
  expect_close(y, (x - m.view({3, 1})) / sqrt(v.view({3, 1}) + 1e-5));
  EXPECT_FALSE(m.requires_grad());
}

TEST(BatchNorm, Gradients) {
  const Inputs inputs{leaf({3, 2, 2}, 1, -2, 2), leaf({2}, 2), leaf({2}, 3)};
  const Tensor m = sample({2}, 4), v = sample({2}, 5, 0.5, 1);
  for (const bool training : {true, false}) {
    const auto f = [=](const Inputs& in) {
      return batch_norm(in[0], m.clone(), v.clone(), in[1], in[2], training);
    };
    expect_gradients(f, inputs);
    expect_same_with_graph(f, inputs);
  }
}

// A training step after an evaluation does not invalidate what the evaluation saved.
TEST(BatchNorm, StatisticsMoveBetweenForwardAndBackward) {
  const Tensor x = leaf({3, 2}), m = zeros({2}, kFloat64), v = ones({2}, kFloat64);
  const Tensor y = batch_norm(x, m, v, {}, {}, false);
  batch_norm(x.detach(), m, v, {}, {}, true);
  y.sum().backward();
  expect_close(x.grad(), full({3, 2}, 1 / std::sqrt(1 + 1e-5), kFloat64));
}

TEST(BatchNorm, ChannelsLastAndDtypes) {
  const Tensor x = sample({2, 3, 4, 5}).contiguous(MemoryFormat::kChannelsLast);
  const Tensor y = batch_norm(x, {}, {}, {}, {}, true);
  EXPECT_TRUE(y.is_contiguous(MemoryFormat::kChannelsLast));
  expect_close(y, batch_norm(x.contiguous(), {}, {}, {}, {}, true));
  EXPECT_EQ(batch_norm(x.to(kBFloat16), zeros({3}), ones({3}), {}, {}, true).dtype(), kBFloat16);
}

TEST(BatchNorm, Errors) {
  const Tensor x = sample({2, 3});
  expect_error([&] { batch_norm(x, {}, {}); }, {"running statistics", "batch_norm"});
  expect_error([&] { batch_norm(x, {}, {}, sample({2}), {}, true); }, {"weight", "(3)", "(2)"});
  expect_error(
      [&] {
        batch_norm(sample({1, 3, 1}), {}, {}, {}, {}, true);
      },
      {"more than one value", "(1, 3, 1)"});
}

TEST(InstanceNorm, ValuesAndGradients) {
  const Tensor x = sample({2, 3, 4}, 1, -3, 5), w = sample({3}, 2), b = sample({3}, 3);
  expect_close(instance_norm(x, w, b), slow_normalised(x, 2) * w.view({3, 1}) + b.view({3, 1}));
  expect_gradients([](const Inputs& in) { return instance_norm(in[0], in[1], in[2]); },
                   {leaf({2, 2, 3}), leaf({2}, 2), leaf({2}, 3)});
}

TEST(InstanceNorm, RunningStatistics) {
  const Tensor x = sample({2, 3, 4}, 1, -3, 5);
  const Tensor m = zeros({3}, kFloat64), v = ones({3}, kFloat64);
  instance_norm(x, {}, {}, m, v, true, 0.25);
  expect_close(m, mean(x, {0, 2}) * 0.25);
  expect_close(v, mean(var(x, IntArrayRef(2)), 0) * 0.25 + 0.75);
  expect_close(instance_norm(x, {}, {}, m, v, false),
               (x - m.view({3, 1})) / sqrt(v.view({3, 1}) + 1e-5));
}

}  // namespace
}  // namespace taper::testing
