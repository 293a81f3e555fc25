// What a computation gave on two devices, compared to the bit.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "taper/cuda/gemm_blas.h"
#include "taper/taper.h"

namespace taper::cuda {

// A real device would multiply by cuBLAS, which has bits of its own.
inline const bool kWithoutBlas = (select_blas(false), true);

inline const Device kFirst(kCUDA, 0), kSecond(kCUDA, 1);

// "" or how two tensors differ: dtype, sizes, strides or the bits of elements. NaN is NaN.
inline std::string difference(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) {
    return a.defined() == b.defined() ? "" : "one of them is undefined";
  }
  if (a.dtype() != b.dtype()) return str(a.dtype(), " and ", b.dtype());
  if (!(a.sizes() == b.sizes())) return str("sizes ", a.sizes(), " and ", b.sizes());
  if (!(a.strides() == b.strides())) return str("strides ", a.strides(), " and ", b.strides());
  const Tensor x = a.detach().to(kCPU).contiguous(), y = b.detach().to(kCPU).contiguous();
  std::string found;
  visit_dtype(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const auto *p = static_cast<const T*>(x.data_ptr()), *q = static_cast<const T*>(y.data_ptr());
    for (std::int64_t i = 0; i < x.numel() && found.empty(); ++i) {
      const auto u = static_cast<double>(p[i]), v = static_cast<double>(q[i]);
      if (std::memcmp(p + i, q + i, sizeof(T)) == 0 || (u != u && v != v)) continue;
      found = str("element ", i, " of ", x.sizes(), " ", x.dtype(), ": ", u, " and ", v);
    }
  });
  return found;
}

inline void expect_same_bits(const Tensor& cpu, const Tensor& cuda, const std::string& what) {
  const std::string found = difference(cpu, cuda);
  EXPECT_TRUE(found.empty()) << what << ": cpu and cuda differ: " << found;
}

}  // namespace taper::cuda
