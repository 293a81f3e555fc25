// Philox against its published answers, and the distributions against their moments.
#include "taper/core/philox.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace taper::philox {
namespace {

constexpr uint64_t kSeed = 0x5eedu;
constexpr uint64_t kBlocks = 1u << 18;  // a million numbers

template <class T> std::vector<T> uniforms(uint64_t offset, uint64_t blocks) {
  std::vector<T> result;
  for (uint64_t i = 0; i < blocks; ++i) {
    const Four<T> four = uniform_block<T>(kSeed, offset + i);
    result.insert(result.end(), four.lane, four.lane + kLanes);
  }
  return result;
}

template <class T> std::vector<T> normals(uint64_t offset, uint64_t blocks) {
  std::vector<T> result;
  for (uint64_t i = 0; i < blocks; ++i) {
    const Four<T> four = normal_block<T>(kSeed, offset + i);
    result.insert(result.end(), four.lane, four.lane + kLanes);
  }
  return result;
}

template <class T> double moment(const std::vector<T>& values, int power, double center) {
  double sum = 0.0;
  for (const T value : values) sum += std::pow(static_cast<double>(value) - center, power);
  return sum / static_cast<double>(values.size());
}

// The three philox4x32-10 lines of kat_vectors, Random123 (Salmon et al. 2011).
TEST(Philox, GivesThePublishedAnswers) {
  struct Known {
    Words counter;
    uint64_t key;
    Words answer;
  };
  const Known table[] = {
      {{{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       0xffffffffffffffff,
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0x299f31d0a4093822,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const Known& known : table) {
    const Words words = philox4x32(known.counter, known.key);
    for (uint64_t lane = 0; lane < kLanes; ++lane) {
      EXPECT_EQ(words.lane[lane], known.answer.lane[lane]);
    }
  }
}

TEST(Philox, TheBlockIndexFillsTheLowCounterWords) {
  const Words a = block(7, 0x0123456789abcdefu, 5);
  const Words b = philox4x32({{0x89abcdefu, 0x01234567u, 5, 0}}, 7);
  for (uint64_t lane = 0; lane < kLanes; ++lane) EXPECT_EQ(a.lane[lane], b.lane[lane]);
}

TEST(Philox, TheOffsetAdvancesByWholeBlocks) {
  EXPECT_EQ(blocks_for(0), 0u);
  EXPECT_EQ(blocks_for(1), 1u);
  EXPECT_EQ(blocks_for(4), 1u);
  EXPECT_EQ(blocks_for(5), 2u);
  // Two calls of 8 elements hold what one of 16 holds.
  const std::vector<float> all = uniforms<float>(10, 4);
  const std::vector<float> second = uniforms<float>(10 + blocks_for(8), 2);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), all.begin() + 8));
}

TEST(Philox, BlocksByLaneAreTheBlocks) {
  uint32_t words[kLanes][40];
  uint32_t* const lanes[kLanes] = {words[0], words[1], words[2], words[3]};
  const uint64_t first = 0xffffffffu - 5;  // the low word of the counter wraps on the way
  blocks_by_lane(0x123456789abcdefu, first, 1, 40, lanes);
  for (uint64_t i = 0; i < 40; ++i) {
    const Words expected = block(0x123456789abcdefu, first + i, 1);
    for (uint64_t l = 0; l < kLanes; ++l) EXPECT_EQ(words[l][i], expected.lane[l]) << i << " " << l;
  }
}

template <class T> class Distributions : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Distributions, Reals);

TYPED_TEST(Distributions, UniformFillsTheHalfOpenInterval) {
  const std::vector<TypeParam> values = uniforms<TypeParam>(0, kBlocks);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*least, TypeParam(0));
  EXPECT_LT(*least, TypeParam(1e-5));
  EXPECT_LT(*most, TypeParam(1));
  EXPECT_GT(*most, TypeParam(1 - 1e-5));
  EXPECT_NEAR(moment(values, 1, 0.0), 0.5, 4 * 0.2887 / 1024);
  EXPECT_NEAR(moment(values, 2, 0.5), 1.0 / 12, 4 * 0.0745 / 1024);
  std::vector<int> histogram(64);
  for (const TypeParam value : values) ++histogram[static_cast<size_t>(value * TypeParam(64))];
  double chi_square = 0.0;
  for (const int count : histogram) chi_square += std::pow(count - 16384.0, 2) / 16384.0;
  EXPECT_LT(chi_square, 120.0);  // 63 degrees of freedom: p < 1e-5
  EXPECT_GT(chi_square, 25.0);
}

