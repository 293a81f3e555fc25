// The allocator of a device: blocks, their reuse in the order of streams, and running out.
#include <vector>

#include <gtest/gtest.h>

#include "taper/allocator/allocator.h"
#include "taper/core/storage.h"
#include "taper/cuda/launch.cuh"
#include "taper/cuda/runtime.h"

namespace taper::cuda {
namespace {

Allocator& device(int index) {
  return allocator_for(Device(kCUDA, index));
}

TEST(CudaAllocator, GivesAlignedBlocksAndReusesThemOnTheirStream) {
  const StreamId other = make_stream(0);
  const AllocatorStats before = device(0).stats();
  const Block first = device(0).allocate(1000, 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % kBlockBytes, 0u);
  EXPECT_EQ(first.bytes, 1024u);
  EXPECT_EQ(device(0).stats().allocated - before.allocated, 1024u);
  EXPECT_EQ(device(0).stats().requested - before.requested, 1000u);
  device(0).free(first, 1000, 0);
  EXPECT_EQ(device(0).stats().allocated, before.allocated);
  const Block elsewhere = device(0).allocate(1000, other);
  const Block second = device(0).allocate(900, 0);
  EXPECT_NE(elsewhere.data, first.data);
  EXPECT_EQ(second.data, first.data);
  device(0).free(elsewhere, 1000, other);
  device(0).free(second, 900, 0);
  EXPECT_EQ(device(0).allocate(0, 0).data, nullptr);
}

TEST(CudaAllocator, LivesOnItsDevice) {
  if (device_count() < 2) GTEST_SKIP() << "needs two devices";
  const AllocatorStats first = device(0).stats();
  const Block block = device(1).allocate(4096, 0);
  EXPECT_EQ(device(0).stats().allocated, first.allocated);
  EXPECT_EQ(cudaMemset(block.data, 0, 4096), cudaSuccess);
  device(1).free(block, 4096, 0);
  EXPECT_THROW(cuda::stream_of(Device(kCUDA, 1), 12345), Error);
  EXPECT_THROW(device(device_count()), Error);
}

TEST(CudaAllocator, RunsOutWithATextAndGivesItsCacheBack) {
  size_t available = 0, total = 0;
  device(0).empty_cache();
  ASSERT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
  const size_t half = available / 2 / kBlockBytes * kBlockBytes;
  const Block first = device(0).allocate(half, 0);
  device(0).free(first, half, 0);
  const Block larger = device(0).allocate(half + half / 2, 0);  // only if `first` is given back
  EXPECT_NE(larger.data, nullptr);
  try {
    device(0).allocate(half, 0);
    FAIL() << "there is not so much memory";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("out of memory on cuda:0"), std::string::npos);
  }
  device(0).free(larger, half + half / 2, 0);
  device(0).empty_cache();
  size_t now = 0;
  ASSERT_EQ(cudaMemGetInfo(&now, &total), cudaSuccess);
  EXPECT_GE(now, available);
}

TEST(CudaAllocator, PagesMoveBeforeMemoryRunsOut) {
  device(0).empty_cache();
  size_t available = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
  const size_t piece = available / 16 / kPageBytes * kPageBytes;
  std::vector<Block> blocks;
  for (int i = 0; i < 15; ++i) blocks.push_back(device(0).allocate(piece, 0));
  for (size_t i = 0; i < blocks.size(); i += 2) device(0).free(blocks[i], piece, 0);
  const Block large = device(0).allocate(7 * piece, 0);  // no 7 of the 8 free pieces are neighbours
  EXPECT_NE(large.data, nullptr);
  EXPECT_EQ(cudaMemset(static_cast<char*>(large.data) + 7 * piece - 512, 1, 512), cudaSuccess);
  device(0).free(large, 7 * piece, 0);
  for (size_t i = 1; i < blocks.size(); i += 2) device(0).free(blocks[i], piece, 0);
  device(0).empty_cache();
}

TEST(PinnedAllocator, ItsMemoryIsKnownToTheDevice) {
  Allocator& pinned = pinned_allocator();
  const Block block = pinned.allocate(5'000'000, 0);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, block.data), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  pinned.free(block, 5'000'000, 0);
  pinned.empty_cache();
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, block.data), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(pinned.stats().reserved, 0u);
}

// A pool of powers of two would hold twice as much (pytorch#95827).
TEST(PinnedAllocator, ASmallBlockDoesNotCostALargeOne) {
  Allocator& pinned = pinned_allocator();
  constexpr size_t kLarge = size_t{40} << 20, kSmall = 10'000;
  const Block first = pinned.allocate(kLarge, 0);
  pinned.free(first, kLarge, 0);
  const Block small = pinned.allocate(kSmall, 0);
  const Block second = pinned.allocate(kLarge, 0);
  EXPECT_LE(pinned.stats().reserved_peak, kLarge + kPageBytes);
  pinned.free(small, kSmall, 0);
  pinned.free(second, kLarge, 0);
  pinned.empty_cache();
}

__global__ void set_to(int* x, int value) {
  *x = value;
}

__global__ void copy_one(int* to, const int* from) {
  *to = *from;
}

// The reader's stream is late; the block's next owner must not write before it has read.
TEST(CudaAllocator, ABlockUsedOnAnotherStreamIsReusedAfterThatUse) {
  const Device here(kCUDA, 0);
  const StreamId owner = make_stream(0), reader = make_stream(0);
  const Block block = device(0).allocate(sizeof(int), owner);
  const Block result = device(0).allocate(sizeof(int), reader);
  int* x = static_cast<int*>(block.data);
  launch({1, 1, 0, stream_of(here, owner)}, set_to, x, 5);
  ASSERT_EQ(cudaStreamSynchronize(stream_of(here, owner)), cudaSuccess);
  launch({1, 1, 0, stream_of(here, reader)}, copy_one, static_cast<int*>(result.data), x);
  device(0).record_stream(block, reader);
  device(0).free(block, sizeof(int), owner);
  const Block next = device(0).allocate(sizeof(int), owner);
  ASSERT_EQ(next.data, block.data);
  launch({1, 1, 0, stream_of(here, owner)}, set_to, static_cast<int*>(next.data), 9);
  ASSERT_EQ(cudaStreamSynchronize(stream_of(here, owner)), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_of(here, reader)), cudaSuccess);
  int got = 0;
  ASSERT_EQ(cudaMemcpy(&got, result.data, sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(got, 5);
  device(0).free(next, sizeof(int), owner);
  device(0).free(result, sizeof(int), reader);
}

}  // namespace
}  // namespace taper::cuda
