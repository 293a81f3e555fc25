// Bugs that kernels and their callers have, planted: each is caught, and its cure passes.
#include <csignal>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "taper/cuda/launch.cuh"
#include "taper/taper.h"
#include "taper/tests/cuda/again.h"
#include "taper/tests/cuda/device_array.h"

namespace taper::cuda {
namespace {

// What a launch and the wait for it throw; leaves the device as new.
template <class... Params, class... Args>
std::string fault(dim3 grid, dim3 block, void (*kernel)(Params...), Args... args) {
  std::string text;
  try {
    launch({grid, block}, kernel, args...);
    TAPER_CUDA_CHECK(cudaDeviceSynchronize());
  } catch (const Error& error) {
    text = error.message();
  }
  cudaDeviceReset();
  return text;
}

// --- a missing barrier ---

template <bool kWaits> __global__ void take_from_the_left(int* x) {
  __shared__ int line[256];
  const unsigned self = threadIdx.x;
  line[self] = x[self];
  if (kWaits) __syncthreads();
  x[self] = self == 0 ? 0 : line[self - 1];
}

template <bool kWaits> void check_take_from_the_left() {
  std::vector<int> values(256);
  std::iota(values.begin(), values.end(), 1);
  DeviceArray<int> x(values);
  launch({1, 256}, take_from_the_left<kWaits>, x.data());
  const std::vector<int> got = x.host();
  int wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != static_cast<int>(i);
  EXPECT_EQ(wrong, 0) << "read from the left";
}

TEST(PlantedBug, DISABLED_MissingBarrier) {
  check_take_from_the_left<false>();
}

TEST(PlantedBug, DISABLED_Barrier) {
  check_take_from_the_left<true>();
}

// Threads run one after another, so that a thread that reads what an earlier one wrote is right by
// luck. In reverse it reads what nobody has written.
TEST(PlantedBug, AMissingBarrierIsSeenInReverseOrder) {
  const std::string reverse = "TAPER_EMULATED_ORDER=reverse", bug = "PlantedBug.DISABLED_Missing";
  EXPECT_TRUE(run_again("", bug + "Barrier").passed());
  const Rerun caught = run_again(reverse, bug + "Barrier");
  EXPECT_FALSE(caught.passed());
  EXPECT_NE(caught.output.find("read from the left"), std::string::npos) << caught.output;
  EXPECT_TRUE(run_again(reverse, "PlantedBug.DISABLED_Barrier").passed());
}

// --- a missing wait between streams ---

__global__ void set_to(int* x, int value) {
  *x = value;
}

__global__ void copy_one(int* to, const int* from) {
  *to = *from;
}

// Writes on one stream and reads on another, 20 times over. The next round's write must come after
// the read, too.
void check_two_streams(bool wait_for_write, bool wait_for_read) {
  DeviceArray<int> x({-1}), got(std::vector<int>(20, -1));
  cudaStream_t writer, reader;
  cudaEvent_t written, read;
  ASSERT_EQ(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&written, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&read, cudaEventDisableTiming), cudaSuccess);
  for (int round = 0; round < 20; ++round) {
    if (wait_for_read) {
      ASSERT_EQ(cudaStreamWaitEvent(writer, read), cudaSuccess);
    }
    launch({1, 1, 0, writer}, set_to, x.data(), round);
    ASSERT_EQ(cudaEventRecord(written, writer), cudaSuccess);
    if (wait_for_write) {
      ASSERT_EQ(cudaStreamWaitEvent(reader, written), cudaSuccess);
    }
    launch({1, 1, 0, reader}, copy_one, got.data() + round, x.data());
    ASSERT_EQ(cudaEventRecord(read, reader), cudaSuccess);
  }
  const std::vector<int> values = got.host();
  int early = 0, late = 0;
  for (int round = 0; round < 20; ++round) {
    early += values[size_t(round)] < round;
    late += values[size_t(round)] > round;
  }
  EXPECT_EQ(early, 0) << "read before it was written";
  EXPECT_EQ(late, 0) << "read after it was overwritten";
  for (cudaStream_t stream : {writer, reader}) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  for (cudaEvent_t event : {written, read}) EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(PlantedBug, DISABLED_MissingWaitForTheWrite) {
  check_two_streams(false, true);
}

TEST(PlantedBug, DISABLED_MissingWaitForTheRead) {
  check_two_streams(true, false);
}

TEST(PlantedBug, DISABLED_Waits) {
  check_two_streams(true, true);
}

TEST(PlantedBug, AMissingWaitIsSeenInEverySeededOrder) {
  const std::string bug = "PlantedBug.DISABLED_MissingWait";
  EXPECT_TRUE(run_again("", bug + "*").passed());  // when work is done at once
  for (int seed = 1; seed <= 5; ++seed) {
    const std::string setting = "TAPER_EMULATED_STREAMS=seeded:" + std::to_string(seed);
    const Rerun early = run_again(setting, bug + "ForTheWrite");
    EXPECT_NE(early.output.find("read before it was written"), std::string::npos) << seed;
    const Rerun late = run_again(setting, bug + "ForTheRead");
    EXPECT_NE(late.output.find("read after it was overwritten"), std::string::npos) << seed;
    EXPECT_TRUE(run_again(setting, "PlantedBug.DISABLED_Waits").passed()) << seed;
  }
}

// --- a grid that is off by one ---

__global__ void square_some(float* x, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] = float(i) * float(i);
}

void write_squares(int blocks, int n_told, int n) {
  float* x = nullptr;
  TAPER_CUDA_CHECK(cudaMalloc(&x, size_t(n) * sizeof(float)));
  launch({unsigned(blocks), 32}, square_some, x, n_told);
  std::vector<float> got(static_cast<size_t>(n));
  TAPER_CUDA_CHECK(cudaMemcpy(got.data(), x, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  TAPER_CUDA_CHECK(cudaFree(x));
  for (int i = 0; i < n; ++i)
    TAPER_CHECK(got[size_t(i)] == float(i * i), "element ", i, " is wrong");
}

std::string told_of_squares(int blocks, int n_told, int n) {
  std::string text;
  try {
    write_squares(blocks, n_told, n);
  } catch (const Error& error) {
    text = error.message();
  }
  cudaDeviceReset();
  return text;
}

TEST(PlantedBug, AGridOneBlockShortLeavesNan) {
  EXPECT_EQ(told_of_squares(4, 100, 100), "");
  EXPECT_EQ(told_of_squares(3, 100, 100), "element 96 is wrong");
}

TEST(PlantedBug, AThreadTooManyIsSeen) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(write_squares(4, 101, 100), "AddressSanitizer: use-after-poison");
#else
  EXPECT_NE(told_of_squares(4, 101, 100).find("byte 400 of a block of 400 bytes"),
            std::string::npos);
#endif
}

// --- a barrier that not all threads come to ---

template <bool kInBranch> __global__ void barrier_of_some() {
  if (!kInBranch || threadIdx.x < 7) __syncthreads();
  __syncthreads();
}

template <bool kInBranch> __global__ void barrier_in_each_branch() {
  if (kInBranch && threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void barrier_and_warp(unsigned threads) {
  if (threadIdx.x < threads) __syncwarp();
  else __syncthreads();
}

void expect_two_places(const std::string& told, const char* thread, const char* other) {
  for (const std::string& part :
       {str("block (0, 0, 0): thread ", thread,
            ": waits at __syncthreads in planted_bugs_test.cpp:"),
        str(", and thread ", other, " at that in planted_bugs_test.cpp:")}) {
    EXPECT_NE(told.find(part), std::string::npos) << told;
  }
}

TEST(PlantedBug, ABarrierInABranchIsTold) {
  EXPECT_EQ(fault(2, 64, barrier_of_some<false>), "");
  EXPECT_EQ(fault(2, 64, barrier_in_each_branch<false>), "");
  expect_two_places(fault(2, 64, barrier_of_some<true>), "(7, 0, 0)", "(0, 0, 0)");
  expect_two_places(fault(2, 64, barrier_in_each_branch<true>), "(1, 0, 0)", "(0, 0, 0)");
  EXPECT_NE(fault(1, 32, barrier_and_warp, 16u).find("16 wait at __syncthreads, 16 in a warp"),
            std::string::npos);
}

// --- lanes that miss each other ---

template <bool kInBranch> __global__ void sync_half_a_warp(int* out) {
  if (!kInBranch || threadIdx.x < 16) __syncwarp();
  out[threadIdx.x] = 1;
  __syncwarp();
}

template <bool kEnds> __global__ void take_from_the_next(int* out) {
  if (kEnds && threadIdx.x == 5) return;
  out[threadIdx.x] = __shfl_down_sync(~0u, int(threadIdx.x), 1);
}

TEST(PlantedBug, LanesThatMissEachOtherAreTold) {
  std::vector<int> out(32);
  EXPECT_EQ(fault(1, 32, sync_half_a_warp<false>, out.data()), "");
  const std::string half = fault(1, 32, sync_half_a_warp<true>, out.data());
  EXPECT_NE(half.find("thread (16, 0, 0): is at the warp's function in planted_bugs_test.cpp:"),
            std::string::npos)
      << half;
  EXPECT_EQ(fault(1, 32, take_from_the_next<false>, out.data()), "");
  const std::string ended = fault(1, 32, take_from_the_next<true>, out.data());
  EXPECT_NE(ended.find("thread (4, 0, 0): reads from lane 5"), std::string::npos) << ended;
  // Nor has a block of 20 threads a lane 20.
  EXPECT_NE(fault(1, 20, take_from_the_next<false>, out.data()).find("reads from lane 20"),
            std::string::npos);
}

// --- a wrong mask of lanes ---

__global__ void sum_with(unsigned mask, float* out) {
  float sum = 1;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(mask, sum, step);
  out[threadIdx.x] = sum;
}

__global__ void sum_in_a_branch(unsigned mask, float* out) {
  float sum = 1;
  if (threadIdx.x < 16) {
    for (int step = 8; step > 0; step /= 2) sum += __shfl_xor_sync(mask, sum, step);
  }
  __syncthreads();
  out[threadIdx.x] = sum;
}

TEST(PlantedBug, AWrongMaskIsTold) {
  std::vector<float> out(32);
  EXPECT_EQ(fault(1, 32, sum_with, ~0u, out.data()), "");
  EXPECT_EQ(out[31], 32);
  EXPECT_NE(fault(1, 32, sum_with, 0xffffu, out.data()).find("reads from lane 16"),
            std::string::npos);
  EXPECT_EQ(fault(1, 32, sum_in_a_branch, 0xffffu, out.data()), "");
  EXPECT_EQ(out[15], 16);
  EXPECT_NE(fault(1, 32, sum_in_a_branch, ~0u, out.data()).find("waits for lanes that never come"),
            std::string::npos);
}

// --- use after free ---

__global__ void add_one(float* x) {
  x[threadIdx.x] += 1;
}

void use_freed_block() {
  DeviceArray<float> here({1, 2, 3});
  float* freed = nullptr;
  TAPER_CUDA_CHECK(cudaMalloc(&freed, 32 * sizeof(float)));
  TAPER_CUDA_CHECK(cudaFree(freed));
  launch({1, 32}, add_one, freed);
  TAPER_CUDA_CHECK(cudaDeviceSynchronize());
}

#if defined(__SANITIZE_ADDRESS__)
// A freed tensor's memory stays the allocator's, so that only AddressSanitizer can know.
void use_freed_tensor() {
  float* freed = ones({32}, kFloat32).to(Device(kCUDA, 0)).data_ptr<float>();
  launch({1, 32}, add_one, freed);
  TAPER_CUDA_CHECK(cudaDeviceSynchronize());
}
#endif

TEST(PlantedBug, UseAfterFreeEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_DEATH(use_freed_block(), "AddressSanitizer: SEGV");
  EXPECT_DEATH(use_freed_tensor(), "AddressSanitizer: use-after-poison");
#else
  EXPECT_EXIT(use_freed_block(), testing::KilledBySignal(SIGSEGV), "");
#endif
}

}  // namespace
}  // namespace taper::cuda
