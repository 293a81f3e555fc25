// Runs this whole program again with threads from last to first, and streams in other orders.
#include <cstdlib>
#include <ostream>
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

// And without what only compares kernels, which is slow where memory is guarded.
constexpr const char* kOrders =
    ":ParityConv*:ParityElementwise*:ParityGemm*:ParityNorm*:"
    "ParityOf*:ParityOptim*:ParityPool*:Tf32*";

struct Way {
  const char* settings;
  bool whole;
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << way.settings;
}

// Races between the threads of a block, and work that nobody waited for, change results there.
class Adverse : public testing::TestWithParam<Way> {};

TEST_P(Adverse, TheWholeProgramPasses) {
#ifndef TAPER_CUDA_EMULATED
  GTEST_SKIP() << "a real device picks its own order";
#else
  if (std::getenv("TAPER_TEST_AGAIN") != nullptr) GTEST_SKIP() << "this is the second run";
  const Way way = GetParam();
  const Rerun run = run_again(way.settings, way.whole ? kAll : std::string(kAll) + kOrders);
  EXPECT_TRUE(run.passed()) << run.output;
#endif
}

INSTANTIATE_TEST_SUITE_P(Settings,
                         Adverse,
                         testing::Values(Way{"TAPER_EMULATED_ORDER=reverse "
                                             "TAPER_EMULATED_STREAMS=late",
                                             true},
                                         Way{"TAPER_EMULATED_STREAMS=seeded:1 "
                                             "TAPER_EMULATED_ACCESS=guarded",
                                             false},
                                         Way{"TAPER_EMULATED_STREAMS=seeded:2", false}));

}  // namespace
}  // namespace taper::cuda
