// The elementary functions against the 80-bit ones of the C library: accuracy, special values,
// order.
#include "taper/core/math.h"

#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace taper::math {
namespace {

using Wide = long double;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// One function in both types, its oracle, and the largest error measured, in ulps, rounded up.
struct Function {
  const char* name;
  float (*narrow)(float);
  double (*middle)(double);
  Wide (*oracle)(Wide);
  double narrow_bound;
  double middle_bound;
};

Wide sigmoid_oracle(Wide x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

Wide softplus_oracle(Wide x) {
  return x < 0 ? std::log1p(std::exp(x)) : x + std::log1p(std::exp(-x));
}

// Newton's method on the C library's erf, from our own value.
Wide erfinv_oracle(Wide x) {
  const Wide a = std::fabs(x);
  if (a == 1) return x * static_cast<Wide>(kInfinity);
  if (!(a < 1)) return static_cast<Wide>(kNaN);
  if (a < 1e-300L) return x * 0.886226925452758013649L;
  Wide y = static_cast<Wide>(erfinv(static_cast<double>(a)));
  for (int i = 0; i < 3; ++i) {
    const Wide error = a < 0.5L ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const Wide step = error / (1.12837916709551257390L * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

// clang-format off
#define TAPER_ROW(name, oracle, narrow_bound, middle_bound)                         \
  {#name, [](float x) { return name(x); }, [](double x) { return name(x); },        \
   [](Wide x) -> Wide { return oracle; }, narrow_bound, middle_bound}
// clang-format on
const Function kFunctions[] = {
    TAPER_ROW(exp, std::exp(x), 1.05, 1.05),
    TAPER_ROW(exp2, std::exp2(x), 0.85, 0.85),
    TAPER_ROW(expm1, std::expm1(x), 1.5, 1.9),
    TAPER_ROW(log, std::log(x), 0.95, 0.9),
    TAPER_ROW(log1p, std::log1p(x), 1.45, 1.35),
    TAPER_ROW(log2, std::log2(x), 0.51, 0.8),
    TAPER_ROW(log10, std::log10(x), 0.51, 0.75),
    TAPER_ROW(softplus, softplus_oracle(x), 1.7, 1.8),
    TAPER_ROW(log_sigmoid, 0 - softplus_oracle(-x), 1.7, 1.8),
    TAPER_ROW(sigmoid, sigmoid_oracle(x), 2.35, 2.5),
    TAPER_ROW(sinh, std::sinh(x), 0.51, 1.7),
    TAPER_ROW(cosh, std::cosh(x), 0.51, 1.5),
    TAPER_ROW(tanh, std::tanh(x), 1.35, 2.65),
    TAPER_ROW(sin, std::sin(x), 1.7, 2.25),
    TAPER_ROW(cos, std::cos(x), 1.7, 2.0),
    TAPER_ROW(tan, std::tan(x), 0.51, 3.4),
    TAPER_ROW(asin, std::asin(x), 0.51, 2.2),
    TAPER_ROW(acos, std::acos(x), 0.51, 1.2),
    TAPER_ROW(atan, std::atan(x), 0.51, 2.25),
    TAPER_ROW(erf, std::erf(x), 1.1, 1.2),
    TAPER_ROW(erfc, std::erfc(x), 0.51, 3.9),
    TAPER_ROW(erfinv, erfinv_oracle(x), 0.51, 2.9),
    TAPER_ROW(sqrt, std::sqrt(x), 0.51, 0.51),
    TAPER_ROW(rsqrt, 1 / std::sqrt(x), 1.5, 1.5),
    TAPER_ROW(floor, std::floor(x), 0, 0),
    TAPER_ROW(ceil, std::ceil(x), 0, 0),
    TAPER_ROW(trunc, std::trunc(x), 0, 0),
    TAPER_ROW(round, std::rint(x), 0, 0),
};
#undef TAPER_ROW

// The distance in units of the last place of `want`, subnormals counted in their own unit. Which
// side of the largest number a result falls is a matter of one unit; the kind of a result is not.
template <class T> double ulps(T got, Wide want) {
  constexpr double kWrong = 1e9;
  const T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : kWrong;
  if (std::isinf(rounded) && got == rounded) return 0;
  if (std::isinf(rounded) != std::isinf(got)) {
    const Wide edge = static_cast<Wide>(std::numeric_limits<T>::max());
    return std::fabs(std::fabs(std::isinf(want) ? Wide{0} : want) / edge - 1) < 1e-6L ? 1 : kWrong;
  }
  if (std::isinf(got)) return kWrong;
  if (got == 0 && want == 0 && std::signbit(got) != std::signbit(want)) return kWrong;
  int exponent = 0;
  std::frexp(want, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  const Wide unit = std::ldexp(Wide{1}, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - want) / unit);
}

template <class T> struct Worst {
  double ulps = 0;
  T at = 0;

  void see(T x, double error) {
    if (error > ulps) {
      ulps = error;
      at = x;
    }
  }
};

// Every stride-th of the 2^32 floats; TAPER_TEST_STRIDE=97, from which the bounds are, takes
// minutes.
uint64_t float_stride() {
  const char* text = std::getenv("TAPER_TEST_STRIDE");
  return text == nullptr ? 20011 : std::strtoull(text, nullptr, 10);
}

// Doubles of every size, and more where functions turn.
std::vector<double> double_samples() {
  std::vector<double> result = {0.0,        -0.0,      1.0,     -1.0,     0.5,      -0.5,
                                2.0,        DBL_MAX,   DBL_MIN, -DBL_MAX, -DBL_MIN, 0x1p-1074,
                                -0x1p-1074, kInfinity, 709.78,  709.79,   710.47,   710.48,
                                -745.13,    -745.14,   -708.4};
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    result.push_back(bit_cast<double>(random()));
    result.push_back(std::ldexp(unit - 0.5, -static_cast<int>(random() % 60)));
    for (const double width : {2.0, 6.0, 20.0, 1500.0, 1e6}) result.push_back((unit - 0.5) * width);
    result.push_back(1 + (unit - 0.5) * 1e-3);
  }
  return result;
}

TEST(MathAccuracy, OfFloatIsWithinTheMeasuredBounds) {
  for (const Function& function : kFunctions) {
    Worst<float> worst;
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += float_stride()) {
      const float x = bit_cast<float>(static_cast<uint32_t>(bits));
      worst.see(x, ulps(function.narrow(x), function.oracle(static_cast<Wide>(x))));
    }
    RecordProperty(function.name, std::to_string(worst.ulps));
    EXPECT_LE(worst.ulps, function.narrow_bound) << function.name << std::hexfloat << worst.at;
  }
}

TEST(MathAccuracy, OfDoubleIsWithinTheMeasuredBounds) {
  const std::vector<double> samples = double_samples();
  for (const Function& function : kFunctions) {
    Worst<double> worst;
    for (const double x : samples) {
      worst.see(x, ulps(function.middle(x), function.oracle(static_cast<Wide>(x))));
    }
    RecordProperty(function.name, std::to_string(worst.ulps));
    EXPECT_LE(worst.ulps, function.middle_bound) << function.name << std::hexfloat << worst.at;
  }
}

TEST(MathAccuracy, OfPowAndAtan2IsWithinTheMeasuredBounds) {
  std::mt19937_64 random(2);
  Worst<float> pow_float, atan2_float;
  Worst<double> pow_double, atan2_double;
  for (int i = 0; i < 100000; ++i) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    const double v = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
    const double log_x = (u - 0.5) * 1400;  // x over all sizes, x^y over all that fit
    const double x = i % 2 == 0 ? std::exp(log_x) : 1 + (u - 0.5) * 1e-4;
    const double y = v * 1500 / std::log(x);
    pow_double.see(x, ulps(pow(x, y), std::pow(static_cast<Wide>(x), static_cast<Wide>(y))));
    const float xf = static_cast<float>(i % 2 == 0 ? std::exp(log_x / 8) : x);
    const float yf = static_cast<float>(v * 180) / std::log(xf);
    if (xf != 1.0f)
      pow_float.see(xf, ulps(pow(xf, yf), std::pow(static_cast<Wide>(xf), static_cast<Wide>(yf))));
    const double a = i % 2 == 0 ? bit_cast<double>(random()) : v;
    const double b = i % 2 == 0 ? bit_cast<double>(random()) : u - 0.5;
    if (std::isnan(a) || std::isnan(b)) continue;
    atan2_double.see(a, ulps(atan2(a, b), std::atan2(static_cast<Wide>(a), static_cast<Wide>(b))));
    const float af = static_cast<float>(a);
    const float bf = static_cast<float>(b);
    atan2_float.see(af,
                    ulps(atan2(af, bf), std::atan2(static_cast<Wide>(af), static_cast<Wide>(bf))));
  }
  EXPECT_LE(pow_float.ulps, 0.51) << pow_float.at;
  EXPECT_LE(pow_double.ulps, 1.0) << pow_double.at;
  EXPECT_LE(atan2_float.ulps, 0.51) << atan2_float.at;
  EXPECT_LE(atan2_double.ulps, 1.8) << atan2_double.at;
}

// Both agree on NaN, sign and value to 4 ulps.
template <class T>::testing::AssertionResult agree(T got, T want) {
  if (std::isnan(got) && std::isnan(want)) return ::testing::AssertionSuccess();
  if (std::signbit(got) == std::signbit(want) && ulps(got, static_cast<Wide>(want)) <= 4)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << got << " instead of " << want;
}

template <class T> class TwoArguments : public ::testing::Test {
 public:
  static std::vector<T> edges() {
    using Limits = std::numeric_limits<T>;
    std::vector<T> result;
    const T largest_odd = static_cast<T>((uint64_t{1} << Limits::digits) - 1);
    for (const T magnitude :
         {T(0), Limits::denorm_min(), Limits::min(), T(0.5), T(1) - Limits::epsilon(), T(1),
          T(1) + Limits::epsilon(), T(1.5), T(2), T(3), T(7), largest_odd / 2, largest_odd,
          largest_odd + T(1), T(1e30), Limits::max(), Limits::infinity(), Limits::quiet_NaN()}) {
      result.push_back(magnitude);
      result.push_back(-magnitude);
    }
    return result;
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(TwoArguments, Reals);

TYPED_TEST(TwoArguments, FollowC99AtTheEdges) {
  const std::vector<TypeParam> edges = this->edges();
  for (const TypeParam x : edges) {
    for (const TypeParam y : edges) {
      EXPECT_TRUE(agree(pow(x, y), std::pow(x, y))) << "pow " << x << " " << y;
      EXPECT_TRUE(agree(atan2(x, y), std::atan2(x, y))) << "atan2 " << x << " " << y;
      EXPECT_TRUE(agree(fmod(x, y), std::fmod(x, y))) << "fmod " << x << " " << y;
      EXPECT_TRUE(agree(math::fma(x, y, x), std::fma(x, y, x))) << "fma " << x << " " << y;
    }
  }
}

TYPED_TEST(TwoArguments, RemainderTakesTheSignOfTheDivisor) {
  EXPECT_EQ(remainder(TypeParam(7), TypeParam(3)), TypeParam(1));
  EXPECT_EQ(remainder(TypeParam(-7), TypeParam(3)), TypeParam(2));
  EXPECT_EQ(remainder(TypeParam(7), TypeParam(-3)), TypeParam(-2));
  EXPECT_EQ(remainder(TypeParam(-7), TypeParam(-3)), TypeParam(-1));
  EXPECT_EQ(remainder(TypeParam(6), TypeParam(-3)), TypeParam(0));
  EXPECT_TRUE(std::isnan(remainder(TypeParam(1), TypeParam(0))));
}

// The fma without the instruction: products that cancel, ties, subnormal results.
TEST(Math, FmaRoundsOnce) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000000; ++i) {
    const uint64_t bits = random();
    float a = bit_cast<float>(static_cast<uint32_t>(bits));
    float b = bit_cast<float>(static_cast<uint32_t>(bits >> 32));
    float c = bit_cast<float>(static_cast<uint32_t>(random()));
    if (i % 3 == 0) c = -(a * b);
    if (i % 3 == 1) c = std::ldexp(a * b, static_cast<int>(random() % 60) - 30);
    const float got = math::fma(a, b, c);
    const float want = std::fma(a, b, c);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got));
      continue;
    }
    ASSERT_EQ(bit_cast<uint32_t>(got), bit_cast<uint32_t>(want))
        << std::hexfloat << a << " " << b << " " << c;
  }
}

