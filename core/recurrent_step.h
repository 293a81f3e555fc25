// What one time step of an LSTM and of a GRU does to one element, on every machine.
#pragma once
#include "taper/core/functors_activation.h"

// Note [Recurrent steps]
// The gates and formulas are PyTorch's, and so is the order of the gates in a weight's rows. Sums
// are products of the input and of the state before, with their biases; s is the sigmoid.
//   LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000), gates i, f, g, o:
//     i, f, o = s(sum); g = tanh(sum); c = f c_before + i g; h = o tanh(c)
//   GRU (Cho et al. 2014), gates r, z, n; m is the state's part of n's sum:
//     r, z = s(sum); n = tanh(x's part + r m); h = n + z (h_before - n)
namespace taper::fn {
inline namespace TAPER_ISA {

template <Real T> struct LstmStep {
  T i, f, g, o, c, h;

  TAPER_INLINE LstmStep(T sum_i, T sum_f, T sum_g, T sum_o, T c_before)
      : i(math::sigmoid(sum_i)),
        f(math::sigmoid(sum_f)),
        g(math::tanh(sum_g)),
        o(math::sigmoid(sum_o)),
        c(math::fma(f, c_before, i * g)),
        h(o * math::tanh(c)) {}
};

// Of the four sums, and of c_before. With y = tanh(c), dc += dh o (1 - y^2):
// di = dc g s', df = dc c_before s', dg = dc i (1 - g^2), do = dh y s'; dc_before = dc f
template <Real T> struct LstmGrads {
  T i, f, g, o, c_before;

  TAPER_INLINE LstmGrads(T dh, T dc, T gate_i, T gate_f, T gate_g, T gate_o, T c, T c_before_in) {
    const T y = math::tanh(c);
    const T all = dc + TanhGrad()(dh * gate_o, y);
    i = SigmoidGrad()(all * gate_g, gate_i);
    f = SigmoidGrad()(all * c_before_in, gate_f);
    g = TanhGrad()(all * gate_i, gate_g);
    o = SigmoidGrad()(dh * y, gate_o);
    c_before = all * gate_f;
  }
};

template <Real T> struct GruStep {
  T r, z, n, h;

  TAPER_INLINE GruStep(T sum_r, T sum_z, T x_n, T m, T h_before)
      : r(math::sigmoid(sum_r)),
        z(math::sigmoid(sum_z)),
        n(math::tanh(math::fma(r, m, x_n))),
        h(math::fma(z, h_before - n, n)) {}
};

// Of the sums of r and z, of x's part of n, of m, and of h_before where it is not multiplied.
// dn = dh (1 - z) (1 - n^2), dz = dh (h_before - n) s', dm = dn r, dr = dn m s'; dh_before = dh z
template <Real T> struct GruGrads {
  T r, z, n, m, h_before;

  TAPER_INLINE GruGrads(T dh, T gate_r, T gate_z, T gate_n, T gate_m, T h_before_in) {
    n = TanhGrad()(dh * (T(1) - gate_z), gate_n);
    z = SigmoidGrad()(dh * (h_before_in - gate_n), gate_z);
    r = SigmoidGrad()(n * gate_m, gate_r);
    m = n * gate_r;
    h_before = dh * gate_z;
  }
};

}  // namespace TAPER_ISA
}  // namespace taper::fn
