// The pieces that the functions of math.h are made of: fma, polynomials, scaling, rounding.
#pragma once

#include <concepts>
#include <cstdint>

#include "taper/core/base/hd.h"

namespace taper::math {
inline namespace TAPER_ISA {

template <class T>
concept Real = std::same_as<T, float> || std::same_as<T, double>;

// One rounding of a * b + c, on every machine. Without the instruction, the float one goes through
// double: the product is exact there, and the sum is rounded to odd (see half.h), so that the last
// rounding is right. It vectorises; the double one calls the C library, which is slow and exact.
TAPER_INLINE float fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return ::fmaf(a, b, c);
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  const double sum = product + addend;
  const double from_product = sum - addend;
  const double error = (product - from_product) + (addend - (sum - from_product));
  const uint64_t bits = bit_cast<uint64_t>(sum);
  const uint64_t even = ~bits & 1u;
  const uint64_t odd = (error > 0.0) == (sum > 0.0) ? bits + even : bits - even;
  const bool inexact = error > 0.0 || error < 0.0;  // false for NaN
  return static_cast<float>(bit_cast<double>(inexact ? odd : bits));
#endif
}

TAPER_INLINE double fma(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return ::fma(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

TAPER_INLINE float abs(float x) {
  return bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fffffffu);
}

TAPER_INLINE double abs(double x) {
  return bit_cast<double>(bit_cast<uint64_t>(x) & 0x7fffffffffffffffu);
}

TAPER_INLINE float copysign(float magnitude, float sign) {
  return bit_cast<float>((bit_cast<uint32_t>(magnitude) & 0x7fffffffu) |
                         (bit_cast<uint32_t>(sign) & 0x80000000u));
}

TAPER_INLINE double copysign(double magnitude, double sign) {
  return bit_cast<double>((bit_cast<uint64_t>(magnitude) & 0x7fffffffffffffffu) |
                          (bit_cast<uint64_t>(sign) & 0x8000000000000000u));
}

TAPER_INLINE float sqrt(float x) {
#if defined(__CUDA_ARCH__)
  return ::sqrtf(x);
#else
  return __builtin_sqrtf(x);
#endif
}

TAPER_INLINE double sqrt(double x) {
#if defined(__CUDA_ARCH__)
  return ::sqrt(x);
#else
  return __builtin_sqrt(x);
#endif
}

template <Real T> TAPER_INLINE T rsqrt(T x) {
  return T(1) / sqrt(x);
}

namespace detail {

// condition ? yes : no, by masks: given constants in a ?:, g++ 12 continues each outcome on a path
// of its own, up to the end of the function, and blends everything at the end.
TAPER_INLINE float select(bool condition, float yes, float no) {
#if defined(__CUDA_ARCH__)
  return condition ? yes : no;
#else
  const uint32_t mask = 0u - static_cast<uint32_t>(condition);
  return bit_cast<float>((bit_cast<uint32_t>(yes) & mask) | (bit_cast<uint32_t>(no) & ~mask));
#endif
}

TAPER_INLINE double select(bool condition, double yes, double no) {
#if defined(__CUDA_ARCH__)
  return condition ? yes : no;
#else
  const uint64_t mask = uint64_t{0} - static_cast<uint64_t>(condition);
  return bit_cast<double>((bit_cast<uint64_t>(yes) & mask) | (bit_cast<uint64_t>(no) & ~mask));
#endif
}

// c0 + c1 x + c2 x^2 + ..., by Horner's rule, one fma for each power.
template <Real T> TAPER_INLINE T poly(T, T c0) {
  return c0;
}

template <Real T, Real... Rest> TAPER_INLINE T poly(T x, T c0, Rest... rest) {
  return fma(poly(x, rest...), x, c0);
}

template <Real T> inline constexpr T kInf = T(__builtin_inf());
template <Real T> inline constexpr T kNan = T(__builtin_nan(""));

// Adding this and taking it away rounds to the nearest integer, ties to even, below 2^22 (2^51);
// between the two the low bits of the sum are that integer in two's complement.
template <Real T> inline constexpr T kRounder = T(0);
template <> inline constexpr float kRounder<float> = 0x1.8p23f;
template <> inline constexpr double kRounder<double> = 0x1.8p52;

template <Real T> TAPER_INLINE T nearest(T x) {
  return (x + kRounder<T>)-kRounder<T>;
}

// NaN passes through.
template <Real T> TAPER_INLINE T clamp(T x, T low, T high) {
  const T above = select(x < low, low, x);
  return select(above > high, high, above);
}

// 2^n for an integer n that gives a normal number.
TAPER_INLINE float pow2(float n) {
  return bit_cast<float>(bit_cast<uint32_t>(n + (kRounder<float> + 127.0f)) << 23);
}

TAPER_INLINE double pow2(double n) {
  return bit_cast<double>(bit_cast<uint64_t>(n + (kRounder<double> + 1023.0)) << 52);
}

// p 2^n for p near 1, in two steps, of which only the second can overflow or round to a subnormal:
// n - 64 and 2^64 for positive n, n + 64 and 2^-64 for negative n (512 in double).
TAPER_INLINE float scale(float p, float n) {
  const uint32_t negative = (bit_cast<uint32_t>(n) & 0x80000000u) >> 1;  // 128 in the exponent
  const uint32_t first = (bit_cast<uint32_t>(n + (kRounder<float> + 63.0f)) << 23) + negative;
  return p * bit_cast<float>(first) * bit_cast<float>(0x5f800000u ^ negative);
}

TAPER_INLINE double scale(double p, double n) {
  const uint64_t negative = (bit_cast<uint64_t>(n) & 0x8000000000000000u) >> 1;
  const uint64_t first = (bit_cast<uint64_t>(n + (kRounder<double> + 511.0)) << 52) + negative;
  return p * bit_cast<double>(first) * bit_cast<double>(0x5ff0000000000000u ^ negative);
}

}  // namespace detail
}  // namespace TAPER_ISA
}  // namespace taper::math
