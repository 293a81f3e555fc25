// Packing for the matrix product: strided pieces of a matrix become panels that one tile reads in
// order.
#pragma once
#include "taper/cpu/gemm_micro.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace gemm {

// N neighbours, as T. By way of a buffer, so that no store has to wait for the next load.
template <int N, class E, class T> TAPER_INLINE void copy_run(T* out, const E* in) {
  T buffer[std::size_t{N}];
  for (int i = 0; i < N; ++i) buffer[i] = static_cast<T>(in[i]);
  __builtin_memcpy(out, buffer, sizeof buffer);
}

// Turns 4 x 4 elements: the rows of `in`, `step` apart, become columns. E converts to T.
template <class E, class T>
TAPER_INLINE void transpose4(T* out, Index out_step, const E* in, Index step) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  typedef T Loose __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
  Four row[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const E* p = in + i * step;
    if constexpr (std::is_same_v<E, T>) row[i] = *reinterpret_cast<const Loose*>(p);
    else row[i] = Four{T(p[0]), T(p[1]), T(p[2]), T(p[3])};
  }
  const Four low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  const Four low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  const Four high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  *reinterpret_cast<Loose*>(out) = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  *reinterpret_cast<Loose*>(out + out_step) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  *reinterpret_cast<Loose*>(out + 2 * out_step) =
      __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  *reinterpret_cast<Loose*>(out + 3 * out_step) =
      __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

// out (depth, Width) = in: element (k, i) is in[i * step + k * next] for i < count, then zeros.
// Reads and writes each element once.
template <int Width, class E, class T>
void pack_panel(T* out, const E* in, Index step, Index next, Index count, Index depth) {
  Index k = 0;
  if (step == 1 && count == Width) {
    for (; k < depth; ++k) copy_run<Width>(out + k * Width, in + k * next);
  } else if (next == 1 && count == Width) {
    for (; k + 4 <= depth; k += 4) {
      T* to = out + k * Width;
#pragma GCC unroll 16
      for (int i = 0; i + 4 <= Width; i += 4) {
        transpose4<E, T>(to + i, Width, in + i * step + k, step);
      }
      for (int i = Width / 4 * 4; i < Width; ++i) {
        for (int q = 0; q < 4; ++q) to[q * Width + i] = T(in[i * step + k + q]);
      }
    }
  }
  for (; k < depth; ++k) {
    for (Index i = 0; i < Width; ++i) {
      out[k * Width + i] = i < count ? T(in[i * step + k * next]) : T(0);
    }
  }
}

// Panels of Width columns, `panel` apart in `out`, of rows that lie dense in `in` and `next` apart.
// Row by row: what one panel needs of a row is too short for the prefetcher.
template <int Width, class E, class T>
void pack_rows(T* out, Index panel, Index panels, const E* in, Index next, Index depth) {
  for (Index k = 0; k < depth; ++k) {
    for (Index p = 0; p < panels; ++p) {
      copy_run<Width>(out + p * panel + k * Width, in + k * next + p * Width);
    }
  }
}

}  // namespace gemm
}  // namespace TAPER_ISA
}  // namespace taper::cpu
