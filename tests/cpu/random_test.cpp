// Random fills: each number comes from its index alone, and has the distribution that it claims.
#include "taper/core/philox.h"
#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

using Sizes64 = std::vector<std::int64_t>;

constexpr std::uint64_t kSeed = 42, kOffset = 7;

struct Case {
  const char* name;
  Kernels::Random Kernels::*slot;
  double a, b;
};

const Case kCases[] = {{"uniform", &Kernels::uniform, -2, 3},
                       {"normal", &Kernels::normal, 1, 2},
                       {"bernoulli", &Kernels::bernoulli, 0.3, 0},
                       {"randint", &Kernels::randint, -5, 90}};

bool takes(const Case& c, DType dtype) {
  if (dtype == kBool || dtype == kUInt8) return c.slot == &Kernels::bernoulli;
  return is_floating_point(dtype) || c.slot == &Kernels::bernoulli || c.slot == &Kernels::randint;
}

// Element i by the functions of philox.h, one at a time.
double expected(const Case& c, DType dtype, std::int64_t i) {
  const std::uint64_t block = kOffset + static_cast<std::uint64_t>(i / 4);
  const auto lane = static_cast<std::size_t>(i % 4);
  const philox::Words high = philox::block(kSeed, block, 0), low = philox::block(kSeed, block, 1);
  const bool wide = dtype == kFloat64;
  if (c.slot == &Kernels::bernoulli) return philox::bernoulli(high.lane[lane], c.a);
  if (c.slot == &Kernels::randint) {
    const auto range = static_cast<std::uint64_t>(c.b - c.a);
    return c.a + static_cast<double>(philox::below(high.lane[lane], low.lane[lane], range));
  }
  if (c.slot == &Kernels::normal) {
    if (wide) return std::fma(philox::normal_block<double>(kSeed, block).lane[lane], c.b, c.a);
    const float z = philox::normal_block<float>(kSeed, block).lane[lane];
    return static_cast<double>(std::fma(z, static_cast<float>(c.b), static_cast<float>(c.a)));
  }
  if (wide)
    return philox::uniform_between(philox::uniform_block<double>(kSeed, block).lane[lane], c.a,
                                   c.b);
  const float unit = philox::uniform_block<float>(kSeed, block).lane[lane];
  return static_cast<double>(
      philox::uniform_between(unit, static_cast<float>(c.a), static_cast<float>(c.b)));
}

TEST(Random, EachElementComesFromItsIndexAlone) {
  for (const Case& c : kCases) {
    for (const DType dtype : kDTypes) {
      if (!takes(c, dtype)) continue;
      for (const Sizes64& sizes : {Sizes64{}, {3}, {0, 2}, {5, 7, 30}, {9001}}) {
        for (const Form form : kOutForms) {
          SCOPED_TRACE(str(c.name, " ", info(dtype).name, " ", name(form)));
          std::vector<Array> results;
          for (const cpu::Column& column : runnable_columns()) {
            Array out(dtype, sizes, form);
            (column.kernels->*c.slot)(Exec(kCPU), out.out(), kSeed, kOffset, c.a, c.b);
            ASSERT_TRUE(out.is_pad_whole());
            results.push_back(out);
            ASSERT_TRUE(same_bits(results[0], out)) << column.isa;
          }
          for (std::int64_t i = 0; i < results[0].numel(); ++i) {
            double want = stored_as(dtype, expected(c, dtype, i));
            if (c.slot == &Kernels::uniform && want >= c.b) want = c.a;
            ASSERT_EQ(results[0].get(i), want) << i;
          }
        }
      }
    }
  }
}

TEST(Random, ThreadsDoNotChangeNumbers) {
  for (const Case& c : kCases) {
    std::vector<Array> results;
    on_every_column([&](const Kernels& kernels) {
      Array out(kFloat32, {60001});
      (kernels.*c.slot)(Exec(kCPU), out.out(), kSeed, kOffset, c.a, c.b);
      results.push_back(out);
      EXPECT_TRUE(same_bits(results[0], out)) << c.name;
    });
  }
}

// Within five standard errors.
TEST(Random, MomentsAreThoseOfTheDistribution) {
  const double means[] = {0.5, 1, 0.3, (-5 + 89) / 2.0};
  const double variances[] = {25 / 12.0, 4, 0.21, (95.0 * 95 - 1) / 12};
  for (int k = 0; k < 4; ++k) {
    const Case& c = kCases[k];
    for (const DType dtype : {kFloat64, kFloat32}) {
      Array out(dtype, {100000});
      (cpu_kernels().*c.slot)(Exec(kCPU), out.out(), 5, 0, c.a, c.b);
      double sum = 0, squares = 0;
      const auto n = static_cast<double>(out.numel());
      for (std::int64_t i = 0; i < out.numel(); ++i) sum += out.get(i);
      for (std::int64_t i = 0; i < out.numel(); ++i) squares += std::pow(out.get(i) - sum / n, 2);
      EXPECT_NEAR(sum / n, means[k], 5 * std::sqrt(variances[k] / n)) << c.name;
      EXPECT_NEAR(squares / n / variances[k], 1, 0.03) << c.name;
    }
  }
}

TEST(Random, UniformNeverReachesItsEnd) {
  for (const DType dtype : kFloating) {
    Array out(dtype, {100000});
    cpu_kernels().uniform(Exec(kCPU), out.out(), 3, 0, 0, 1);
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      ASSERT_GE(out.get(i), 0);
      ASSERT_LT(out.get(i), 1);
    }
  }
}

}  // namespace
}  // namespace taper::testing
