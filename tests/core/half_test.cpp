// Half and BFloat16: all 65,536 patterns, and rounding against a slow oracle.
#include "taper/core/base/half.h"

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace taper {
namespace {

template <class T> constexpr int kFractionBits = std::numeric_limits<T>::digits - 1;
template <class T> constexpr int kExponentBits = 15 - kFractionBits<T>;

// What the pattern means, by the definition of the format.
template <class T> double meaning(uint16_t pattern) {
  const int exponent = (pattern & 0x7fff) >> kFractionBits<T>;
  const int fraction = pattern & ((1 << kFractionBits<T>)-1);
  const int special = (1 << kExponentBits<T>)-1;
  const int bias = special / 2;
  double magnitude = std::ldexp(fraction, 1 - bias - kFractionBits<T>);
  if (exponent > 0)
    magnitude = std::ldexp(fraction + (1 << kFractionBits<T>), exponent - bias - kFractionBits<T>);
  if (exponent == special) magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
  return (pattern & 0x8000) != 0 ? -magnitude : magnitude;
}

// The pattern nearest to |value|, ties to even: the patterns of one sign are ordered as their
// values.
template <class T> uint16_t rounded_slowly(long double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const long double magnitude = std::fabs(value);
  const uint16_t infinity = static_cast<uint16_t>(((1 << kExponentBits<T>)-1) << kFractionBits<T>);
  uint16_t below = 0;  // the largest finite pattern not above |value|
  for (int step = 1 << 14; step > 0; step >>= 1) {
    const uint16_t next = static_cast<uint16_t>(below + step);
    if (next < infinity && static_cast<long double>(meaning<T>(next)) <= magnitude) below = next;
  }
  const uint16_t above = static_cast<uint16_t>(below + 1);
  const long double low = static_cast<long double>(meaning<T>(below));
  // Past the largest finite number the next step would have the same length.
  const long double step =
      above < infinity
          ? static_cast<long double>(meaning<T>(above)) - low
          : low - static_cast<long double>(meaning<T>(static_cast<uint16_t>(below - 1)));
  const long double rest = magnitude - low;
  const bool up = rest > step / 2 || (rest == step / 2 && (below & 1) != 0);
  return static_cast<uint16_t>(sign | (up ? above : below));
}

template <class T> class SixteenBits : public ::testing::Test {};
using Types = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(SixteenBits, Types);

TYPED_TEST(SixteenBits, EveryPatternWidensExactlyAndComesBack) {
  for (int i = 0; i < 65536; ++i) {
    const uint16_t pattern = static_cast<uint16_t>(i);
    const float value = TypeParam::from_bits(pattern);
    const double expected = meaning<TypeParam>(pattern);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << i;
      const uint16_t quiet = static_cast<uint16_t>(pattern | (1 << (kFractionBits<TypeParam> - 1)));
      ASSERT_EQ(TypeParam(value).bits, quiet) << i;
      ASSERT_NE(bit_cast<uint32_t>(value) & 0x00400000u, 0u) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(value), expected) << i;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << i;
    ASSERT_EQ(TypeParam(value).bits, pattern) << i;
    ASSERT_EQ(TypeParam(static_cast<double>(value)).bits, pattern) << i;
  }
}

// Every boundary between two neighbours, and one unit of the source to either side of it.
TYPED_TEST(SixteenBits, TiesGoToEvenAndTheirNeighboursDoNot) {
  const uint16_t infinity = std::numeric_limits<TypeParam>::infinity().bits;
  for (uint16_t i = 0; i < infinity; ++i) {
    const double low = meaning<TypeParam>(i);
    const uint16_t next = static_cast<uint16_t>(i + 1);
    const double step = next < infinity ? meaning<TypeParam>(next) - low
                                        : low - meaning<TypeParam>(static_cast<uint16_t>(i - 1));
    const double tie = low + step / 2;
    const uint16_t even = (i & 1) == 0 ? i : next;
    for (const double sign : {1.0, -1.0}) {
      const uint16_t s = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(TypeParam(sign * tie).bits, s | even) << i;
      ASSERT_EQ(TypeParam(sign * std::nextafter(tie, 0.0)).bits, s | i) << i;
      ASSERT_EQ(TypeParam(sign * std::nextafter(tie, HUGE_VAL)).bits, s | next) << i;
      const float tie_float = static_cast<float>(sign * tie);
      if (static_cast<double>(tie_float) != sign * tie) continue;
      ASSERT_EQ(TypeParam(tie_float).bits, s | even) << i;
      ASSERT_EQ(TypeParam(std::nextafter(tie_float, 0.0f)).bits, s | i) << i;
      ASSERT_EQ(TypeParam(std::nextafter(tie_float, tie_float * 2)).bits, s | next) << i;
    }
  }
}

TYPED_TEST(SixteenBits, FloatsRoundAsTheOracle) {
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 10007) {
    const float value = bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(TypeParam(value).bits, rounded_slowly<TypeParam>(static_cast<long double>(value)))
        << std::hexfloat << value;
  }
}

