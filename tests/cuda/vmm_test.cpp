// The emulated driver's virtual memory: what it maps, what it refuses, and what stale addresses do.
#include <cuda.h>
#include <gtest/gtest.h>

#include "taper/cuda/emulated/runtime.h"

namespace taper::cuda {
namespace {

constexpr size_t kPage = size_t{2} << 20;

struct Space {
  Space() { EXPECT_EQ(cuMemAddressReserve(&at, 8 * kPage, kPage, 0, 0), CUDA_SUCCESS); }

  CUresult map(size_t page, CUmemGenericAllocationHandle handle, int reached_by = 0) {
    const CUresult mapped = cuMemMap(at + page * kPage, kPage, 0, handle, 0);
    if (mapped != CUDA_SUCCESS) return mapped;
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, reached_by},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return cuMemSetAccess(at + page * kPage, kPage, &access, 1);
  }

  void* page(size_t number) const { return reinterpret_cast<void*>(at + number * kPage); }

  CUdeviceptr at = 0;
};

CUmemGenericAllocationHandle make_page(int device = 0) {
  CUmemAllocationProp properties{CU_MEM_ALLOCATION_TYPE_PINNED,
                                 {CU_MEM_LOCATION_TYPE_DEVICE, device}};
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, kPage, &properties, 0), CUDA_SUCCESS);
  return handle;
}

size_t free_bytes() {
  size_t free = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

TEST(EmulatedVmm, APageTakesItsContentsAlong) {
  const size_t before = free_bytes();
  Space space;
  const CUmemGenericAllocationHandle page = make_page();
  EXPECT_EQ(before - free_bytes(), kPage);
  ASSERT_EQ(space.map(1, page), CUDA_SUCCESS);
  const int sent = 42;
  ASSERT_EQ(cudaMemcpy(space.page(1), &sent, sizeof sent, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cuMemUnmap(space.at + kPage, kPage), CUDA_SUCCESS);
  ASSERT_EQ(space.map(5, page), CUDA_SUCCESS);
  int got = 0;
  ASSERT_EQ(cudaMemcpy(&got, space.page(5), sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(got, sent);
  // The old address is known for what it is.
  EXPECT_EQ(cudaMemcpy(&got, space.page(1), sizeof got, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
  EXPECT_EQ(cuMemRelease(page), CUDA_SUCCESS);  // it lives on while it is mapped
  EXPECT_EQ(before - free_bytes(), kPage);
  EXPECT_EQ(cuMemUnmap(space.at + 5 * kPage, kPage), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
}

TEST(EmulatedVmm, ACopyMayCrossPagesButNotLeaveThem) {
  Space space;
  const CUmemGenericAllocationHandle first = make_page(), second = make_page();
  ASSERT_EQ(space.map(0, first), CUDA_SUCCESS);
  ASSERT_EQ(space.map(1, second), CUDA_SUCCESS);
  EXPECT_EQ(cudaMemset(space.page(0), 0, 2 * kPage), cudaSuccess);
  EXPECT_EQ(cudaMemset(space.page(0), 0, 2 * kPage + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(space.page(2), 0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // a late fill comes before the end of its pages
  EXPECT_EQ(cuMemUnmap(space.at, 2 * kPage), CUDA_SUCCESS);
  cuMemRelease(first);
  cuMemRelease(second);
}

TEST(EmulatedVmm, RefusesWhatTheDriverRefuses) {
  Space space;
  const CUmemGenericAllocationHandle page = make_page();
  ASSERT_EQ(space.map(0, page), CUDA_SUCCESS);
  EXPECT_EQ(space.map(0, page), CUDA_ERROR_INVALID_VALUE);                         // taken
  EXPECT_EQ(cuMemMap(space.at + 1, kPage, 0, page, 0), CUDA_ERROR_INVALID_VALUE);  // no page
  EXPECT_EQ(cuMemMap(space.at + 8 * kPage, kPage, 0, page, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(space.at + kPage, kPage, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(space.at + kPage, kPage), CUDA_ERROR_INVALID_VALUE);  // nothing there
  EXPECT_EQ(cuMemUnmap(space.at, kPage), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(page), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(page), CUDA_ERROR_INVALID_VALUE);
  CUmemAllocationProp properties{CU_MEM_ALLOCATION_TYPE_PINNED, {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(cuMemCreate(&handle, kPage + 1, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      cuMemCreate(&handle, emulated::settings().memory / kPage * kPage + kPage, &properties, 0),
      CUDA_ERROR_OUT_OF_MEMORY);
}

// As on real devices without peer access; a copy between two of them names both.
TEST(EmulatedVmm, ADeviceReachesWhatItWasGivenAccessTo) {
  Space space;
  const CUmemGenericAllocationHandle own = make_page(0), other = make_page(1), given = make_page(1);
  ASSERT_EQ(space.map(0, own, 0), CUDA_SUCCESS);
  ASSERT_EQ(space.map(1, other, 1), CUDA_SUCCESS);
  ASSERT_EQ(space.map(2, given, 0), CUDA_SUCCESS);
  const auto copy = [&](size_t to, size_t from) {
    return cudaMemcpyAsync(space.page(to), space.page(from), 8, cudaMemcpyDefault);
  };
  const auto peer_copy = [&](size_t to, int to_device, size_t from, int from_device) {
    return cudaMemcpyPeerAsync(space.page(to), to_device, space.page(from), from_device, 8);
  };
  EXPECT_EQ(copy(1, 0), cudaErrorInvalidValue);
  EXPECT_EQ(copy(0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(copy(2, 0), cudaSuccess);
  EXPECT_EQ(peer_copy(1, 1, 0, 0), cudaSuccess);
  EXPECT_EQ(peer_copy(0, 0, 1, 1), cudaSuccess);
  EXPECT_EQ(peer_copy(1, 0, 0, 0), cudaErrorInvalidValue);  // it is not that device's
  EXPECT_EQ(peer_copy(2, 1, 0, 0), cudaErrorInvalidValue);  // its own, without access
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cuMemUnmap(space.at, 3 * kPage), CUDA_SUCCESS);
  for (const auto page : {own, other, given}) EXPECT_EQ(cuMemRelease(page), CUDA_SUCCESS);
  cudaGetLastError();
}

}  // namespace
}  // namespace taper::cuda
