// Generators, distributions and dropout: what is reproducible, and what is exact.
#include <set>
#include <thread>

#include "taper/autograd/ops/random.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Inputs = std::vector<Tensor>;

TEST(Generator, SeedGivesTheSameNumbers) {
  manual_seed(3);
  const Numbers a = values(rand({10}));
  EXPECT_NE(values(rand({10})), a);
  manual_seed(3);
  EXPECT_EQ(values(rand({10})), a);
  EXPECT_EQ(values(rand({10}, Generator(3))), a);
}

TEST(Generator, StateIsSavedAndRestored) {
  const Generator g(5);
  randn({7}, g);
  const Generator::State state = g.state();
  const Numbers a = values(randn({7}, g));
  g.set_state(state);
  EXPECT_EQ(values(randn({7}, g)), a);
  EXPECT_EQ(g.current_seed(), 5U);
  EXPECT_NE(g.seed(), 5U);
}

// What is drawn depends on the number of elements alone.
TEST(Generator, OffsetDependsOnNumelAlone) {
  const auto offset_after = [](auto draw) {
    const Generator g(1);
    draw(g);
    return g.state().offset;
  };
  const auto want = offset_after([](const Generator& g) { rand({10}, g); });
  EXPECT_GT(want, 0U);
  EXPECT_EQ(offset_after([](const Generator& g) { randn({10}, g, kFloat64); }), want);
  EXPECT_EQ(offset_after([](const Generator& g) { randn({2, 5}, g, kBFloat16); }), want);
  EXPECT_EQ(offset_after([](const Generator& g) { randint(0, 9, {10}, g); }), want);
  EXPECT_EQ(offset_after([](const Generator& g) { bernoulli(full({10}, 0.5), g); }), want);
  EXPECT_EQ(offset_after([](const Generator& g) { randperm(10, g); }), want);
  EXPECT_EQ(offset_after([](const Generator& g) { rand({10}, g, kMeta); }), want);
  EXPECT_EQ(offset_after([](const Generator& g) { rand({0}, g); }), 0U);
}

TEST(Generator, ThreadsDrawDifferentNumbers) {
  const Generator g(1);
  Numbers all[4];
  std::vector<std::thread> threads;
  for (Numbers& mine : all) threads.emplace_back([&] { mine = values(rand({100}, g, kFloat64)); });
  for (std::thread& t : threads) t.join();
  std::set<double> seen;
  for (const Numbers& mine : all) seen.insert(mine.begin(), mine.end());
  EXPECT_EQ(seen.size(), 400U);
}

TEST(Random, Moments) {
  const Generator g(7);
  const Tensor u = rand({100000}, g, kFloat64), n = randn({100000}, g, kFloat64);
  EXPECT_NEAR(u.mean().item<double>(), 0.5, 0.005);
  EXPECT_NEAR(u.var().item<double>(), 1.0 / 12, 0.002);
  EXPECT_NEAR(n.mean().item<double>(), 0, 0.015);
  EXPECT_NEAR(n.var().item<double>(), 1, 0.02);
  EXPECT_NEAR(bernoulli(full({100000}, 0.3, kFloat64), g).mean().item<double>(), 0.3, 0.01);
}

TEST(Random, DtypesAndRanges) {
  EXPECT_EQ(rand({2}).dtype(), kFloat32);
  EXPECT_EQ(randn({2}, kFloat16).dtype(), kFloat16);
  EXPECT_EQ(randint(5, {2}).dtype(), kInt64);
  EXPECT_EQ(randint(5, {2}, kFloat32).dtype(), kFloat32);
  EXPECT_TRUE(rand({2}, requires_grad()).requires_grad());
  for (const double v : values(randint(-3, 4, {1000}))) EXPECT_TRUE(v >= -3 && v < 4);
  const Tensor like = rand_like(zeros({2, 3}, kFloat64));
  EXPECT_TRUE(like.dtype() == kFloat64 && like.sizes() == IntArrayRef({2, 3}));
  EXPECT_EQ(randint_like(zeros({2}), 3).dtype(), kFloat32);
  EXPECT_TRUE(randn_like(zeros({2, 3})).sizes() == IntArrayRef({2, 3}));
}

