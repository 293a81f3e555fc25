// Times copies, cuBLAS and the driver's virtual memory.
#include "taper/benchmarks/gpu_peers.h"

#include <algorithm>

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime.h>

#include "taper/benchmarks/bench.h"
#include "taper/core/base/error.h"

namespace bench {
namespace {

void check(int status, const char* call) {
  TAPER_CHECK(status == 0, call, " returns ", status);
}

template <class F> F driver_call(const char* name, F) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  check(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found), name);
  return reinterpret_cast<F>(function);
}

struct DeviceBytes {
  void* data = nullptr;

  explicit DeviceBytes(std::size_t bytes) {
    check(cudaMalloc(&data, bytes), "cudaMalloc");
    check(cudaMemset(data, 0, bytes), "cudaMemset");
  }

  ~DeviceBytes() { cudaFree(data); }

  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
};

}  // namespace

double device_seconds(const std::function<void()>& work) {
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  const auto run = [&](int times) {
    check(cudaEventRecord(begin, nullptr), "cudaEventRecord");
    for (int i = 0; i < times; ++i) work();
    check(cudaEventRecord(end, nullptr), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1000 / times;
  };
  run(1);
  const double once = std::max(run(1), 1e-7);
  const int times = static_cast<int>(std::clamp(0.02 / once, 1.0, 1000.0));
  double best = run(times);
  for (int i = 0; i < 4; ++i) best = std::min(best, run(times));
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return best;
}

double copy_seconds(std::size_t bytes) {
  const DeviceBytes from(bytes), to(bytes);
  return device_seconds([&] {
    check(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice, nullptr),
          "cudaMemcpyAsync");
  });
}

double cublas_seconds(Product kind, int n) {
  const auto type = kind == Product::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
  const auto sum = kind == Product::kF32    ? CUBLAS_COMPUTE_32F_PEDANTIC
                   : kind == Product::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
  constexpr std::size_t kWorkspace = std::size_t{32} << 20;
  const auto bytes = static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * 4;
  const DeviceBytes a(bytes), b(bytes), c(bytes), workspace(kWorkspace);
  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "cublasCreate");
  check(cublasSetStream(handle, nullptr), "cublasSetStream");
  check(cublasSetWorkspace(handle, workspace.data, kWorkspace), "cublasSetWorkspace");
  const float one = 1, zero = 0;
  const double seconds = device_seconds([&] {
    check(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.data, type,
                                     n, 0, b.data, type, n, 0, &zero, c.data, type, n, 0, 1, sum,
                                     CUBLAS_GEMM_DEFAULT),
          "cublasGemmStridedBatchedEx");
  });
  cublasDestroy(handle);
  return seconds;
}

VmmTimes vmm_times(std::size_t bytes) {
  const auto reserve = driver_call("cuMemAddressReserve", &cuMemAddressReserve);
  const auto create = driver_call("cuMemCreate", &cuMemCreate);
  const auto map = driver_call("cuMemMap", &cuMemMap);
  const auto set_access = driver_call("cuMemSetAccess", &cuMemSetAccess);
  const auto unmap = driver_call("cuMemUnmap", &cuMemUnmap);
  const auto release = driver_call("cuMemRelease", &cuMemRelease);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUdeviceptr at = 0;
  check(reserve(&at, bytes, std::size_t{2} << 20, 0, 0), "cuMemAddressReserve");
  std::vector<double> times[5];
  for (int i = 0; i < 20; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    double last = now();
    int step = 0;
    const auto lap = [&](int status, const char* call) {
      check(status, call);
      const double at_end = now();
      times[step++].push_back(1000 * (at_end - last));
      last = at_end;
    };
    lap(create(&handle, bytes, &properties, 0), "cuMemCreate");
    lap(map(at, bytes, 0, handle, 0), "cuMemMap");
    lap(set_access(at, bytes, &access, 1), "cuMemSetAccess");
    lap(unmap(at, bytes), "cuMemUnmap");
    lap(release(handle), "cuMemRelease");
  }
  return {median(times[0]), median(times[1]), median(times[2]), median(times[3]), median(times[4])};
}

}  // namespace bench
