// The two 16-bit storage floats: IEEE binary16 (Half) and BFloat16, and their conversions.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "taper/core/base/hd.h"

#if defined(__F16C__) && defined(__AVX__)
#include <immintrin.h>
#endif

// Every conversion rounds to nearest, ties to even, straight from the source (a double is never
// rounded twice); subnormals are kept, overflow goes to infinity, a NaN stays a NaN with its quiet
// bit set and its leading payload bits. Selects instead of branches, so that plain loops vectorise.
// They take the machine as it starts: rounding to nearest, subnormals not flushed.
namespace taper {

inline namespace TAPER_ISA {
namespace half_detail {

// Rounds to float "to odd": an inexact result gets an odd last bit, which remembers that it was
// inexact, so that a second rounding to at most 22 bits gives what one rounding would have (Boldo
// and Melquiond 2008).
TAPER_INLINE float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const uint32_t bits = bit_cast<uint32_t>(nearest);
  const uint64_t magnitude = bit_cast<uint64_t>(value) << 1;
  const uint64_t magnitude_back = bit_cast<uint64_t>(back) << 1;
  const bool adjust = value < back || value > back;  // false for NaN
  const uint32_t odd = magnitude > magnitude_back ? bits | 1u : bits - (~bits & 1u);
  return bit_cast<float>(adjust ? odd : bits);
}

TAPER_INLINE uint16_t half_bits(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal results: rebias the exponent (127 to 15) and round the 13 dropped bits; a carry may
  // reach infinity.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal results: 0.5 has the ulp 2^-24 of a subnormal half, so adding it makes the machine
  // round.
  const uint32_t subnormal = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
  result = magnitude >= 0x47800000u ? 0x7c00u : result;  // 65536 and more, and infinity
  result = magnitude > 0x7f800000u ? (0x7e00u | ((magnitude >> 13) & 0x3ffu)) : result;
  return static_cast<uint16_t>(sign | result);
}

TAPER_INLINE float float_from_half_bits(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fffu) << 13;
  const uint32_t normal = magnitude + (112u << 23);
  // Subnormals: put the fraction under the implicit one of 2^-14, then take that one away again;
  // exact.
  const uint32_t subnormal =
      bit_cast<uint32_t>(bit_cast<float>(magnitude + (113u << 23)) - 0x1p-14f);
  uint32_t result = magnitude < (1u << 23) ? subnormal : normal;
  result = magnitude >= (31u << 23) ? magnitude + (224u << 23) : result;  // infinity and NaN
  result = magnitude > (31u << 23) ? result | 0x00400000u : result;       // quiet
  return bit_cast<float>(sign | result);
}

TAPER_INLINE uint16_t bfloat16_bits(float value) {
  const uint32_t bits = bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

TAPER_INLINE float float_from_bfloat16_bits(uint16_t bfloat) {
  const uint32_t bits = static_cast<uint32_t>(bfloat) << 16;
  return bit_cast<float>((bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x00400000u : bits);
}

}  // namespace half_detail
}  // namespace TAPER_ISA

// Both types: 2 bytes, trivially copyable, uninitialised by default like float. Narrowing is
// explicit, widening to float implicit and exact, so arithmetic on them happens in float and is
// rounded where it is stored.
struct Half {
  uint16_t bits;

  Half() = default;

  TAPER_INLINE explicit Half(float value) : bits(half_detail::half_bits(value)) {}

  TAPER_INLINE explicit Half(double value)
      : bits(half_detail::half_bits(half_detail::round_to_odd(value))) {}

  template <std::integral Integer>
  TAPER_INLINE explicit Half(Integer value) : Half(static_cast<double>(value)) {}

  TAPER_INLINE static constexpr Half from_bits(uint16_t bits) {
    Half result;
    result.bits = bits;
    return result;
  }

  TAPER_INLINE operator float() const { return half_detail::float_from_half_bits(bits); }
};

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;

  TAPER_INLINE explicit BFloat16(float value) : bits(half_detail::bfloat16_bits(value)) {}

  TAPER_INLINE explicit BFloat16(double value)
      : bits(half_detail::bfloat16_bits(half_detail::round_to_odd(value))) {}

