// Random numbers as a pure function of (seed, offset, element): Philox-4x32-10 and its
// distributions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "taper/core/math.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Note [Random numbers by counter]
// Element i of a random tensor is lane i % 4 of block offset + i / 4, so it depends on (seed,
// offset, i) alone: not on threads, vector widths, dtype or device. A generator that filled `numel`
// elements adds blocks_for(numel) to its offset, whatever the distribution. A block is one call of
// Philox-4x32-10 (Salmon, Moraes, Dror, Shaw 2011) with the seed as key and the counter {block low,
// block high, stream, 0}. What needs 64 bits of an element takes the high word from stream 0 and
// the low word from stream 1: so a float32 and a float64 tensor of one seed hold the same numbers,
// up to rounding.
namespace taper::philox {

inline constexpr uint64_t kLanes = 4;

// What a call that draws `numel` elements adds to the offset.
TAPER_INLINE constexpr uint64_t blocks_for(uint64_t numel) {
  return (numel + kLanes - 1) / kLanes;
}

inline namespace TAPER_ISA {

struct Words {
  uint32_t lane[kLanes];
};

namespace detail {

TAPER_INLINE uint32_t multiply_high(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>((uint64_t{a} * b) >> 32);
}

}  // namespace detail

// The cipher itself: ten rounds, the key bumped between them.
TAPER_INLINE Words philox4x32(Words counter, uint64_t key) {
  uint32_t k0 = static_cast<uint32_t>(key);
  uint32_t k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint32_t low0 = 0xD2511F53u * counter.lane[0];
    const uint32_t low1 = 0xCD9E8D57u * counter.lane[2];
    const uint32_t high0 = detail::multiply_high(0xD2511F53u, counter.lane[0]);
    const uint32_t high1 = detail::multiply_high(0xCD9E8D57u, counter.lane[2]);
    counter = {{high1 ^ counter.lane[1] ^ k0, low1, high0 ^ counter.lane[3] ^ k1, low0}};
    k0 += 0x9E3779B9u;  // the golden ratio
    k1 += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return counter;
}

TAPER_INLINE Words block(uint64_t seed, uint64_t index, uint32_t stream) {
  return philox4x32({{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), stream, 0}},
                    seed);
}

#if defined(__AVX2__)
namespace detail {

// Four blocks, a word in the low half of each 64-bit lane; the high halves hold rubbish that the
// multiply does not look at.
struct WideWords {
  __m256i lane[kLanes];
};

TAPER_INLINE WideWords wide_block(uint64_t seed, uint64_t index, uint32_t stream) {
  const __m256i low = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(index)),
                                       _mm256_setr_epi64x(0, 1, 2, 3));
  WideWords c = {
      {low, _mm256_srli_epi64(low, 32), _mm256_set1_epi64x(stream), _mm256_setzero_si256()}};
  uint32_t k0 = static_cast<uint32_t>(seed);
  uint32_t k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m256i product0 = _mm256_mul_epu32(c.lane[0], _mm256_set1_epi64x(0xD2511F53));
    const __m256i product1 = _mm256_mul_epu32(c.lane[2], _mm256_set1_epi64x(0xCD9E8D57));
    const __m256i left = _mm256_xor_si256(c.lane[1], _mm256_set1_epi64x(k0));
    const __m256i right = _mm256_xor_si256(c.lane[3], _mm256_set1_epi64x(k1));
    c = {{_mm256_xor_si256(_mm256_srli_epi64(product1, 32), left), product1,
          _mm256_xor_si256(_mm256_srli_epi64(product0, 32), right), product0}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

}  // namespace detail
#endif

// The words of `count` blocks, a multiple of 8, from `index` on: lane l of block i at lanes[l][i].
TAPER_INLINE void blocks_by_lane(
    uint64_t seed, uint64_t index, uint32_t stream, size_t count, uint32_t* const lanes[kLanes]) {
#if defined(__AVX2__)  // by hand: g++ 12 drowns the plain loop in shuffles
  for (size_t i = 0; i < count; i += 8) {
    const detail::WideWords a = detail::wide_block(seed, index + i, stream);
    const detail::WideWords b = detail::wide_block(seed, index + i + 4, stream);
    for (size_t l = 0; l < kLanes; ++l) {
      const __m256 low_halves =
          _mm256_shuffle_ps(_mm256_castsi256_ps(a.lane[l]), _mm256_castsi256_ps(b.lane[l]), 0x88);
      const __m256i ordered = _mm256_permute4x64_epi64(_mm256_castps_si256(low_halves), 0xD8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes[l] + i), ordered);
    }
  }
#else
  for (size_t i = 0; i < count; ++i) {
    const Words words = block(seed, index + i, stream);
    for (size_t l = 0; l < kLanes; ++l) lanes[l][i] = words.lane[l];
  }
#endif
}

