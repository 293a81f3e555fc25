// The bits of a NaN or an infinity, for kernels that look at many elements at once.
#pragma once
#include <cstdint>

#include "taper/core/base/dtype.h"
#include "taper/core/base/hd.h"

namespace taper::cpu {
inline namespace TAPER_ISA {

// The bits of a float, of any floating type of their size.
template <class U> using Bits [[gnu::may_alias]] = U;

// Adding `lowest`, the lowest bit of the exponent, to the other bits carries into the highest one
// when all bits of the exponent are set.
template <class U> TAPER_INLINE U carry(U bits, U lowest) {
  constexpr U kHighest = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  return static_cast<U>((bits & static_cast<U>(kHighest - 1)) + lowest);
}

template <class U> TAPER_INLINE bool has_carried(U carries) {
  return carries >> (8 * sizeof(U) - 1) != 0;
}

// Of n elements, `step` apart: an or of their carries.
template <class U>
TAPER_INLINE U carries_of(const U* x, std::int64_t step, std::int64_t n, U lowest) {
  U any = 0;
  if (step == 1) {
    for (std::int64_t i = 0; i < n; ++i) any |= carry<U>(x[i], lowest);
  } else {
    for (std::int64_t i = 0; i < n; ++i) any |= carry<U>(x[i * step], lowest);
  }
  return any;
}

// Calls fn(U{lowest}) with the word of a floating type.
template <class Fn> TAPER_INLINE auto visit_bits(DType dtype, const Fn& fn) {
  if (dtype == kFloat64) return fn(std::uint64_t{1} << 52);
  if (dtype == kFloat32) return fn(std::uint32_t{1} << 23);
  return fn(static_cast<std::uint16_t>(dtype == kFloat16 ? 1U << 10 : 1U << 7));
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
