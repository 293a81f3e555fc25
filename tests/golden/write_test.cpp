// Writes and views under autograd: the rows of the edge table that take more than one call.
#include <limits>

#include <gtest/gtest.h>

#include "taper/autograd/backward.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"

namespace taper::golden {
namespace {

const TensorOptions kF = TensorOptions(kFloat64);

std::vector<double> list(const Tensor& t) {
  std::vector<double> found;
  const Tensor flat = t.reshape({-1});
  for (std::int64_t i = 0; i < flat.numel(); ++i) found.push_back(flat.select(0, i).item<double>());
  return found;
}

using Doubles = std::vector<double>;

TEST(GoldenWrites, StretchedElementsCannotBeWritten) {
  EXPECT_THROW(ones({1, 1}, kF).expand({4, 5}).add_(1), Error);
}

TEST(GoldenWrites, PartialOverlapReadsBeforeItWrites) {
  Tensor a = tensor({{1., 2.}, {3., 4.}}, kF);
  a -= a.slice(1, 0, 1);
  EXPECT_EQ(list(a), (Doubles{0, 1, 0, 1}));
}

TEST(GoldenWrites, ThroughAViewReachesTheBase) {
  const Tensor x = ones({3}, kF).requires_grad_();
  const Tensor y = x * 2;
  y.slice(0, 0, 2).mul_(3);
  y.sum().backward();
  EXPECT_EQ(list(x.grad()), (Doubles{6, 6, 2}));
}

TEST(GoldenWrites, IntoTheBaseReachesTheView) {
  const Tensor x = ones({3}, kF).requires_grad_();
  const Tensor y = x * 2, v = y.slice(0, 0, 2);
  y.mul_(5);
  v.sum().backward();
  EXPECT_EQ(list(x.grad()), (Doubles{10, 10, 0}));
}

TEST(GoldenWrites, OfWhatBackwardNeedsIsRefused) {
  const Tensor x = ones({3}, kF).requires_grad_();
  const Tensor z = (x * 2).exp();
  const Tensor square = z * z;
  z.add_(1);
  EXPECT_THROW(square.sum().backward(), Error);
}

TEST(GoldenWrites, ThroughDetachAreSeen) {
  const Tensor x = ones({3}, kF).requires_grad_();
  const Tensor y = x.exp();
  y.detach().add_(1);
  EXPECT_THROW(y.sum().backward(), Error);
}

TEST(GoldenWrites, IntoALeafOrItsViewAreRefused) {
  const Tensor x = ones({3}, kF).requires_grad_();
  EXPECT_THROW(x.add_(1), Error);
  EXPECT_THROW(x.view({3}).add_(1), Error);
}

TEST(GoldenWrites, IntoOneOfSeveralViewsAreRefused) {
  const Tensor x = ones({4}, kF).requires_grad_() * 1;
  const auto parts = x.chunk(2);
  EXPECT_THROW(parts[0].add_(1), Error);
}

TEST(GoldenEdgeChains, NormAtZeroHasSecondDerivativeZero) {
  const Tensor x = zeros({2}, kF).requires_grad_();
  const Tensor first = grad({x.norm()}, {x}, {}, true, true)[0];
  EXPECT_EQ(list(first), (Doubles{0, 0}));
  const Tensor second = grad({first.sum()}, {x})[0];
  EXPECT_EQ(list(second), (Doubles{0, 0}));
}

TEST(GoldenEdgeChains, RootOfASumOfSquaresAtZeroIsNan) {
  const Tensor x = zeros({2}, kF).requires_grad_();
  x.pow(2).sum().sqrt().backward();
  EXPECT_TRUE(x.grad().isnan().all().item<bool>());
}

TEST(GoldenEdgeChains, OneOfALogSoftmaxWithMinusInfinity) {
  const Tensor x = tensor({1., -std::numeric_limits<double>::infinity()}, kF).requires_grad_();
  x.log_softmax(0).select(0, 0).backward();
  EXPECT_EQ(list(x.grad()), (Doubles{0, 0}));
}

TEST(GoldenEdgeChains, BroadcastGradientsAreSummed) {
  const Tensor a = tensor({{1.}, {2.}}, kF).requires_grad_();
  const Tensor b = tensor({1., 2., 3.}, kF).requires_grad_();
  ((a + b) * arange(6, kF).view({2, 3})).sum().backward();
  EXPECT_EQ(list(a.grad()), (Doubles{3, 12}));
  EXPECT_EQ(list(b.grad()), (Doubles{3, 5, 7}));
}

TEST(GoldenEdgeChains, SizesAreMultipliedWithCare) {
  const std::int64_t big = std::int64_t{1} << 32;
  EXPECT_THROW(empty({big, big}), Error);
  EXPECT_THROW(zeros({1}).expand({big, big}), Error);
}

TEST(GoldenEdgeChains, OverlappingReadsAddUpInBackward) {
  const Tensor x = arange(5, kF).requires_grad_();
  x.unfold(0, 3, 1).sum().backward();
  EXPECT_EQ(list(x.grad()), (Doubles{1, 2, 3, 2, 1}));
  const Tensor y = arange(3, kF).requires_grad_();
  y.as_strided({2, 2}, {1, 1}).sum().backward();
  EXPECT_EQ(list(y.grad()), (Doubles{1, 2, 1}));
}

}  // namespace
}  // namespace taper::golden
