// floor, ceil, trunc, round and the two remainders.
#pragma once

#include "taper/core/math_base.h"

namespace taper::math {
inline namespace TAPER_ISA {
namespace detail {

// Rounds to nearest, ties to even, without the SSE 4.1 instruction: from 2^23 (2^52) up, every
// number is an integer already.
template <Real T> TAPER_INLINE T round_by_adding(T x) {
  const T magic = sizeof(T) == 4 ? T(0x1p23f) : T(0x1p52);
  const T a = abs(x);
  return copysign(select(a < magic, (a + magic) - magic, a), x);
}

}  // namespace detail

#if defined(__CUDA_ARCH__)
TAPER_INLINE float floor(float x) {
  return ::floorf(x);
}
TAPER_INLINE double floor(double x) {
  return ::floor(x);
}
TAPER_INLINE float ceil(float x) {
  return ::ceilf(x);
}
TAPER_INLINE double ceil(double x) {
  return ::ceil(x);
}
TAPER_INLINE float trunc(float x) {
  return ::truncf(x);
}
TAPER_INLINE double trunc(double x) {
  return ::trunc(x);
}
TAPER_INLINE float round(float x) {
  return ::rintf(x);
}
TAPER_INLINE double round(double x) {
  return ::rint(x);
}
#elif defined(__SSE4_1__) || defined(__aarch64__)
TAPER_INLINE float floor(float x) {
  return __builtin_floorf(x);
}
TAPER_INLINE double floor(double x) {
  return __builtin_floor(x);
}
TAPER_INLINE float ceil(float x) {
  return __builtin_ceilf(x);
}
TAPER_INLINE double ceil(double x) {
  return __builtin_ceil(x);
}
TAPER_INLINE float trunc(float x) {
  return __builtin_truncf(x);
}
TAPER_INLINE double trunc(double x) {
  return __builtin_trunc(x);
}
TAPER_INLINE float round(float x) {
  return __builtin_rintf(x);
}
TAPER_INLINE double round(double x) {
  return __builtin_rint(x);
}
#else
template <Real T> TAPER_INLINE T round(T x) {
  return detail::round_by_adding(x);
}

template <Real T> TAPER_INLINE T floor(T x) {
  const T r = detail::round_by_adding(x);
  return copysign(detail::select(r > x, r - T(1), r), x);
}

template <Real T> TAPER_INLINE T ceil(T x) {
  const T r = detail::round_by_adding(x);
  return copysign(detail::select(r < x, r + T(1), r), x);
}

template <Real T> TAPER_INLINE T trunc(T x) {
  const T a = abs(x);
  const T r = detail::round_by_adding(a);
  return copysign(detail::select(r > a, r - T(1), r), x);
}
#endif

// The remainder of C: exact, with the sign of x. A call into the C library, which does not
// vectorise.
TAPER_INLINE float fmod(float x, float y) {
#if defined(__CUDA_ARCH__)
  return ::fmodf(x, y);
#else
  return __builtin_fmodf(x, y);
#endif
}

TAPER_INLINE double fmod(double x, double y) {
#if defined(__CUDA_ARCH__)
  return ::fmod(x, y);
#else
  return __builtin_fmod(x, y);
#endif
}

// The remainder of Python's %: with the sign of y.
template <Real T> TAPER_INLINE T remainder(T x, T y) {
  const T r = fmod(x, y);
  return r != T(0) && (r < T(0)) != (y < T(0)) ? r + y : r;
}

}  // namespace TAPER_ISA
}  // namespace taper::math
