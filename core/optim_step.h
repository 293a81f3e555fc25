// What one step of Adam, AdamW and SGD does to one element, on every machine.
#pragma once
#include "taper/core/kernels.h"
#include "taper/core/math_pow.h"

// Note [Optimizer steps]
// The arithmetic, its order and its constants (made in double, then rounded) are PyTorch's.
//   Adam:  L2: g += decay p.   AdamW: p -= lr decay p.
//          m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2
//          amsgrad: v = its largest value so far, element by element
//          p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//   SGD:   g += decay p; b = momentum b + (1 - dampening) g, at first b = g;
//          nesterov: g += momentum b, else g = b; p -= lr g
namespace taper::fn {
inline namespace TAPER_ISA {

template <class T> TAPER_INLINE T add_decay(T grad, T param, T rate) {
  return math::fma(param, rate, grad);
}

template <class T> struct AdamConstants {
  T keep1, add1, keep2, add2, root, eps, step, shrink, decay;

  AdamConstants() = default;

  TAPER_INLINE AdamConstants(const AdamHyper& h, std::uint64_t t)
      : keep1(static_cast<T>(h.beta1)),
        add1(static_cast<T>(1 - h.beta1)),
        keep2(static_cast<T>(h.beta2)),
        add2(static_cast<T>(1 - h.beta2)),
        root(static_cast<T>(math::sqrt(1 - math::pow(h.beta2, static_cast<double>(t))))),
        eps(static_cast<T>(h.eps)),
        step(static_cast<T>(-h.lr / (1 - math::pow(h.beta1, static_cast<double>(t))))),
        shrink(static_cast<T>(1 - h.lr * h.weight_decay)),
        decay(static_cast<T>(h.weight_decay)) {}

  TAPER_INLINE T first_moment(T m, T g) const { return math::fma(g, add1, m * keep1); }

  TAPER_INLINE T second_moment(T v, T g) const { return v * keep2 + add2 * g * g; }

  TAPER_INLINE T update(T p, T m, T v) const { return p + step * m / (math::sqrt(v) / root + eps); }
};

// NaN stays.
template <class T> TAPER_INLINE T larger_moment(T largest, T v) {
  const T larger = largest > v ? largest : v;
  return largest == largest ? larger : largest;
}

template <class T> struct SgdConstants {
  T decay, momentum, take, step;

  SgdConstants() = default;

  explicit SgdConstants(const SgdHyper& h)
      : decay(static_cast<T>(h.weight_decay)),
        momentum(static_cast<T>(h.momentum)),
        take(static_cast<T>(1 - h.dampening)),
        step(static_cast<T>(-h.lr)) {}

  TAPER_INLINE T buffer(T b, T g) const { return math::fma(g, take, b * momentum); }

  TAPER_INLINE T ahead(T g, T b) const { return math::fma(b, momentum, g); }

  TAPER_INLINE T update(T p, T g) const { return math::fma(g, step, p); }
};

}  // namespace TAPER_ISA
}  // namespace taper::fn
