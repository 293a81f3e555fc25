// The order that sorting goes by, as integers.
#pragma once
#include <cstdint>
#include <limits>

#include "taper/core/functors_cast.h"

namespace taper::fn {
inline namespace TAPER_ISA {

// key(a) < key(b) where a sorts before b: numbers by size, -0 equal to 0, NaN after all others.
struct SortKey {
  template <Bits T> TAPER_INLINE std::int64_t operator()(T x) const {
    return static_cast<std::int64_t>(x);
  }

  TAPER_INLINE std::int64_t operator()(float x) const {
    const auto bits = bit_cast<std::int32_t>(x == 0.0f ? 0.0f : x);
    const std::int32_t key = bits < 0 ? bits ^ std::numeric_limits<std::int32_t>::max() : bits;
    return x == x ? key : std::numeric_limits<std::int32_t>::max();
  }

  TAPER_INLINE std::int64_t operator()(double x) const {
    const auto bits = bit_cast<std::int64_t>(x == 0.0 ? 0.0 : x);
    const std::int64_t key = bits < 0 ? bits ^ std::numeric_limits<std::int64_t>::max() : bits;
    return x == x ? key : std::numeric_limits<std::int64_t>::max();
  }

  TAPER_INLINE std::int64_t operator()(Half x) const { return (*this)(static_cast<float>(x)); }

  TAPER_INLINE std::int64_t operator()(BFloat16 x) const { return (*this)(static_cast<float>(x)); }
};

// The key as an unsigned number, for sorting by digits, the other way round where that is wanted;
// of types of up to 32 bits the upper half is zero.
template <class T> TAPER_INLINE std::uint64_t unsigned_sort_key(T x, bool descending) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << (sizeof(T) == 8 ? 63 : 31);
  constexpr std::uint64_t kMask = kSign | (kSign - 1);
  const std::uint64_t key = (static_cast<std::uint64_t>(SortKey{}(x)) & kMask) ^ kSign;
  return descending ? key ^ kMask : key;
}

}  // namespace TAPER_ISA
}  // namespace taper::fn
