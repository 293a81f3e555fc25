// Host code that touches device memory, with and without the guard.
#include <csignal>
#include <cstdlib>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "taper/cuda/launch.cuh"
#include "taper/taper.h"
#include "taper/tests/cuda/again.h"

namespace taper::cuda {
namespace {

__global__ void add_one(float* x, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] += 1;
}

void read_block() {
  float* block = nullptr;
  TAPER_CUDA_CHECK(cudaMalloc(&block, 100 * sizeof(float)));
  TAPER_CUDA_CHECK(cudaMemset(block, 0, 100 * sizeof(float)));
  launch({4, 32}, add_one, block, 100);
  TAPER_CUDA_CHECK(cudaDeviceSynchronize());
  std::exit(static_cast<volatile float*>(block)[7] == 1 ? 0 : 1);
}

void read_tensor() {
  const Tensor x = ones({100}, kFloat32).to(Device(kCUDA, 1)) + 1;
  TAPER_CUDA_CHECK(cudaSetDevice(1));
  TAPER_CUDA_CHECK(cudaDeviceSynchronize());
  std::exit(static_cast<volatile float*>(x.data_ptr<float>())[7] == 2 ? 0 : 1);
}

void read_freed() {
  float* block = nullptr;
  TAPER_CUDA_CHECK(cudaMalloc(&block, 100 * sizeof(float)));
  TAPER_CUDA_CHECK(cudaFree(block));
  std::exit(static_cast<volatile float*>(block)[7] == 1 ? 0 : 1);
}

void use_freed() {
  float* block = nullptr;
  TAPER_CUDA_CHECK(cudaMalloc(&block, 100 * sizeof(float)));
  TAPER_CUDA_CHECK(cudaFree(block));
  launch({4, 32}, add_one, block, 100);
  TAPER_CUDA_CHECK(cudaDeviceSynchronize());
  std::exit(0);
}

class GuardedAccess : public testing::Test {
 protected:
  GuardedAccess() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // the child reads the environment anew
    setenv("TAPER_EMULATED_ACCESS", "guarded", 1);
  }

  ~GuardedAccess() override { unsetenv("TAPER_EMULATED_ACCESS"); }
};

TEST_F(GuardedAccess, TheHostDiesByReadingDeviceMemory) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer ends the process its own way";
#endif
  const testing::KilledBySignal dies(SIGSEGV);
  EXPECT_EXIT(read_block(), dies, "the host touched 0x[0-9a-f]+, which is memory of cuda:0: copy");
  EXPECT_EXIT(read_tensor(), dies, "the host touched 0x[0-9a-f]+, which is memory of cuda:1: copy");
  EXPECT_EXIT(read_freed(), dies, "where nothing is: it was freed");
  EXPECT_EXIT(use_freed(), dies,
              "block \\([0-9, ]+\\), thread \\([0-9, ]+\\) touched 0x[0-9a-f]+, "
              "where nothing is");
}

TEST_F(GuardedAccess, WithoutTheGuardTheHostReadsIt) {
  unsetenv("TAPER_EMULATED_ACCESS");
  EXPECT_EXIT(read_block(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(read_tensor(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace taper::cuda