namespace detail {

// Exact, and free of the conversion from unsigned that AVX2 lacks: the word goes into the low bits
// of 2^52.
TAPER_INLINE double to_double(uint32_t word) {
  return bit_cast<double>(0x4330000000000000u | uint64_t{word}) - 0x1p52;
}

}  // namespace detail

// [0, 1): multiples of 2^-24 in float, of 2^-53 in double; `low` counts in double only.
template <math::Real T> TAPER_INLINE T uniform(uint32_t high, uint32_t low) {
  if constexpr (sizeof(T) == 4) {
    return static_cast<float>(static_cast<int32_t>(high >> 8)) * 0x1p-24f;
  } else {
    return detail::to_double(high) * 0x1p-32 + detail::to_double(low >> 11) * 0x1p-53;
  }
}

// [from, to) out of [0, 1): what rounds up to `to` starts again at `from`.
template <math::Real T> TAPER_INLINE T uniform_between(T unit, T from, T to) {
  const T value = math::fma(unit, to - from, from);
  return math::detail::select(value < to, value, from);
}

// The same where it is stored as an E: in 16 bits, more rounds up to `to`.
template <class E, math::Real T> TAPER_INLINE T uniform_stored_as(T unit, T from, T to) {
  const T value = uniform_between(unit, from, to);
  if constexpr (sizeof(E) == sizeof(T)) return value;
  else return static_cast<T>(static_cast<E>(value)) < to ? value : from;
}

// True with probability p, in steps of 2^-32; never for p <= 0, always for p >= 1.
TAPER_INLINE bool bernoulli(uint32_t high, double p) {
  return detail::to_double(high) * 0x1p-32 < p;
}

// [0, n) for n > 0, each with a probability within 2^-64 of 1/n (the multiply of Lemire 2019).
TAPER_INLINE uint64_t below(uint32_t high, uint32_t low, uint64_t n) {
  __extension__ using uint128_t = unsigned __int128;
  const uint64_t bits = (uint64_t{high} << 32) | low;
  return static_cast<uint64_t>((uint128_t{bits} * n) >> 64);
}

template <math::Real T> struct NormalPair {
  T first;
  T second;
};

// Two standard normals (Box and Muller 1958) from two words (of 64 bits in double), the radius and
// the angle. None is farther out than 6.66 in float, 8.57 in double.
template <math::Real T>
TAPER_INLINE NormalPair<T> normal_pair(uint32_t radius_high,
                                       uint32_t radius_low,
                                       uint32_t angle_high,
                                       uint32_t angle_low) {
  T unit;  // (0, 1]
  T turn;  // [-1/2, 1/2]
  if constexpr (sizeof(T) == 4) {
    unit = static_cast<float>((detail::to_double(radius_high) + 1.0) * 0x1p-32);
    turn = static_cast<float>(static_cast<int32_t>(angle_high)) * 0x1p-32f;
  } else {
    unit = uniform<double>(radius_high, radius_low) + 0x1p-53;
    turn = uniform<double>(angle_high ^ 0x80000000u, angle_low) - 0.5;
  }
  const T radius = math::sqrt(T(-2) * math::log(unit));
  const T angle = turn * T(0x1.921fb54442d18p+2);  // 2 pi
  return {radius * math::cos_bounded(angle), radius * math::sin_bounded(angle)};
}

// A block at a time: elements 4 (index - offset) and the three after it.

template <math::Real T> struct Four { T lane[kLanes]; };

// The low words of a block; a float does not look at them.
template <math::Real T> TAPER_INLINE Words low_block(uint64_t seed, uint64_t index) {
  if constexpr (sizeof(T) == 4) return {};
  return block(seed, index, 1);
}

template <math::Real T> TAPER_INLINE Four<T> uniform_block(uint64_t seed, uint64_t index) {
  const Words high = block(seed, index, 0);
  const Words low = low_block<T>(seed, index);
  return {{uniform<T>(high.lane[0], low.lane[0]), uniform<T>(high.lane[1], low.lane[1]),
           uniform<T>(high.lane[2], low.lane[2]), uniform<T>(high.lane[3], low.lane[3])}};
}

template <math::Real T> TAPER_INLINE Four<T> normal_block(uint64_t seed, uint64_t index) {
  const Words high = block(seed, index, 0);
  const Words low = low_block<T>(seed, index);
  const NormalPair<T> a = normal_pair<T>(high.lane[0], low.lane[0], high.lane[2], low.lane[2]);
  const NormalPair<T> b = normal_pair<T>(high.lane[1], low.lane[1], high.lane[3], low.lane[3]);
  return {{a.first, b.first, a.second, b.second}};
}

}  // namespace TAPER_ISA
}  // namespace taper::philox
