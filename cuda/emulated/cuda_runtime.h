// The face of the CUDA runtime that our .cu files see when g++ compiles them: keywords, types,
// calls.
#pragma once

#include <cstddef>
#include <cstdint>

// Note [CUDA without a GPU]
// This folder stands for the CUDA toolkit in the emulated build: it is put first on the include
// path, so `#include <cuda_runtime.h>` finds this file, and the .cu files are plain C++ to g++. It
// holds exactly the calls that Taper makes; add one when a .cu file needs it. The threads of a
// block are fibers on the OS thread that launches (machine.h), so barriers and warp collectives
// work; blocks run one after another. Environment:
//   TAPER_EMULATED_DEVICES=n        how many devices there are (2)
//   TAPER_EMULATED_MEMORY=size      memory of each (8G; taken from the host as it is touched)
//   TAPER_EMULATED_DRIVER=12.4      the driver is one for CUDA 12.4, too old; none: there is none
//   TAPER_EMULATED_ORDER=reverse    run blocks and threads from the last to the first: a result
//                                   that changes has a race
//   TAPER_EMULATED_STREAMS=late     streams work when somebody waits for them, or, with seeded:n,
//                                   in an order drawn by a seed: a result that changes lacks a wait
//   TAPER_EMULATED_ACCESS=guarded   host code that touches device memory dies, and is told why;
//                                   access.h
//   TAPER_EMULATED_FAIL=name:n=e    the n-th call of cudaMalloc, say, returns error e; failing.h
// settings.cpp reads them. A kernel that spins until another thread acts hangs here: fibers are not
// preempted.
#ifndef TAPER_CUDA_EMULATED
#define TAPER_CUDA_EMULATED 1
#endif

#define __global__
#define __device__
#define __host__
#define __shared__ static  // kernels run one at a time, see Machine::run
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;

  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace taper::emulated {

// What the running CUDA thread reads as threadIdx and so on; the machine keeps it right.
struct Builtins {
  uint3 thread_index, block_index;
  dim3 block_dim, grid_dim;
};

extern constinit thread_local Builtins builtins __attribute__((tls_model("initial-exec")));

}  // namespace taper::emulated

#define threadIdx (::taper::emulated::builtins.thread_index)
#define blockIdx (::taper::emulated::builtins.block_index)
#define blockDim (::taper::emulated::builtins.block_dim)
#define gridDim (::taper::emulated::builtins.grid_dim)
constexpr int warpSize = 32;

// Values and texts are those of CUDA 13. After a fault in a kernel cudaGetErrorString tells what
// the fault was.
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,  // or none at all
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,  // seen when the block is freed
  cudaErrorLaunchTimeout = 702,   // a deadlock: a real device would hang or time out
  // No kernel meets these here.
  cudaErrorAssert = 710,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureMerge = 902,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorStreamCaptureImplicit = 906,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908,
};

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
};

struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

using cudaStream_t = struct CUstream_st*;  // never dereferenced: a name that is looked up
using cudaEvent_t = struct CUevent_st*;
using cudaHostFn_t = void (*)(void*);
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;

enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};

enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess = 0,
  cudaDriverEntryPointSymbolNotFound = 1,
};

constexpr unsigned cudaHostRegisterPortable = 1;
constexpr unsigned long long cudaEnableDefault = 0;
constexpr unsigned cudaStreamDefault = 0;
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0;
constexpr unsigned cudaEventDisableTiming = 2;

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  size_t sharedMemPerBlockOptin;
  size_t sharedMemPerMultiprocessor;
  size_t totalConstMem;
  int regsPerBlock;
  int regsPerMultiprocessor;
  int warpSize;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int major;
  int minor;
  int multiProcessorCount;
  int maxThreadsPerMultiProcessor;
  int maxBlocksPerMultiProcessor;
  int l2CacheSize;
  int memoryBusWidth;
  int unifiedAddressing;
  int concurrentKernels;
  int asyncEngineCount;
};

// Errors
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();

// Devices
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();  // also lifts a sticky fault, which the real one does not promise
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);
// The driver's functions by name; cuda.h declares those that there are.
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol,
                                             void** function,
                                             unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* found);

// Memory
cudaError_t cudaMalloc(void** pointer, size_t bytes);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMallocHost(void** pointer, size_t bytes);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* pointer);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpyPeerAsync(void* to,
                                int to_device,
                                const void* from,
                                int from_device,
                                size_t bytes,
                                cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* pointer, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream = nullptr);

template <class T> cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  void* block = nullptr;
  const cudaError_t status = cudaMalloc(&block, bytes);
  *pointer = static_cast<T*>(block);
  return status;
}

template <class T> cudaError_t cudaMallocHost(T** pointer, size_t bytes) {
  void* block = nullptr;
  const cudaError_t status = cudaMallocHost(&block, bytes);
  *pointer = static_cast<T*>(block);
  return status;
}

// Streams and events
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop);

// Graphs: see Note [Capture] in graphs.h
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
// The capture's number is never 0 and never given twice.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus* status,
                                     unsigned long long* number = nullptr);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec,
                                 cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

#include "taper/cuda/emulated/intrinsics.h"
#include "taper/cuda/emulated/kernel_launch.h"
