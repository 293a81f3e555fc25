// OpenBLAS as a second opinion on matrix products, behind TAPER_GEMM=openblas.
#pragma once
#include <cstdint>

namespace taper::cpu {

// TAPER_GEMM=openblas is set. Its results depend on its thread count, which is the process's.
bool blas_selected();

// One operand: row-major with `step` between rows, or column-major with `step` between columns.
template <class T> struct BlasMatrix {
  T* data;
  std::int64_t step;
  bool column_major;
};

// c (m, n) += a (m, k) b (k, n), c row-major. False, and nothing done, when a size is above 2^31.
bool blas_multiply(std::int64_t m,
                   std::int64_t n,
                   std::int64_t k,
                   BlasMatrix<const float> a,
                   BlasMatrix<const float> b,
                   BlasMatrix<float> c);
bool blas_multiply(std::int64_t m,
                   std::int64_t n,
                   std::int64_t k,
                   BlasMatrix<const double> a,
                   BlasMatrix<const double> b,
                   BlasMatrix<double> c);

}  // namespace taper::cpu
