// Properties of the emulated device: barriers, warp collectives, shared memory, atomics, geometry.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#ifdef TAPER_CUDA_EMULATED  // a real device is not ours to test
#include <gtest/gtest.h>

#include "taper/cuda/launch.cuh"
#include "taper/tests/cuda/device_array.h"

namespace taper::cuda {
namespace {

// --- geometry ---

__global__ void write_index(uint64_t* out) {
  const uint64_t block = blockIdx.x + uint64_t{gridDim.x} * (blockIdx.y + gridDim.y * blockIdx.z);
  const uint64_t thread =
      threadIdx.x + uint64_t{blockDim.x} * (threadIdx.y + blockDim.y * threadIdx.z);
  const uint64_t size = uint64_t{blockDim.x} * blockDim.y * blockDim.z;
  out[block * size + thread] += block * 10000 + thread;
}

TEST(EmulatedGeometry, EveryThreadOfEveryBlockRunsOnce) {
  const dim3 grids[] = {{1, 1, 1}, {5, 1, 1}, {2, 3, 4}, {1, 7, 1}};
  const dim3 blocks[] = {{1, 1, 1}, {33, 1, 1}, {4, 8, 2}, {1, 1, 64}, {1024, 1, 1}, {31, 33, 1}};
  for (const dim3 grid : grids) {
    for (const dim3 block : blocks) {
      const size_t threads = size_t{block.x} * block.y * block.z;
      const size_t count = threads * grid.x * grid.y * grid.z;
      DeviceArray<uint64_t> out(std::vector<uint64_t>(count, 7));
      launch({grid, block}, write_index, out.data());
      const std::vector<uint64_t> got = out.host();
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(got[i], 7 + i / threads * 10000 + i % threads);
    }
  }
}

// --- barriers and shared memory ---

// Each thread reads what its neighbour wrote before the barrier, `rounds` times over.
__global__ void rotate(int* values, int rounds) {
  __shared__ int line[1024];
  const unsigned self = threadIdx.x;
  line[self] = values[self];
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    const int next = line[(self + 1) % blockDim.x];
    __syncthreads();
    line[self] = next;
  }
  values[self] = line[self];
}

TEST(EmulatedBarrier, NoThreadPassesBeforeAllHaveCome) {
  for (unsigned threads : {1u, 2u, 31u, 32u, 33u, 64u, 100u, 256u, 1023u, 1024u}) {
    for (int rounds : {0, 1, 2, 7}) {
      std::vector<int> values(threads);
      std::iota(values.begin(), values.end(), 100);
      DeviceArray<int> device(values);
      launch({1, threads}, rotate, device.data(), rounds);
      const std::vector<int> got = device.host();
      for (unsigned i = 0; i < threads; ++i) {
        ASSERT_EQ(got[i], 100 + static_cast<int>((i + static_cast<unsigned>(rounds)) % threads));
      }
    }
  }
}

// Thread i leaves before its i-th barrier; at each barrier the others count who is left.
__global__ void leave_one_by_one(int* seen) {
  __shared__ int left;
  if (threadIdx.x == blockDim.x - 1) left = 0;
  __syncthreads();
  for (unsigned round = 0; round < threadIdx.x; ++round) {
    atomicAdd(&left, 1);
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) {
      seen[round] = left;
      left = 0;
    }
    __syncthreads();
  }
}

TEST(EmulatedBarrier, ThreadsThatHaveEndedDoNotCount) {
  for (unsigned threads : {2u, 32u, 77u, 300u}) {
    DeviceArray<int> seen(std::vector<int>(threads - 1, -1));
    launch({1, threads}, leave_one_by_one, seen.data());
    const std::vector<int> got = seen.host();
    for (unsigned round = 0; round + 1 < threads; ++round) {
      ASSERT_EQ(got[round], static_cast<int>(threads - 1 - round));
    }
  }
}

