// Matrix products by cuBLAS; the only file that sees it.
#include "taper/cuda/gemm_blas.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <cublas_v2.h>

#include "taper/core/precision.h"
#include "taper/cuda/check.h"
#include "taper/cuda/graph.h"
#include "taper/cuda/kernels.cuh"
#include "taper/cuda/runtime.h"
#include "taper/cuda/trail.h"

namespace taper::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // what cuBLAS asks for on sm_90

void check(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string since = suspects(cudaGetLastError());
  fail(str("cuBLAS error ", static_cast<int>(status), " (",
           std::string_view(cublasGetStatusString(status)), ") in ", call, since));
}

// One for each stream: a handle's workspace and its sums are in the order of its stream. They live
// as long as the process. One thread at a time may use it.
struct Handle {
  std::mutex lock;
  cublasHandle_t name = nullptr;

  void prepare(cudaStream_t stream) {
    if (name != nullptr) return;
    const UncapturedCalls allowed;  // it takes memory for itself
    cublasHandle_t made = nullptr;
    check(cublasCreate(&made), "cublasCreate");
    try {
      check(cublasSetStream(made, stream), "cublasSetStream");
      // Sums of 16-bit products stay in f32 where they are split among blocks.
      check(cublasSetMathMode(made, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
            "cublasSetMathMode");
    } catch (...) {
      cublasDestroy(made);
      throw;
    }
    name = made;
  }
};

Handle& handle_of(Device device, StreamId stream) {
  static auto* lock = new std::mutex;
  static auto* all = new std::map<std::pair<int, StreamId>, Handle>;
  const std::lock_guard guard(*lock);
  return (*all)[{device.index(), stream}];
}

struct Types {
  cudaDataType element;
  cublasComputeType_t sum;
};

bool types_of(DType dtype, Types* types) {
  const bool tf32 = matmul_rounds_to_tf32();
  const auto f32 = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC;
  if (dtype == kFloat64) *types = {CUDA_R_64F, CUBLAS_COMPUTE_64F};
  else if (dtype == kFloat32) *types = {CUDA_R_32F, f32};
  else if (dtype == kFloat16) *types = {CUDA_R_16F, CUBLAS_COMPUTE_32F};
  else if (dtype == kBFloat16) *types = {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
  else return false;
  return true;
}

// A batch of matrices with `step` between rows, or, if column-major, between columns.
struct Matrices {
  void* data;
  std::int64_t step, batch;
  bool column_major;
};

// False if neither rows nor columns lie in one piece. The stride of a dim of one element counts
// for nothing.
bool matrices_of(const View& view, Matrices* out) {
  const auto& sizes = view.layout->sizes;
  const auto& strides = view.layout->strides;
  const std::int64_t rows = sizes[1], cols = sizes[2];
  const std::int64_t batch = sizes[0] == 1 ? 0 : strides[0];
  const bool by_rows = (cols == 1 || strides[2] == 1) && (rows == 1 || strides[1] >= cols);
  const bool by_cols = (rows == 1 || strides[1] == 1) && (cols == 1 || strides[2] >= rows);
  if (batch < 0 || (!by_rows && !by_cols)) return false;
  const std::int64_t step =
      by_rows ? (rows == 1 ? cols : strides[1]) : (cols == 1 ? rows : strides[2]);
  *out = {view.data, step, batch, !by_rows};
  return step <= std::numeric_limits<int>::max();
}

cublasOperation_t transposed(bool yes) {
  return yes ? CUBLAS_OP_T : CUBLAS_OP_N;
}

std::atomic<bool>& blas_switch() {
  static std::atomic<bool> on = [] {
    const char* setting = std::getenv("TAPER_GEMM");
    const std::string_view choice = setting == nullptr ? "" : setting;
    if (choice == "cublas" || choice == "own") return choice == "cublas";
    return is_available();
  }();
  return on;
}

}  // namespace

bool blas_selected() {
  return blas_switch();
}

void select_blas(bool on) {
  blas_switch() = on;
}

// cuBLAS counts in columns, so a C of rows is made as its transpose: C' = B' A'.
bool blas_matmul(const Exec& exec, Out out, In a, In b, In bias) {
  Types types{};
  Matrices left{}, right{}, to{};
  if (!types_of(out.dtype, &types) || !matrices_of(a, &left) || !matrices_of(b, &right) ||
      !matrices_of(out, &to)) {
    return false;
  }
  std::int64_t m = out.layout->sizes[1], n = out.layout->sizes[2];
  const std::int64_t k = a.layout->sizes[2], batch = out.layout->sizes[0];
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (k == 0 || m > kMost || n > kMost || k > kMost || batch > kMost) return false;
  bool turns_left = !left.column_major, turns_right = !right.column_major;
  if (!to.column_major) {
    std::swap(left, right);
    std::swap(m, n);
    turns_left = left.column_major, turns_right = right.column_major;
  }
  if (bias.defined()) {
    const Layout stretched = expand_layout(*bias.layout, out.layout->shape());
    copy(exec, out, In{{bias.data, &stretched, bias.dtype}});
  }
  void* const workspace = exec.scratch(kWorkspace);
  const DeviceGuard guard(exec.device.index());
  Handle& handle = handle_of(exec.device, exec.stream);
  const std::lock_guard lock(handle.lock);
  handle.prepare(stream_of(exec.device, exec.stream));
  note_launch(exec.device.index(), stream_of(exec.device, exec.stream));
  check(cublasSetWorkspace(handle.name, workspace, kWorkspace), "cublasSetWorkspace");
  const float one = 1, start = bias.defined() ? 1 : 0;
  const double one64 = 1, start64 = start;
  const bool is_f64 = out.dtype == kFloat64;
  const void* alpha = is_f64 ? static_cast<const void*>(&one64) : &one;
  const void* beta = is_f64 ? static_cast<const void*>(&start64) : &start;
  check(cublasGemmStridedBatchedEx(handle.name, transposed(turns_left), transposed(turns_right),
                                   static_cast<int>(m), static_cast<int>(n), static_cast<int>(k),
                                   alpha, left.data, types.element, static_cast<int>(left.step),
                                   left.batch, right.data, types.element,
                                   static_cast<int>(right.step), right.batch, beta, to.data,
                                   types.element, static_cast<int>(to.step), to.batch,
                                   static_cast<int>(batch), types.sum, CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx");
  return true;
}

}  // namespace taper::cuda
