// How a kernel is started: by <<<>>> under nvcc, on fibers in the emulated build.
#pragma once

#include <cstddef>
#include <utility>

#include <cuda_runtime.h>

#include "taper/cuda/check.h"
#include "taper/cuda/trail.h"

// Declares `name`, a T* to the launch's shared_bytes, the same for all threads of a block.
#ifdef TAPER_CUDA_EMULATED
#define TAPER_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(::taper::emulated::dynamic_shared())
#else
#define TAPER_DYNAMIC_SHARED(T, name)                                 \
  extern __shared__ __align__(16) unsigned char taper_shared_bytes[]; \
  T* const name = reinterpret_cast<T*>(taper_shared_bytes)
#endif

namespace taper::cuda {

struct LaunchConfig {
  dim3 grid;   // blocks; an empty grid is an error, as in CUDA
  dim3 block;  // threads, at most 1024
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;  // must belong to the current device
  int device = 0;                 // the current one, for errors that name what ran there
};

// Puts one kernel on a stream. Arguments convert to the kernel's parameters at once. Throws Error
// if the launch itself is refused; what goes wrong inside the kernel shows at a later call, which
// names this one.
template <class... Params, class... Args>
void launch(const LaunchConfig& config, void (*kernel)(Params...), Args&&... args) {
  static_assert(sizeof...(Params) == sizeof...(Args), "one argument for each parameter");
  if (config.shared_bytes > (48u << 10)) {  // more must be asked for
    TAPER_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(config.shared_bytes)));
  }
  note_launch(config.device, config.stream);
#ifdef TAPER_CUDA_EMULATED
  const cudaError_t status = emulated::launch(config.grid, config.block, config.shared_bytes,
                                              config.stream, kernel, std::forward<Args>(args)...);
#else
  kernel<<<config.grid, config.block, config.shared_bytes, config.stream>>>(
      static_cast<Params>(std::forward<Args>(args))...);
  const cudaError_t status = cudaGetLastError();
#endif
  if (status != cudaSuccess) throw_cuda_error(status, "cudaLaunchKernel");
}

}  // namespace taper::cuda
