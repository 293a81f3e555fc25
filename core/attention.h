// What attention means: its tiles, and the one order in which both machines compute them.
#pragma once
#include "taper/core/math.h"

// Note [Attention]
// Softmax(q k^T scale + mask) v without a matrix of scores (Milakov and Gimelshein 2018; Dao et al.
// 2022). Queries and keys are cut into tiles of kTile. All is computed in f32, or in f64 for f64,
// and rounded once, when it is stored.
//   s[i][j] = one chain of fmas over (q[i][d] scale) k[j][d], in the order of d; then the mask is
//             added, and what a query may not see is -inf.
// Each query goes through the tiles of keys in order, with m = -inf, 64 lanes of 0 and a sum of 0
// for each column of v. By causality query i leaves out the tiles that begin after key i.
//   m' = max(m, s of the tile); c = exp(m - m'); p[j] = exp(s[j] - m')    [shift: 0 for m' = -inf]
//   lane[j] = fma(lane[j], c, p[j]), p = 0 past the last key
//   acc[d] = acc[d] c, then one fma with p[j] v[j][d] for each key of the tile, in order
// At the end l is the tree over the lanes (core/reducers.h), and y = acc / l. m and l are kept, not
// m + log l: of scores near -1e9, as under a mask of finite numbers, that would round to m.
// The gradients make the weights again, w[i][j] = exp(s[i][j] - m[i]) (1 / l[i]):
//   delta[i] = sum of grad y over a row, by the rule of core/reducers.h
//   ds[i][j] = w[i][j] (chain of grad[i][d] v[j][d] - delta[i])
//   dv[j] = chain of w[i][j] grad[i]; dk[j] = chain of ds[i][j] (q[i] scale)     over i, in order
//   dq[i] = (chain of ds[i][j] k[j]) scale                                       over j, in order
// again without pairs of tiles of which no query sees a key.
namespace taper::attn {
inline namespace TAPER_ISA {

using math::Real;

inline constexpr int kTile = 64;  // queries, and keys; also the lanes of a row

template <Real T> inline constexpr T kUnseen = -math::detail::kInf<T>;
template <Real T> inline constexpr T kOfNothing = math::detail::kInf<T>;

// What is taken off the scores of a row whose greatest so far is `max`.
template <Real T> TAPER_INLINE T shift(T max) {
  return max == kUnseen<T> ? T(0) : max;
}

// By how much the sums of a row shrink when its greatest score rises.
template <Real T> TAPER_INLINE T rescale(T before, T max) {
  return math::exp(before - shift(max));
}

// The l of a row whose lanes add up to `sum`, which is 0 when it has seen no key. Under a mask such
// a row is 0, and so are its weights; without one all its scores were -inf, which has no softmax:
// NaN.
template <Real T> TAPER_INLINE T total(T sum, bool masked) {
  return masked && sum == T(0) ? kOfNothing<T> : sum;
}

template <Real T> TAPER_INLINE T output(T acc, T total) {
  return total == kOfNothing<T> ? T(0) : acc / total;
}

// `less` is the shift of the row's m, `inverse` is 1 / l.
template <Real T> TAPER_INLINE T weight(T score, T less, T inverse) {
  return math::exp(score - less) * inverse;
}

template <Real T> TAPER_INLINE T score_grad(T weight, T weight_grad, T delta) {
  return weight * (weight_grad - delta);
}

}  // namespace TAPER_ISA
}  // namespace taper::attn
