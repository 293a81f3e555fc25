// The elementary functions as functors.
#pragma once
#include "taper/core/functors_arithmetic.h"
#include "taper/core/math.h"

namespace taper::fn {
inline namespace TAPER_ISA {

struct Exp {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::exp(x); }
};

struct Expm1 {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::expm1(x); }
};

struct Log {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::log(x); }
};

struct Log1p {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::log1p(x); }
};

struct Sqrt {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::sqrt(x); }
};

struct Rsqrt {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::rsqrt(x); }
};

struct Sin {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::sin(x); }
};

struct Cos {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::cos(x); }
};

struct Tan {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::tan(x); }
};

struct Asin {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::asin(x); }
};

struct Acos {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::acos(x); }
};

struct Atan {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::atan(x); }
};

struct Sinh {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::sinh(x); }
};

struct Cosh {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::cosh(x); }
};

struct Tanh {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::tanh(x); }
};

struct Erf {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::erf(x); }
};

// Whole numbers already are what these make of a number.
struct Floor {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::floor(x); }

  template <Integer T> TAPER_INLINE T operator()(T x) const { return x; }
};

struct Ceil {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::ceil(x); }

  template <Integer T> TAPER_INLINE T operator()(T x) const { return x; }
};

struct Round {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::round(x); }

  template <Integer T> TAPER_INLINE T operator()(T x) const { return x; }
};

struct Trunc {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::trunc(x); }

  template <Integer T> TAPER_INLINE T operator()(T x) const { return x; }
};

struct Atan2 {
  template <Real T> TAPER_INLINE T operator()(T y, T x) const { return math::atan2(y, x); }
};

// Integers wrap around; a negative exponent gives 1 / base^-exponent rounded to zero, and 0 for 0.
struct Pow {
  template <Real T> TAPER_INLINE T operator()(T base, T exponent) const {
    return math::pow(base, exponent);
  }

  template <Integer T> TAPER_INLINE T operator()(T base, T exponent) const {
    T square = base, result = 1;
    for (T rest = exponent; rest > 0; rest = static_cast<T>(rest >> 1)) {
      if ((rest & 1) != 0) result = detail::wrapping_mul(result, square);
      square = detail::wrapping_mul(square, square);
    }
    if (exponent >= 0) return result;
    if (detail::is_minus_one(base)) return (exponent & 1) != 0 ? base : T{1};
    return base == 1 ? T{1} : T{0};
  }
};

}  // namespace TAPER_ISA
}  // namespace taper::fn