template <class T> __global__ void reverse_in_dynamic(T* values) {
  TAPER_DYNAMIC_SHARED(T, line);
  line[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  values[blockIdx.x * blockDim.x + threadIdx.x] = line[blockDim.x - 1 - threadIdx.x];
}

template <class T> void check_reverse(unsigned blocks, unsigned threads) {
  std::vector<T> values(blocks * threads);
  std::iota(values.begin(), values.end(), T{1});
  DeviceArray<T> device(values);
  launch({blocks, threads, threads * sizeof(T)}, reverse_in_dynamic<T>, device.data());
  const std::vector<T> got = device.host();
  for (unsigned i = 0; i < blocks * threads; ++i) {
    ASSERT_EQ(got[i], values[i / threads * threads + threads - 1 - i % threads]);
  }
}

TEST(EmulatedShared, DynamicMemoryIsOneBufferForEachBlock) {
  for (unsigned threads : {1u, 45u, 256u, 1024u}) {
    check_reverse<int>(3, threads);
    check_reverse<double>(3, threads);
  }
}

__global__ void read_unwritten(float* out, int bytes) {
  TAPER_DYNAMIC_SHARED(float, line);
  out[blockIdx.x] = line[bytes / 4 - 1];
  line[bytes / 4 - 1] = 1;
}

TEST(EmulatedShared, UnwrittenDynamicMemoryReadsAsNan) {
  DeviceArray<float> out(std::vector<float>(2, 0));
  for (int bytes : {4, 48 << 10, 227 << 10}) {
    launch({2, 1, static_cast<size_t>(bytes)}, read_unwritten, out.data(), bytes);
    for (float x : out.host()) EXPECT_TRUE(std::isnan(x));
  }
}

// --- warp collectives against plain loops ---

enum class Kind { kIndex, kUp, kDown, kXor };

template <class T> __global__ void shuffle(Kind kind, T* values, int operand, int width) {
  const unsigned self = threadIdx.x;
  T got{};
  if (kind == Kind::kIndex) got = __shfl_sync(~0u, values[self], operand, width);
  if (kind == Kind::kUp) got = __shfl_up_sync(~0u, values[self], unsigned(operand), width);
  if (kind == Kind::kDown) got = __shfl_down_sync(~0u, values[self], unsigned(operand), width);
  if (kind == Kind::kXor) got = __shfl_xor_sync(~0u, values[self], operand, width);
  values[self] = got;
}

// The lane that the PTX manual says a lane of a warp gets its value from.
int source_lane(Kind kind, int lane, int operand, int width) {
  const int begin = lane / width * width, end = begin + width;
  int source = lane;
  if (kind == Kind::kIndex) source = begin + operand % width;
  if (kind == Kind::kUp) source = lane - operand;
  if (kind == Kind::kDown) source = lane + operand;
  if (kind == Kind::kXor) source = lane ^ operand;
  if (kind == Kind::kUp && source < begin) source = lane;
  if (kind != Kind::kUp && source >= end) source = lane;
  return source;
}

// Whether a lane of the block would read from one that the block does not have.
bool reads_nobody(int threads, Kind kind, int operand, int width) {
  for (int i = 0; i < threads; ++i) {
    if (i / 32 * 32 + source_lane(kind, i % 32, operand, width) >= threads) return true;
  }
  return false;
}

template <class T> void check_shuffles(int threads) {
  for (Kind kind : {Kind::kIndex, Kind::kUp, Kind::kDown, Kind::kXor}) {
    for (int width : {1, 2, 4, 8, 16, 32}) {
      for (int operand = 0; operand < 32; ++operand) {
        if (reads_nobody(threads, kind, operand, width)) continue;  // an error, see PlantedBug
        std::vector<T> values(static_cast<size_t>(threads));
        for (int i = 0; i < threads; ++i) values[size_t(i)] = static_cast<T>(1.25 * i - 3);
        DeviceArray<T> device(values);
        launch({1, unsigned(threads)}, shuffle<T>, kind, device.data(), operand, width);
        const std::vector<T> got = device.host();
        for (int i = 0; i < threads; ++i) {
          const int from = i / 32 * 32 + source_lane(kind, i % 32, operand, width);
          ASSERT_EQ(got[size_t(i)], values[size_t(from)]) << int(kind) << " " << operand;
        }
      }
    }
  }
}

template <class T> class EmulatedShuffle : public testing::Test {};

using ShuffledTypes = testing::Types<int, unsigned, long long, float, double>;
TYPED_TEST_SUITE(EmulatedShuffle, ShuffledTypes);

TYPED_TEST(EmulatedShuffle, TakesTheLaneThatTheManualSays) {
  for (int threads : {1, 7, 32, 50, 96}) check_shuffles<TypeParam>(threads);
}

// Lanes of the two masks meet separately, in a different order of calls, some of them having left.
__global__ void vote(unsigned mask, const int* predicates, unsigned* out) {
  const unsigned self = threadIdx.x;
  if (self % 5 == 4) return;
  const unsigned mine = (mask >> self) & 1u ? mask : ~mask;
  if (mine != mask) __syncwarp(mine);
  out[self] = __ballot_sync(mine, predicates[self]);
  out[32 + self] = unsigned(__any_sync(mine, predicates[self]));
  out[64 + self] = unsigned(__all_sync(mine, predicates[self]));
}

TEST(EmulatedVote, CountsTheLiveLanesOfTheMaskOnly) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const unsigned mask = unsigned(random()), bits = trial % 3 ? unsigned(random()) : ~0u;
    std::vector<int> predicates(32);
    unsigned alive = 0;
    for (unsigned i = 0; i < 32; ++i) {
      predicates[i] = (bits >> i) & 1u ? 1 << (i % 31) : 0;
      if (i % 5 != 4) alive |= 1u << i;
    }
    DeviceArray<int> device(predicates);
    DeviceArray<unsigned> out(std::vector<unsigned>(96, 77));
    launch({1, 32}, vote, mask, device.data(), out.data());
    const std::vector<unsigned> got = out.host();
    for (unsigned i = 0; i < 32; ++i) {
      const bool lives = ((alive >> i) & 1u) != 0;
      const unsigned voters = alive & ((mask >> i) & 1u ? mask : ~mask);
      ASSERT_EQ(got[i], lives ? bits & voters : 77u);
      ASSERT_EQ(got[32 + i], lives ? unsigned((bits & voters) != 0) : 77u);
      ASSERT_EQ(got[64 + i], lives ? unsigned((bits & voters) == voters) : 77u);
    }
  }
}