TYPED_TEST(SixteenBits, DoublesAreNotRoundedTwice) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300000; ++i) {
    const uint64_t bits = random();
    double value = bit_cast<double>(bits);
    if (i % 3 != 0) {  // in reach of the format, and often a hair beside a tie
      value = std::ldexp(1.0 + static_cast<double>(bits >> 50) * 0x1p-14,
                         static_cast<int>(bits & 63) - 40);
      if (i % 3 == 1) value = std::nextafter(value, (bits & 64) != 0 ? 0.0 : HUGE_VAL);
    }
    if (std::isnan(value)) continue;
    ASSERT_EQ(TypeParam(value).bits, rounded_slowly<TypeParam>(static_cast<long double>(value)))
        << std::hexfloat << value;
  }
  EXPECT_EQ(TypeParam(0x1p-1074).bits, 0);
  EXPECT_EQ(TypeParam(-0x1p-1074).bits, 0x8000);
  EXPECT_TRUE(std::isnan(TypeParam(std::nan(""))));
}

TYPED_TEST(SixteenBits, IntegersRoundOnce) {
  for (int i = -100000; i <= 100000; ++i) {
    ASSERT_EQ(TypeParam(i).bits, rounded_slowly<TypeParam>(static_cast<long double>(i))) << i;
  }
  EXPECT_EQ(static_cast<float>(TypeParam(true)), 1.0f);
  EXPECT_EQ(TypeParam(int64_t{1} << 40).bits, rounded_slowly<TypeParam>(0x1p40L));
}

TYPED_TEST(SixteenBits, ContiguousConversionsGiveTheScalarBits) {
  std::vector<float> floats;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 99991) {
    floats.push_back(bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  std::vector<TypeParam> narrow(floats.size());
  std::vector<TypeParam> all(65536);
  std::vector<float> wide(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = TypeParam::from_bits(static_cast<uint16_t>(i));
  if constexpr (std::is_same_v<TypeParam, Half>) {
    float_to_half(floats.data(), narrow.data(), floats.size());
    half_to_float(all.data(), wide.data(), all.size());
  } else {
    float_to_bfloat16(floats.data(), narrow.data(), floats.size());
    bfloat16_to_float(all.data(), wide.data(), all.size());
  }
  for (size_t i = 0; i < floats.size(); ++i)
    ASSERT_EQ(narrow[i].bits, TypeParam(floats[i]).bits) << i;
  for (size_t i = 0; i < all.size(); ++i) {
    const float scalar = all[i];
    ASSERT_EQ(bit_cast<uint32_t>(wide[i]), bit_cast<uint32_t>(scalar)) << i;
  }
}

TYPED_TEST(SixteenBits, LimitsAreThoseOfTheFormat) {
  using Limits = std::numeric_limits<TypeParam>;
  const auto value = [](TypeParam x) { return static_cast<double>(static_cast<float>(x)); };
  EXPECT_EQ(value(Limits::max()),
            std::ldexp(2.0 - value(Limits::epsilon()), Limits::max_exponent - 1));
  EXPECT_EQ(value(Limits::lowest()), -value(Limits::max()));
  EXPECT_EQ(value(Limits::min()), std::ldexp(1.0, Limits::min_exponent - 1));
  EXPECT_EQ(value(Limits::denorm_min()), value(Limits::min()) * value(Limits::epsilon()));
  EXPECT_EQ(value(Limits::epsilon()), std::ldexp(1.0, 1 - Limits::digits));
  EXPECT_EQ(value(Limits::round_error()), 0.5);
  EXPECT_EQ(value(Limits::infinity()), HUGE_VAL);
  EXPECT_TRUE(std::isnan(value(Limits::quiet_NaN())));
  EXPECT_TRUE(std::isnan(value(Limits::signaling_NaN())));
  EXPECT_LE(std::pow(10.0, Limits::max_exponent10), value(Limits::max()));
  EXPECT_GT(std::pow(10.0, Limits::max_exponent10 + 1), value(Limits::max()));
  EXPECT_GE(std::pow(10.0, Limits::min_exponent10), value(Limits::min()));
  EXPECT_LT(std::pow(10.0, Limits::min_exponent10 - 1), value(Limits::min()));
}

}  // namespace
}  // namespace taper
