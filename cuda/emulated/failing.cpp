// Counts calls by their names, and fails one.
#include "taper/cuda/emulated/failing.h"

#include <atomic>
#include <mutex>

#include "taper/core/base/error.h"
#include "taper/cuda/emulated/settings.h"

namespace taper::emulated {
namespace {

// All that are counted, each between spaces.
constexpr std::string_view kCalls =
    " cuMemAddressReserve cuMemCreate cuMemMap cuMemRelease cuMemSetAccess cuMemUnmap "
    "cublasCreate cublasDestroy cublasGemmStridedBatchedEx cublasLtMatmul "
    "cublasLtMatmulAlgoGetHeuristic cublasLtMatmulDescInit cublasLtMatmulDescSetAttribute "
    "cublasLtMatmulPreferenceInit cublasLtMatmulPreferenceSetAttribute "
    "cublasLtMatrixLayoutInit cublasLtMatrixLayoutSetAttribute cublasSetMathMode "
    "cublasSetStream cublasSetWorkspace cudaDeviceGetStreamPriorityRange cudaDeviceReset "
    "cudaDeviceSynchronize cudaDriverGetVersion cudaEventCreate cudaEventCreateWithFlags "
    "cudaEventDestroy cudaEventElapsedTime cudaEventQuery cudaEventRecord "
    "cudaEventSynchronize cudaFree cudaFreeHost cudaFuncSetAttribute cudaGetDevice "
    "cudaGetDeviceCount cudaGetDeviceProperties cudaGetDriverEntryPointByVersion "
    "cudaGraphDestroy cudaGraphExecDestroy cudaGraphInstantiate cudaGraphLaunch "
    "cudaHostRegister cudaHostUnregister cudaLaunchHostFunc cudaLaunchKernel cudaMalloc "
    "cudaMallocHost cudaMemGetInfo cudaMemcpy cudaMemcpyAsync cudaMemcpyPeerAsync "
    "cudaMemset cudaMemsetAsync cudaPointerGetAttributes cudaRuntimeGetVersion "
    "cudaSetDevice cudaStreamBeginCapture cudaStreamCreate cudaStreamCreateWithFlags "
    "cudaStreamCreateWithPriority cudaStreamDestroy cudaStreamEndCapture "
    "cudaStreamGetCaptureInfo cudaStreamQuery cudaStreamSynchronize cudaStreamWaitEvent "
    "cudaThreadExchangeStreamCaptureMode ";

struct Calls {
  std::atomic<bool> watched;  // until then a call costs one load
  std::mutex lock;
  std::map<std::string, long> counts;
  std::string failing;
  long number;
  int error;

  Calls()
      : watched(!settings().failing.empty()),
        failing(settings().failing),
        number(settings().number),
        error(settings().error) {}
};

Calls& counts() {
  static Calls* calls = new Calls;
  return *calls;
}

}  // namespace

bool is_call(std::string_view name) {
  return kCalls.find(str(" ", name, " ")) != std::string_view::npos;
}

std::string_view all_calls() {
  return kCalls.substr(1, kCalls.size() - 2);
}

void count_calls() {
  Calls& calls = counts();
  const std::lock_guard guard(calls.lock);
  calls.counts.clear();
  calls.failing.clear();
  calls.watched = true;
}

std::map<std::string, long> counted_calls() {
  Calls& calls = counts();
  const std::lock_guard guard(calls.lock);
  return calls.counts;
}

void fail_call(const std::string& name, long number, int error) {
  count_calls();
  Calls& calls = counts();
  const std::lock_guard guard(calls.lock);
  calls.failing = name;
  calls.number = number;
  calls.error = error;
}

cudaError_t injected(const char* name) {
  Calls& calls = counts();
  if (!calls.watched.load(std::memory_order_relaxed)) return cudaSuccess;
  TAPER_ASSERT(is_call(name));
  const std::lock_guard guard(calls.lock);
  const long count = ++calls.counts[name];
  const bool fails = calls.failing == name && calls.number == count;
  return fails ? static_cast<cudaError_t>(calls.error) : cudaSuccess;
}

}  // namespace taper::emulated
