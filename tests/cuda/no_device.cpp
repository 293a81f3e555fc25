// Skips all tests of a program, each by its name, on a machine that has no CUDA device.
#include <gtest/gtest.h>

#include "taper/core/backends.h"

namespace taper::cuda {
namespace {

class NeedsADevice : public testing::Environment {
 public:
  void SetUp() override {
    if (const std::string why = why_no_device(); !why.empty()) GTEST_SKIP() << why;
  }
};

const testing::Environment* const needs_a_device =
    testing::AddGlobalTestEnvironment(new NeedsADevice);

}  // namespace
}  // namespace taper::cuda
