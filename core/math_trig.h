// sin, cos and tan: reduction by multiples of pi, and the one polynomial that serves them.
#pragma once

#include "taper/core/math_base.h"

namespace taper::math {
inline namespace TAPER_ISA {

// Note [Two reductions]
// Up to this bound x - n pi is taken in double with pi in three parts, without a branch:
// sin_bounded, cos_bounded and tan_bounded vectorise. Beyond it the product with the right bits of
// 1/pi is taken in integers, one element at a time. sin, cos and tan choose by a branch, which is
// right on a GPU and for single calls; a CPU loop asks for a whole block whether any element is out
// of bounds.
inline constexpr float kTrigBound = 0x1p40f;

template <Real T> TAPER_INLINE bool is_out_of_trig_bound(T x) {
  return abs(x) > static_cast<T>(kTrigBound);
}

namespace detail {

// x = n pi + r (sine) or x = (n + 1/2) pi + r (cosine), |r| <= pi/2; `sign` has its top bit set
// where the result is -sin(r).
struct TrigSplit {
  double r;
  uint64_t sign;
};

TAPER_INLINE double subtract_pi(double x, double n) {
  const double first = fma(n, -0x1.921fb54442d18p+1, x);  // exact
  return fma(n, -0x1.c1cd129024e09p-106, fma(n, -0x1.1a62633145c06p-53, first));
}

TAPER_INLINE TrigSplit sine_split(double x) {
  const double rounded = fma(x, 0x1.45f306dc9c883p-2, kRounder<double>);
  return {subtract_pi(x, rounded - kRounder<double>), bit_cast<uint64_t>(rounded) << 63};
}

TAPER_INLINE TrigSplit cosine_split(double x) {
  const double rounded = fma(x, 0x1.45f306dc9c883p-2, -0.5) + kRounder<double>;
  // cos(r + (n + 1/2) pi) = -(-1)^n sin(r)
  return {subtract_pi(x, (rounded - kRounder<double>)+0.5), ~bit_cast<uint64_t>(rounded) << 63};
}

// Payne and Hanek (1983). With |x| = M 2^e and M of 53 bits, the bits of 1/pi from 2^(1-e) up
// contribute multiples of 2 to |x|/pi; the next 192 bits give |x|/pi mod 2 to 2^-138. No double is
// closer to a multiple of pi/2 than 2^-61.
[[gnu::noinline]] TAPER_HD inline TrigSplit exact_split(double x, bool cosine) {
  __extension__ using uint128_t = unsigned __int128;
  constexpr uint64_t kOneOverPi[20] = {// the first word holds the bits before the point
                                       0,
                                       0x517cc1b727220a94,
                                       0xfe13abe8fa9a6ee0,
                                       0x6db14acc9e21c820,
                                       0xff28b1d5ef5de2b0,
                                       0xdb92371d2126e970,
                                       0x0324977504e8c90e,
                                       0x7f0ef58e5894d39f,
                                       0x74411afa975da242,
                                       0x74ce38135a2fbf20,
                                       0x9cc8eb1cc1a99cfa,
                                       0x4e422fc5defc941d,
                                       0x8ffc4bffef02cc07,
                                       0xf79788c5ad05368f,
                                       0xb69b3f6793e584db,
                                       0xa7a31fb34f2ff516,
                                       0xba93dd63f5f2f8bd,
                                       0x9e839cfbc5294975,
                                       0x35fdafd88fc6ae84,
                                       0x2b0198237e3db5d5};
  const uint64_t bits = bit_cast<uint64_t>(x);
  const uint64_t biased = (bits >> 52) & 0x7ffu;
  if (biased == 0x7ffu) return {kNan<double>, 0};
  const uint64_t mantissa = (bits & 0x000fffffffffffffu) | 0x0010000000000000u;
  const uint64_t start = biased - 1075u + 63u;  // of the bit that is worth 2^-e
  const uint64_t word = start / 64u;
  const uint64_t shift = start % 64u;
  uint64_t window[3];
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t next = (kOneOverPi[word + i + 1u] >> 1) >> (63u - shift);
    window[i] = (kOneOverPi[word + i] << shift) | next;
  }
  const uint128_t low = (uint128_t(mantissa) * window[2]) >> 64;
  uint128_t turns = uint128_t(mantissa) * window[1] + low;  // |x|/pi mod 2, times 2^127
  turns += uint128_t(mantissa * window[0]) << 64;
  if (cosine) turns -= uint128_t(1) << 126;
  const uint128_t fraction = turns << 1;
  const bool negative = (fraction >> 127) != 0;
  const uint128_t magnitude = negative ? -fraction : fraction;
  const double turn = static_cast<double>(static_cast<uint64_t>(magnitude >> 64)) * 0x1p-64 +
                      static_cast<double>(static_cast<uint64_t>(magnitude)) * 0x1p-128;
  const double r = fma(turn, 0x1.921fb54442d18p+1, turn * 0x1.1a62633145c07p-53);
  const uint64_t odd = static_cast<uint64_t>(turns >> 127) ^ static_cast<uint64_t>(negative);
  const uint64_t flip = cosine ? 1u : bits >> 63;
  return {negative ? -r : r, (odd ^ flip) << 63};
}

// sin r = r + r^3 P(r^2)
TAPER_INLINE double sine_poly(double r) {
  const double square = r * r;
  const double p = poly(square, -0x1.5555555555555p-3, 0x1.11111111110cdp-7, -0x1.a01a01a0155a1p-13,
                        0x1.71de3a52f3a9bp-19, -0x1.ae64550a44027p-26, 0x1.6123e0a9a6a5ep-33,
                        -0x1.ae4bac5db91bp-41, 0x1.89ffc90a1eaefp-49, -0x1.5068eeec9e662p-60);
  return fma(r * square, p, r);
}

TAPER_INLINE float sine_poly(float r) {
  const float square = r * r;
  const float p = poly(square, -0x1.555556p-3f, 0x1.111136p-7f, -0x1.a023ccp-13f, 0x1.72cddcp-19f,
                       -0x1.b624a4p-26f);
  return fma(r * square, p, r);
}

// Keeps -0, and rounding errors from passing 1.
template <Real T> TAPER_INLINE T sine_sign_and_bound(T sine, T r) {
  const T a = abs(sine);
  return copysign(select(a > T(1), T(1), a), r);
}

TAPER_INLINE double sine_of(const TrigSplit& split, double) {
  const double sine = sine_sign_and_bound(sine_poly(split.r), split.r);
  return bit_cast<double>(bit_cast<uint64_t>(sine) ^ split.sign);
}

TAPER_INLINE float sine_of(const TrigSplit& split, float) {
  const float r = static_cast<float>(split.r);
  const float sine = sine_sign_and_bound(sine_poly(r), r);
  return bit_cast<float>(bit_cast<uint32_t>(sine) ^ static_cast<uint32_t>(split.sign >> 32));
}

}  // namespace detail

template <Real T> TAPER_INLINE T sin_bounded(T x) {
  return detail::sine_of(detail::sine_split(static_cast<double>(x)), x);
}

template <Real T> TAPER_INLINE T cos_bounded(T x) {
  return detail::sine_of(detail::cosine_split(static_cast<double>(x)), x);
}

TAPER_INLINE double tan_bounded(double x) {
  return sin_bounded(x) / cos_bounded(x);
}

TAPER_INLINE float tan_bounded(float x) {
  return static_cast<float>(tan_bounded(static_cast<double>(x)));
}

template <Real T> TAPER_INLINE T sin(T x) {
  if (!is_out_of_trig_bound(x)) return sin_bounded(x);
  return detail::sine_of(detail::exact_split(static_cast<double>(x), false), x);
}

template <Real T> TAPER_INLINE T cos(T x) {
  if (!is_out_of_trig_bound(x)) return cos_bounded(x);
  return detail::sine_of(detail::exact_split(static_cast<double>(x), true), x);
}

template <Real T> TAPER_INLINE T tan(T x) {
  const double wide = static_cast<double>(x);
  return static_cast<T>(sin(wide) / cos(wide));
}

}  // namespace TAPER_ISA
}  // namespace taper::math
