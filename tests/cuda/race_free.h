// All tests of a program that includes this run under the race checker: a race fails the test.
#pragma once
#include <optional>

#include <gtest/gtest.h>

#include "taper/autograd/lens/race.h"

namespace taper::cuda {

class RaceFree final : public testing::Environment {
 public:
  void SetUp() override { check_.emplace(); }

  void TearDown() override { check_.reset(); }

 private:
  std::optional<lens::RaceCheck> check_;
};

inline testing::Environment* const race_free = testing::AddGlobalTestEnvironment(new RaceFree);

}  // namespace taper::cuda
