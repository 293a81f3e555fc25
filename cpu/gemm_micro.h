// The register tile of the matrix product: its size on each instruction set, and its inner loop.
#pragma once
#include "taper/core/base/dtype.h"
#include "taper/core/math_base.h"

#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_FMA)
#include <arm_neon.h>
#endif

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace gemm {

using Index = std::int64_t;

// A tile of C is kTileRows by kTileVectors vectors: as many accumulators as the registers hold
// beside the vectors of B and one element of A.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64, kTileRows = 12, kTileVectors = 2;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32, kTileRows = 6, kTileVectors = 2;
#else
inline constexpr int kVectorBytes = 16, kTileRows = 6, kTileVectors = 4;
#endif

template <class T> struct VectorOf;

template <> struct VectorOf<float> {
  typedef float Type __attribute__((vector_size(kVectorBytes)));
  typedef float Loose __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
};

template <> struct VectorOf<double> {
  typedef double Type __attribute__((vector_size(kVectorBytes)));
  typedef double Loose __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
};

template <class T> using Vector = typename VectorOf<T>::Type;
template <class T> inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
template <class T> inline constexpr int kTileCols = kTileVectors* kLanes<T>;

template <class T> TAPER_INLINE Vector<T> load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::Loose*>(p);
}

template <class T> TAPER_INLINE void store(T* p, Vector<T> v) {
  *reinterpret_cast<typename VectorOf<T>::Loose*>(p) = v;
}

template <class T> TAPER_INLINE Vector<T> broadcast(T x) {
  return x - Vector<T>{};
}

// a * b + c, one rounding in each lane.
template <class T> TAPER_INLINE Vector<T> fma(Vector<T> a, Vector<T> b, Vector<T> c) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_fmadd_ps(a, b, c);
  else return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  if constexpr (sizeof(T) == 4) return _mm256_fmadd_ps(a, b, c);
  else return _mm256_fmadd_pd(a, b, c);
#elif defined(__ARM_FEATURE_FMA)
  if constexpr (sizeof(T) == 4) return vfmaq_f32(c, a, b);
  else return vfmaq_f64(c, a, b);
#else
  Vector<T> out;
  for (int lane = 0; lane < kLanes<T>; ++lane) out[lane] = math::fma(a[lane], b[lane], c[lane]);
  return out;
#endif
}

// C (Rows, Vectors * kLanes) = [C or 0] + A (Rows, depth) B (depth, ...): each element is one chain
// of fmas in the order of k. Element (i, k) of A is a.data[i * a.row + k * a.col]; rows of B and C
// are ldb and ldc apart. For each k, one load for each row and vector, one fma for each pair. A
// lane of `seen` becomes NaN if a sum in it is not finite: while the sums are in registers that
// costs a multiplication and an addition each.
template <class T> struct TileLeft {
  const T* data;
  Index row, col;
};

template <int Rows, int Vectors, class T>
TAPER_INLINE void multiply_tile(Index depth,
                                TileLeft<T> a,
                                const T* b,
                                Index ldb,
                                T* c,
                                Index ldc,
                                bool accumulate,
                                Vector<T>* seen) {
  Vector<T> sum[std::size_t{Rows}][std::size_t{Vectors}] = {};
  if (accumulate) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[i][v] = load(c + i * ldc + v * kLanes<T>);
    }
  }
  // A pointer for every third row: of that many, none lies in memory, and rows between them are one
  // addressing mode away.
  constexpr int kPointers = (Rows + 2) / 3;
  const T* rows[std::size_t{kPointers}];
#pragma GCC unroll 16
  for (int i = 0; i < kPointers; ++i) rows[i] = a.data + 3 * i * a.row;
  for (Index k = 0; k < depth; ++k) {
    Vector<T> right[std::size_t{Vectors}];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) right[v] = load(b + v * kLanes<T>);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Vector<T> left = broadcast(rows[i / 3][i % 3 * a.row]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[i][v] = fma<T>(left, right[v], sum[i][v]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kPointers; ++i) rows[i] += a.col;
    b += ldb;
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(c + i * ldc + v * kLanes<T>, sum[i][v]);
  }
  if (seen != nullptr) {
    Vector<T> some[4] = {};  // so that few wait for each other
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        Vector<T>& any = some[(i * Vectors + v) % 4];
        any += sum[i][v] * Vector<T>{};
      }
    }
    *seen += (some[0] + some[1]) + (some[2] + some[3]);
  }
}

template <class T> bool all_finite(const Vector<T>& seen) {
  bool finite = true;
  for (int lane = 0; lane < kLanes<T>; ++lane) finite = finite && seen[lane] == seen[lane];
  return finite;
}

// The same for a number of rows, at most kTileRows, that is known when it runs.
template <class T, int Vectors, int Rows = kTileRows>
void multiply_rows(Index rows,
                   Index depth,
                   TileLeft<T> a,
                   const T* b,
                   Index ldb,
                   T* c,
                   Index ldc,
                   bool accumulate,
                   Vector<T>* seen = nullptr) {
  if constexpr (Rows > 1) {
    if (rows < Rows) {
      return multiply_rows<T, Vectors, Rows - 1>(rows, depth, a, b, ldb, c, ldc, accumulate, seen);
    }
  }
  multiply_tile<Rows, Vectors, T>(depth, a, b, ldb, c, ldc, accumulate, seen);
}

// The same for packed panels, A (depth, kTileRows) and B (depth, kTileCols).
template <class T>
void multiply_panels(
    Index depth, const T* a, const T* b, T* c, Index ldc, bool accumulate, Vector<T>* seen) {
  const TileLeft<T> left{a, 1, kTileRows};
  multiply_tile<kTileRows, kTileVectors, T>(depth, left, b, kTileCols<T>, c, ldc, accumulate, seen);
}

}  // namespace gemm
}  // namespace TAPER_ISA
}  // namespace taper::cpu