struct Special {
  const char* name;
  double x;
  double result;
};

// What a double gives and a float gives too.
const Special kSpecials[] = {
    {"exp", 0, 1},
    {"exp", -0.0, 1},
    {"exp", kInfinity, kInfinity},
    {"exp", -kInfinity, 0},
    {"exp", 1e30, kInfinity},
    {"exp", -1e30, 0},
    {"exp2", 10, 1024},
    {"exp2", -10, 0x1p-10},
    {"exp2", -126, 0x1p-126},
    {"exp2", -149, 0x1p-149},
    {"exp2", 127, 0x1p127},
    {"exp2", kInfinity, kInfinity},
    {"exp2", -kInfinity, 0},
    {"expm1", 0, 0},
    {"expm1", -0.0, -0.0},
    {"expm1", 0x1p-149, 0x1p-149},
    {"expm1", kInfinity, kInfinity},
    {"expm1", -kInfinity, -1},
    {"expm1", -1e30, -1},
    {"log", 0, -kInfinity},
    {"log", -0.0, -kInfinity},
    {"log", 1, 0},
    {"log", -1, kNaN},
    {"log", kInfinity, kInfinity},
    {"log", -kInfinity, kNaN},
    {"log2", 0, -kInfinity},
    {"log2", 1, 0},
    {"log2", 8, 3},
    {"log2", 0x1p-149, -149},
    {"log2", -1, kNaN},
    {"log2", kInfinity, kInfinity},
    {"log10", 0, -kInfinity},
    {"log10", 1, 0},
    {"log10", 1000, 3},
    {"log10", 100000, 5},
    {"log10", -1, kNaN},
    {"log10", kInfinity, kInfinity},
    {"log1p", 0, 0},
    {"log1p", -0.0, -0.0},
    {"log1p", -1, -kInfinity},
    {"log1p", -2, kNaN},
    {"log1p", kInfinity, kInfinity},
    {"log1p", 0x1p-149, 0x1p-149},
    {"softplus", -kInfinity, 0},
    {"softplus", kInfinity, kInfinity},
    {"log_sigmoid", kInfinity, 0},
    {"log_sigmoid", -kInfinity, -kInfinity},
    {"log_sigmoid", -1000, -1000},
    {"sigmoid", 0, 0.5},
    {"sigmoid", kInfinity, 1},
    {"sigmoid", -kInfinity, 0},
    {"sigmoid", 1e4, 1},
    {"sigmoid", -1e4, 0},
    {"sinh", -0.0, -0.0},
    {"sinh", kInfinity, kInfinity},
    {"sinh", -kInfinity, -kInfinity},
    {"cosh", 0, 1},
    {"cosh", -kInfinity, kInfinity},
    {"tanh", 0, 0},
    {"tanh", -0.0, -0.0},
    {"tanh", kInfinity, 1},
    {"tanh", -kInfinity, -1},
    {"tanh", 50, 1},
    {"tanh", 0x1p-149, 0x1p-149},
    {"sin", 0, 0},
    {"sin", -0.0, -0.0},
    {"sin", kInfinity, kNaN},
    {"sin", -0x1p-149, -0x1p-149},
    {"cos", 0, 1},
    {"cos", -0.0, 1},
    {"cos", -kInfinity, kNaN},
    {"cos", 0x1p-149, 1},
    {"tan", -0.0, -0.0},
    {"tan", kInfinity, kNaN},
    {"asin", -0.0, -0.0},
    {"asin", 2, kNaN},
    {"asin", -kInfinity, kNaN},
    {"acos", 1, 0},
    {"acos", -1.5, kNaN},
    {"atan", 0, 0},
    {"atan", -0.0, -0.0},
    {"erf", 0, 0},
    {"erf", -0.0, -0.0},
    {"erf", kInfinity, 1},
    {"erf", -kInfinity, -1},
    {"erf", 10, 1},
    {"erfc", 0, 1},
    {"erfc", kInfinity, 0},
    {"erfc", -kInfinity, 2},
    {"erfc", 100, 0},
    {"erfinv", 0, 0},
    {"erfinv", -0.0, -0.0},
    {"erfinv", 1, kInfinity},
    {"erfinv", -1, -kInfinity},
    {"erfinv", 1.5, kNaN},
    {"sqrt", -0.0, -0.0},
    {"sqrt", -1, kNaN},
    {"rsqrt", 4, 0.5},
    {"rsqrt", 0, kInfinity},
    {"rsqrt", kInfinity, 0},
    {"rsqrt", -1, kNaN},
    {"floor", -0.0, -0.0},
    {"floor", -0.5, -1},
    {"floor", 8388607.5, 8388607},
    {"floor", -kInfinity, -kInfinity},
    {"ceil", -0.5, -0.0},
    {"ceil", 0.1, 1},
    {"trunc", -0.9, -0.0},
    {"trunc", 1e30, 1e30},
    {"round", 0.5, 0},
    {"round", 1.5, 2},
    {"round", 2.5, 2},
    {"round", -0.5, -0.0},
    {"round", 8388609, 8388609},
};

