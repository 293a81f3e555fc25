// A device buffer for tests: copied up when made, copied down by host(), freed at the end.
#pragma once

#include <vector>

#include <cuda_runtime.h>

#include "taper/cuda/check.h"

namespace taper::cuda {

template <class T> class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    TAPER_CUDA_CHECK(cudaMalloc(&data_, bytes()));
    TAPER_CUDA_CHECK(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
  }

  ~DeviceArray() { cudaFree(data_); }

  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }

  size_t bytes() const { return size_ * sizeof(T); }

  std::vector<T> host() const {
    std::vector<T> values(size_);
    TAPER_CUDA_CHECK(cudaDeviceSynchronize());
    TAPER_CUDA_CHECK(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

}  // namespace taper::cuda
