// Ranges for profilers: their names, how they nest, and that there are none unless asked for.
#include "taper/core/nvtx.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include "taper/taper.h"
#include "taper/tests/cuda/again.h"

namespace taper::cuda {
namespace {

using Names = std::vector<std::string>;

int open_ranges() {
  int depth = 0;
  emulated::nvtx_ranges(&depth);
  return depth;
}

Names ranges() {
  int depth = 0;
  Names names = emulated::nvtx_ranges(&depth);
  for (std::string& name : names) {  // lines change
    const std::size_t line = name.find(" at nvtx_test.cpp:");
    if (line != std::string::npos) name = name.substr(0, line) + " at line";
  }
  return names;
}

bool for_the_whole_process() {
  const char* setting = std::getenv("TAPER_NVTX");
  return setting != nullptr && std::string(setting) == "1";
}

TEST(Nvtx, ModulesAndOpsNest) {
  if (for_the_whole_process()) GTEST_SKIP() << "there is one already";
  const Tensor x = ones({3}).to(Device(kCUDA, 0));
  emulated::forget_nvtx_ranges();
  const Tensor off = x.exp();
  EXPECT_EQ(ranges(), Names{});
  {
    const lens::NvtxRanges on;
    const lens::NvtxRanges again;  // does nothing
    {
      const Scope encoder("encoder");
      const Tensor a = x.exp();
      {
        const Scope layer("3");
        const Tensor b = x.sin();
        const Tensor c = mul(x, x);
      }
      {
        const Scope layer("30");
        const Tensor b = x.cos();
      }
      const Tensor d = x.exp();
    }
    const Tensor e = relu(x);
    EXPECT_EQ(open_ranges(), 0);
    const Scope last("head");
    const Tensor f = relu(x);
    EXPECT_EQ(open_ranges(), 1);
  }
  EXPECT_EQ(open_ranges(), 0);
  const Names expected = {"encoder",         "  exp at line", "  encoder.3",     "    sin at line",
                          "    mul at line", "  encoder.30",  "    cos at line", "  exp at line",
                          "relu at line",    "head",          "  relu at line"};
  EXPECT_EQ(ranges(), expected);
}

TEST(Nvtx, AKernelThatThrowsLeavesNoRangeOpen) {
  if (for_the_whole_process()) GTEST_SKIP() << "there is one already";
  const Tensor x = ones({3, 3}).to(Device(kCUDA, 0));
  const Tensor bad = full({1}, 7, kInt64).to(Device(kCUDA, 0));
  {
    const lens::NvtxRanges on;
    EXPECT_THROW(x.index_select(0, bad), Error);
    const Tensor y = x.exp();
    EXPECT_EQ(open_ranges(), 0);
  }
  EXPECT_EQ(open_ranges(), 0);
}

TEST(Nvtx, ANetworksModulesAreNamed) {
  if (for_the_whole_process()) GTEST_SKIP() << "there is one already";
  nn::Sequential model(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
  model->to(Device(kCUDA, 0));
  const Tensor x = ones({3, 4}).to(Device(kCUDA, 0));
  emulated::forget_nvtx_ranges();
  {
    const lens::NvtxRanges on;
    model(x).sum().backward();
  }
  std::string all;
  for (const std::string& name : ranges()) all += name + "\n";
  for (const char* part :
       {"Sequential\n  Sequential.0\n", "    linear: matmul", "  Sequential.1\n"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  EXPECT_EQ(open_ranges(), 0);
}

// Part of the next test.
TEST(Nvtx, DISABLED_OfTheWholeProcess) {
  const Tensor x = ones({3}).to(Device(kCUDA, 0));
  emulated::forget_nvtx_ranges();
  const Tensor y = x.exp();
  EXPECT_EQ(ranges(), for_the_whole_process() ? Names{"exp at line"} : Names{});
}

TEST(Nvtx, TheEnvironmentTurnsItOn) {
  for (const char* setting : {"TAPER_NVTX=1", "TAPER_NVTX=0"}) {
    const Rerun run = run_again(setting, "Nvtx.DISABLED_OfTheWholeProcess");
    EXPECT_TRUE(run.passed()) << run.output;
  }
}

}  // namespace
}  // namespace taper::cuda
