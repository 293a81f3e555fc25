// What an error says that shows later than the kernel that caused it.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "taper/cuda/emulated/runtime.h"
#include "taper/cuda/launch.cuh"
#include "taper/cuda/runtime.h"
#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper::cuda {
namespace {

constexpr int kDevice = 1;

__global__ void trap_at(unsigned thread) {
  if (threadIdx.x == thread) __trap();
}

__global__ void write_behind(char* block, size_t bytes) {
  if (threadIdx.x == 0) block[bytes] = 1;
}

// An op of a user's whose kernel is not right.
template <class... Params, class... Args>
void broken_op(const Stream& on, void (*kernel)(Params...), Args... args) {
  const SourceLoc loc("users.cpp", "main", 7);
  const Call call(loc, "broken_op");
  const DeviceGuard guard(kDevice);
  launch({1, 32, 0, stream_of(on.device(), on.id()), kDevice}, kernel, args...);
}

class LateErrors : public testing::Test {
 protected:
  // A real device would stay broken until the process ends.
  ~LateErrors() override {
    emulated::Runtime& runtime = emulated::Runtime::get();
    runtime.devices[kDevice].fault = cudaSuccess;
    cudaGetLastError();
    synchronize(kDevice);
  }

  const Device device_{kCUDA, kDevice};
  const Tensor x_ = ones({4, 4}).to(device_);
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_F(LateErrors, NameTheKernelsSinceTheLastSynchronisationThatWentWell) {
  const Tensor before = x_.exp();
  synchronize(kDevice);
  const Tensor after = softmax(x_, 1);
  const int line = __LINE__ - 1;
  const std::string told = message_of([&] {
    broken_op(Stream(device_), trap_at, 3U);
    synchronize(kDevice);
  });
  EXPECT_NE(told.find("CUDA error 719"), std::string::npos) << told;
  EXPECT_NE(told.find(str("kernels since the last synchronisation that went well: broken_op at "
                          "users.cpp:7 in main on stream 0, softmax at late_errors_test.cpp:",
                          line, " in TestBody on stream 0")),
            std::string::npos)
      << told;
  EXPECT_EQ(told.find("exp at"), std::string::npos) << told;
}

TEST_F(LateErrors, AStreamsSynchronisationSpeaksForItselfAlone) {
  static const Stream side = make_stream(device_);
  synchronize(kDevice);
  const Tensor here = x_.exp();
  Tensor there;
  {
    const StreamGuard on(side);
    there = x_.sin();
  }
  side.synchronize();
  const std::string told = message_of([&] {
    broken_op(side, trap_at, 0U);
    side.synchronize();
  });
  EXPECT_NE(told.find(str("broken_op at users.cpp:7 in main on stream ", side.id())),
            std::string::npos)
      << told;
  EXPECT_NE(told.find("exp at"), std::string::npos) << told;
  EXPECT_EQ(told.find("sin at"), std::string::npos) << told;
}

TEST_F(LateErrors, ShowInTheNextOpToo) {
  const std::string told = message_of([&] {
    broken_op(Stream(device_), trap_at, 1U);
    const Tensor y = x_ + x_;
    static_cast<void>(y.cpu());
  });
  EXPECT_NE(told.find("broken_op at users.cpp:7 in main on stream 0"), std::string::npos) << told;
}

TEST_F(LateErrors, ListAtMostEight) {
  Tensor y = x_;
  for (int i = 0; i < 5; ++i) {
    y = y.exp();
    y = y.sin();
  }
  const std::string told = message_of([&] {
    broken_op(Stream(device_), trap_at, 3U);
    synchronize(kDevice);
  });
  EXPECT_EQ(count(told, " on stream 0"), 8U) << told;
  EXPECT_NE(told.find(", and earlier ones"), std::string::npos) << told;
}

#ifndef __SANITIZE_ADDRESS__  // which ends the process at the write
TEST_F(LateErrors, AWriteBehindABlockNamesWhoMayHaveWritten) {
  const DeviceGuard guard(kDevice);
  char* block = nullptr;
  TAPER_CUDA_CHECK(cudaMalloc(&block, 100));
  broken_op(Stream(device_), write_behind, block, size_t{100});
  const std::string told = message_of([&] { TAPER_CUDA_CHECK(cudaFree(block)); });
  EXPECT_NE(told.find("CUDA error 700 (byte 100 of a block of 100 bytes"), std::string::npos)
      << told;
  EXPECT_NE(told.find("broken_op at users.cpp:7"), std::string::npos) << told;
}
#endif

TEST_F(LateErrors, ALaunchThatIsRefusedHasItsOwnLine) {
  const std::string told = message_of([&] {
    const SourceLoc loc("users.cpp", "main", 9);
    const Call call(loc, "too_wide");
    const DeviceGuard guard(kDevice);
    launch({1, 2048}, trap_at, 0U);
  });
  EXPECT_EQ(told,
            "too_wide: CUDA error 9 (invalid configuration argument) in cudaLaunchKernel\n  at "
            "users.cpp:9 in main");
}

}  // namespace
}  // namespace taper::cuda
