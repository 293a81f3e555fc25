// What it means to convert a number to another element type.
#pragma once
#include <cstdint>

#include "taper/core/base/half.h"
#include "taper/core/functors_arithmetic.h"

namespace taper::fn {
inline namespace TAPER_ISA {

// As C++ casts do, and where C++ leaves it open, the same on every machine: a floating number that
// an integer type cannot hold, NaN included, becomes the smallest i64 (or i32), and u8 keeps the
// low bits of that i32. To bool: whether it is not 0.
template <class To> struct Cast {
  template <class From> TAPER_INLINE To operator()(From x) const {
    if constexpr (std::is_same_v<To, From>) {
      return x;
    } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
      return (*this)(static_cast<float>(x));
    } else if constexpr (Boolean<To>) {
      return x != From(0);
    } else if constexpr (Real<From> && Integer<To>) {
      return truncated(x);
    } else {
      return static_cast<To>(x);
    }
  }

 private:
  template <Real From> TAPER_INLINE static To truncated(From x) {
    using Wide = std::conditional_t<sizeof(To) == 8, std::int64_t, std::int32_t>;
    constexpr From kEnd = sizeof(To) == 8 ? From(0x1p63) : From(0x1p31);
    constexpr Wide kLowest =
        sizeof(To) == 8 ? static_cast<Wide>(std::int64_t{1} << 63) : static_cast<Wide>(1U << 31);
    const bool fits =
        sizeof(From) > sizeof(Wide) ? x > -kEnd - From(1) && x < kEnd : x >= -kEnd && x < kEnd;
    const Wide wide = fits ? static_cast<Wide>(x) : kLowest;
    return static_cast<To>(wide);
  }
};

}  // namespace TAPER_ISA
}  // namespace taper::fn
