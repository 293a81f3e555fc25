// Runs this whole program again with threads from last to first and streams as late as can be.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace taper::cuda {
namespace {

// Races between the threads of a block, and work that nobody waited for, change results there.
TEST(Adverse, TheWholeProgramPassesInReverseOrderOnLateStreams) {
#ifndef TAPER_CUDA_EMULATED
  GTEST_SKIP() << "a real device picks its own order";
#else
  if (std::getenv("TAPER_EMULATED_STREAMS") != nullptr) GTEST_SKIP() << "this is the second run";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      "GTEST_OUTPUT= TAPER_EMULATED_STREAMS=late TAPER_EMULATED_ORDER=reverse '" + program +
      "' --gtest_brief=1";
  EXPECT_EQ(std::system(command.c_str()), 0) << "run it by hand: " << command;
#endif
}

}  // namespace
}  // namespace taper::cuda
