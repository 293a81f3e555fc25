// What arithmetic, comparisons and logic mean, for every element type, on every machine.
#pragma once
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "taper/core/math_round.h"

namespace taper::fn {
inline namespace TAPER_ISA {

// The types that a functor takes are its domain; kernels ask std::is_invocable.
using math::Real;
template <class T>
concept Boolean = std::same_as<T, bool>;
template <class T>
concept Integer = std::integral<T> && !Boolean<T>;
template <class T>
concept Number = Real<T> || Integer<T>;
template <class T>
concept Bits = Integer<T> || Boolean<T>;
template <class T>
concept Any = Number<T> || Boolean<T>;

namespace detail {

// Integers wrap around: their arithmetic is that of the unsigned type of the same width.
template <Integer T> using Unsigned = std::make_unsigned_t<T>;

template <Integer T> TAPER_INLINE T wrapping_neg(T a) {
  return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
}

template <Integer T> TAPER_INLINE T wrapping_mul(T a, T b) {
  if constexpr (sizeof(T) < sizeof(int)) {
    return static_cast<T>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
  } else {
    return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
  }
}

template <Integer T> TAPER_INLINE bool is_minus_one(T a) {
  return std::is_signed_v<T> && a == static_cast<T>(-1);
}

// a / b rounded to zero, and what is left. Neither 0 nor -1 traps as a divisor: by 0 both are 0
// (the CPU column throws before it comes to that), and the smallest integer by -1 wraps.
template <Integer T> TAPER_INLINE T quotient(T a, T b) {
  if (b == 0) return 0;
  return is_minus_one(b) ? wrapping_neg(a) : static_cast<T>(a / b);
}

template <Integer T> TAPER_INLINE T rest(T a, T b) {
  return b == 0 || is_minus_one(b) ? T{0} : static_cast<T>(a % b);
}

}  // namespace detail

struct Add {
  template <Real T> TAPER_INLINE T operator()(T a, T b) const { return a + b; }

  template <Integer T> TAPER_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<detail::Unsigned<T>>(a) +
                          static_cast<detail::Unsigned<T>>(b));
  }

  template <Boolean T> TAPER_INLINE T operator()(T a, T b) const { return a || b; }
};

struct Sub {
  template <Real T> TAPER_INLINE T operator()(T a, T b) const { return a - b; }

  template <Integer T> TAPER_INLINE T operator()(T a, T b) const {
    return static_cast<T>(static_cast<detail::Unsigned<T>>(a) -
                          static_cast<detail::Unsigned<T>>(b));
  }
};

struct Mul {
  template <Real T> TAPER_INLINE T operator()(T a, T b) const { return a * b; }

  template <Integer T> TAPER_INLINE T operator()(T a, T b) const {
    return detail::wrapping_mul(a, b);
  }

  template <Boolean T> TAPER_INLINE T operator()(T a, T b) const { return a && b; }
};

struct Div {
  template <Real T> TAPER_INLINE T operator()(T a, T b) const { return a / b; }
};

// Python's //: rounded down.
struct FloorDivide {
  // By way of the remainder, which is exact; floor(a / b) may be one off when a / b rounds up.
  template <Real T> TAPER_INLINE T operator()(T a, T b) const {
    const T mod = math::fmod(a, b);
    T div = (a - mod) / b;
    div = mod != T(0) && (mod < T(0)) != (b < T(0)) ? div - T(1) : div;
    const T down = math::floor(div);
    const T nearest = div - down > T(0.5) ? down + T(1) : down;
    const T result = div != T(0) ? nearest : math::copysign(T(0), a / b);
    return b == T(0) ? a / b : result;
  }

  template <Integer T> TAPER_INLINE T operator()(T a, T b) const {
    const T q = detail::quotient(a, b);
    return detail::rest(a, b) != 0 && (a < 0) != (b < 0) ? static_cast<T>(q - 1) : q;
  }
};

// Python's %: with the sign of b.
struct Remainder {
  template <Real T> TAPER_INLINE T operator()(T a, T b) const { return math::remainder(a, b); }

  template <Integer T> TAPER_INLINE T operator()(T a, T b) const {
    const T r = detail::rest(a, b);
    return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  }
};

// C's fmod: with the sign of a.
struct Fmod {
  template <Real T> TAPER_INLINE T operator()(T a, T b) const { return math::fmod(a, b); }