TEST(Math, SpecialValuesAreExact) {
  for (const Special& special : kSpecials) {
    bool found = false;
    for (const Function& function : kFunctions) {
      if (std::string(function.name) != special.name) continue;
      found = true;
      const double middle = function.middle(special.x);
      const double narrow = static_cast<double>(function.narrow(static_cast<float>(special.x)));
      const auto same = [&](double got, double want) {
        return std::isnan(want) ? std::isnan(got)
                                : got == want && std::signbit(got) == std::signbit(want);
      };
      EXPECT_TRUE(same(middle, special.result))
          << special.name << " " << special.x << ": " << middle;
      const double want = static_cast<double>(static_cast<float>(special.result));
      EXPECT_TRUE(same(narrow, want)) << special.name << " float " << special.x << ": " << narrow;
    }
    EXPECT_TRUE(found) << special.name;
  }
}

TEST(Math, NanPassesThrough) {
  for (const Function& function : kFunctions) {
    EXPECT_TRUE(std::isnan(function.middle(kNaN))) << function.name;
    EXPECT_TRUE(std::isnan(function.middle(-kNaN))) << function.name;
    EXPECT_TRUE(std::isnan(function.narrow(std::numeric_limits<float>::quiet_NaN())))
        << function.name;
    EXPECT_TRUE(std::isnan(function.narrow(-std::numeric_limits<float>::quiet_NaN())))
        << function.name;
  }
}

