// erf, erfc and erfinv.
#pragma once

#include "taper/core/math_exp.h"
#include "taper/core/math_log.h"

namespace taper::math {
inline namespace TAPER_ISA {
namespace detail {

// erf x = x + x P(x^2) for |x| <= 1
TAPER_INLINE double erf_poly(double x) {
  const double p = poly(x * x, 0x1.06eba8214db68p-3, -0x1.812746b03799dp-2, 0x1.ce2f21a03f8bap-4,
                        -0x1.b82ce311a9864p-6, 0x1.565bcceedc12p-8, -0x1.c02daeb768919p-11,
                        0x1.f9a296c0ce6cep-14, -0x1.f4c82fee47f01p-17, 0x1.b96b6256b7bacp-20,
                        -0x1.5b8cba98f44e7p-23, 0x1.d3e0121baa1cap-27, -0x1.a2461d175e3a2p-31);
  return fma(x, p, x);
}

// erfc a for a >= 0: (1 + 2a) e^(a^2) erfc a is a polynomial in (a - 4)/(a + 4) (Shepherd and
// Laframboise 1981). a^2 is carried as a sum of two, for e^-(a^2) has its relative error.
TAPER_INLINE double erfc_positive(double a) {
  const double bounded = select(a > 28.0, 28.0, a);
  const double t = (bounded - 4.0) / (bounded + 4.0);
  const double p = poly(
      t, 0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a28fp-3, 0x1.f7f5df66fb8d1p-7, 0x1.16ecefcfa546p-4,
      -0x1.9ddb23c3dd2c5p-4, 0x1.7fee004e108bcp-4, -0x1.0fb06dff2e8efp-4, 0x1.3079edf6b9c74p-5,
      -0x1.096238613463ep-6, 0x1.49c672781e5b6p-8, -0x1.8d4ab4923bd95p-11, -0x1.a1df1d59e60c1p-13,
      0x1.3be1d3b1ffc09p-13, -0x1.9959d78bbcc7p-16, -0x1.78c53de0283a3p-17, 0x1.7f28450e72cd3p-18,
      0x1.476868b8f6fc2p-22, -0x1.ba85a671a01dap-21, 0x1.0b2807defff08p-24, 0x1.cd95271d4b44bp-24,
      -0x1.455c9ea896db7p-27, -0x1.825a005638c5dp-27, -0x1.bb882bff1ddd8p-31);
  const double square = bounded * bounded;
  const double square_low = fma(bounded, bounded, -square);
  const ExpSplit<double> split = exp_split(clamp_exp(-square));
  const double e = expm1_poly(split.r - square_low) + 1.0;
  return scale(e * (p / fma(2.0, bounded, 1.0)), split.n);
}

}  // namespace detail

TAPER_INLINE double erf(double x) {
  const double a = abs(x);
  const double tail = 1.0 - detail::erfc_positive(a);
  return copysign(detail::select(a < 1.0, detail::erf_poly(a), tail), x);
}

TAPER_INLINE double erfc(double x) {
  const double tail = detail::erfc_positive(abs(x));
  const double left = detail::select(x < 0.0, 2.0 - tail, tail);
  return detail::select(abs(x) < 0.5, 1.0 - detail::erf_poly(x), left);
}

// erf a = 1 - e^-g(a) above 0.92, g a polynomial.
TAPER_INLINE float erf(float x) {
  const float a = abs(x);
  const float p = detail::poly(x * x, 0x1.06eba8p-3f, -0x1.81274p-2f, 0x1.ce2d64p-4f,
                               -0x1.b80118p-6f, 0x1.5449e2p-8f, -0x1.a60676p-11f, 0x1.4f5398p-14f);
  const float g = detail::poly(detail::select(a > 3.95f, 3.95f, a), -0x1.54fe98p-13f,
                               0x1.212362p+0f, 0x1.445c1ap-1f, 0x1.ba91bcp-4f, -0x1.985f66p-6f,
                               0x1.0aa198p-8f, -0x1.a4cbfcp-12f, 0x1.faa4a8p-17f, 0x1.f26308p-22f);
  const float tail = 1.0f - detail::exp_normal(-g);
  return copysign(detail::select(a < 0.92f, fma(a, p, a), tail), x);
}

// The y with erf y = x; infinite at -1 and 1, NaN beyond. A polynomial in w = -log(1 - x^2) (as
// Giles 2010) gives 7 digits; one step of Halley on erf y - x, or on erfc near 1, gives the rest.
TAPER_INLINE double erfinv(double x) {
  const double a = abs(x);
  const double w = -log((1.0 - a) * (1.0 + a));
  const double near = detail::poly(
      w - 2.5, 0x1.805c5d2014badp+0, 0x1.f91e8ada3cc8ep-3, -0x1.11c4ebff2a721p-8,
      -0x1.4866198639cb8p-10, 0x1.c9e6d36fd0d3bp-13, -0x1.4d12f13f0ef45p-18, -0x1.d0c28b472300ep-19,
      0x1.f48111e6c5a6fp-22, 0x1.8f2cf7d4c647fp-26, -0x1.2df22ee8be47ep-27);
  const double far = detail::poly(
      sqrt(w) - 4.0, 0x1.eb7e0996c715p+1, 0x1.026e1d073d21p+0, 0x1.49d5b365f2f51p-10,
      -0x1.c543a74fb1e6fp-11, 0x1.57924dd39645dp-12, -0x1.0dbb36fd42606p-13, 0x1.81ce3b3a1e78ap-15,
      -0x1.5b9cadfa2a511p-16, 0x1.9d0c865d50d9bp-16, -0x1.06ef54dd6bde2p-16, 0x1.c5c527e854d03p-20,
      0x1.af28e9e363b13p-20, -0x1.baeeb0b84eaf1p-22);
  const double y = a * detail::select(w < 5.0, near, far);
  const double center = detail::erf_poly(y) - a;
  const double tail = (1.0 - a) - detail::erfc_positive(y);
  const double residual = detail::select(y < 1.0, center, tail);
  const double slope = 0x1.20dd750429b6dp+0 * exp(-y * y);  // 2/sqrt(pi) e^(-y^2)
  const double step = residual / slope;
  const double result = y - step / fma(y, step, 1.0);
  return copysign(detail::select(a == 1.0, detail::kInf<double>, result), x);
}

TAPER_INLINE float erfinv(float x) {
  return static_cast<float>(erfinv(static_cast<double>(x)));
}

TAPER_INLINE float erfc(float x) {
  return static_cast<float>(erfc(static_cast<double>(x)));
}

}  // namespace TAPER_ISA
}  // namespace taper::math
