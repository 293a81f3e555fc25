// Convolutions against a loop in double, their derivatives, formats and errors.
#include "taper/autograd/ops/conv.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Inputs = std::vector<Tensor>;

struct Case {
  Sizes x, w;
  Sizes stride, padding, dilation;
  std::int64_t groups;
};

const Case kCases[] = {
    {{2, 3, 5, 6}, {4, 3, 3, 2}, {1, 1}, {0, 0}, {1, 1}, 1},
    {{1, 4, 7, 6}, {6, 2, 3, 3}, {2, 1}, {1, 2}, {1, 1}, 2},
    {{2, 2, 6, 7}, {2, 1, 2, 3}, {2, 3}, {1, 0}, {2, 2}, 2},
    {{1, 3, 4, 4}, {2, 3, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
    {{3, 1, 5, 5}, {3, 1, 5, 5}, {1, 1}, {2, 2}, {1, 1}, 1},
};

Tensor run(const Case& c, const Tensor& x, const Tensor& w, const Tensor& bias = {}) {
  return conv2d(x, w, bias, c.stride, c.padding, c.dilation, c.groups);
}

// One element of the result, by the definition.
double slow_element(const Case& c, const Numbers& x, const Numbers& w, const Sizes& at) {
  const auto index = [](const Sizes& sizes, std::int64_t a, std::int64_t b, std::int64_t i,
                        std::int64_t j) {
    return static_cast<std::size_t>(((a * sizes[1] + b) * sizes[2] + i) * sizes[3] + j);
  };
  const std::int64_t per_group = c.w[0] / c.groups, group = at[1] / per_group;
  double sum = 0;
  for (std::int64_t k = 0; k < c.w[1]; ++k) {
    for (std::int64_t p = 0; p < c.w[2]; ++p) {
      for (std::int64_t q = 0; q < c.w[3]; ++q) {
        const std::int64_t i = at[2] * c.stride[0] - c.padding[0] + p * c.dilation[0];
        const std::int64_t j = at[3] * c.stride[1] - c.padding[1] + q * c.dilation[1];
        if (i < 0 || j < 0 || i >= c.x[2] || j >= c.x[3]) continue;
        sum += x[index(c.x, at[0], group * c.w[1] + k, i, j)] * w[index(c.w, at[1], k, p, q)];
      }
    }
  }
  return sum;
}

TEST(Conv2d, Values) {
  for (const Case& c : kCases) {
    const Tensor x = sample(c.x), w = sample(c.w, 2), bias = sample({c.w[0]}, 3);
    const Tensor y = run(c, x, w, bias);
    const Numbers got = values(y), xs = values(x), ws = values(w), bs = values(bias);
    std::size_t i = 0;
    for (std::int64_t n = 0; n < y.size(0); ++n) {
      for (std::int64_t o = 0; o < y.size(1); ++o) {
        for (std::int64_t h = 0; h < y.size(2); ++h) {
          for (std::int64_t k = 0; k < y.size(3); ++k, ++i) {
            ASSERT_NEAR(got[i],
                        slow_element(c, xs, ws, {n, o, h, k}) + bs[static_cast<std::size_t>(o)],
                        1e-12);
          }
        }
      }
    }
    expect_close(run(c, x, w) + bias.view({-1, 1, 1}), y);
  }
}

TEST(Conv2d, Gradients) {
  for (const Case& c : kCases) {
    if (checked_numel(c.x) > 100) continue;
    expect_gradients([&](const Inputs& in) { return run(c, in[0], in[1], in[2]); },
                     {leaf(c.x), leaf(c.w, 2), leaf({c.w[0]}, 3)});
  }
}

TEST(Conv2d, GradientsOfOneOperandAlone) {
  const Tensor x = leaf({1, 2, 4, 4}), w = leaf({2, 2, 3, 3}, 2);
  const auto both = grad({conv2d(x, w)}, {x, w}, {ones({1, 2, 2, 2}, kFloat64)});
  expect_close(grad({conv2d(x, w.detach())}, {x}, {ones({1, 2, 2, 2}, kFloat64)})[0], both[0]);
  expect_close(grad({conv2d(x.detach(), w)}, {w}, {ones({1, 2, 2, 2}, kFloat64)})[0], both[1]);
  expect_close(grad({conv2d(x, w)}, {w}, {ones({1, 2, 2, 2}, kFloat64)})[0], both[1]);
}

TEST(Conv2d, ChannelsLast) {
  const Case& c = kCases[1];
  const Tensor x = sample(c.x), w = sample(c.w, 2);
  const Tensor last = leaf(x.contiguous(MemoryFormat::kChannelsLast));
  const Tensor y = run(c, last, w);
  EXPECT_TRUE(y.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_TRUE(run(c, x, w).is_contiguous());
  expect_close(y, run(c, x, w));
  y.sum().backward();
  EXPECT_TRUE(last.grad().is_contiguous(MemoryFormat::kChannelsLast));
  const Tensor plain = leaf(x);
  run(c, plain, w).sum().backward();
  expect_close(last.grad(), plain.grad());
}

TEST(Conv2d, OneSampleNoSamplesAndMeta) {
  const Tensor x = sample({3, 4, 4}), w = sample({2, 3, 3, 3}, 2);
  expect_close(conv2d(x, w), conv2d(x.unsqueeze(0), w).squeeze(0));
  const Tensor v = leaf(w);
  const Tensor y = conv2d(zeros({0, 3, 4, 4}, kFloat64), v);
  EXPECT_TRUE(y.sizes() == IntArrayRef({0, 2, 2, 2}));
  y.sum().backward();
  EXPECT_EQ(values(v.grad()), Numbers(54, 0));
  EXPECT_TRUE(conv2d(zeros({1, 3, 4, 4}, kMeta), zeros({2, 3, 3, 3}, kMeta)).is_meta());
}

TEST(Conv2d, Errors) {
  const Tensor x = sample({1, 3, 4, 4});
  expect_error(
      [&] {
        conv2d(x, sample({2, 4, 3, 3}));
      },
      {"3 channels", "(2, 4, 3, 3)", "ops_conv_test.cpp"});
  expect_error([&] { conv2d(x, sample({2, 3, 5, 5})); }, {"(2, 3, 5, 5)", "(1, 3, 4, 4)"});
  expect_error([&] { conv2d(x, sample({2, 3, 3, 3}), sample({3})); }, {"bias", "(2)", "(3)"});
  expect_error([&] { conv2d(x, sample({2, 3, 3, 3}), {}, 0); }, {"stride"});
  expect_error([&] { conv2d(x, sample({2, 3, 3, 3}).to(kFloat32)); }, {"f64", "f32"});
}

TEST(Conv1d, Values) {
  const Tensor x = sample({2, 3, 7}), w = sample({4, 3, 3}, 2), b = sample({4}, 3);
  expect_close(conv1d(x, w, b, 2, 1),
               conv2d(x.unsqueeze(3), w.unsqueeze(3), b, {2, 1}, {1, 0}).squeeze(3));
  expect_close(conv1d(x.select(0, 0), w), conv1d(x, w).select(0, 0));
}

// <conv(x), y> = <x, conv_transpose(y)>
TEST(ConvTranspose2d, IsTheTransposedMap) {
  const Tensor x = sample({1, 4, 7, 6}), w = sample({6, 2, 3, 3}, 2);
  const Tensor image = conv2d(x, w, {}, {2, 1}, {1, 2}, 1, 2), y = sample(image.sizes(), 3);
  const Tensor back = conv_transpose2d(y, w, {}, {2, 1}, {1, 2}, 0, 2);
  ASSERT_TRUE(back.sizes() == x.sizes());
  expect_close(sum(image * y), sum(x * back));
}

TEST(ConvTranspose2d, GradientsAndErrors) {
  expect_gradients([](const Inputs& in) { return conv_transpose2d(in[0], in[1], in[2], 2, 1, 1); },
                   {leaf({1, 2, 3, 3}), leaf({2, 2, 3, 3}, 2), leaf({2}, 3)});
  expect_error(
      [] {
        conv_transpose2d(sample({1, 2, 3, 3}), sample({3, 2, 3, 3}));
      },
      {"(1, 2, 3, 3)", "(3, 2, 3, 3)"});
}

}  // namespace
}  // namespace taper::testing
