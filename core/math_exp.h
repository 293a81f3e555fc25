// exp and what is made of it: exp2, expm1, sigmoid, tanh, sinh, cosh.
#pragma once

#include "taper/core/math_base.h"

namespace taper::math {
inline namespace TAPER_ISA {
namespace detail {

// x = n ln 2 + r with |r| <= ln(2)/2: the fma makes the first step exact.
template <Real T> struct ExpSplit {
  T n;
  T r;
};

TAPER_INLINE ExpSplit<float> exp_split(float x) {
  const float n = fma(x, 0x1.715476p+0f, kRounder<float>) - kRounder<float>;
  return {n, fma(n, 0x1.05c61p-29f, fma(n, -0x1.62e43p-1f, x))};
}

TAPER_INLINE ExpSplit<double> exp_split(double x) {
  const double n = fma(x, 0x1.71547652b82fep+0, kRounder<double>) - kRounder<double>;
  return {n, fma(n, -0x1.abc9e3b39803fp-56, fma(n, -0x1.62e42fefa39efp-1, x))};
}

// e^r - 1 = r + r^2 Q(r)
TAPER_INLINE float expm1_poly(float r) {
  const float q =
      poly(r, 0x1.fffffep-2f, 0x1.5554b4p-3f, 0x1.5556f6p-5f, 0x1.122534p-7f, 0x1.6b97eap-10f);
  return fma(r * r, q, r);
}

TAPER_INLINE double expm1_poly(double r) {
  const double q = poly(r, 0x1p-1, 0x1.5555555555559p-3, 0x1.5555555555559p-5, 0x1.111111110f70ap-7,
                        0x1.6c16c16c16838p-10, 0x1.a01a01af9c3cap-13, 0x1.a01a019e3d655p-16,
                        0x1.71ddf9396e8d1p-19, 0x1.27e4f8fd5d1a5p-22, 0x1.af5d04a05a11ep-26,
                        0x1.1f385d5cfd982p-29);
  return fma(r * r, q, r);
}

// 2^r for |r| <= 1/2
TAPER_INLINE float exp2_poly(float r) {
  return poly(r, 1.0f, 0x1.62e43p-1f, 0x1.ebfbep-3f, 0x1.c6af7ap-5f, 0x1.3b2a28p-7f,
              0x1.5f0962p-10f, 0x1.4447acp-13f);
}

TAPER_INLINE double exp2_poly(double r) {
  return poly(r, 1.0, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c5ap-3, 0x1.c6b08d704a154p-5,
              0x1.3b2ab6fba0919p-7, 0x1.5d87fe7892fb4p-10, 0x1.4309130d94fbap-13,
              0x1.ffcbfca9ee5cdp-17, 0x1.62bfca4334dc9p-20, 0x1.b524874fa1a7bp-24,
              0x1.e6175f1edf596p-28, 0x1.ea6babf8e5f51p-32);
}

// e^x where it is known to be normal.
template <Real T> TAPER_INLINE T exp_normal(T x) {
  const ExpSplit<T> split = exp_split(x);
  return (expm1_poly(split.r) + T(1)) * pow2(split.n);
}

// Beyond these e^x is 0 and infinity, and the scaling still works.
template <Real T> TAPER_INLINE T clamp_exp(T x) {
  return sizeof(T) == 4 ? clamp(x, T(-104), T(89)) : clamp(x, T(-746), T(710));
}

// e^x / 2, which overflows ln 2 later than e^x.
template <Real T> TAPER_INLINE T half_exp(T x) {
  const ExpSplit<T> split =
      exp_split(sizeof(T) == 4 ? clamp(x, T(-104), T(90)) : clamp(x, T(-746), T(711)));
  return scale(expm1_poly(split.r) + T(1), split.n - T(1));
}

}  // namespace detail

template <Real T> TAPER_INLINE T exp(T x) {
  const detail::ExpSplit<T> split = detail::exp_split(detail::clamp_exp(x));
  return detail::scale(detail::expm1_poly(split.r) + T(1), split.n);
}

template <Real T> TAPER_INLINE T exp2(T x) {
  const T clamped =
      sizeof(T) == 4 ? detail::clamp(x, T(-151), T(129)) : detail::clamp(x, T(-1076), T(1025));
  const T n = detail::nearest(clamped);
  return detail::scale(detail::exp2_poly(clamped - n), n);
}

// 2^n (e^r - 1) + (2^n - 1), all halved and doubled, since 2^128 is no float.
template <Real T> TAPER_INLINE T expm1(T x) {
  const T clamped =
      sizeof(T) == 4 ? detail::clamp(x, T(-20), T(89)) : detail::clamp(x, T(-40), T(710));
  const detail::ExpSplit<T> split = detail::exp_split(clamped);
  const T half = detail::pow2(split.n - T(1));
  const T result = T(2) * fma(half, detail::expm1_poly(split.r), half - T(0.5));
  const T tiny = sizeof(T) == 4 ? T(0x1p-25f) : T(0x1p-54);
  return detail::select(abs(x) < tiny, x, result);  // keeps -0 and the last bit of subnormals
}

// 1 / (1 + e^-x), from e^-|x|, which cannot overflow: the left tail stays accurate down to
// subnormals.
template <Real T> TAPER_INLINE T sigmoid(T x) {
  const T e = exp(-abs(x));
  return detail::select(x < T(0), e, T(1)) / (T(1) + e);
}

TAPER_INLINE float tanh(float x) {
  const float a = abs(x);
  const float square = x * x;
  const float p = detail::poly(square, -0x1.555532p-2f, 0x1.1106f6p-3f, -0x1.b835a6p-5f,
                               0x1.51f8ecp-6f, -0x1.750dbap-8f);
  const float small = fma(a * square, p, a);
  const float e = detail::exp_normal(2.0f * detail::select(a > 10.0f, 10.0f, a));
  const float large = 1.0f - 2.0f / (e + 1.0f);
  return copysign(detail::select(a < 0.625f, small, large), x);
}

// With E = e^2a - 1: E / (E + 2) keeps small results relatively exact, 1 - 2 / (E + 2) rises to 1
// without a ripple.
TAPER_INLINE double tanh(double x) {
  const double a = abs(x);
  const double e = expm1(2.0 * detail::select(a > 20.0, 20.0, a));
  const bool is_small = a < 0.55;
  const double quotient = detail::select(is_small, e, 2.0) / (e + 2.0);
  return copysign(detail::select(is_small, quotient, 1.0 - quotient), x);
}

TAPER_INLINE double sinh(double x) {
  const double a = abs(x);
  const double square = x * x;
  const double p = detail::poly(square, 0x1.5555555555556p-3, 0x1.111111111101ep-7,
                                0x1.a01a01a03726bp-13, 0x1.71de3a3b06988p-19, 0x1.ae646ff529520p-26,
                                0x1.6116f49687ceap-33, 0x1.b5c899501ab15p-41);
  const double small = fma(x * square, p, x);
  const double e = detail::half_exp(a);
  const double large = copysign(e - 0.25 / e, x);
  return detail::select(a < 1.0, small, large);
}

TAPER_INLINE double cosh(double x) {
  const double e = detail::half_exp(abs(x));
  return e + 0.25 / e;
}

// Seldom hot: the double function rounded once is the more accurate one.
TAPER_INLINE float sinh(float x) {
  return static_cast<float>(sinh(static_cast<double>(x)));
}

TAPER_INLINE float cosh(float x) {
  return static_cast<float>(cosh(static_cast<double>(x)));
}

}  // namespace TAPER_ISA
}  // namespace taper::math
