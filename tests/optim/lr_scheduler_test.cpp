// Learning-rate schedules against their closed forms.
#include "taper/optim/lr_scheduler.h"

#include "taper/tests/optim/optim_testing.h"

namespace taper::testing {
namespace {

using optim::SGDOptions;

optim::SGD two_groups() {
  std::vector<optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{zeros({1}).requires_grad_()});
  groups.emplace_back(std::vector<Tensor>{zeros({1}).requires_grad_()},
                      std::make_unique<SGDOptions>(0.04));
  return optim::SGD(std::move(groups), SGDOptions(0.3));
}

// Both groups' rates are their own base times want(step), for steps 0 to 39.
template <class Schedule, class Want>
void expect_curve(optim::Optimizer& optimizer, Schedule& schedule, const Want& want) {
  for (int step = 0; step < 40; ++step) {
    EXPECT_EQ(schedule.step_count(), step);
    EXPECT_NEAR(optimizer.param_groups()[0].options().get_lr(), 0.3 * want(step), 1e-12) << step;
    EXPECT_NEAR(optimizer.param_groups()[1].options().get_lr(), 0.04 * want(step), 1e-12) << step;
    schedule.step();
  }
}

TEST(StepLR, FallsByGammaEachFewSteps) {
  optim::SGD optimizer = two_groups();
  optim::StepLR schedule(optimizer, 7, 0.3);
  expect_curve(optimizer, schedule, [](int step) { return std::pow(0.3, step / 7); });
  expect_error([&] { optim::StepLR(optimizer, 0); }, {"StepLR", "0"});
}

TEST(WarmupCosineLR, RisesThenFallsAlongACosine) {
  const double pi = std::acos(-1.0);
  for (const int warmup : {0, 5}) {
    optim::SGD optimizer = two_groups();
    optim::WarmupCosineLR schedule(optimizer, warmup, 30, 0.1);
    expect_curve(optimizer, schedule, [&](int step) {
      if (step < warmup) return (step + 1.0) / (warmup + 1);
      const double along = std::min(1.0, (step - warmup) / (30.0 - warmup));
      return 0.1 + 0.9 * (1 + std::cos(pi * along)) / 2;
    });
  }
  optim::SGD optimizer = two_groups();
  expect_error([&] { optim::WarmupCosineLR(optimizer, 5, 5); }, {"WarmupCosineLR", "5"});
  expect_error([&] { optim::WarmupCosineLR(optimizer, -1, 5); }, {"WarmupCosineLR", "-1"});
}

TEST(Schedules, ResumeFromTheStepAlone) {
  optim::SGD through = two_groups(), resumed = two_groups();
  optim::WarmupCosineLR a(through, 3, 20), b(resumed, 3, 20);
  for (int i = 0; i < 11; ++i) a.step();
  b.set_step(a.step_count());
  EXPECT_EQ(resumed.param_groups()[1].options().get_lr(),
            through.param_groups()[1].options().get_lr());
}

// A group that comes later is scheduled too, from the rate that it brought.
TEST(Schedules, TakeInGroupsThatAreAddedLater) {
  optim::SGD optimizer = two_groups();
  optim::StepLR schedule(optimizer, 1, 0.5);
  schedule.step();
  optimizer.add_param_group({{zeros({1}).requires_grad_()}, std::make_unique<SGDOptions>(0.8)});
  EXPECT_EQ(optimizer.param_groups()[2].options().get_lr(), 0.8);
  schedule.step();
  EXPECT_NEAR(optimizer.param_groups()[2].options().get_lr(), 0.8 * 0.25, 1e-15);
  EXPECT_NEAR(optimizer.param_groups()[0].options().get_lr(), 0.3 * 0.25, 1e-15);
}

}  // namespace
}  // namespace taper::testing
