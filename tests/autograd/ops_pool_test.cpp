// Pooling against loops in double, its derivatives, ceil_mode, adaptive cells, errors.
#include <limits>

#include "taper/autograd/ops/pool.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Inputs = std::vector<Tensor>;

struct Case {
  std::int64_t kernel, stride, padding, dilation;
  bool ceil_mode;
};

const Case kCases[] = {{2, 2, 0, 1, false},
                       {3, 2, 1, 1, false},
                       {3, 2, 1, 1, true},
                       {2, 3, 0, 1, true},
                       {3, 1, 1, 2, false}};

// The elements of a plane (rows, columns) under the window at (i, j); outside ones left out.
Numbers under(
    const Numbers& plane, const Sizes& size, const Case& c, std::int64_t i, std::int64_t j) {
  Numbers out;
  for (std::int64_t p = 0; p < c.kernel; ++p) {
    for (std::int64_t q = 0; q < c.kernel; ++q) {
      const std::int64_t r = i * c.stride - c.padding + p * c.dilation;
      const std::int64_t s = j * c.stride - c.padding + q * c.dilation;
      if (r < 0 || s < 0 || r >= size[0] || s >= size[1]) continue;
      out.push_back(plane[static_cast<std::size_t>(r * size[1] + s)]);
    }
  }
  return out;
}

TEST(MaxPool2d, Values) {
  for (const Case& c : kCases) {
    const Tensor x = sample({1, 1, 7, 8});
    const auto [y, indices] =
        max_pool2d_with_indices(x, c.kernel, c.stride, c.padding, c.dilation, c.ceil_mode);
    const Numbers plane = values(x), got = values(y), at = values(indices);
    for (std::int64_t i = 0; i < y.size(2); ++i) {
      for (std::int64_t j = 0; j < y.size(3); ++j) {
        double most = -std::numeric_limits<double>::infinity();
        for (const double v : under(plane, {7, 8}, c, i, j)) most = std::fmax(most, v);
        const auto k = static_cast<std::size_t>(i * y.size(3) + j);
        EXPECT_EQ(got[k], most);
        EXPECT_EQ(plane[static_cast<std::size_t>(at[k])], most);
      }
    }
  }
}

TEST(MaxPool2d, Gradients) {
  for (const Case& c : kCases) {
    expect_gradients(
        [&](const Inputs& in) {
          return max_pool2d(in[0], c.kernel, c.stride, c.padding, c.dilation, c.ceil_mode);
        },
        {leaf({1, 2, 6, 5})});
  }
}

TEST(MaxPool2d, EdgesAndFormats) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto [y, at] = max_pool2d_with_indices(tensor({{{1., nan}, {2., 2.}}}), 2);
  EXPECT_TRUE(std::isnan(values(y)[0]));
  EXPECT_EQ(values(std::get<1>(max_pool2d_with_indices(ones({1, 2, 2}), 2))), (Numbers{0}));
  const Tensor x = sample({2, 3, 4, 6}), last = x.contiguous(MemoryFormat::kChannelsLast);
  EXPECT_TRUE(max_pool2d(last, 2).is_contiguous(MemoryFormat::kChannelsLast));
  expect_close(max_pool2d(last, 2), max_pool2d(x, 2));
  EXPECT_TRUE(max_pool2d(zeros({0, 3, 4, 4}), 2).sizes() == IntArrayRef({0, 3, 2, 2}));
  EXPECT_TRUE(max_pool2d(zeros({1, 3, 4, 4}, kMeta), 2).sizes() == IntArrayRef({1, 3, 2, 2}));
  expect_close(max_pool2d(x.select(0, 0), 2), max_pool2d(x, 2).select(0, 0));
}