// Steps of 2^-6 are far wider than an ulp, so even the errors may not turn the order round.
TEST(Math, IncreasingFunctionsIncrease) {
  const std::string increasing =
      " exp exp2 expm1 log log1p log2 log10 softplus log_sigmoid sigmoid sinh tanh asin atan erf "
      "erfinv sqrt ";
  for (const Function& function : kFunctions) {
    if (increasing.find(" " + std::string(function.name) + " ") == std::string::npos) continue;
    double before = -kInfinity;
    float before_narrow = -std::numeric_limits<float>::infinity();
    for (double x = -800; x <= 800; x += 0x1p-6) {
      const double y = function.middle(x);
      if (std::isnan(y)) continue;
      ASSERT_GE(y, before) << function.name << " at " << x;
      before = y;
      const float narrow = function.narrow(static_cast<float>(x));
      ASSERT_GE(narrow, before_narrow) << function.name << " at " << x;
      before_narrow = narrow;
    }
  }
}

// Sines and cosines never pass 1, and huge arguments keep all their bits.
TEST(Math, TrigonometryIsBoundedAndExactFarOut) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 200000; ++i) {
    const double x = bit_cast<double>(random());
    ASSERT_FALSE(std::abs(sin(x)) > 1.0 || std::abs(cos(x)) > 1.0) << x;
    const float f = static_cast<float>(x);
    ASSERT_FALSE(std::abs(sin(f)) > 1.0f || std::abs(cos(f)) > 1.0f) << f;
    const float near_peak = 1.57079637f * static_cast<float>(2 * (i % 1000) + 1);
    ASSERT_LE(std::abs(sin(near_peak)), 1.0f) << near_peak;
  }
  EXPECT_NEAR(sin(1e22), -0.8522008497671888, 1e-15);
  EXPECT_EQ(sin(0x1.6ac5b262ca1ffp+849), 1.0);  // the double nearest to a multiple of pi/2
  EXPECT_NEAR(cos(0x1.6ac5b262ca1ffp+849), -4.6871659242546276e-19, 1e-34);
  EXPECT_EQ(sin_bounded(0x1p39), sin(0x1p39));
  EXPECT_TRUE(is_out_of_trig_bound(0x1p41f));
  EXPECT_FALSE(is_out_of_trig_bound(-0x1p40));
}

}  // namespace
}  // namespace taper::math
