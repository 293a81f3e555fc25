// What the emulated cuBLAS and cuBLASLt share: a handle, and the product as three loops.
#pragma once

#include <cublas_v2.h>

struct cublasContext {
  int device;
  cudaStream_t stream;
  const void* workspace;
};

namespace taper::emulated {

enum class Ending { kNothing, kRelu, kGelu };

// C = ending(alpha op(A) op(B) + beta C + bias), column-major; bias, of m elements, may be null.
struct Product {
  bool turn_a, turn_b;
  long long m, n, k;
  const void *a, *b;
  void* c;
  long long lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
  double alpha, beta;
  bool tf32;
  const void* bias = nullptr;
  Ending ending = Ending::kNothing;

  // The steps between columns are not shorter than those.
  bool steps_fit() const;
};

// Whether the element type may be summed so.
bool agree(cudaDataType type, cublasComputeType_t sum);

// Puts the product into the stream, in whose order it reads and writes.
cublasStatus_t submit_product(cudaStream_t stream, cudaDataType type, const Product& p);

cublasStatus_t failing_blas(const char* name);

}  // namespace taper::emulated
