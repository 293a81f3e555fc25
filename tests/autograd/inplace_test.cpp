// Writes in place: versions, histories through views, and what is refused.
#include <string>

#include <gtest/gtest.h>

#include "taper/autograd/backward.h"
#include "taper/autograd/gradcheck.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

using Numbers = std::vector<double>;

Tensor leaf(const NestedNumbers& numbers) {
  return tensor(numbers, TensorOptions(kFloat64).requires_grad(true));
}

Numbers values(const Tensor& t) {
  const Tensor flat = t.detach().to(kFloat64).contiguous();
  const auto* p = flat.data_ptr<double>();
  return Numbers(p, p + flat.numel());
}

int line(SourceLoc loc = SourceLoc::current()) {
  return static_cast<int>(loc.line);
}

std::string at(int line_number) {
  return "inplace_test.cpp:" + std::to_string(line_number);
}

TEST(InPlace, WriteThroughAViewChangesTheBasesHistory) {
  const Tensor x = leaf({1., 1., 1.});
  const Tensor y = x * 2;
  const Tensor v = y.slice(0, 0, 2);
  v.mul_(3);
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{6, 6, 2}));
}

TEST(InPlace, ViewSeesWritesToItsBase) {
  const Tensor x = leaf({1., 2., 3.});
  const Tensor y = x * 2;
  const Tensor v = y.slice(0, 1, 3);
  y.mul_(5);
  v.sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{0, 10, 10}));
}

TEST(InPlace, ViewOfAViewAndSiblings) {
  const Tensor x = leaf({{1., 2.}, {3., 4.}});
  const Tensor y = x * 1;
  const Tensor row = y.select(0, 1), element = row.select(0, 0), column = y.select(1, 0);
  element.mul_(10);
  column.sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{1, 0, 10, 0}));
}

TEST(InPlace, ABaseWithoutHistoryGetsOneThroughAView) {
  const Tensor w = leaf({2., 3.});
  const Tensor x = zeros({2, 2}, kFloat64);
  x[0] = w * 2;
  EXPECT_TRUE(x.requires_grad());
  (x * x).sum().backward();
  EXPECT_EQ(values(w.grad()), (Numbers{16, 24}));
}

TEST(InPlace, SavedThenWrittenNamesBothOpsAndLines) {
  const Tensor x = leaf({1., 2.});
  const Tensor y = x.exp();
  const int saved = line() + 1;
  const Tensor z = y * y;
  const int wrote = line() + 1;
  y.add_(1);
  const std::string text = message_of([&] { z.sum().backward(); });
  for (const std::string& part : {std::string("mul"), at(saved), std::string("add"), at(wrote)}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
}

TEST(InPlace, WriteToADetachedAliasIsNoticed) {
  const Tensor x = leaf({1., 2.});
  const Tensor y = x.exp();
  y.detach().add_(1);
  EXPECT_THROW(y.sum().backward(), Error);
}

TEST(InPlace, AnOpMayOverwriteWhatItSaves) {
  const Tensor x = leaf({-1., 2.});
  const Tensor y = x * 1;
  y.relu_();
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{0, 1}));
  const Tensor z = x * 1;
  z.exp_();
  EXPECT_NO_THROW((z * 1).sum().backward({}, true));
  z.tanh_();  // overwrites what exp_ keeps
  EXPECT_THROW((z * 1).sum().backward(), Error);
}

TEST(InPlace, LeavesAreRefused) {
  const Tensor x = leaf({1., 2.});
  EXPECT_THROW(x.add_(1), Error);
  EXPECT_THROW(x.view({2}).add_(1), Error);
  EXPECT_THROW(x[0].add_(1), Error);
  const NoGradGuard guard;
  EXPECT_NO_THROW(x.add_(1));
}

