// cuBLAS for matrix products of floating-point types; the bits are then not the CPU's.
#pragma once

#include "taper/core/kernels.h"

namespace taper::cuda {

// TAPER_GEMM=cublas, or =own for the tiles of gemm.cu. By itself cuBLAS on a real device, and the
// tiles on an emulated one, which has the cuBLAS calls only so that they are tested.
bool blas_selected();
void select_blas(bool on);  // for tests

// out (b, m, n) = activation(a (b, m, k) b (b, k, n) + bias). False, and nothing done, for what
// cuBLAS does not take: integers, k = 0, matrices without rows or columns whose elements are
// neighbours, and sizes above 2^31. Throws Error if a call of cuBLAS fails.
//
// A bias along the rows of `out`, relu and gelu_tanh are left to cuBLASLt, where that takes the
// product; elsewhere the bias is copied to `out` first, and the activation a launch of its own.
bool blas_matmul(const Exec& exec, Out out, In a, In b, In bias, Activation activation);

}  // namespace taper::cuda
