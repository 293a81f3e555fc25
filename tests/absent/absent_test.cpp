// The library without its CUDA column: the CPU works, and what needs CUDA says what is missing.
#include <functional>

#include <gtest/gtest.h>

#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

TEST(Absent, TheCpuTrains) {
  manual_seed(1);
  nn::Linear fc(4, 2);
  optim::Adam adam(fc->parameters(), 0.1);
  const Tensor x = randn({8, 4});
  const auto step = [&] {
    adam.zero_grad();
    const Tensor loss = dropout(fc(x), 0.1, true).square().mean();
    loss.backward();
    adam.step();
    return loss.item<float>();
  };
  const float before = step();
  for (int i = 0; i < 30; ++i) step();
  EXPECT_LT(step(), before);
}

TEST(Absent, ThereIsNoDevice) {
  EXPECT_EQ(cuda::device_count(), 0);
  EXPECT_FALSE(cuda::is_available());
  EXPECT_FALSE(is_current_stream_capturing());
}

TEST(Absent, EachUseSaysWhatIsMissing) {
  const std::function<void()> uses[] = {
      [] { ones({2}, TensorOptions(kFloat32).device(kCUDA)); },
      [] { ones({2}).to(kCUDA); },
      [] { ones({2}).to(Device(kCUDA, 3)); },
      [] { ones({2}).pin_memory(); },
      [] { nn::Linear(2, 2)->to(kCUDA); },
      [] { make_stream(); },
      [] { cuda::synchronize(); },
      [] { cuda::memory_info(); },
      [] { const cuda::DeviceGuard guard(0); },
      [] { cuda::CUDAGraph().capture_begin(); },
      [] { cuda::CUDAGraph().replay(); },
      [] { const lens::NvtxRanges ranges; },
  };
  for (std::size_t i = 0; i < std::size(uses); ++i) {
    const std::string message = message_of(uses[i]);
    EXPECT_NE(message.find("this build of Taper has no CUDA"), std::string::npos)
        << "use " << i << ": " << message;
  }
}

}  // namespace
}  // namespace taper
