// cuBLASLt of the emulated devices: what it refuses, and which product it makes.
#include <cstring>

#include <cublasLt.h>

#include "taper/cuda/emulated/blas_product.h"
#include "taper/cuda/emulated/runtime.h"

namespace taper::emulated {
namespace {

template <class T> cublasStatus_t write(T* to, const void* value, size_t bytes) {
  if (bytes != sizeof(T) || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool is_aligned(const void* data, uint32_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % bytes == 0;
}

// The largest power of two of which the address is a multiple.
uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

struct Sizes {
  uint64_t m, n, k;
};

// Whether the three layouts are of one product, of a kind that exists.
bool fit(const cublasLtMatmulDescOpaque_t& desc,
         const cublasLtMatrixLayoutOpaque_t& a,
         const cublasLtMatrixLayoutOpaque_t& b,
         const cublasLtMatrixLayoutOpaque_t& c,
         Sizes* sizes) {
  const bool turn_a = desc.op_a == CUBLAS_OP_T, turn_b = desc.op_b == CUBLAS_OP_T;
  *sizes = {turn_a ? a.cols : a.rows, turn_b ? b.rows : b.cols, turn_a ? a.rows : a.cols};
  if ((turn_b ? b.cols : b.rows) != sizes->k || c.rows != sizes->m || c.cols != sizes->n)
    return false;
  return a.batch == c.batch && b.batch == c.batch;
}

Ending ending_of(uint32_t epilogue) {
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return Ending::kRelu;
  return (epilogue & CUBLASLT_EPILOGUE_GELU) != 0 ? Ending::kGelu : Ending::kNothing;
}

}  // namespace
}  // namespace taper::emulated

using namespace taper::emulated;

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc,
                                      cublasComputeType_t sum,
                                      cudaDataType scale) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  *desc = {sum, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value,
                                              size_t bytes) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return write(&desc->op_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return write(&desc->op_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return write(&desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return write(&desc->bias, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutInit(
    cublasLtMatrixLayout_t layout, cudaDataType type, uint64_t rows, uint64_t cols, int64_t step) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  *layout = {type, rows, cols, step, 1, 0};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value,
                                                size_t bytes) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return write(&layout->batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return write(&layout->batch_step, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  *preference = {0, 7, 256, 256, 256, 256};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value,
                                                    size_t bytes) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  auto& p = *preference;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return write(&p.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return write(&p.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return write(&p.align_a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return write(&p.align_b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return write(&p.align_c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return write(&p.align_d, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t,
                                              cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference,
                                              int most,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  Sizes sizes{};
  if (most < 1 || !fit(*desc, *a, *b, *c, &sizes) || !fit(*desc, *a, *b, *d, &sizes))
    return CUBLAS_STATUS_INVALID_VALUE;
  *count = 0;
  const auto& p = *preference;
  if (c->type == CUDA_R_64F || p.reductions == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {{sizes.m, sizes.n, sizes.k, p.workspace, desc->epilogue, p.align_a, p.align_b,
                 p.align_c < p.align_d ? p.align_c : p.align_d, alignment_of(desc->bias)},
                CUBLAS_STATUS_SUCCESS};
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle,
                              cublasLtMatmulDesc_t desc,
                              const void* alpha,
                              const void* a,
                              cublasLtMatrixLayout_t a_lies,
                              const void* b,
                              cublasLtMatrixLayout_t b_lies,
                              const void* beta,
                              const void* c,
                              cublasLtMatrixLayout_t c_lies,
                              void* d,
                              cublasLtMatrixLayout_t d_lies,
                              const cublasLtMatmulAlgo_t* algorithm,
                              void* workspace,
                              size_t workspace_bytes,
                              cudaStream_t stream) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (reinterpret_cast<cublasHandle_t>(handle)->device != current_device())
    return CUBLAS_STATUS_EXECUTION_FAILED;
  Sizes sizes{};
  if (c != d || c_lies != d_lies || !fit(*desc, *a_lies, *b_lies, *d_lies, &sizes))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (a_lies->type != d_lies->type || b_lies->type != d_lies->type || desc->scale != CUDA_R_32F ||
      !agree(d_lies->type, desc->sum)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const auto& known = *algorithm;
  if (known.m != sizes.m || known.n != sizes.n || known.k != sizes.k ||
      known.epilogue != desc->epilogue || known.workspace > workspace_bytes ||
      !is_aligned(workspace, 256) || !is_aligned(a, known.align_a) ||
      !is_aligned(b, known.align_b) || !is_aligned(d, known.align_c) ||
      !is_aligned(desc->bias, known.align_bias)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const bool biased = (desc->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  if (biased != (desc->bias != nullptr)) return CUBLAS_STATUS_INVALID_VALUE;
  const Product p{desc->op_a == CUBLAS_OP_T,
                  desc->op_b == CUBLAS_OP_T,
                  static_cast<long long>(sizes.m),
                  static_cast<long long>(sizes.n),
                  static_cast<long long>(sizes.k),
                  a,
                  b,
                  d,
                  a_lies->step,
                  b_lies->step,
                  d_lies->step,
                  a_lies->batch_step,
                  b_lies->batch_step,
                  d_lies->batch_step,
                  d_lies->batch,
                  *static_cast<const float*>(alpha),
                  *static_cast<const float*>(beta),
                  desc->sum == CUBLAS_COMPUTE_32F_FAST_TF32,
                  desc->bias,
                  ending_of(desc->epilogue)};
  if (!p.steps_fit()) return CUBLAS_STATUS_INVALID_VALUE;
  return submit_product(stream, d_lies->type, p);
}
