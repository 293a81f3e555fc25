// Reductions against plain loops, their gradients, and the edge rows: empties, zeros, ties, NaN.
#include "taper/tests/autograd/ops_support.h"

namespace taper {
namespace {

using Fold = double (*)(const Numbers&);

double product_of(const Numbers& x) {
  double y = 1;
  for (const double v : x) y *= v;
  return y;
}

double mean_of(const Numbers& x) {
  double y = 0;
  for (const double v : x) y += v;
  return y / static_cast<double>(x.size());
}

double variance_of(const Numbers& x) {
  double y = 0;
  for (const double v : x) y += (v - mean_of(x)) * (v - mean_of(x));
  return y / static_cast<double>(x.size() - 1);
}

double deviation_of(const Numbers& x) {
  return std::sqrt(variance_of(x));
}

double largest_of(const Numbers& x) {
  double y = x[0];
  for (const double v : x) y = v > y ? v : y;
  return y;
}

double smallest_of(const Numbers& x) {
  double y = x[0];
  for (const double v : x) y = v < y ? v : y;
  return y;
}

double log_sum_exp_of(const Numbers& x) {
  double y = 0;
  for (const double v : x) y += std::exp(v);
  return std::log(y);
}

// Folds (2, 3, 4) over some dims by reading each element where its index says.
Numbers folded(const Tensor& x, const Shape& dims, Fold fold) {
  std::vector<Numbers> groups;
  const auto reduced = [&](std::int64_t d) {
    for (const std::int64_t r : dims) {
      if (wrap_dim(r, x.sizes()) == d) return true;
    }
    return dims.empty();
  };
  const Tensor detached = x.detach();
  const auto a = detached.accessor<double, 3>();
  for (std::int64_t i = 0; i < x.size(0); ++i) {
    for (std::int64_t j = 0; j < x.size(1); ++j) {
      for (std::int64_t k = 0; k < x.size(2); ++k) {
        const std::int64_t at[] = {i, j, k};
        std::size_t group = 0;
        for (std::int64_t d = 0; d < 3; ++d) {
          if (!reduced(d))
            group = group * static_cast<std::size_t>(x.size(d)) + static_cast<std::size_t>(at[d]);
        }
        if (groups.size() <= group) groups.resize(group + 1);
        groups[group].push_back(a[i][j][k]);
      }
    }
  }
  Numbers out;
  for (const Numbers& g : groups) out.push_back(fold(g));
  return out;
}

template <class F> void check(F f, Fold fold, const Shape& dims) {
  for (const bool strided : {false, true}) {
    const Tensor x = strided ? numbers({4, 3, 2}).permute({2, 1, 0}) : numbers({2, 3, 4});
    expect_near(f(x, dims, false), folded(x, dims, fold));
    const Tensor kept = f(x, dims, true);
    expect_near(kept, folded(x, dims, fold));
    EXPECT_EQ(kept.dim(), 3);
  }
  check_derivatives([&](const std::vector<Tensor>& in) { return f(in[0], dims, false); },
                    {variable({2, 3, 4})});
  check_derivatives([&](const std::vector<Tensor>& in) { return f(in[0], dims, true); },
                    {variable({2, 3, 4})});
}

const std::vector<Shape> kDims = {{}, {0}, {1}, {-1}, {0, 2}, {2, 1}, {0, 1, 2}};

TEST(Reduce, FoldsOverAnyDims) {
  for (const Shape& dims : kDims) {
    check([](const Tensor& x, const Shape& d, bool k) { return x.mean(d, k); }, mean_of, dims);
    check([](const Tensor& x, const Shape& d, bool k) { return x.var(d, true, k); }, variance_of,
          dims);
    check([](const Tensor& x, const Shape& d, bool k) { return x.std(d, true, k); }, deviation_of,
          dims);
    check([](const Tensor& x, const Shape& d, bool k) { return x.amax(d, k); }, largest_of, dims);
    check([](const Tensor& x, const Shape& d, bool k) { return x.amin(d, k); }, smallest_of, dims);
    check([](const Tensor& x, const Shape& d, bool k) { return x.logsumexp(d, k); }, log_sum_exp_of,
          dims);
  }
  for (const std::int64_t dim : {0, 1, -1}) {
    check([&](const Tensor& x, const Shape& d, bool k) { return x.prod(d[0], k); }, product_of,
          {dim});
  }
}

TEST(Reduce, TakesScalarsAsOneElement) {
  const Tensor x = leaf(3);
  EXPECT_EQ(x.prod().item<double>(), 3);
  EXPECT_EQ(x.prod(0).item<double>(), 3);
  EXPECT_EQ(x.amax(0).item<double>(), 3);
  EXPECT_EQ(std::get<1>(x.max(-1)).item<std::int64_t>(), 0);
  EXPECT_EQ(x.argmax().item<std::int64_t>(), 0);
  EXPECT_EQ(x.norm().item<double>(), 3);
  EXPECT_EQ(x.logsumexp(0).item<double>(), 3);
  EXPECT_EQ(x.var(0, false).item<double>(), 0);
  EXPECT_EQ(values(grad_of(std::get<0>(x.max(0)), x)), Numbers{1});
  EXPECT_EQ(values(grad_of(x.prod(0), x)), Numbers{1});
}

TEST(Reduce, OfNothing) {
  const Tensor x = zeros({0, 3}, kFloat64);
  EXPECT_EQ(x.sum().item<double>(), 0);
  EXPECT_EQ(x.prod().item<double>(), 1);
  EXPECT_TRUE(std::isnan(x.mean().item<double>()));
  EXPECT_TRUE(std::isnan(x.var().item<double>()));
  EXPECT_EQ(values(x.prod(0)), (Numbers{1, 1, 1}));
  EXPECT_EQ(shape(x.prod(1)), Shape{0});
  EXPECT_EQ(shape(std::get<0>(x.max(1))), Shape{0});
  EXPECT_EQ(shape(x.amax(1)), Shape{0});
  EXPECT_EQ(shape(x.argmax(1)), Shape{0});
  EXPECT_EQ(x.norm().item<double>(), 0);
  EXPECT_EQ(values(x.logsumexp(0)), (Numbers{-kInf, -kInf, -kInf}));
  EXPECT_EQ(x.any().item<bool>(), false);
  EXPECT_EQ(x.all().item<bool>(), true);
  for (const std::string& text :
       {message_of([&] { x.amax(0); }), message_of([&] { x.max(); }),
        message_of([&] { std::get<0>(x.max(0)).sum(); }), message_of([&] { x.argmax(); }),
        message_of([&] { x.argmin(0); }), message_of([&] { x.norm(kInf); })}) {
    EXPECT_TRUE(contains(text, "dim 0 of (0, 3) is reduced but has size 0")) << text;
  }
}

TEST(Reduce, KeepsOrPromotesTheDtype) {
  const Tensor i = i64({{1, 2}, {3, 4}});
  EXPECT_EQ(i.to(kInt32).prod().dtype(), kInt64);
  EXPECT_EQ(i.to(kBool).cumsum(0).dtype(), kInt64);
  EXPECT_EQ(i.to(kInt32).amax().dtype(), kInt32);
  EXPECT_EQ(i.to(kUInt8).any().dtype(), kUInt8);
  EXPECT_EQ(i.any().dtype(), kBool);
  EXPECT_EQ(i.logsumexp(0).dtype(), kFloat32);
  EXPECT_EQ(i.prod().item<std::int64_t>(), 24);
  EXPECT_TRUE(contains(message_of([&] { i.var(); }), "needs floating-point elements, got i64"));
  EXPECT_TRUE(contains(message_of([&] { i.norm(); }), "norm: needs floating-point"));
  const Tensor big = full({4}, 300, TensorOptions(kFloat16));
  EXPECT_EQ(big.norm().item<float>(), 600);  // the squares do not fit into f16
}

TEST(Reduce, ProductsAreExactAtZeros) {
  const Tensor one = leaf({4., 0.}), two = leaf({3., 0., 0.});
  EXPECT_EQ(values(grad_of(one.prod(), one)), (Numbers{0, 4}));
  EXPECT_EQ(values(grad_of(two.prod(), two)), (Numbers{0, 0, 0}));
  const Tensor rows = leaf({{2., 0., 3.}, {1., 5., 4.}, {0., 0., 7.}});
  EXPECT_EQ(values(grad_of(rows.prod(1).sum(), rows)), (Numbers{0, 6, 0, 20, 4, 5, 0, 0, 0}));
  const auto all = [](const std::vector<Tensor>& in) { return in[0].prod(); };
  const auto along = [](const std::vector<Tensor>& in) { return in[0].prod(0); };
  for (const Tensor& x : {one, two, rows}) check_derivatives(all, {x});
  check_derivatives(along, {rows});
}

TEST(Reduce, ConstantsHaveNoDeviation) {
  const Tensor x = leaf({2., 2., 2.});
  const Tensor g = grad_of(x.std(), x, true);
  EXPECT_EQ(values(g), (Numbers{0, 0, 0}));
  EXPECT_EQ(values(grad_of(g.sum(), x)), (Numbers{0, 0, 0}));
  const Tensor single = leaf({2.});
  EXPECT_TRUE(std::isnan(values(grad_of(single.std(), single))[0]));
  EXPECT_EQ(single.std(false).item<double>(), 0);
  const auto [var, mean] = var_mean(leaf({1., 3.}), 0);
  EXPECT_EQ(var.item<double>(), 2);
  EXPECT_EQ(mean.item<double>(), 2);
  check_derivatives(
      [](const std::vector<Tensor>& in) {
        const auto [v, m] = var_mean(in[0], {0}, false, true);
        return std::vector<Tensor>{v, m};
      },
      {variable({3, 2})});
}

TEST(Reduce, ExtremesShareTheGradient) {
  const Tensor x = leaf({1., 3., 3.});
  EXPECT_EQ(values(grad_of(x.max(), x)), (Numbers{0, 0.5, 0.5}));
  EXPECT_EQ(values(grad_of(x.amax(0), x)), (Numbers{0, 0.5, 0.5}));
  EXPECT_EQ(values(grad_of(x.min(), x)), (Numbers{1, 0, 0}));
  EXPECT_EQ(values(grad_of(x.norm(kInf), x)), (Numbers{0, 0.5, 0.5}));
  const auto [value, index] = x.max(0);
  EXPECT_EQ(index.item<std::int64_t>(), 1);
  EXPECT_EQ(values(grad_of(value, x)), (Numbers{0, 1, 0}));
  const auto f = [](const std::vector<Tensor>& in) { return std::get<0>(in[0].max(1)); };
  const auto kept = [](const std::vector<Tensor>& in) { return std::get<0>(in[0].min(0, true)); };
  check_derivatives(f, {variable({3, 4})});
  check_derivatives(kept, {variable({3, 4})});
}

TEST(Reduce, ExtremesFindNaN) {
  const Tensor x = leaf({1., kNaN, 3.});
  EXPECT_TRUE(std::isnan(x.max().item<double>()));
  EXPECT_TRUE(std::isnan(x.amin().item<double>()));
  EXPECT_EQ(x.argmax().item<std::int64_t>(), 1);
  EXPECT_EQ(std::get<1>(x.min(0)).item<std::int64_t>(), 1);
  EXPECT_EQ(values(grad_of(x.max(), x)), (Numbers{0, 1, 0}));
}

TEST(Reduce, FindsPlaces) {
  const Tensor x = f64({{1, 5, 5}, {7, 2, 0}});
  EXPECT_EQ(x.argmax().item<std::int64_t>(), 3);
  EXPECT_EQ(x.t().argmax().item<std::int64_t>(), 1);
  EXPECT_EQ(values(x.argmax(0)), (Numbers{1, 0, 0}));
  EXPECT_EQ(values(x.argmin(1, true)), (Numbers{0, 2}));
  EXPECT_EQ(shape(x.argmin(1, true)), (Shape{2, 1}));
  EXPECT_EQ(shape(x.argmin(std::nullopt, true)), (Shape{1, 1}));
  EXPECT_EQ(values(x.eq(5).any(1)), (Numbers{1, 0}));
  EXPECT_EQ(values(x.all(0)), (Numbers{1, 1, 0}));
  EXPECT_EQ(f64({0, kNaN}).any().item<bool>(), true);
}

TEST(Reduce, NormsOfEveryOrder) {
  const Numbers at = {-3, 0, 4};
  const Tensor x = leaf({-3., 0., 4.});
  const auto oracle = [&](double p) {
    double sum = 0;
    for (const double v : at) sum += v == 0 && p == 0 ? 0 : std::pow(std::fabs(v), p);
    return p == 0 ? sum : std::pow(sum, 1 / p);
  };
  for (const double p : {0., 0.5, 1., 1.5, 2., 3.}) {
    EXPECT_NEAR(x.norm(p).item<double>(), oracle(p), 1e-12) << p;
  }
  EXPECT_EQ(x.norm(kInf).item<double>(), 4);
  EXPECT_EQ(x.norm(-kInf).item<double>(), 0);
  EXPECT_EQ(values(grad_of(x.norm(0), x)), (Numbers{0, 0, 0}));
  EXPECT_EQ(values(grad_of(x.norm(1), x)), (Numbers{-1, 0, 1}));
  expect_near(grad_of(x.norm(2), x), {-0.6, 0, 0.8});
  for (const double p : {0.5, 1.5, 2., 2.5, 3., kInf, -2., -kInf}) {
    const auto f = [&](const std::vector<Tensor>& in) { return in[0].norm(p, {1}); };
    check_derivatives(f, {variable({2, 3})});
  }
}

TEST(Reduce, NormsAreFlatAtZero) {
  for (const double p : {0., 0.5, 1., 1.5, 2., 3., kInf}) {
    const Tensor x = leaf({0., 0.});
    const Tensor g = grad_of(x.norm(p), x, true);
    EXPECT_EQ(values(g), (Numbers{0, 0})) << p;
    if (!g.requires_grad()) continue;
    const auto second = grad({g.sum()}, {x}, {}, std::nullopt, false, true)[0];
    if (!second.defined()) continue;
    EXPECT_EQ(values(second), (Numbers{0, 0})) << p;
  }
}

TEST(Reduce, LogSumExpOfInfinities) {
  const Tensor x = leaf({{-kInf, -kInf}, {-kInf, 1.}, {1000., 1000.}});
  const Tensor y = x.logsumexp(1);
  expect_near(y, {-kInf, 1, 1000 + std::log(2)});
  expect_near(grad_of(y.slice(0, 0, 3).sum(), x), {0, 0, 0, 1, 0.5, 0.5});
  EXPECT_EQ(leaf({kInf, 1.}).logsumexp(0).item<double>(), kInf);
}

TEST(Reduce, KnowsItsShapeOnMeta) {
  const Tensor x = zeros({2, 3}, TensorOptions(kFloat).device(kMeta));
  EXPECT_EQ(shape(x.prod(1)), Shape{2});
  EXPECT_EQ(shape(x.std({0}, true, true)), (Shape{1, 3}));
  EXPECT_EQ(shape(std::get<1>(x.max(1))), Shape{2});
  EXPECT_EQ(shape(x.argmax()), Shape{});
  EXPECT_EQ(shape(x.norm(3, {1})), Shape{2});
  EXPECT_EQ(shape(x.logsumexp({0, 1})), Shape{});
  EXPECT_EQ(shape(x.all(0)), Shape{3});
}

}  // namespace
}  // namespace taper