// A block's sum as kernels do it: lanes by shuffles, warps through shared memory.
__global__ void block_sum(const double* x, int n, double* out) {
  __shared__ double of_warp[32];
  double sum = 0;
  for (int i = int(threadIdx.x); i < n; i += int(blockDim.x))
    sum += x[blockIdx.x * unsigned(n) + unsigned(i)];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < blockDim.x / 32 ? of_warp[threadIdx.x] : 0;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

TEST(EmulatedShuffle, ABlockSumsItsRow) {
  const int n = 1000, rows = 9;
  std::vector<double> x(size_t(n) * rows);
  std::iota(x.begin(), x.end(), -3000.0);
  DeviceArray<double> device(x), out(std::vector<double>(rows, 0));
  for (unsigned threads : {32u, 128u, 1024u}) {
    launch({rows, threads}, block_sum, device.data(), n, out.data());
    const std::vector<double> got = out.host();
    for (size_t row = 0; row < rows; ++row) {
      const auto begin = x.begin() + long(row) * n;
      ASSERT_EQ(got[row], std::accumulate(begin, begin + n, 0.0));
    }
  }
}

// --- atomics ---

__global__ void use_atomics(
    int* i, float* f, double* d, unsigned long long* u, int* most, int* lock) {
  const int self = int(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(i, self);
  atomicAdd(f, 1.0f);
  atomicAdd(d, 0.5);
  atomicAdd(u, 1ull << 33);
  atomicMax(most, (self * 7919) % 1000);
  atomicMin(most + 1, -self);
  if (atomicCAS(lock, 0, self + 1) == 0) atomicExch(lock + 1, self);
}

TEST(EmulatedAtomics, LoseNothingBetweenThreadsOfTheHost) {
  DeviceArray<int> i(std::vector<int>(1, 0)), most(std::vector<int>(2, 0));
  DeviceArray<int> lock(std::vector<int>(2, 0));
  DeviceArray<float> f(std::vector<float>(1, 0));
  DeviceArray<double> d(std::vector<double>(1, 0));
  DeviceArray<unsigned long long> u(std::vector<unsigned long long>(1, 0));
  const auto work = [&] {
    cudaStream_t stream;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    launch({10, 100, 0, stream}, use_atomics, i.data(), f.data(), d.data(), u.data(), most.data(),
           lock.data());
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(i.host()[0], 4 * 999 * 1000 / 2);
  EXPECT_EQ(f.host()[0], 4000.0f);
  EXPECT_EQ(d.host()[0], 2000.0);
  EXPECT_EQ(u.host()[0], 4000ull << 33);
  EXPECT_EQ(most.host()[0], 999);
  EXPECT_EQ(most.host()[1], -999);
  EXPECT_EQ(lock.host()[0], lock.host()[1] + 1);
}

}  // namespace
}  // namespace taper::cuda

#endif
