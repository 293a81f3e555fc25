// What a reduction means: its operation, and the one order in which every machine applies it.
#pragma once
#include <cstdint>
#include <limits>

#include "taper/core/base/hd.h"

// Note [64 lanes and one tree]
// Floating addition depends on its order, so the order is part of the meaning. The elements that
// one output takes together, in row-major order of the reduced dims whatever the memory layout,
// are a sequence x[0], x[1], ..., x[n - 1].
//   1. It is cut into blocks of kReduceBlock elements; the last one may be shorter.
//   2. In a block, lane i of kReduceLanes starts as the identity and takes x[i], x[i + 64],
//      x[i + 128], ... of the block, in order.
//   3. The lanes are joined in a tree: for w = 32, 16, 8, 4, 2, 1, lane i (i < w) joins lane i + w.
//   4. If there are several blocks, their results are a sequence of their own, which goes through
//      2 and 3 as one block, whatever its length.
// Blocks are what threads and CUDA blocks share out; the lanes are what a vector register, a warp
// or a loop works on. No bit depends on the number of any of them.
// 16-bit floats, and f32, are reduced in f32, f64 in f64, integers and bool in i64. Means are
// divided, and variances taken, in that type as well, and rounded once, when they are stored.
// Where few elements are reduced, lanes that hold the identity may be left out of the tree: joining
// one changes nothing but -0 to 0, so one of them joins at the end.
namespace taper::fn {
inline namespace TAPER_ISA {

inline constexpr int kReduceLanes = 64;
inline constexpr std::int64_t kReduceBlock = 65536;

// Note [Running sums]
// A scan is sequential in blocks of kScanBlock elements: inside one, y[i] = op(y[i - 1], x[i]),
// starting at the block's first element. The last y of a block, joined to what all blocks before it
// gave, is what the next block's elements join to: out[i] = op(before, y[i]). The first block has
// nothing before it, so short scans are the plain loop.
inline constexpr std::int64_t kScanBlock = 256;

// The operations: what a lane starts as; how it takes an element in, where p is a number of the
// output such as its mean; how two lanes join. V is a number or a vector of them.
struct Sum {  // u64 stands for i64: integers wrap around
  template <class T> TAPER_INLINE static T identity() { return T(0); }

  template <class V, class P> TAPER_INLINE static V take(V lane, V x, P) { return lane + x; }

  template <class V> TAPER_INLINE static V join(V a, V b) { return a + b; }
};

// The sum of (x - p)^2.
struct SumOfSquares {
  template <class T> TAPER_INLINE static T identity() { return T(0); }

  template <class V, class P> TAPER_INLINE static V take(V lane, V x, P p) {
    const V d = x - p;
    return lane + d * d;
  }

  template <class V> TAPER_INLINE static V join(V a, V b) { return a + b; }
};

struct Prod {
  template <class T> TAPER_INLINE static T identity() { return T(1); }

  template <class V, class P> TAPER_INLINE static V take(V lane, V x, P) { return lane * x; }

  template <class V> TAPER_INLINE static V join(V a, V b) { return a * b; }
};

// NaN wins. Of -0 and 0 the one that comes second.
struct Max {
  template <class T> TAPER_INLINE static T identity() {
    if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::lowest();
  }

  template <class V, class P> TAPER_INLINE static V take(V lane, V x, P) { return join(lane, x); }

  template <class V> TAPER_INLINE static V join(V a, V b) {
    const V larger = a > b ? a : b;
    return a == a ? larger : a;
  }
};

struct Min {
  template <class T> TAPER_INLINE static T identity() {
    if constexpr (std::numeric_limits<T>::has_infinity) return std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::max();
  }

  template <class V, class P> TAPER_INLINE static V take(V lane, V x, P) { return join(lane, x); }

  template <class V> TAPER_INLINE static V join(V a, V b) {
    const V smaller = a < b ? a : b;
    return a == a ? smaller : a;
  }
};

// Extremes have no value where nothing is reduced; their identity is no answer.
template <class R> inline constexpr bool is_defined_on_nothing = true;
template <> inline constexpr bool is_defined_on_nothing<Max> = false;
template <> inline constexpr bool is_defined_on_nothing<Min> = false;

// Whether x takes the place of the best so far, which came before it: the first of equals stays,
// and so does the first NaN. The order of joining does not matter if ties go to the smaller index.
struct ArgMax {
  using Value = Max;

  template <class T> TAPER_INLINE static bool is_better(T x, T best) {
    return best == best && !(x <= best);
  }
};

struct ArgMin {
  using Value = Min;

  template <class T> TAPER_INLINE static bool is_better(T x, T best) {
    return best == best && !(x >= best);
  }
};

}  // namespace TAPER_ISA
}  // namespace taper::fn
