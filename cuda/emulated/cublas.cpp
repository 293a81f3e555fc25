// cuBLAS of the emulated devices: what it refuses, and the product as three loops.
#include <cmath>

#include "taper/core/base/half.h"
#include "taper/core/precision.h"
#include "taper/cuda/emulated/access.h"
#include "taper/cuda/emulated/blas_product.h"
#include "taper/cuda/emulated/failing.h"
#include "taper/cuda/emulated/graphs.h"
#include "taper/cuda/emulated/runtime.h"

namespace taper::emulated {
namespace {

template <class E, class T> T element(const void* data, long long at, bool tf32) {
  const T x = static_cast<T>(static_cast<const E*>(data)[at]);
  if constexpr (std::is_same_v<E, float>) return tf32 ? round_to_tf32(x) : x;
  return x;
}

// The terms as NVIDIA's texts have them: max(x, 0), and the gelu with tanh.
template <class T> T ended(Ending ending, T x) {
  if (ending == Ending::kRelu) return x < 0 ? T(0) : x;
  if (ending == Ending::kNothing) return x;
  const T inner = static_cast<T>(0.7978845608028654) * (x + static_cast<T>(0.044715) * x * x * x);
  return x / 2 * (1 + std::tanh(inner));
}

// Products and sums are rounded one by one: another rounding than that of our own kernels, as a
// device's is.
template <class E, class T> void multiply(const Product& p) {
  for (long long of = 0; of < p.batch; ++of) {
    for (long long j = 0; j < p.n; ++j) {
      for (long long i = 0; i < p.m; ++i) {
        T sum = 0;
        for (long long l = 0; l < p.k; ++l) {
          const long long a = of * p.stride_a + (p.turn_a ? i * p.lda + l : l * p.lda + i);
          const long long b = of * p.stride_b + (p.turn_b ? l * p.ldb + j : j * p.ldb + l);
          sum += element<E, T>(p.a, a, p.tf32) * element<E, T>(p.b, b, p.tf32);
        }
        E& to = static_cast<E*>(p.c)[of * p.stride_c + j * p.ldc + i];
        sum *= static_cast<T>(p.alpha);
        if (p.beta != 0) sum += static_cast<T>(p.beta) * static_cast<T>(to);  // 0 does not read C
        if (p.bias != nullptr) sum += static_cast<T>(static_cast<const E*>(p.bias)[i]);
        to = static_cast<E>(ended(p.ending, sum));
      }
    }
  }
}

void multiply(cudaDataType type, const Product& p) {
  if (type == CUDA_R_64F) multiply<double, double>(p);
  if (type == CUDA_R_32F) multiply<float, float>(p);
  if (type == CUDA_R_16F) multiply<Half, float>(p);
  if (type == CUDA_R_16BF) multiply<BFloat16, float>(p);
}

}  // namespace

bool Product::steps_fit() const {
  const long long rows_a = turn_a ? k : m, rows_b = turn_b ? n : k;
  return lda >= 1 && ldb >= 1 && ldc >= 1 && lda >= rows_a && ldb >= rows_b && ldc >= m;
}

bool agree(cudaDataType type, cublasComputeType_t sum) {
  switch (sum) {
    case CUBLAS_COMPUTE_64F: return type == CUDA_R_64F;
    case CUBLAS_COMPUTE_32F_FAST_TF32: return type == CUDA_R_32F;
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F: return type != CUDA_R_64F;
  }
  return false;
}

cublasStatus_t failing_blas(const char* name) {
  return static_cast<cublasStatus_t>(static_cast<int>(injected(name)));
}

cublasStatus_t submit_product(cudaStream_t to, cudaDataType type, const Product& p) {
  const std::shared_ptr<Stream> stream = Runtime::get().stream(to);
  if (!stream || fault_of(stream->device) != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  const cudaError_t status = submit(stream, [=] {
    const DeviceAccess access;
    multiply(type, p);
    return cudaSuccess;
  });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace taper::emulated

using namespace taper::emulated;

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown status";
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  if (fault_of(current_device()) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (refuse_unsafe_call() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;  // it allocates
  *handle = new cublasContext{current_device(), nullptr, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  handle->stream = stream;
  handle->workspace = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return failing_blas(__func__);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle,
                                          cublasOperation_t op_a,
                                          cublasOperation_t op_b,
                                          int m,
                                          int n,
                                          int k,
                                          const void* alpha,
                                          const void* a,
                                          cudaDataType a_type,
                                          int lda,
                                          long long stride_a,
                                          const void* b,
                                          cudaDataType b_type,
                                          int ldb,
                                          long long stride_b,
                                          const void* beta,
                                          void* c,
                                          cudaDataType c_type,
                                          int ldc,
                                          long long stride_c,
                                          int batch,
                                          cublasComputeType_t sum,
                                          cublasGemmAlgo_t) {
  if (const cublasStatus_t error = failing_blas(__func__)) return error;
  const bool turn_a = op_a == CUBLAS_OP_T, turn_b = op_b == CUBLAS_OP_T;
  // Ours sets it each time; a real one would take memory of its own.
  if (handle == nullptr || handle->workspace == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (handle->device != current_device()) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (m < 0 || n < 0 || k < 0 || batch < 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (a_type != c_type || b_type != c_type || !agree(c_type, sum)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool is_f64 = sum == CUBLAS_COMPUTE_64F;
  const auto scale = [&](const void* at) {
    return is_f64 ? *static_cast<const double*>(at)
                  : static_cast<double>(*static_cast<const float*>(at));
  };
  const Product p{turn_a,      turn_b,
                  m,           n,
                  k,           a,
                  b,           c,
                  lda,         ldb,
                  ldc,         stride_a,
                  stride_b,    stride_c,
                  batch,       scale(alpha),
                  scale(beta), sum == CUBLAS_COMPUTE_32F_FAST_TF32};
  if (!p.steps_fit()) return CUBLAS_STATUS_INVALID_VALUE;
  return submit_product(handle->stream, c_type, p);
}
