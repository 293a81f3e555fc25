// What the emulated runtime refuses and in what order it works: faults, memory, streams, devices.
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#ifdef TAPER_CUDA_EMULATED  // a real device is not ours to test
#include <gtest/gtest.h>

#include "taper/cuda/launch.cuh"
#include "taper/tests/cuda/device_array.h"

namespace taper::cuda {
namespace {

bool streams_are(const std::string& kind) {  // "late" or "seeded"
  const char* setting = std::getenv("TAPER_EMULATED_STREAMS");
  return setting != nullptr && std::string(setting).substr(0, kind.size()) == kind;
}

// Fails on the device that is current; leaves it as new.
class EmulatedFault : public testing::Test {
 protected:
  ~EmulatedFault() override { cudaDeviceReset(); }

  template <class... Params, class... Args>
  std::string fault(dim3 grid, dim3 block, void (*kernel)(Params...), Args... args) {
    try {
      launch({grid, block}, kernel, args...);
      TAPER_CUDA_CHECK(cudaDeviceSynchronize());
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
};

// --- faults in kernels ---

struct CountsItself {
  int* count;

  explicit CountsItself(int* counter) : count(counter) { ++*count; }

  ~CountsItself() { --*count; }
};

__global__ void split_barrier(int* alive) {
  const CountsItself self(alive);
  if (threadIdx.x < 10) return;
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}

TEST_F(EmulatedFault, ADeadlockIsToldAndUnwound) {
  int alive = 0;
  const std::string told = fault(1, 32, split_barrier, &alive);
  EXPECT_NE(told.find("702"), std::string::npos) << told;
  EXPECT_NE(told.find("block (0, 0, 0): deadlock, of 32 threads 11 wait at __syncthreads, 11 in a "
                      "warp collective, 10 have ended"),
            std::string::npos)
      << told;
  EXPECT_EQ(alive, 0);
}

__global__ void mixed_masks(int* out) {
  const unsigned mask = threadIdx.x == 3 ? 0xfu : ~0u;
  out[threadIdx.x] = __shfl_xor_sync(mask, int(threadIdx.x), 1);
}

TEST_F(EmulatedFault, LanesThatNameDifferentMasksNeverMeet) {
  std::vector<int> out(32);
  EXPECT_NE(fault(1, 32, mixed_masks, out.data()).find("thread (0, 0, 0) waits for lanes"),
            std::string::npos);
}

__global__ void mask_without_self() {
  __syncwarp(~(1u << (threadIdx.x % 32)));
}

TEST_F(EmulatedFault, AMaskMustHoldTheCaller) {
  EXPECT_NE(fault(1, 64, mask_without_self).find("leaves out the caller"), std::string::npos);
}

__global__ void trap_last(int* after) {
  __syncthreads();
  if (threadIdx.x == 40) __trap();
  __syncthreads();
  atomicAdd(after, 1);
}

TEST_F(EmulatedFault, ATrapStopsTheKernelAndSticksToTheDevice) {
  int after = 0;
  EXPECT_NE(fault(5, 64, trap_last, &after).find("thread (40, 0, 0): __trap"), std::string::npos);
  EXPECT_EQ(after, 0);
  void* block = nullptr;
  EXPECT_EQ(cudaMalloc(&block, 16), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);  // does not go away
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&block, 16), cudaSuccess);  // the other device is well
  EXPECT_EQ(cudaFree(block), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  launch({1, 1}, trap_last, &after);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(after, 1);
}

__global__ void throw_out() {
  __syncthreads();
  if (threadIdx.x == 1) throw 5;
  __syncthreads();
}

TEST_F(EmulatedFault, AnExceptionDoesNotLeaveAKernel) {
  EXPECT_NE(fault(1, 3, throw_out).find("an exception left the kernel"), std::string::npos);
}

// --- launches ---

__global__ void nothing() {}

__global__ void add_one(int* x) {
  atomicAdd(x, 1);
}

TEST(EmulatedLaunch, RefusesWhatADeviceCannotRun) {
  const LaunchConfig wrong[] = {
      {0, 1},          {1, 0},          {1, 1025},          {1, {32, 33}},
      {1, {1, 1, 65}}, {{1, 65536}, 1}, {{1, 1, 65536}, 1}, {{1u << 31}, 1}};
  for (const LaunchConfig& config : wrong) {
    EXPECT_THROW(launch(config, nothing), Error);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // the throw has told it
  }
  EXPECT_THROW(launch({1, 1, (227 << 10) + 1}, nothing), Error);
  EXPECT_EQ(emulated::launch(1, 1, (48 << 10) + 1, nullptr, throw_out), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(EmulatedLaunch, NeedsAStreamOfTheCurrentDevice) {
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(emulated::launch(1, 1, 0, stream, nothing), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(emulated::launch(1, 1, 0, stream, nothing), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(emulated::launch(1, 1, 0, stream, nothing), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

// --- memory ---

TEST(EmulatedMemory, CopiesOnlyWithinLiveBlocks) {
  std::vector<char> host(100, 1);
  char* block = nullptr;
  ASSERT_EQ(cudaMalloc(&block, 100), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(block, host.data(), 100, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(block + 40, block, 30, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(host.data(), block + 90, 10, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(block + 1, host.data(), 100, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(block, host.data(), 100, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), host.data(), 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(block, 3, 101), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 3, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(block + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(block), cudaSuccess);
  EXPECT_EQ(cudaFree(block), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), block, 1, cudaMemcpyDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(block, 0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host.data()), cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST(EmulatedMemory, IsFiniteAndCounted) {
  size_t before = 0, total = 0, now = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  void *block = nullptr, *more = nullptr;
  EXPECT_EQ(cudaMalloc(&block, before / 2), cudaSuccess);
  EXPECT_EQ(cudaMemGetInfo(&now, &total), cudaSuccess);
  EXPECT_NEAR(double(before - now), double(before) / 2, 4096);
  EXPECT_EQ(cudaMalloc(&more, now + 4096), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&more, ~size_t{0}), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(cudaFree(block), cudaSuccess);
  EXPECT_EQ(cudaMemGetInfo(&now, &total), cudaSuccess);
  EXPECT_EQ(now, before);
  cudaGetLastError();
}

TEST(EmulatedMemory, FreedAddressesRestAndBlocksDoNotOverlap) {
  std::vector<std::pair<char*, size_t>> live;
  char* last_freed = nullptr;
  for (size_t i = 0; i < 300; ++i) {
    char* block = nullptr;
    const size_t bytes = 1 + i * 977 % 20000;
    ASSERT_EQ(cudaMalloc(&block, bytes), cudaSuccess);
    EXPECT_NE(block, last_freed);
    for (const auto& [other, size] : live)
      ASSERT_TRUE(block >= other + size || other >= block + bytes);
    live.emplace_back(block, bytes);
    if (i % 3 != 0) continue;
    last_freed = live[live.size() / 2].first;
    ASSERT_EQ(cudaFree(last_freed), cudaSuccess);
    live.erase(live.begin() + long(live.size() / 2));
  }
  for (const auto& [block, size] : live) ASSERT_EQ(cudaFree(block), cudaSuccess);
}

// --- streams and events ---

TEST(EmulatedStream, AnEventOrdersTwoStreams) {
  int *pinned = nullptr, *x = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, sizeof(int)), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&x, sizeof(int)), cudaSuccess);
  *pinned = 41;
  cudaStream_t first, second;
  cudaEvent_t ready;
  ASSERT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(x, pinned, sizeof(int), cudaMemcpyHostToDevice, first), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(ready, first), cudaSuccess);
  launch({1, 1, 0, first}, add_one, x);  // after the event: not waited for
  EXPECT_EQ(cudaStreamWaitEvent(second, ready), cudaSuccess);
  launch({1, 1, 0, second}, add_one, x);
  EXPECT_EQ(cudaMemcpyAsync(pinned, x, sizeof(int), cudaMemcpyDeviceToHost, second), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
  EXPECT_GE(*pinned, streams_are("seeded") || streams_are("late") ? 42 : 43);
  EXPECT_LE(*pinned, streams_are("late") ? 42 : 43);
  const cudaError_t first_answer = cudaStreamQuery(first);
  if (!streams_are("seeded")) {
    EXPECT_EQ(first_answer, streams_are("late") ? cudaErrorNotReady : cudaSuccess);
  }
  EXPECT_EQ(cudaStreamQuery(first), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(ready), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(ready), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(second), cudaSuccess);
  EXPECT_EQ(cudaFree(x), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(EmulatedStream, ALateStreamWorksWhenSomebodyWaits) {
  if (!streams_are("late")) GTEST_SKIP() << "runs with TAPER_EMULATED_STREAMS=late";
  int count = 0;
  const auto step = [](void* at) { ++*static_cast<int*>(at); };
  cudaStream_t apart, beside;
  ASSERT_EQ(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&beside), cudaSuccess);
  cudaLaunchHostFunc(apart, step, &count);
  cudaLaunchHostFunc(beside, step, &count);
  EXPECT_EQ(count, 0);
  cudaLaunchHostFunc(
      nullptr, [](void*) {}, nullptr);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);  // which waits for `beside`
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaStreamDestroy(apart), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(beside), cudaSuccess);
}

TEST(EmulatedStream, ManyStreamsPassAValueAroundByEvents) {
  constexpr size_t kStreams = 7;
  std::vector<int> order;
  struct Step {
    std::vector<int>* order;
    int number;
  };
  std::vector<Step> steps;
  for (int i = 0; i < 100; ++i) steps.push_back({&order, i});
  std::vector<cudaStream_t> streams(kStreams);
  cudaEvent_t event;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  for (auto& stream : streams) ASSERT_EQ(cudaStreamCreateWithFlags(&stream, 1), cudaSuccess);
  for (size_t i = 0; i < steps.size(); ++i) {
    cudaStream_t stream = streams[i * 5 % kStreams];
    ASSERT_EQ(cudaStreamWaitEvent(stream, event), cudaSuccess);
    const auto run = [](void* at) {
      const Step& step = *static_cast<Step*>(at);
      step.order->push_back(step.number);
    };
    ASSERT_EQ(cudaLaunchHostFunc(stream, run, &steps[i]), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);  // the one event, again and again
  }
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  ASSERT_EQ(order.size(), steps.size());
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], int(i));
  for (auto& stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(EmulatedStream, NamesThatAreGoneAreRefused) {
  cudaStream_t stream, other;
  cudaEvent_t event, away;
  float time = -1;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&time, event, event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // never recorded: done
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&away), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(away, stream), cudaErrorInvalidResourceHandle);  // of another device
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&time, event, event), cudaSuccess);
  EXPECT_EQ(time, 0);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // outlives its stream
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(away), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaStreamCreate(&other), cudaSuccess);
  EXPECT_NE(other, stream);  // names are not used again
  EXPECT_EQ(cudaStreamWaitEvent(other, event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaMemsetAsync(nullptr, 0, 0, stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
  cudaGetLastError();
}

// --- devices ---

TEST(EmulatedDevice, ThereAreSeveralEachThreadHasItsOwnCurrentOne) {
  int count = 0, current = -1;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  ASSERT_GE(count, 2);
  EXPECT_EQ(cudaSetDevice(count), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  std::thread([] { EXPECT_EQ(cudaSetDevice(1), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  cudaDeviceProp properties;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
  EXPECT_EQ(properties.major * 10 + properties.minor, 90);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, count), cudaErrorInvalidDevice);
  cudaGetLastError();
}

TEST(EmulatedDevice, CopiesReachAcrossDevices) {
  DeviceArray<int> here({1, 2, 3});
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  {
    DeviceArray<int> there({0, 0, 0});
    EXPECT_EQ(cudaMemcpyPeerAsync(there.data(), 1, here.data(), 0, here.bytes()), cudaSuccess);
    EXPECT_EQ(there.host(), here.host());
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace
}  // namespace taper::cuda

#endif