  template <std::integral Integer>
  TAPER_INLINE explicit BFloat16(Integer value) : BFloat16(static_cast<double>(value)) {}

  TAPER_INLINE static constexpr BFloat16 from_bits(uint16_t bits) {
    BFloat16 result;
    result.bits = bits;
    return result;
  }

  TAPER_INLINE operator float() const { return half_detail::float_from_bfloat16_bits(bits); }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);
static_assert(std::is_trivially_copyable_v<Half> && std::is_trivially_copyable_v<BFloat16>);

inline namespace TAPER_ISA {

// Contiguous conversions; `out` and `in` do not overlap. The machine's own instructions where it
// has them: the bits are the same as those of the scalar functions above.
TAPER_INLINE void half_to_float(const Half* __restrict in, float* __restrict out, size_t n) {
  size_t i = 0;
#if defined(__F16C__) && defined(__AVX__)
  for (; i + 8 <= n; i += 8) {
    const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(packed));
  }
#endif
  for (; i < n; ++i) out[i] = in[i];
}

TAPER_INLINE void float_to_half(const float* __restrict in, Half* __restrict out, size_t n) {
  size_t i = 0;
#if defined(__F16C__) && defined(__AVX__)
  for (; i + 8 <= n; i += 8) {
    const __m128i packed = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), packed);
  }
#endif
  for (; i < n; ++i) out[i] = Half(in[i]);
}

TAPER_INLINE void bfloat16_to_float(const BFloat16* __restrict in,
                                    float* __restrict out,
                                    size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = in[i];
}

TAPER_INLINE void float_to_bfloat16(const float* __restrict in,
                                    BFloat16* __restrict out,
                                    size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = BFloat16(in[i]);
}

namespace half_detail {

// What numeric_limits says of a 16-bit IEEE-like format with `Digits` significant bits.
template <class T, int Digits, int MaxExponent> struct Limits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr bool is_bounded = true;
  static constexpr bool is_iec559 = true;
  static constexpr bool is_modulo = false;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2;
  static constexpr int digits = Digits;
  static constexpr int digits10 = (Digits - 1) * 30103 / 100000;
  static constexpr int max_digits10 = Digits * 30103 / 100000 + 2;
  static constexpr int max_exponent = MaxExponent;
  static constexpr int min_exponent = 3 - MaxExponent;
  static constexpr int max_exponent10 = MaxExponent * 30103 / 100000;
  static constexpr int min_exponent10 = (2 - MaxExponent) * 30103 / 100000;

  TAPER_INLINE static constexpr T min() { return fraction(1u << (Digits - 1)); }

  TAPER_INLINE static constexpr T max() { return fraction(kInfinity - 1u); }

  TAPER_INLINE static constexpr T lowest() { return fraction(0x8000u | (kInfinity - 1u)); }

  TAPER_INLINE static constexpr T epsilon() {
    return fraction((MaxExponent - Digits) << (Digits - 1));
  }

  TAPER_INLINE static constexpr T round_error() {
    return fraction((MaxExponent - 2) << (Digits - 1));
  }

  TAPER_INLINE static constexpr T infinity() { return fraction(kInfinity); }

  TAPER_INLINE static constexpr T quiet_NaN() { return fraction(kInfinity | (1u << (Digits - 2))); }

  TAPER_INLINE static constexpr T signaling_NaN() {
    return fraction(kInfinity | (1u << (Digits - 3)));
  }

  TAPER_INLINE static constexpr T denorm_min() { return fraction(1u); }

 private:
  static constexpr uint32_t kInfinity = 0x7fffu & (~0u << (Digits - 1));

  TAPER_INLINE static constexpr T fraction(uint32_t bits) {
    return T::from_bits(static_cast<uint16_t>(bits));
  }
};

}  // namespace half_detail
}  // namespace TAPER_ISA
}  // namespace taper

template <>
struct std::numeric_limits<taper::Half> : taper::half_detail::Limits<taper::Half, 11, 16> {};

template <>
struct std::numeric_limits<taper::BFloat16> : taper::half_detail::Limits<taper::BFloat16, 8, 128> {
};
