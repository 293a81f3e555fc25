// Kernels that walk along memory move no more of it than they need, and one that strides does.
#include <cstdio>

#include <gtest/gtest.h>

#include "taper/cuda/elementwise.cuh"
#include "taper/cuda/launch.cuh"
#include "taper/tests/cuda/device_array.h"
#include "taper/tests/cuda/traffic/traffic.h"

namespace taper::cuda {
namespace {

constexpr Index kRows = 64, kCols = 256;

class Traffic : public testing::Test {
 protected:
  Traffic() { traffic::start(); }

  template <class V> V view(void* data) const { return {{data, &layout_, kFloat32}}; }

  // Prints what was counted, and expects it to be as little as can be. g++ takes a pack of four
  // floats apart into four loads, each of which is counted with the sectors of all; nvcc does not,
  // see tools/device_code.py.
  static void expect_least() {
    const auto lines = traffic::lines();
    std::printf("%s", traffic::table(lines).c_str());
    EXPECT_FALSE(lines.empty());
    for (const traffic::Line& line : lines) {
      EXPECT_EQ(line.sectors, parts_of(line) * line.least) << line.place << " of " << line.kernel;
    }
  }

  // By what it is, not by what was counted. A warp's part of a pack: 32 floats, 16 bytes apart.
  static std::uint64_t parts_of(const traffic::Line& line) {
    const bool is_pack_load =
        line.place.find("elementwise.cuh") == 0 && line.place.find(" load") != std::string::npos;
    return is_pack_load && line.least == 4 * line.accesses ? 4 : 1;
  }

  Layout layout_ = contiguous_layout({kRows, kCols});
  DeviceArray<float> x_{std::vector<float>(kRows * kCols, 1)};
  DeviceArray<float> y_{std::vector<float>(kRows * kCols, 2)};
  Exec exec_{Device(kCUDA, 0)};
};

TEST_F(Traffic, ElementwiseAlongMemory) {
  binary<fn::Add>(exec_, view<Out>(y_.data()), view<In>(x_.data()), view<In>(y_.data()));
  expect_least();
  std::uint64_t sectors = 0;
  for (const traffic::Line& line : traffic::lines()) sectors += line.sectors / parts_of(line);
  EXPECT_EQ(sectors, 3u * kRows * kCols * sizeof(float) / 32);
}

TEST_F(Traffic, FillAndConvertAlongMemory) {
  fill(exec_, view<Out>(y_.data()), Scalar(3));
  copy(exec_, Out{{x_.data(), &layout_, kInt32}}, view<In>(y_.data()));
  expect_least();
}

TEST_F(Traffic, SoftmaxAlongMemory) {
  softmax(exec_, view<Out>(y_.data()), view<In>(x_.data()), 1);
  softmax_grad(exec_, view<Out>(x_.data()), view<In>(x_.data()), view<In>(y_.data()), 1);
  expect_least();
}

__global__ void copy_apart(float* to, const float* from, Index n, Index step) {
  for (Index i = first_index(); i < n; i += index_step()) to[i * step] = from[i * step];
}

TEST_F(Traffic, AStridedKernelIsSeen) {
  launch({1, 256}, copy_apart, y_.data(), x_.data(), kRows * kCols / 8, Index{8});
  const auto lines = traffic::lines();
  std::printf("%s", traffic::table(lines).c_str());
  ASSERT_EQ(lines.size(), 2u);  // a load and a store
  for (const traffic::Line& line : lines) {
    EXPECT_EQ(line.sectors, 32 * line.accesses);
    EXPECT_EQ(line.least, 4 * line.accesses);
    EXPECT_NE(line.kernel.find("copy_apart"), std::string::npos) << line.kernel;
    EXPECT_EQ(line.place.find("traffic_test.cu:"), 0u) << line.place;
  }
}

}  // namespace
}  // namespace taper::cuda
