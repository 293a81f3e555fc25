// Devices and errors of the emulated runtime.
#include <cstring>
#include <mutex>
#include <utility>

#include "taper/cuda/emulated/failing.h"
#include "taper/cuda/emulated/graphs.h"
#include "taper/cuda/emulated/machine.h"
#include "taper/cuda/emulated/runtime.h"
#include "taper/cuda/emulated/sanitizer.h"

namespace taper::emulated {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t no_devices() {
  return settings().driver < kRuntimeVersion ? cudaErrorInsufficientDriver : cudaErrorNoDevice;
}

bool exists(int device) {
  return device >= 0 && static_cast<size_t>(device) < Runtime::get().devices.size();
}

bool is_fault(cudaError_t error) {
  return error == cudaErrorIllegalAddress || error == cudaErrorLaunchTimeout ||
         error == cudaErrorLaunchFailure;
}

struct ErrorText {
  cudaError_t error;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "invalid resource handle"},
    {cudaErrorIllegalState, "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "device not ready"},
    {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "the launch timed out and was terminated"},
    {cudaErrorLaunchFailure, "unspecified launch failure"},
    {cudaErrorNotSupported, "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge,
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit,
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent,
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread,
     "attempt to terminate a thread-local capture sequence from another thread"},
};

}  // namespace

Runtime& Runtime::get() {
  static Runtime* runtime = new Runtime;  // never destroyed: threads may outlive main
  return *runtime;
}

bool streams_are_late() {
  return Runtime::get().queues();
}

Runtime::Runtime() : seeded(settings().seed) {
  if (settings().driver < kRuntimeVersion) return;
  for (int device = 0; device < settings().devices; ++device) {
    auto stream = std::make_shared<Stream>();
    stream->device = device;
    stream->is_default = true;
    devices.emplace_back().default_stream = stream;
  }
}

std::shared_ptr<Stream> Runtime::stream(cudaStream_t name) {
  if (name == nullptr) return devices[static_cast<size_t>(current_device())].default_stream;
  std::lock_guard guard(lock);
  const auto found = streams.find(name);
  return found == streams.end() ? nullptr : found->second;
}

std::shared_ptr<Event> Runtime::event(cudaEvent_t name) {
  std::lock_guard guard(lock);
  const auto found = events.find(name);
  return found == events.end() ? nullptr : found->second;
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

cudaError_t tell(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t fault_of(int device) {
  Runtime& runtime = Runtime::get();
  if (runtime.devices.empty()) return no_devices();
  std::lock_guard guard(runtime.lock);
  return runtime.devices[static_cast<size_t>(device)].fault;
}

void set_fault(int device, cudaError_t fault, const std::string& text) {
  Runtime& runtime = Runtime::get();
  std::lock_guard guard(runtime.lock);
  Device& broken = runtime.devices[static_cast<size_t>(device)];
  if (broken.fault != cudaSuccess) return;
  broken.fault = fault;
  broken.fault_text = text;
}

}  // namespace taper::emulated

using namespace taper::emulated;

const char* cudaGetErrorString(cudaError_t error) {
  if (is_fault(error) && fault_of(current_device()) == error) {
    Runtime& runtime = Runtime::get();
    std::lock_guard guard(runtime.lock);
    return runtime.devices[static_cast<size_t>(current_device())].fault_text.c_str();
  }
  for (const ErrorText& row : kErrors) {
    if (row.error == error) return row.text;
  }
  return "unrecognized error code";
}

// A fault does not go away.
cudaError_t cudaGetLastError() {
  const bool any = !Runtime::get().devices.empty();
  const cudaError_t fault = any ? fault_of(current_device()) : cudaSuccess;
  const cudaError_t last = std::exchange(last_error, cudaSuccess);
  return fault != cudaSuccess ? fault : last;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  *count = static_cast<int>(Runtime::get().devices.size());
  return *count == 0 ? tell(no_devices()) : cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (!exists(device)) return tell(cudaErrorInvalidDevice);
  current_device() = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (Runtime::get().devices.empty()) return tell(no_devices());
  *device = current_device();
  return cudaSuccess;
}

// The figures of an H100 SXM, except for its memory.
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (!exists(device)) return tell(cudaErrorInvalidDevice);
  cudaDeviceProp out{};
  std::strcpy(out.name, "Taper emulated sm_90");
  out.totalGlobalMem = settings().memory;
  out.sharedMemPerBlock = 48 << 10;
  out.sharedMemPerBlockOptin = kMaxShared;
  out.sharedMemPerMultiprocessor = 228 << 10;
  out.totalConstMem = 64 << 10;
  out.regsPerBlock = out.regsPerMultiprocessor = 64 << 10;
  out.warpSize = kWarp;
  out.maxThreadsPerBlock = kMaxThreads;
  out.maxThreadsDim[0] = out.maxThreadsDim[1] = kMaxThreads;
  out.maxThreadsDim[2] = 64;
  out.maxGridSize[0] = 0x7fffffff;
  out.maxGridSize[1] = out.maxGridSize[2] = 65535;
  out.major = 9;
  out.minor = 0;
  out.multiProcessorCount = 132;
  out.maxThreadsPerMultiProcessor = 2048;
  out.maxBlocksPerMultiProcessor = 32;
  out.l2CacheSize = 50 << 20;
  out.memoryBusWidth = 5120;
  out.unifiedAddressing = 1;
  out.concurrentKernels = 1;
  out.asyncEngineCount = 3;
  *properties = out;
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  if (!exists(current_device())) return tell(cudaErrorNoDevice);
  drain_device(current_device());
  release_memory(current_device());
  Runtime& runtime = Runtime::get();
  std::lock_guard guard(runtime.lock);
  std::erase_if(runtime.streams,
                [](const auto& entry) { return entry.second->device == current_device(); });
  std::erase_if(runtime.events,
                [](const auto& entry) { return entry.second->device == current_device(); });
  runtime.devices[static_cast<size_t>(current_device())].fault = cudaSuccess;
  last_error = cudaSuccess;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  *version = kRuntimeVersion;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  *version = settings().driver;
  return cudaSuccess;
}