TEST(AvgPool2d, Values) {
  for (const Case& c : kCases) {
    if (c.dilation != 1) continue;
    const Tensor x = sample({1, 1, 7, 8});
    const Tensor y = avg_pool2d(x, c.kernel, c.stride, c.padding, c.ceil_mode, false);
    const Tensor sums = avg_pool2d(x, c.kernel, c.stride, c.padding, c.ceil_mode, true, 1);
    const Numbers plane = values(x), got = values(y), total = values(sums);
    for (std::int64_t i = 0; i < y.size(2); ++i) {
      for (std::int64_t j = 0; j < y.size(3); ++j) {
        const Numbers part = under(plane, {7, 8}, c, i, j);
        double sum = 0;
        for (const double v : part) sum += v;
        const auto k = static_cast<std::size_t>(i * y.size(3) + j);
        EXPECT_NEAR(got[k], sum / static_cast<double>(part.size()), 1e-12);
        EXPECT_NEAR(total[k], sum, 1e-12);
      }
    }
  }
}

// Padding counts, but not what lies beyond it in a window that ceil_mode added.
TEST(AvgPool2d, Divisors) {
  const Tensor x = ones({1, 1, 3, 3}, kFloat64);
  EXPECT_EQ(values(avg_pool2d(x, 2, 2, 1)), (Numbers{0.25, 0.5, 0.5, 1}));
  EXPECT_EQ(values(avg_pool2d(x, 2, 2, 0, true)), (Numbers{1, 1, 1, 1}));
  EXPECT_EQ(values(avg_pool2d(x, 3, 3, 0, false, true, 3)), (Numbers{3}));
}

TEST(AvgPool2d, Gradients) {
  for (const Case& c : kCases) {
    if (c.dilation != 1) continue;
    for (const bool pad : {true, false}) {
      expect_gradients(
          [&](const Inputs& in) {
            return avg_pool2d(in[0], c.kernel, c.stride, c.padding, c.ceil_mode, pad);
          },
          {leaf({1, 2, 5, 6})});
    }
  }
}

TEST(AdaptiveAvgPool2d, Values) {
  const Tensor x = sample({2, 3, 5, 7});
  expect_close(adaptive_avg_pool2d(x, 1), mean(x, {2, 3}, true));
  expect_close(adaptive_avg_pool2d(x, {5, 7}), x);
  const Tensor y = adaptive_avg_pool2d(x, {2, 3});
  const std::int64_t rows[2][2] = {{0, 3}, {2, 5}}, columns[3][2] = {{0, 3}, {2, 5}, {4, 7}};
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      const Tensor cell = x.slice(2, rows[i][0], rows[i][1]).slice(3, columns[j][0], columns[j][1]);
      expect_close(y.select(3, j).select(2, i), mean(cell, {2, 3}));
    }
  }
}

TEST(AdaptiveAvgPool2d, Gradients) {
  for (const std::int64_t n : {1, 2, 3}) {
    expect_gradients(
        [=](const Inputs& in) {
          return adaptive_avg_pool2d(in[0], {n, 2});
        },
        {leaf({1, 2, 4, 5})});
  }
}

TEST(Pool1d, FollowsPool2d) {
  const Tensor x = sample({2, 3, 9});
  expect_close(max_pool1d(x, 3, 2, 1),
               max_pool2d(x.unsqueeze(2), {1, 3}, {1, 2}, {0, 1}).squeeze(2));
  expect_close(avg_pool1d(x, 3), avg_pool2d(x.unsqueeze(2), {1, 3}).squeeze(2));
  expect_close(adaptive_avg_pool1d(x, 3), avg_pool1d(x, 3));
}

TEST(Pool, Errors) {
  const Tensor x = sample({1, 1, 3, 3});
  expect_error([&] { max_pool2d(x, 4); }, {"(4, 4)", "(1, 1, 3, 3)", "ops_pool_test.cpp"});
  expect_error([&] { max_pool2d(x, 2, 2, 2); }, {"padding", "(2, 2)"});
  expect_error([&] { avg_pool2d(x, 0); }, {"positive"});
  expect_error([&] { avg_pool2d(x, {1, 2, 3}); }, {"kernel_size", "(1, 2, 3)"});
}

}  // namespace
}  // namespace taper::testing
