// pow, with the special cases of C99.
#pragma once

#include "taper/core/math_exp.h"
#include "taper/core/math_log.h"
#include "taper/core/math_round.h"

namespace taper::math {
inline namespace TAPER_ISA {
namespace detail {

// A value as the unevaluated sum of two.
struct Sum {
  double high;
  double low;
};

// log2 a to about 2^-66 for finite a > 0: log((1+s)/(1-s)) = 2s + s^3 (2/3 + s^2 P(s^2)), s =
// f/(2+f), where all but P is carried in two doubles.
TAPER_INLINE Sum log2_sum(double a) {
  const LogSplit<double> split = log_split(a);
  const double f = split.f;
  const double d = 2.0 + f;
  const double d_low = (2.0 - d) + f;
  const double inverse = 1.0 / d;
  const double s = f * inverse;
  const double s_low = fma(-s, d_low, fma(-s, d, f)) * inverse;
  const double square = s * s;
  const double square_low = fma(s, s, -square) + 2.0 * s * s_low;
  const double u = square * poly(square, 0x1.9999999999996p-2, 0x1.2492492492f51p-2,
                                 0x1.c71c71c5968f2p-3, 0x1.745d182956e8dp-3, 0x1.3b1364c928072p-3,
                                 0x1.11206f3344794p-3, 0x1.de3d6fd1c526fp-4, 0x1.eac5c381788dfp-4);
  const double w = 0x1.5555555555555p-1 + u;
  const double w_low = ((0x1.5555555555555p-1 - w) + u) + 0x1.5555555555555p-55;
  const double v = square * w;
  const double v_low = fma(square, w, -v) + fma(square, w_low, square_low * w);
  const double t = s * v;
  const double t_low = fma(s, v, -t) + fma(s, v_low, s_low * v);
  const double log_high = 2.0 * s + t;
  const double log_low = ((2.0 * s - log_high) + t) + (2.0 * s_low + t_low);
  const double g = log_high * 0x1.71547652b82fep+0;
  const double g_low = fma(log_high, 0x1.71547652b82fep+0, -g) +
                       fma(log_high, 0x1.777d0ffda0d24p-56, log_low * 0x1.71547652b82fep+0);
  const double high = split.e + g;
  return {high, ((split.e - high) + g) + g_low};
}

// |x|^y for finite |x| > 0 and finite y.
TAPER_INLINE double pow_finite(double a, double y) {
  const Sum log = log2_sum(a);
  const double product = y * log.high;
  const double product_low = fma(y, log.high, -product) + y * log.low;
  const bool is_far = abs(product) > 1100.0;
  const double clamped = clamp(product, -1100.0, 1100.0);
  const double n = nearest(clamped);
  return scale(exp2_poly((clamped - n) + select(is_far, 0.0, product_low)), n);
}

// The double logarithm is accurate enough for one rounding to float.
TAPER_INLINE float pow_finite(float a, float y) {
  const LogSplit<double> split = log_split(static_cast<double>(a));
  const double log = split.e + log_sum(0.0, split.f) * 0x1.71547652b82fep+0;
  return static_cast<float>(exp2(static_cast<double>(y) * log));
}

}  // namespace detail

template <Real T> TAPER_INLINE T pow(T x, T y) {
  using detail::kInf, detail::select;
  const T a = abs(x);
  const T b = abs(y);
  // From 2^24 (2^53) up every float (double) is an even integer.
  const T whole = sizeof(T) == 4 ? T(0x1p24f) : T(0x1p53);
  const T half = y * T(0.5);
  const bool is_integer = (b >= whole) | (trunc(y) == y);
  const bool is_odd = (b < whole) & is_integer & (trunc(half) != half);
  const T huge = select(y < T(0), T(0), kInf<T>);  // infinity to the y
  const T none = select(y < T(0), kInf<T>, T(0));  // zero to the y
  T result = detail::pow_finite(a, y);
  result = select(a == T(0), none, result);
  result = select(a == kInf<T>, huge, result);
  result = select(b == kInf<T>, select(a < T(1), none, huge), result);
  result = select(is_odd, copysign(result, x), result);
  result = select((x < T(0)) & !is_integer & (a < kInf<T>), detail::kNan<T>, result);
  result = select((x != x) | (y != y), x + y, result);
  const bool is_one = (y == T(0)) | (x == T(1)) | ((x == T(-1)) & (b == kInf<T>));
  return select(is_one, T(1), result);
}

}  // namespace TAPER_ISA
}  // namespace taper::math
