// Skips all tests of a program, each by its name, on a machine that has no CUDA device.
#include <gtest/gtest.h>

#include "taper/core/backends.h"

namespace taper::cuda {
namespace {

// An Environment that skips would have them all pass.
class NeedsADevice : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo&) override {
    if (!why_.empty()) GTEST_SKIP() << why_;
  }

 private:
  const std::string why_ = why_no_device();
};

const bool listens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new NeedsADevice);
  return true;
}();

}  // namespace
}  // namespace taper::cuda
