// Products by cuBLASLt: how one is described to it, and which algorithm it recommends.
#include "taper/cuda/gemm_lt.h"

namespace taper::cuda {
namespace {

constexpr std::size_t kMostKnown = 1024;  // products whose algorithm is kept

cublasLtEpilogue_t epilogue_of(const BlasProduct& p) {
  const bool biased = p.bias != nullptr;
  if (p.activation == Activation::kRelu)
    return biased ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  if (p.activation == Activation::kGeluTanh)
    return biased ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  TAPER_ASSERT(p.activation == Activation::kNone);
  return biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// In bytes; cuBLASLt asks for no more than 256.
std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data) | 256;
  return static_cast<std::uint32_t>(address & (~address + 1));
}

// The operation, the layouts of a, b and c, and what is preferred. They hold nothing that would
// have to be given back.
struct Description {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, c;
  cublasLtMatmulPreferenceOpaque_t preference;

  Description(const BlasProduct& p, std::size_t workspace_bytes) {
    check_blas(cublasLtMatmulDescInit(&operation, p.sum, CUDA_R_32F), "cublasLtMatmulDescInit");
    set(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<std::int32_t>(p.op_a()));
    set(CUBLASLT_MATMUL_DESC_TRANSB, static_cast<std::int32_t>(p.op_b()));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(epilogue_of(p)));
    if (p.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    lay(&a, p, p.a, p.m, p.k);
    lay(&b, p, p.b, p.k, p.n);
    lay(&c, p, p.c, p.m, p.n);
    check_blas(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit");
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
    // Sums of 16-bit products stay in f32 where they are split among blocks.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.a.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.b.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.c.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.c.data));
  }

 private:
  template <class T> void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    check_blas(cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof(value)),
               "cublasLtMatmulDescSetAttribute");
  }

  template <class T> void prefer(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check_blas(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)),
               "cublasLtMatmulPreferenceSetAttribute");
  }

  static void lay(cublasLtMatrixLayout_t layout,
                  const BlasProduct& p,
                  const BlasMatrices& matrices,
                  std::int64_t rows,
                  std::int64_t cols) {
    if (!matrices.column_major) std::swap(rows, cols);
    check_blas(cublasLtMatrixLayoutInit(layout, p.element, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(cols), matrices.step),
               "cublasLtMatrixLayoutInit");
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
      check_blas(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)),
                 "cublasLtMatrixLayoutSetAttribute");
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(p.batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrices.batch);
  }
};

LtAlgorithms::key_type key_of(const BlasProduct& p) {
  return {p.m,
          p.n,
          p.k,
          p.batch,
          p.a.step,
          p.a.batch,
          p.op_a(),
          p.b.step,
          p.b.batch,
          p.op_b(),
          p.c.step,
          p.c.batch,
          std::int64_t{p.element} * 1000 + p.sum,
          epilogue_of(p),
          alignment_of(p.a.data),
          alignment_of(p.b.data),
          alignment_of(p.c.data),
          alignment_of(p.bias)};
}

std::optional<cublasLtMatmulAlgo_t> recommended(cublasLtHandle_t handle, Description& d) {
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, &d.operation, &d.a, &d.b, &d.c, &d.c, &d.preference, 1, &result, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
  check_blas(status, "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0 || result.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
  return result.algo;
}

}  // namespace

bool lt_matmul(cublasLtHandle_t handle,
               const BlasProduct& p,
               void* workspace,
               std::size_t workspace_bytes,
               cudaStream_t stream,
               LtAlgorithms& known) {
  Description d(p, workspace_bytes);
  const auto key = key_of(p);
  auto found = known.find(key);
  if (found == known.end()) {
    if (known.size() == kMostKnown) known.clear();
    found = known.emplace(key, recommended(handle, d)).first;
  }
  if (!found->second) return false;
  const float one = 1, zero = 0;
  check_blas(
      cublasLtMatmul(handle, &d.operation, &one, p.a.data, &d.a, p.b.data, &d.b, &zero, p.c.data,
                     &d.c, p.c.data, &d.c, &*found->second, workspace, workspace_bytes, stream),
      "cublasLtMatmul");
  return true;
}

}  // namespace taper::cuda
