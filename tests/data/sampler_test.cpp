// Samplers: each index once, in an order that depends on seed and epoch alone.
#include "taper/data/sampler.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "taper/autograd/ops/random.h"

namespace taper::data::samplers {
namespace {

using Order = std::vector<std::size_t>;

TEST(Sampler, Sequential) {
  const SequentialSampler s(4);
  EXPECT_EQ(s.size(), 4U);
  EXPECT_EQ(s.order(0), (Order{0, 1, 2, 3}));
  EXPECT_EQ(s.order(9), s.order(0));
  EXPECT_TRUE(SequentialSampler(0).order(0).empty());
}

TEST(Sampler, RandomIsAPermutationOfItsOwnEachEpoch) {
  for (const std::size_t n : {0UL, 1UL, 2UL, 1000UL}) {
    const RandomSampler s(n, 7);
    for (const std::uint64_t epoch : {0UL, 1UL, 1UL << 40}) {
      Order order = s.order(epoch);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, SequentialSampler(n).order(0));
    }
  }
  const RandomSampler s(1000, 7);
  EXPECT_NE(s.order(0), s.order(1));
  EXPECT_NE(s.order(0), s.order(1UL << 32));
  EXPECT_NE(s.order(0), RandomSampler(1000, 8).order(0));
  EXPECT_EQ(s.order(5), RandomSampler(1000, 7).order(5));
}

// All 24 orders of 4, equally often: chi-squared below the 0.1 % bound of 23 degrees (49.7).
TEST(Sampler, RandomIsFair) {
  std::map<Order, int> seen;
  const int draws = 24'000;
  for (int i = 0; i < draws; ++i) ++seen[RandomSampler(4, 3).order(static_cast<std::uint64_t>(i))];
  EXPECT_EQ(seen.size(), 24U);
  double chi = 0;
  for (const auto& [order, count] : seen) chi += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi, 49.7);
}

TEST(Sampler, SeedComesFromTheDefaultGenerator) {
  manual_seed(5);
  const RandomSampler a(100), b(100);
  manual_seed(5);
  const RandomSampler c(100);
  EXPECT_EQ(a.order(0), c.order(0));
  EXPECT_NE(a.order(0), b.order(0));
  EXPECT_EQ(a.order(3), RandomSampler(100, a.seed()).order(3));
}

}  // namespace
}  // namespace taper::data::samplers