TEST(InPlace, MultiOutputViewsAreRefused) {
  const Tensor x = leaf({1., 2., 3., 4.}) * 1;
  const std::string text = message_of([&] { x.chunk(2)[0].add_(1); });
  EXPECT_NE(text.find("split"), std::string::npos) << text;
}

TEST(InPlace, ViewsMadeUnderNoGradAreRefused) {
  const Tensor x = leaf({1., 2.}) * 1;
  Tensor v;
  {
    const NoGradGuard guard;
    v = x.slice(0, 0, 1);
  }
  EXPECT_THROW(v.mul_(2), Error);
}

TEST(InPlace, ExpandedTensorsAreRefused) {
  EXPECT_THROW(ones({1, 1}).expand({4, 5}).add_(1), Error);
  EXPECT_THROW(ones({3}).expand({2, 3}).copy_(zeros({2, 3})), Error);
}

TEST(InPlace, PartialOverlapGoesThroughACopy) {
  const Tensor a = tensor({{1., 2.}, {3., 4.}});
  a.sub_(a.slice(1, 0, 1));
  EXPECT_EQ(values(a), (Numbers{0, 1, 0, 1}));
  const Tensor b = arange(5, kFloat64);
  b.slice(0, 1, 5).copy_(b.slice(0, 0, 4));
  EXPECT_EQ(values(b), (Numbers{0, 0, 1, 2, 3}));
  const Tensor c = tensor({{1., 2.}, {3., 4.}});
  c.copy_(c.t());
  EXPECT_EQ(values(c), (Numbers{1, 3, 2, 4}));
}

TEST(InPlace, ShapeAndDtypeMustFit) {
  const Tensor a = ones({2});
  EXPECT_THROW(a.add_(ones({3, 2})), Error);
  EXPECT_THROW(tensor({1, 2}).add_(1.5), Error);
  const Tensor b = ones({2}, kFloat32);
  b.add_(ones({2}, kFloat64));
  EXPECT_EQ(b.dtype(), kFloat32);
  EXPECT_EQ(values(b), (Numbers{2, 2}));
}

TEST(InPlace, FillForgetsHistory) {
  const Tensor x = leaf({1., 2.});
  const Tensor y = x * 3;
  y.slice(0, 0, 1).zero_();
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{0, 3}));
}

TEST(InPlace, SecondDerivativesThroughAView) {
  const Tensor x = leaf({{0.5, -0.3, 0.8}, {0.1, 0.7, -0.2}});
  const auto f = [](const std::vector<Tensor>& in) {
    const Tensor y = in[0] * in[0];
    y.select(0, 0).sub_(in[0].select(0, 1).square());
    y.t().slice(0, 1, 3).exp_();
    return y * in[0];
  };
  EXPECT_TRUE(gradcheck(f, {x}));
  EXPECT_TRUE(gradgradcheck(f, {x}));
}

TEST(InPlace, AsStridedGradientsAddWhereElementsMeet) {
  const Tensor x = leaf({1., 2., 3., 4.});
  x.as_strided({3, 2}, {1, 1}).sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{1, 2, 2, 1}));
  const auto f = [](const std::vector<Tensor>& in) {
    return in[0].as_strided({3, 2}, {1, 1}).square();
  };
  EXPECT_TRUE(gradcheck(f, {leaf({1., 2., 3., 4.})}));
  EXPECT_TRUE(gradgradcheck(f, {leaf({1., 2., 3., 4.})}));
}

TEST(InPlace, VersionCountsWrites) {
  const Tensor x = ones({2});
  EXPECT_EQ(x.version(), 0u);
  const int here = line() + 1;
  x.add_(1);
  x.view({1, 2}).mul_(2);
  EXPECT_EQ(x.version(), 2u);
  const auto writers = x.storage()->last_writers();
  ASSERT_EQ(writers.size(), 2u);
  EXPECT_STREQ(writers[1].op, "add");
  EXPECT_EQ(writers[1].loc.line, static_cast<std::uint32_t>(here));
}

}  // namespace
}  // namespace taper