TEST(Random, Randperm) {
  const Numbers p = values(randperm(1000, Generator(2)));
  EXPECT_EQ(std::set<double>(p.begin(), p.end()).size(), 1000U);
  EXPECT_NE(p[0], 0);
  EXPECT_EQ(values(randperm(1000, Generator(2))), p);
  EXPECT_EQ(randperm(0).numel(), 0);
  EXPECT_EQ(randperm(3, kInt32).dtype(), kInt32);
}

TEST(Random, InPlace) {
  const Tensor x = zeros({1000}, kFloat64);
  const auto version = x.version();
  x.uniform_(2, 3);
  EXPECT_GT(x.version(), version);
  for (const double v : values(x)) EXPECT_TRUE(v >= 2 && v < 3);
  x.normal_(10, 0.1);
  EXPECT_NEAR(x.mean().item<double>(), 10, 0.05);
  x.bernoulli_(1);
  EXPECT_EQ(values(x), Numbers(1000, 1));
  x.bernoulli_(0);
  EXPECT_EQ(values(x), Numbers(1000, 0));
}

TEST(Random, InPlaceForgetsTheGradient) {
  const Tensor x = leaf({3});
  const Tensor y = x * 2;
  y.normal_();
  y.sum().backward();
  EXPECT_FALSE(x.grad().defined());  // nothing flows; undefined stands for zero
}

// Row-major element order, whatever the strides.
TEST(Random, StridesDoNotMatter) {
  const Tensor columns = zeros({3, 2}).t();
  uniform_(columns, 0, 1, Generator(4));
  EXPECT_EQ(values(columns), values(rand({2, 3}, Generator(4))));
}

TEST(Random, Normal) {
  const Tensor m = tensor({0., 100.}, kFloat64);
  const Tensor y = normal(m, 0.0);
  EXPECT_EQ(values(y), (Numbers{0, 100}));
  EXPECT_EQ(normal(1.0, 2.0, {3}).dtype(), kFloat32);
  EXPECT_TRUE(normal(m.view({2, 1}), ones({3})).sizes() == IntArrayRef({2, 3}));
}

TEST(Dropout, KeepsAndScales) {
  manual_seed(1);
  const Tensor y = dropout(ones({10000}, kFloat64), 0.25);
  double kept = 0;
  for (const double v : values(y)) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.75);
    kept += v != 0;
  }
  EXPECT_NEAR(kept / 10000, 0.75, 0.02);
}

TEST(Dropout, EndsAreExact) {
  const Tensor x = sample({2, 3});
  EXPECT_EQ(values(dropout(x, 0)), values(x));
  EXPECT_EQ(values(dropout(x, 0.5, false)), values(x));
  EXPECT_EQ(values(dropout(x, 1)), Numbers(6, 0));
  EXPECT_EQ(values(dropout(full({2}, INFINITY), 1)), Numbers(2, 0));
}

// The mask of forward comes back in backward, although nothing but the seed was kept.
TEST(Dropout, BackwardUsesTheSameMask) {
  const Tensor x = leaf({50}, 1, 1, 2);
  const auto bytes = x.storage()->nbytes();
  const Tensor y = dropout(x, 0.5);
  rand({1000});
  y.sum().backward();
  expect_close(x.grad() * x, y);
  EXPECT_EQ(x.storage()->nbytes(), bytes);
}

TEST(Dropout, Gradients) {
  expect_gradients(
      [](const Inputs& in) {
        manual_seed(11);
        return dropout(in[0], 0.5) * in[0];
      },
      {leaf({8}, 1, 1, 2)});
}

TEST(Random, Errors) {
  expect_error([] { dropout(ones({2}), 1.5); }, {"[0, 1]", "1.5", "ops_random_test.cpp"});
  expect_error([] { randint(3, 3, {2}); }, {"[3, 3)"});
  expect_error([] { rand({2}, kInt64); }, {"floating-point", "i64"});
  expect_error([] { zeros({2}, kInt64).normal_(); }, {"normal_", "i64"});
  expect_error([] { randperm(-1); }, {"-1"});
}

}  // namespace
}  // namespace taper::testing
