// Softmax and log_softmax against a slow oracle, their derivatives, their edges.
#include <limits>

#include "taper/autograd/ops/softmax.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Inputs = std::vector<Tensor>;

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor slow_softmax(const Tensor& x, std::int64_t dim) {
  const Tensor e = exp(x - amax(x, dim, true));
  return e / sum(e, dim, true);
}

TEST(Softmax, Values) {
  for (const std::int64_t dim : {0, 1, 2, -1}) {
    const Tensor x = sample({3, 4, 5}, 1, -20, 20);
    expect_close(softmax(x, dim), slow_softmax(x, dim));
    expect_close(log_softmax(x, dim), log(slow_softmax(x, dim)));
    expect_close(softmax(x.transpose(0, 2), dim), slow_softmax(x.transpose(0, 2), dim));
  }
  expect_close(softmax(tensor({1000., 1000.}), 0), tensor({0.5, 0.5}));
}

TEST(Softmax, Gradients) {
  for (const std::int64_t dim : {0, 1}) {
    expect_gradients([=](const Inputs& in) { return softmax(in[0], dim); }, {leaf({3, 4})});
    expect_gradients([=](const Inputs& in) { return log_softmax(in[0], dim); }, {leaf({3, 4})});
    expect_same_with_graph([=](const Inputs& in) { return softmax(in[0], dim); }, {leaf({3, 4})});
    expect_same_with_graph([=](const Inputs& in) { return log_softmax(in[0], dim); },
                           {leaf({3, 4})});
  }
}

TEST(Softmax, DtypeAndRank) {
  EXPECT_EQ(softmax(ones({2}, kFloat16), 0).dtype(), kFloat16);
  EXPECT_EQ(softmax(ones({2}, kFloat16), 0, kFloat32).dtype(), kFloat32);
  EXPECT_EQ(softmax(ones({2}, kInt64), 0).dtype(), kFloat32);
  EXPECT_EQ(values(softmax(tensor(3.), -1)), (Numbers{1}));
  EXPECT_EQ(values(log_softmax(tensor(3.), 0)), (Numbers{0}));
  EXPECT_TRUE(softmax(zeros({0, 3}), 1).sizes() == IntArrayRef({0, 3}));
  EXPECT_TRUE(softmax(zeros({3, 0}), 1).sizes() == IntArrayRef({3, 0}));
  EXPECT_TRUE(log_softmax(zeros({2, 3}, kMeta), 1).sizes() == IntArrayRef({2, 3}));
}

TEST(Softmax, GradientTakesTheInputsDtype) {
  const Tensor x = ones({2}, TensorOptions(kFloat16).requires_grad(true));
  softmax(x, 0, kFloat32).select(0, 0).backward();
  EXPECT_EQ(x.grad().dtype(), kFloat16);
  EXPECT_EQ(values(x.grad()), (Numbers{0.25, -0.25}));
}

TEST(Softmax, Edges) {
  EXPECT_TRUE(std::isnan(values(softmax(tensor({-kInf, -kInf}), 0))[0]));
  const Tensor x = leaf(tensor({1., -kInf}, kFloat64));
  log_softmax(x, 0).select(0, 0).backward();
  EXPECT_EQ(values(x.grad()), (Numbers{0, 0}));
}

TEST(Softmax, MaskedRowsAreZero) {
  const Tensor x = leaf(tensor({{1., -kInf}, {-kInf, -kInf}}, kFloat64));
  const Tensor y = apply(ops::Softmax(1, kFloat64, true), {&x});
  EXPECT_EQ(values(y), (Numbers{1, 0, 0, 0}));
  for (const bool graph : {false, true}) {
    const Tensor g = grad({y}, {x}, {sample({2, 2})}, true, graph)[0];
    EXPECT_EQ(values(g), (Numbers{0, 0, 0, 0}));
  }
}

TEST(Softmax, Errors) {
  expect_error([] { softmax(zeros({2, 3}), 2); }, {"ops_softmax_test.cpp"});
}

}  // namespace
}  // namespace taper::testing
