// asin, acos, atan and atan2.
#pragma once

#include "taper/core/math_base.h"

namespace taper::math {
inline namespace TAPER_ISA {
namespace detail {

inline constexpr double kHalfPi = 0x1.921fb54442d18p+0;
inline constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;

// asin s = s + s^3 P(s^2), where s is a below 1/2 and sqrt((1 - a)/2) from there on, for
// asin a = pi/2 - 2 asin(sqrt((1 - a)/2)).
TAPER_INLINE double asin_core(double a) {
  const double rest = (1.0 - a) * 0.5;
  const double root = sqrt(rest);
  const double square = select(a < 0.5, a * a, rest);
  const double s = select(a < 0.5, a, root);
  const double p =
      poly(square, 0x1.5555555555577p-3, 0x1.333333332e132p-4, 0x1.6db6db721256p-5,
           0x1.f1c71a94fad38p-6, 0x1.6e8bdedf4d2dcp-6, 0x1.1c49f06ed3cc5p-6, 0x1.ca1f8bb168dcp-7,
           0x1.7585985a09ac8p-7, 0x1.613c37ed3dffp-7, 0x1.e5faa5e55d275p-9, 0x1.639ad9a0079cp-6,
           -0x1.57fb2b2f57ca8p-6, 0x1.0b45ff7ee9eabp-5);
  return fma(s * square, p, s);
}

// atan t for |t| <= tan(pi/8)
TAPER_INLINE double atan_poly(double t) {
  const double square = t * t;
  const double p = poly(square, -0x1.555555555553dp-2, 0x1.9999999995868p-3, -0x1.24924922ad461p-3,
                        0x1.c71c70e6029fap-4, -0x1.745cf8dad961ap-4, 0x1.3b1119008a78ap-4,
                        -0x1.10ebb71fb7dabp-4, 0x1.df0f3c2b1542bp-5, -0x1.9cd282252cfeep-5,
                        0x1.37d527180d036p-5, -0x1.25697a898f017p-6);
  return fma(t * square, p, t);
}

}  // namespace detail

TAPER_INLINE double asin(double x) {
  const double a = abs(x);
  const double core = detail::asin_core(a);
  const double large = detail::kHalfPi - fma(2.0, core, -detail::kHalfPiLow);
  return copysign(detail::select(a < 0.5, core, large), x);
}

TAPER_INLINE double acos(double x) {
  const double a = abs(x);
  const double core = detail::asin_core(a);
  const double small = detail::kHalfPi - (copysign(core, x) - detail::kHalfPiLow);
  const double right = 2.0 * core;
  const double left = 2.0 * detail::kHalfPi - (right - 2.0 * detail::kHalfPiLow);
  const double large = detail::select(x < 0.0, left, right);
  return detail::select(a < 0.5, small, large);
}

// The angle of (x, y) in [-pi, pi]; zeros and infinities as in C99.
TAPER_INLINE double atan2(double y, double x) {
  using detail::kHalfPi, detail::kHalfPiLow, detail::select;
  const double y_abs = abs(y);
  const double x_abs = abs(x);
  const bool is_steep = y_abs > x_abs;
  const double large = select(is_steep, y_abs, x_abs);
  const double small = select(is_steep, x_abs, y_abs);
  const bool are_infinite = (small == detail::kInf<double>)&(large == detail::kInf<double>);
  const double unit = select(large > 0x1p1000, 0x1p-2, 1.0);  // so that the sum stays finite
  const double a = select(are_infinite, 1.0, small * unit);
  const double b = select(are_infinite, 1.0, large * unit);
  // atan(a/b) = pi/4 + atan((a - b)/(a + b)) above tan(pi/8), to leave at most pi/8
  const bool is_diagonal = a > 0x1.a827999fcef32p-2 * b;
  const double top = select(is_diagonal, a - b, a);
  const double sum = select(is_diagonal, a + b, b);
  const double t = detail::atan_poly(top / select(sum == 0.0, 1.0, sum));
  const double turn = select(is_diagonal, 0.5, select(is_steep, 1.0, 0.0));  // in units of pi/2
  const double rest = fma(turn, kHalfPiLow, select(is_steep, -t, t));
  const double right = fma(turn, kHalfPi, rest);
  const double left = 2.0 * kHalfPi - (right - 2.0 * kHalfPiLow);
  return copysign(select(copysign(1.0, x) < 0.0, left, right), y);
}

TAPER_INLINE double atan(double x) {
  return atan2(x, 1.0);
}

// Seldom hot: the double functions rounded once are the more accurate ones.
TAPER_INLINE float asin(float x) {
  return static_cast<float>(asin(static_cast<double>(x)));
}

TAPER_INLINE float acos(float x) {
  return static_cast<float>(acos(static_cast<double>(x)));
}

TAPER_INLINE float atan(float x) {
  return static_cast<float>(atan(static_cast<double>(x)));
}

TAPER_INLINE float atan2(float y, float x) {
  return static_cast<float>(atan2(static_cast<double>(y), static_cast<double>(x)));
}

}  // namespace TAPER_ISA
}  // namespace taper::math
