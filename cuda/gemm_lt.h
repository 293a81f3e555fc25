// One product as cuBLAS counts, in columns; and cuBLASLt, which ends it with a bias and an
// activation.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string_view>

#include <cublasLt.h>

#include "taper/core/kernels.h"

namespace taper::cuda {

// Throws Error "cuBLAS error 14 (...) in cublasLtMatmul" unless it succeeded.
void check_blas(cublasStatus_t status, std::string_view call);

// A batch of matrices with `step` between columns, or, if not column-major, between rows.
struct BlasMatrices {
  void* data;
  std::int64_t step, batch;
  bool column_major;
};

// c (m, n), column-major, = activation(a (m, k) b (k, n) + bias (m, 1)), for each of a batch.
struct BlasProduct {
  std::int64_t m, n, k, batch;
  BlasMatrices a, b, c;
  const void* bias;  // null: none
  Activation activation;
  cudaDataType element;
  cublasComputeType_t sum;
  bool is_transposed;  // c is the transpose of what was asked for

  cublasOperation_t op_a() const { return a.column_major ? CUBLAS_OP_N : CUBLAS_OP_T; }

  cublasOperation_t op_b() const { return b.column_major ? CUBLAS_OP_N : CUBLAS_OP_T; }
};

// What cuBLASLt recommended for products of the sizes, steps and alignments of the key; nothing
// where it takes none such.
using LtAlgorithms = std::map<std::array<std::int64_t, 18>, std::optional<cublasLtMatmulAlgo_t>>;

// False, and nothing done, if cuBLASLt does not take the product. Not for f64, nor for gelu: what
// cuBLASLt calls so is gelu_tanh.
bool lt_matmul(cublasLtHandle_t handle,
               const BlasProduct& p,
               void* workspace,
               std::size_t workspace_bytes,
               cudaStream_t stream,
               LtAlgorithms& known);

}  // namespace taper::cuda
