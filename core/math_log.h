// log and its kin: log1p, log2, log10, softplus, log_sigmoid.
#pragma once

#include "taper/core/math_exp.h"

namespace taper::math {
inline namespace TAPER_ISA {
namespace detail {

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); f is exact.
template <Real T> struct LogSplit {
  T e;
  T f;
};

TAPER_INLINE LogSplit<float> log_split(float x) {
  const bool subnormal = x < 0x1p-126f;
  const uint32_t bits =
      bit_cast<uint32_t>(select(subnormal, x * 0x1p24f, x)) + (0x3f800000u - 0x3f3504f3u);
  const float bias = select(subnormal, 151.0f, 127.0f);
  const float e = static_cast<float>(static_cast<int32_t>(bits >> 23)) - bias;
  return {e, bit_cast<float>((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f};
}

TAPER_INLINE LogSplit<double> log_split(double x) {
  const bool subnormal = x < 0x1p-1022;
  const uint64_t bits = bit_cast<uint64_t>(select(subnormal, x * 0x1p54, x)) +
                        (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  const double bias = select(subnormal, 0x1p52 + 1077.0, 0x1p52 + 1023.0);
  const double e = bit_cast<double>((bits >> 52) | 0x4330000000000000u) - bias;
  return {e, bit_cast<double>((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0};
}

// e ln 2 + log(1 + f)
TAPER_INLINE float log_sum(float e, float f) {
  const float p = poly(f, 0x1.55554ap-2f, -0x1.00022p-2f, 0x1.99a5b2p-3f, -0x1.5478a4p-3f,
                       0x1.226c58p-3f, -0x1.0cdd8ap-3f, 0x1.07db18p-3f, -0x1.421404p-4f);
  const float low = fma(e, -0x1.05c61p-29f, f);
  return fma(e, 0x1.62e43p-1f, fma(f * f, fma(f, p, -0.5f), low));
}

// log(1 + f) = f - f^2/2 + rest, with s = f / (2 + f): rest = s (f^2/2 + s^2 P(s^2))
TAPER_INLINE double log_rest(double f) {
  const double s = f / (2.0 + f);
  const double square = s * s;
  const double p =
      poly(square, 0x1.5555555555592p-1, 0x1.999999997ff1dp-2, 0x1.24924941e10cap-2,
           0x1.c71c5214947d9p-3, 0x1.74663cde1e0f4p-3, 0x1.39a1ea777afb0p-3, 0x1.2f03a7ecfac8ep-3);
  return s * fma(square, p, 0.5 * f * f);
}

TAPER_INLINE double log_sum(double e, double f) {
  const double rest = fma(e, 0x1.abc9e3b39803fp-56, log_rest(f));
  return fma(e, 0x1.62e42fefa39efp-1, f - (0.5 * f * f - rest));
}

// What a logarithm is outside (0, infinity).
template <Real T> TAPER_INLINE T log_special(T x, T result) {
  const T upper = select(x < kInf<T>, result, x);  // infinity and NaN
  const T zero = select(x == T(0), -kInf<T>, upper);
  return select(x < T(0), kNan<T>, zero);
}

// log(x) = (e, f)-dependent sum in another base: e * unit + log(1 + f) * (high + low), where
// log(1 + f) is carried as a sum of two.
TAPER_INLINE double log_other_base(
    double x, double unit, double unit_low, double high, double low) {
  const LogSplit<double> split = log_split(x);
  const double f = split.f;
  const double half_square = 0.5 * f * f;
  const double a = f - half_square;
  const double b = ((f - a) - half_square) + (log_rest(f) - fma(0.5 * f, f, -half_square));
  const double product = a * high;
  const double error = fma(a, high, -product) + fma(a, low, b * high);
  const double main = split.e * unit;
  const double main_error = fma(split.e, unit, -main) + split.e * unit_low;
  const double sum = main + product;
  return sum + (((main - sum) + product) + (error + main_error));
}

}  // namespace detail

template <Real T> TAPER_INLINE T log(T x) {
  const detail::LogSplit<T> split = detail::log_split(x);
  return detail::log_special(x, detail::log_sum(split.e, split.f));
}

TAPER_INLINE double log2(double x) {
  const double r = detail::log_other_base(x, 1.0, 0.0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
  return detail::log_special(x, r);
}

TAPER_INLINE double log10(double x) {
  const double r = detail::log_other_base(x, 0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59,
                                          0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);
  return detail::log_special(x, r);
}

TAPER_INLINE float log2(float x) {
  return static_cast<float>(log2(static_cast<double>(x)));
}

TAPER_INLINE float log10(float x) {
  return static_cast<float>(log10(static_cast<double>(x)));
}

// log(1 + x): 1 + x is u + error exactly, and the error joins f.
template <Real T> TAPER_INLINE T log1p(T x) {
  const T u = T(1) + x;
  const T x_part = u - T(1);
  const T error = (T(1) - (u - x_part)) + (x - x_part);
  const detail::LogSplit<T> split = detail::log_split(u);
  // Past 2^100 the error no longer counts; the clamp keeps 2^-e a normal number.
  const T shrink = detail::pow2(detail::clamp(-split.e, T(-100), T(100)));
  const T result = detail::log_sum(split.e, fma(error, shrink, split.f));
  return copysign(detail::log_special(u, result), x);
}

// log(1 + e^x)
template <Real T> TAPER_INLINE T softplus(T x) {
  return detail::select(x < T(0), T(0), x) + log1p(exp(-abs(x)));
}

template <Real T> TAPER_INLINE T log_sigmoid(T x) {
  return detail::select(x > T(0), T(0), x) - log1p(exp(-abs(x)));
}

}  // namespace TAPER_ISA
}  // namespace taper::math
