// What CUDA's own calls take on the current device: what our kernels are measured by.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace bench {

// Seconds per call, by events on the device's default stream; the best of several.
double device_seconds(const std::function<void()>& work);

double copy_seconds(std::size_t bytes);  // cudaMemcpyAsync from device to device

enum class Product { kF32, kTf32, kBf16 };

// cublasGemmStridedBatchedEx of two n x n matrices.
double cublas_seconds(Product kind, int n);

// Milliseconds of one call of the driver for `bytes` of memory.
struct VmmTimes {
  double create, map, set_access, unmap, release;
};

VmmTimes vmm_times(std::size_t bytes);

}  // namespace bench