TYPED_TEST(Distributions, UniformReachesBothEndsOfItsGrid) {
  EXPECT_EQ(uniform<TypeParam>(0, 0), TypeParam(0));
  const TypeParam last = TypeParam(1) - std::numeric_limits<TypeParam>::epsilon() / TypeParam(2);
  EXPECT_EQ(uniform<TypeParam>(0xffffffffu, 0xffffffffu), last);
  EXPECT_EQ(uniform_between(last, TypeParam(1), TypeParam(1) + TypeParam(0x1p-20)) <
                TypeParam(1) + TypeParam(0x1p-20),
            true);
}

TYPED_TEST(Distributions, NormalHasTheMomentsOfANormal) {
  const std::vector<TypeParam> values = normals<TypeParam>(0, kBlocks);
  EXPECT_NEAR(moment(values, 1, 0.0), 0.0, 4.0 / 1024);
  EXPECT_NEAR(moment(values, 2, 0.0), 1.0, 4 * std::sqrt(2.0) / 1024);
  EXPECT_NEAR(moment(values, 3, 0.0), 0.0, 4 * std::sqrt(15.0) / 1024);
  EXPECT_NEAR(moment(values, 4, 0.0), 3.0, 4 * std::sqrt(96.0) / 1024);
  // Kolmogorov and Smirnov: sqrt(n) D stays below 1.95 with probability 0.999.
  std::vector<TypeParam> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  double distance = 0.0;
  const double n = static_cast<double>(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double cumulative = 0.5 * std::erfc(-static_cast<double>(sorted[i]) / std::sqrt(2.0));
    distance = std::max(distance, std::abs(cumulative - static_cast<double>(i) / n));
  }
  EXPECT_LT(distance * std::sqrt(n), 1.95);
}

TYPED_TEST(Distributions, NeighbouringLanesAreUncorrelated) {
  const std::vector<TypeParam> values = normals<TypeParam>(0, kBlocks);
  for (size_t lag = 1; lag <= 8; ++lag) {
    double sum = 0.0;
    for (size_t i = lag; i < values.size(); ++i) {
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i - lag]);
    }
    EXPECT_NEAR(sum / static_cast<double>(values.size()), 0.0, 4.5 / 1024) << lag;
  }
}

TYPED_TEST(Distributions, TheExtremesOfNormalAreFinite) {
  for (const uint32_t radius : {0u, 1u, 0xffffffffu}) {
    for (const uint32_t angle : {0u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
      const NormalPair<TypeParam> pair = normal_pair<TypeParam>(radius, 0, angle, 0);
      EXPECT_LT(std::abs(pair.first), TypeParam(8.58)) << radius << " " << angle;
      EXPECT_LT(std::abs(pair.second), TypeParam(8.58)) << radius << " " << angle;
    }
  }
}

TEST(Distributions, FloatAndDoubleHoldTheSameNumbers) {
  const std::vector<float> u = uniforms<float>(3, 4096);
  const std::vector<double> v = uniforms<double>(3, 4096);
  const std::vector<float> x = normals<float>(3, 4096);
  const std::vector<double> y = normals<double>(3, 4096);
  for (size_t i = 0; i < u.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(u[i]), v[i], 0x1p-24);
    EXPECT_NEAR(static_cast<double>(x[i]), y[i], 1e-5);
  }
}

TEST(Distributions, BernoulliHasItsProbability) {
  for (const double p : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    int count = 0;
    for (uint64_t i = 0; i < kBlocks; ++i) {
      const Words words = block(kSeed, i, 0);
      for (const uint32_t word : words.lane) count += bernoulli(word, p);
    }
    EXPECT_NEAR(count / (4.0 * kBlocks), p, 4 * std::sqrt(p * (1 - p)) / 1024) << p;
  }
  EXPECT_FALSE(bernoulli(0, 0.0));
  EXPECT_TRUE(bernoulli(0xffffffffu, 1.0));
  EXPECT_FALSE(bernoulli(0x80000000u, 0.5));
  EXPECT_TRUE(bernoulli(0x7fffffffu, 0.5));
}

TEST(Distributions, BelowIsUniformAndInRange) {
  std::vector<int> count(10);
  for (uint64_t i = 0; i < kBlocks; ++i) {
    const Words high = block(kSeed, i, 0);
    const Words low = block(kSeed, i, 1);
    for (uint64_t lane = 0; lane < kLanes; ++lane) {
      ++count[below(high.lane[lane], low.lane[lane], 10)];
    }
  }
  const double expected = 4.0 * kBlocks / 10;
  for (const int c : count) EXPECT_NEAR(c, expected, 5 * std::sqrt(expected));
  EXPECT_EQ(below(0xffffffffu, 0xffffffffu, 1), 0u);
  EXPECT_EQ(below(0xffffffffu, 0xffffffffu, 0xffffffffffffffffu), 0xfffffffffffffffeu);
  EXPECT_EQ(below(0, 0, 0xffffffffffffffffu), 0u);
}

}  // namespace
}  // namespace taper::philox
