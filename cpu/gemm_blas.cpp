// Matrix products by OpenBLAS, when the user asks for them; the only file that sees cblas.
#include "taper/cpu/gemm_blas.h"

#include <limits>

#include <cblas.h>

#include "taper/core/precision.h"

namespace taper::cpu {
namespace {

bool fits(std::int64_t n) {
  return n <= std::numeric_limits<blasint>::max();
}

blasint narrow(std::int64_t n) {
  return static_cast<blasint>(n);
}

CBLAS_TRANSPOSE order(bool column_major) {
  return column_major ? CblasTrans : CblasNoTrans;
}

}  // namespace

bool blas_selected() {
  static const bool selected = gemm_choice() == "openblas";
  return selected;
}

bool blas_multiply(std::int64_t m,
                   std::int64_t n,
                   std::int64_t k,
                   BlasMatrix<const float> a,
                   BlasMatrix<const float> b,
                   BlasMatrix<float> c) {
  if (!fits(m) || !fits(n) || !fits(k) || !fits(a.step) || !fits(b.step) || !fits(c.step)) {
    return false;
  }
  cblas_sgemm(CblasRowMajor, order(a.column_major), order(b.column_major), narrow(m), narrow(n),
              narrow(k), 1.0f, a.data, narrow(a.step), b.data, narrow(b.step), 1.0f, c.data,
              narrow(c.step));
  return true;
}

bool blas_multiply(std::int64_t m,
                   std::int64_t n,
                   std::int64_t k,
                   BlasMatrix<const double> a,
                   BlasMatrix<const double> b,
                   BlasMatrix<double> c) {
  if (!fits(m) || !fits(n) || !fits(k) || !fits(a.step) || !fits(b.step) || !fits(c.step)) {
    return false;
  }
  cblas_dgemm(CblasRowMajor, order(a.column_major), order(b.column_major), narrow(m), narrow(n),
              narrow(k), 1.0, a.data, narrow(a.step), b.data, narrow(b.step), 1.0, c.data,
              narrow(c.step));
  return true;
}

}  // namespace taper::cpu
