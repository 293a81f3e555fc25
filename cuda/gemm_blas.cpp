// Matrix products by cuBLAS: which it takes, and what is left to do after it.
#include "taper/cuda/gemm_blas.h"

#include <atomic>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include <cublas_v2.h>

#include "taper/core/functors_activation.h"
#include "taper/core/precision.h"
#include "taper/cuda/gemm_lt.h"
#include "taper/cuda/graph.h"
#include "taper/cuda/kernels.cuh"
#include "taper/cuda/runtime.h"
#include "taper/cuda/trail.h"

namespace taper::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // what cuBLAS asks for on sm_90

// One for each stream: a handle's workspace and its sums are in the order of its stream. They live
// as long as the process. One thread at a time may use it.
struct Handle {
  std::mutex lock;
  cublasHandle_t name = nullptr;
  LtAlgorithms algorithms;

  void prepare(cudaStream_t stream) {
    if (name != nullptr) return;
    const UncapturedCalls allowed;  // it takes memory for itself
    cublasHandle_t made = nullptr;
    check_blas(cublasCreate(&made), "cublasCreate");
    try {
      check_blas(cublasSetStream(made, stream), "cublasSetStream");
      // Sums of 16-bit products stay in f32 where they are split among blocks.
      check_blas(cublasSetMathMode(made, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
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

// False for a dtype that cuBLAS does not multiply.
bool set_types(DType dtype, BlasProduct* p) {
  const bool tf32 = matmul_rounds_to_tf32();
  const auto set = [&](cudaDataType element, cublasComputeType_t sum) {
    p->element = element;
    p->sum = sum;
    return true;
  };
  if (dtype == kFloat64) return set(CUDA_R_64F, CUBLAS_COMPUTE_64F);
  if (dtype == kFloat32)
    return set(CUDA_R_32F, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC);
  if (dtype == kFloat16) return set(CUDA_R_16F, CUBLAS_COMPUTE_32F);
  return dtype == kBFloat16 && set(CUDA_R_16BF, CUBLAS_COMPUTE_32F);
}

// False if neither rows nor columns lie in one piece. The stride of a dim of one element counts
// for nothing.
bool matrices_of(const View& view, BlasMatrices* out) {
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

// The product without its bias and activation; false for what cuBLAS does not take. It counts in
// columns, so a C of rows is made as its transpose: C' = B' A'.
bool product_of(const View& out, const View& a, const View& b, BlasProduct* p) {
  if (!set_types(out.dtype, p) || !matrices_of(a, &p->a) || !matrices_of(b, &p->b) ||
      !matrices_of(out, &p->c)) {
    return false;
  }
  p->batch = out.layout->sizes[0];
  p->m = out.layout->sizes[1];
  p->n = out.layout->sizes[2];
  p->k = a.layout->sizes[2];
  p->is_transposed = !p->c.column_major;
  if (p->is_transposed) {
    std::swap(p->a, p->b);
    std::swap(p->m, p->n);
    for (BlasMatrices* x : {&p->a, &p->b, &p->c}) x->column_major = !x->column_major;
  }
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  return p->k != 0 && p->m <= kMost && p->n <= kMost && p->k <= kMost && p->batch <= kMost;
}

// Whether a bias with these strides over `out` is one packed vector along the columns of C, or,
// where C is made as its transpose, along the rows of `out`.
bool is_vector(const Layout& bias, bool along_rows) {
  const int along = along_rows ? 2 : 1, across = along_rows ? 1 : 2;
  const auto stays = [&](int dim) { return bias.sizes[dim] == 1 || bias.strides[dim] == 0; };
  return (bias.sizes[along] == 1 || bias.strides[along] == 1) && stays(across) && stays(0);
}

// C = A B, or C += A B.
void multiply(cublasHandle_t handle, const BlasProduct& p, void* workspace, bool accumulate) {
  check_blas(cublasSetWorkspace(handle, workspace, kWorkspace), "cublasSetWorkspace");
  const float one = 1, start = accumulate ? 1 : 0;
  const double one64 = 1, start64 = accumulate ? 1 : 0;
  const bool is_f64 = p.sum == CUBLAS_COMPUTE_64F;
  const void* alpha = is_f64 ? static_cast<const void*>(&one64) : &one;
  const void* beta = is_f64 ? static_cast<const void*>(&start64) : &start;
  check_blas(cublasGemmStridedBatchedEx(
                 handle, p.op_a(), p.op_b(), static_cast<int>(p.m), static_cast<int>(p.n),
                 static_cast<int>(p.k), alpha, p.a.data, p.element, static_cast<int>(p.a.step),
                 p.a.batch, p.b.data, p.element, static_cast<int>(p.b.step), p.b.batch, beta,
                 p.c.data, p.element, static_cast<int>(p.c.step), p.c.batch,
                 static_cast<int>(p.batch), p.sum, CUBLAS_GEMM_DEFAULT),
             "cublasGemmStridedBatchedEx");
}

std::atomic<bool>& blas_switch() {
  static std::atomic<bool> on = [] {
    const std::string_view choice = gemm_choice();
    return choice == "cublas" || (choice != "own" && is_available());
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

void check_blas(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string since = suspects(cudaGetLastError());
  fail(str("cuBLAS error ", static_cast<int>(status), " (",
           std::string_view(cublasGetStatusString(status)), ") in ", call, since));
}

bool blas_matmul(const Exec& exec, Out out, In a, In b, In bias, Activation activation) {
  BlasProduct p{};
  if (!product_of(out, a, b, &p)) return false;
  Layout start;
  if (bias.defined()) {
    start = expand_layout(*bias.layout, out.layout->shape());
    if (is_vector(start, p.is_transposed)) p.bias = bias.data;
  }
  if (activation != Activation::kGelu) p.activation = activation;
  const bool suits_lt = out.dtype != kFloat64 && (p.bias != nullptr || !bias.defined()) &&
                        (p.bias != nullptr || p.activation != Activation::kNone);
  void* const workspace = exec.scratch(kWorkspace);
  const DeviceGuard guard(exec.device.index());
  const cudaStream_t stream = stream_of(exec.device, exec.stream);
  Handle& handle = handle_of(exec.device, exec.stream);
  {
    const std::lock_guard lock(handle.lock);
    handle.prepare(stream);
    note_launch(exec.device.index(), stream);
    const auto lt = reinterpret_cast<cublasLtHandle_t>(handle.name);  // a handle of both
    if (!suits_lt || !lt_matmul(lt, p, workspace, kWorkspace, stream, handle.algorithms)) {
      if (bias.defined()) copy(exec, out, In{{bias.data, &start, bias.dtype}});
      multiply(handle.name, p, workspace, bias.defined());
      p.activation = Activation::kNone;
    }
  }
  if (p.activation != activation) {
    fn::visit_activation(activation, [&](auto f) {
      unary<decltype(f)>(exec, out, In{{out.data, out.layout, out.dtype}});
    });
  }
  return true;
}

}  // namespace taper::cuda
