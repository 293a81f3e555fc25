// The activations, and their derivatives times the gradient that comes in.
#pragma once
#include <limits>

#include "taper/core/functors_arithmetic.h"
#include "taper/core/kernels.h"
#include "taper/core/math.h"

namespace taper::fn {
inline namespace TAPER_ISA {

// Functors with parameters are templates of the type they compute in, made from two doubles.

struct Sigmoid {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::sigmoid(x); }
};

// d sigmoid(x) = y (1 - y) dx
struct SigmoidGrad {
  template <Real T> TAPER_INLINE T operator()(T grad, T y) const { return grad * (y * (T(1) - y)); }
};

// d tanh(x) = (1 - y^2) dx
struct TanhGrad {
  template <Real T> TAPER_INLINE T operator()(T grad, T y) const {
    return grad * math::fma(-y, y, T(1));
  }
};

struct Relu {  // NaN stays
  template <Number T> TAPER_INLINE T operator()(T x) const { return x < T(0) ? T(0) : x; }
};

// d relu(x) = [y > 0] dx, and 0 at 0
struct ReluGrad {
  template <Real T> TAPER_INLINE T operator()(T grad, T y) const { return y <= T(0) ? T(0) : grad; }
};

struct Silu {
  template <Real T> TAPER_INLINE T operator()(T x) const { return x * math::sigmoid(x); }
};

// d silu(x) = s (1 + x (1 - s)) dx, with s = sigmoid(x)
struct SiluGrad {
  template <Real T> TAPER_INLINE T operator()(T grad, T x) const {
    const T s = math::sigmoid(x);
    return grad * (s * math::fma(x, T(1) - s, T(1)));
  }
};

namespace detail {

// The share of a standard normal below x. In the far left tail only the absolute error is small;
// erfc would keep the digits there, at five times the price.
template <Real T> TAPER_INLINE T normal_below(T x) {
  return math::fma(T(0.5), math::erf(x * T(0.70710678118654752440)), T(0.5));  // sqrt(1/2)
}

// Half of gelu_tanh's argument of tanh, doubled: (1 + tanh u) / 2 = sigmoid(2 u).
template <Real T> TAPER_INLINE T gelu_inner(T x) {
  constexpr T kScale = T(1.5957691216057307117);  // 2 sqrt(2 / pi)
  return kScale * x * math::fma(T(0.044715), x * x, T(1));
}

}  // namespace detail

// Hendrycks and Gimpel 2016: x times the share of a standard normal below x.
struct Gelu {
  template <Real T> TAPER_INLINE T operator()(T x) const { return x * detail::normal_below(x); }
};

// d gelu(x) = (P(x) + x p(x)) dx, with p = exp(-x^2 / 2) / sqrt(2 pi)
struct GeluGrad {
  template <Real T> TAPER_INLINE T operator()(T grad, T x) const {
    const T density = math::exp(T(-0.5) * x * x) * T(0.39894228040143267794);
    return grad * math::fma(x, density, detail::normal_below(x));
  }
};

// The same with tanh in place of erf: x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
struct GeluTanh {
  template <Real T> TAPER_INLINE T operator()(T x) const {
    return x * math::sigmoid(detail::gelu_inner(x));
  }
};

// d gelu_tanh(x) = s (1 + x (1 - s) v') dx, with s = sigmoid(v)
struct GeluTanhGrad {
  template <Real T> TAPER_INLINE T operator()(T grad, T x) const {
    constexpr T kScale = T(1.5957691216057307117);
    const T s = math::sigmoid(detail::gelu_inner(x));
    const T slope = kScale * math::fma(T(3 * 0.044715), x * x, T(1));
    return grad * (s * math::fma(x * slope, T(1) - s, T(1)));
  }
};

// Calls f with the functor of what a matrix product ends with, if it ends with one.
template <class F> TAPER_INLINE void visit_activation(Activation activation, F&& f) {
  switch (activation) {
    case Activation::kNone: return;
    case Activation::kRelu: return f(Relu());
    case Activation::kGelu: return f(Gelu());
    case Activation::kGeluTanh: return f(GeluTanh());
  }
}

struct LogSigmoid {
  template <Real T> TAPER_INLINE T operator()(T x) const { return math::log_sigmoid(x); }
};

// d log sigmoid(x) = sigmoid(-x) dx
struct LogSigmoidGrad {
  template <Real T> TAPER_INLINE T operator()(T grad, T x) const {
    return grad * math::sigmoid(-x);
  }
};

template <Real T> struct LeakyRelu {
  T slope;

  TAPER_INLINE LeakyRelu(double a, double) : slope(static_cast<T>(a)) {}

  TAPER_INLINE T operator()(T x) const { return x > T(0) ? x : x * slope; }
};

// d leaky_relu(x) = (x > 0 ? 1 : slope) dx
template <Real T> struct LeakyReluGrad {
  T slope;

  TAPER_INLINE LeakyReluGrad(double a, double) : slope(static_cast<T>(a)) {}

  TAPER_INLINE T operator()(T grad, T x) const { return x > T(0) ? grad : grad * slope; }
};

template <Real T> struct Elu {
  T alpha;

  TAPER_INLINE Elu(double a, double) : alpha(static_cast<T>(a)) {}

  TAPER_INLINE T operator()(T x) const { return x > T(0) ? x : alpha * math::expm1(x); }
};

// d elu(x) = (x > 0 ? 1 : alpha exp(x)) dx
template <Real T> struct EluGrad {
  T alpha;

  TAPER_INLINE EluGrad(double a, double) : alpha(static_cast<T>(a)) {}

  TAPER_INLINE T operator()(T grad, T x) const {
    return x > T(0) ? grad : grad * (alpha * math::exp(x));
  }
};

// log(1 + exp(beta x)) / beta, and x itself where beta x is above the threshold.
template <Real T> struct Softplus {
  T beta, threshold;

  TAPER_INLINE Softplus(double a, double b)
      : beta(static_cast<T>(a)), threshold(static_cast<T>(b)) {}

  TAPER_INLINE T operator()(T x) const {
    const T scaled = beta * x;
    return scaled > threshold ? x : math::softplus(scaled) / beta;
  }
};

// d softplus(x) = sigmoid(beta x) dx
template <Real T> struct SoftplusGrad {
  T beta, threshold;

  TAPER_INLINE SoftplusGrad(double a, double b)
      : beta(static_cast<T>(a)), threshold(static_cast<T>(b)) {}

  TAPER_INLINE T operator()(T grad, T x) const {
    const T scaled = beta * x;
    return scaled > threshold ? grad : grad * math::sigmoid(scaled);
  }
};

namespace detail {

// The T nearest to x.
template <Number T> TAPER_INLINE T saturated(double x) {
  if constexpr (Real<T>) {
    return static_cast<T>(x);
  } else {
    constexpr T kLowest = std::numeric_limits<T>::lowest(),
                kHighest = std::numeric_limits<T>::max();
    if (x <= static_cast<double>(kLowest)) return kLowest;
    return x < static_cast<double>(kHighest) ? static_cast<T>(x) : kHighest;
  }
}

}  // namespace detail

// min(max(x, low), high), so `high` where low is above it. NaN stays.
template <Number T> struct Clamp {
  T low, high;

  TAPER_INLINE Clamp(double a, double b)
      : low(detail::saturated<T>(a)), high(detail::saturated<T>(b)) {}

  TAPER_INLINE T operator()(T x) const {
    const T above = x < low ? low : x;
    return above > high ? high : above;
  }
};

// d clamp(x) = [low <= x <= high] dx
template <Number T> struct ClampGrad {
  T low, high;

  TAPER_INLINE ClampGrad(double a, double b)
      : low(detail::saturated<T>(a)), high(detail::saturated<T>(b)) {}

  TAPER_INLINE T operator()(T grad, T x) const { return x >= low && x <= high ? grad : T(0); }
};

}  // namespace TAPER_ISA
}  // namespace taper::fn
