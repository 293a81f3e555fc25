// Running sums and products, sorting and topk: values, places, gradients.
#include "taper/tests/autograd/ops_support.h"

namespace taper {
namespace {

TEST(Scan, RunsAlongADim) {
  const Tensor x = f64({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(values(x.cumsum(1)), (Numbers{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(values(x.cumsum(0)), (Numbers{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(values(x.cumprod(-1)), (Numbers{1, 2, 6, 4, 20, 120}));
  EXPECT_EQ(values(x.t().cumprod(0)), (Numbers{1, 4, 2, 20, 6, 120}));
  EXPECT_EQ(values(f64(3).cumsum(0)), Numbers{3});
  EXPECT_EQ(values(leaf(3).cumprod(0)), Numbers{3});
  EXPECT_EQ(shape(zeros({0, 2}).cumsum(0)), (Shape{0, 2}));
  EXPECT_TRUE(contains(message_of([&] { x.cumsum(2); }), "dim 2 is outside"));
}

TEST(Scan, HasExactGradients) {
  for (const std::int64_t dim : {0, 1}) {
    for (const std::int64_t n : {1, 2, 3, 5, 8}) {
      const auto sums = [&](const std::vector<Tensor>& in) { return in[0].cumsum(dim); };
      const auto products = [&](const std::vector<Tensor>& in) { return in[0].cumprod(dim); };
      check_derivatives(sums, {variable({n, 3})});
      check_derivatives(products, {variable({n, 3})});
    }
  }
}

TEST(Scan, ProductsAreExactAtZeros) {
  const Tensor x = leaf({2., 0., 3.});
  EXPECT_EQ(values(grad_of(x.cumprod(0).sum(), x)), (Numbers{1, 8, 0}));
  const auto f = [](const std::vector<Tensor>& in) { return in[0].cumprod(0); };
  check_derivatives(f, {x});
  check_derivatives(f, {leaf({0., 2., 0., 3., 4.})});
  check_derivatives(f, {leaf({0., 0., 0.})});
}

TEST(Sort, OrdersWithNaNLast) {
  const Tensor x = f64({3, kNaN, 1, 2, 1});
  const auto [up, places] = x.sort();
  expect_near(up, {1, 1, 2, 3, kNaN});
  EXPECT_EQ(values(places), (Numbers{2, 4, 3, 0, 1}));
  const auto [down, from] = x.sort(0, true);
  expect_near(down, {kNaN, 3, 2, 1, 1});
  EXPECT_EQ(values(from), (Numbers{1, 0, 3, 2, 4}));
  EXPECT_EQ(values(x.argsort()), values(places));
  EXPECT_EQ(values(std::get<0>(f64(2).sort())), Numbers{2});
  EXPECT_EQ(shape(std::get<0>(zeros({2, 0}).sort())), (Shape{2, 0}));
}

TEST(Sort, PicksTheFirstFew) {
  const Tensor x = f64({{3, 1, 2}, {4, 6, 5}});
  const auto [largest, places] = x.topk(2);
  EXPECT_EQ(values(largest), (Numbers{3, 2, 6, 5}));
  EXPECT_EQ(values(places), (Numbers{0, 2, 1, 2}));
  EXPECT_EQ(values(std::get<0>(x.topk(1, 0, false))), (Numbers{3, 1, 2}));
  EXPECT_EQ(shape(std::get<0>(x.topk(0))), (Shape{2, 0}));
  EXPECT_EQ(values(std::get<0>(f64(2).topk(1))), Numbers{2});
  EXPECT_TRUE(contains(message_of([&] { x.topk(4); }), "k must lie in [0, 3]"));
  EXPECT_TRUE(std::isnan(values(std::get<0>(f64({1, kNaN}).topk(1)))[0]));
}

TEST(Sort, SendsGradientsBack) {
  for (const std::int64_t dim : {0, 1}) {
    const auto sorted = [&](const std::vector<Tensor>& in) { return std::get<0>(in[0].sort(dim)); };
    const auto top = [&](const std::vector<Tensor>& in) { return std::get<0>(in[0].topk(2, dim)); };
    check_derivatives(sorted, {variable({3, 4})});
    check_derivatives(top, {variable({3, 4})});
  }
  EXPECT_FALSE(variable({3}).argsort().requires_grad());
}

TEST(Sort, KnowsItsShapeOnMeta) {
  const Tensor x = zeros({2, 3}, TensorOptions(kFloat).device(kMeta));
  EXPECT_EQ(shape(std::get<1>(x.sort())), (Shape{2, 3}));
  EXPECT_EQ(shape(std::get<1>(x.topk(2))), (Shape{2, 2}));
  EXPECT_EQ(shape(x.cumprod(0)), (Shape{2, 3}));
}

}  // namespace
}  // namespace taper
