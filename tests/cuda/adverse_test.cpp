// Runs this whole program again with threads from last to first, and streams in other orders.
#include <cstdlib>
#include <string>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "taper/tests/cuda/again.h"

namespace taper::cuda {
namespace {

// Without parts of tests, and without tests that run the program again themselves.
constexpr const char* kAll =
    "-*DISABLED_*:*Adverse*:FailingCalls.OnFirstUse*:SeededStreams.ASeed*:GuardedAccess.*:"
    "PlantedBug.*";

// Races between the threads of a block, and work that nobody waited for, change results there.
class Adverse : public testing::TestWithParam<const char*> {};

TEST_P(Adverse, TheWholeProgramPasses) {
#ifndef TAPER_CUDA_EMULATED
  GTEST_SKIP() << "a real device picks its own order";
#else
  if (std::getenv("TAPER_TEST_AGAIN") != nullptr) GTEST_SKIP() << "this is the second run";
  const Rerun run = run_again(GetParam(), kAll);
  EXPECT_TRUE(run.passed()) << run.output;
#endif
}

INSTANTIATE_TEST_SUITE_P(Settings,
                         Adverse,
                         testing::Values("TAPER_EMULATED_ORDER=reverse TAPER_EMULATED_STREAMS=late",
                                         "TAPER_EMULATED_STREAMS=seeded:1 "
                                         "TAPER_EMULATED_ACCESS=guarded",
                                         "TAPER_EMULATED_STREAMS=seeded:2"));

}  // namespace
}  // namespace taper::cuda