  template <Integer T> TAPER_INLINE T operator()(T a, T b) const { return detail::rest(a, b); }
};

// NaN wins. Of equals (-0 and 0) the second.
struct Maximum {
  template <Real T> TAPER_INLINE T operator()(T a, T b) const {
    const T larger = a > b ? a : b;
    return a != a ? a : larger;
  }

  template <Bits T> TAPER_INLINE T operator()(T a, T b) const { return a > b ? a : b; }
};

struct Minimum {
  template <Real T> TAPER_INLINE T operator()(T a, T b) const {
    const T smaller = a < b ? a : b;
    return a != a ? a : smaller;
  }

  template <Bits T> TAPER_INLINE T operator()(T a, T b) const { return a < b ? a : b; }
};

struct Neg {
  template <Real T> TAPER_INLINE T operator()(T a) const { return -a; }

  template <Integer T> TAPER_INLINE T operator()(T a) const { return detail::wrapping_neg(a); }
};

struct Abs {
  template <Real T> TAPER_INLINE T operator()(T a) const { return math::abs(a); }

  template <Integer T> TAPER_INLINE T operator()(T a) const {
    return a < 0 ? detail::wrapping_neg(a) : a;
  }

  template <Boolean T> TAPER_INLINE T operator()(T a) const { return a; }
};

// -1, 0 or 1; 0 for NaN.
struct Sign {
  template <Real T> TAPER_INLINE T operator()(T a) const {
    return (a > T(0) ? T(1) : T(0)) - (a < T(0) ? T(1) : T(0));
  }

  template <Integer T> TAPER_INLINE T operator()(T a) const {
    return static_cast<T>((a > 0 ? 1 : 0) - (a < 0 ? 1 : 0));
  }

  template <Boolean T> TAPER_INLINE T operator()(T a) const { return a; }
};

struct Square {
  template <Any T> TAPER_INLINE T operator()(T a) const { return Mul{}(a, a); }
};

struct Reciprocal {
  template <Real T> TAPER_INLINE T operator()(T a) const { return T(1) / a; }
};

// Comparisons: false where an operand is NaN, but for Ne.
struct Eq {
  template <Any T> TAPER_INLINE bool operator()(T a, T b) const { return a == b; }
};

struct Ne {
  template <Any T> TAPER_INLINE bool operator()(T a, T b) const { return a != b; }
};

struct Lt {
  template <Any T> TAPER_INLINE bool operator()(T a, T b) const { return a < b; }
};

struct Le {
  template <Any T> TAPER_INLINE bool operator()(T a, T b) const { return a <= b; }
};

struct Gt {
  template <Any T> TAPER_INLINE bool operator()(T a, T b) const { return a > b; }
};

struct Ge {
  template <Any T> TAPER_INLINE bool operator()(T a, T b) const { return a >= b; }
};

// Truth: whatever is not 0, NaN included.
struct LogicalAnd {
  template <Any T> TAPER_INLINE bool operator()(T a, T b) const {
    return (a != T(0)) & (b != T(0));
  }
};

struct LogicalOr {
  template <Any T> TAPER_INLINE bool operator()(T a, T b) const {
    return (a != T(0)) | (b != T(0));
  }
};

struct LogicalXor {
  template <Any T> TAPER_INLINE bool operator()(T a, T b) const {
    return (a != T(0)) != (b != T(0));
  }
};

struct LogicalNot {
  template <Any T> TAPER_INLINE bool operator()(T a) const { return a == T(0); }
};

struct BitwiseAnd {
  template <Bits T> TAPER_INLINE T operator()(T a, T b) const { return static_cast<T>(a & b); }
};

struct BitwiseOr {
  template <Bits T> TAPER_INLINE T operator()(T a, T b) const { return static_cast<T>(a | b); }
};

struct BitwiseXor {
  template <Bits T> TAPER_INLINE T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};

struct BitwiseNot {
  template <Integer T> TAPER_INLINE T operator()(T a) const { return static_cast<T>(~a); }

  template <Boolean T> TAPER_INLINE T operator()(T a) const { return !a; }
};

// Element i of an arithmetic sequence, in f64 or i64.
template <class T> struct Arange {
  T start, step;

  TAPER_INLINE T operator()(std::int64_t i) const { return at(static_cast<T>(i)); }

  TAPER_INLINE T at(T i) const { return Add{}(start, Mul{}(i, step)); }
};

}  // namespace TAPER_ISA
}  // namespace taper::fn
