// Initial values: their bounds, means and spreads against the formulas of the papers.
#include "taper/nn/init.h"

#include "taper/autograd/ops/random.h"
#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

namespace init = nn::init;

Tensor blank() {
  return empty({60, 20, 3, 2}, kFloat64);  // fan in 120, fan out 360
}

void expect_normal(const Tensor& t, double mean, double std) {
  const double n = static_cast<double>(t.numel());
  const double got = t.mean().item<double>();
  EXPECT_NEAR(got, mean, 5 * std / std::sqrt(n));
  EXPECT_NEAR((t - mean).square().mean().item<double>(), std * std,
              5 * std * std * std::sqrt(2 / n));
}

TEST(Init, FansCountInputsAndOutputsWithTheirField) {
  const auto [in, out] = init::calculate_fan_in_and_fan_out(blank());
  EXPECT_EQ(in, 120);
  EXPECT_EQ(out, 360);
  EXPECT_EQ(init::calculate_fan_in_and_fan_out(ones({7, 5})), std::make_pair(5.0, 7.0));
  const Error e = error_of([] { init::xavier_uniform_(ones({3})); });
  expect_names(e, __LINE__ - 1, "", {"fan", "(3)"});
  const Error fans = error_of([] { init::calculate_fan_in_and_fan_out(ones({3})); });
  expect_names(fans, __LINE__ - 1, "", {"fan", "(3)"});
}

TEST(Init, GainsAreTheUsualOnes) {
  EXPECT_EQ(init::calculate_gain(init::Nonlinearity::kLinear), 1);
  EXPECT_EQ(init::calculate_gain(init::Nonlinearity::kSigmoid), 1);
  EXPECT_EQ(init::calculate_gain(kReLU), std::sqrt(2.0));
  EXPECT_EQ(init::calculate_gain(kTanh), 5.0 / 3);
  EXPECT_EQ(init::calculate_gain(kLeakyReLU, 0.2), std::sqrt(2 / 1.04));
}

TEST(Init, RandomOnesHaveTheirBoundOrSpread) {
  manual_seed(1);
  expect_uniform(init::uniform_(blank(), -0.3, 0.3), 0.3);
  expect_uniform(init::xavier_uniform_(blank(), 2), 2 * std::sqrt(6.0 / 480));
  expect_uniform(init::kaiming_uniform_(blank()), std::sqrt(6.0 / 120));
  expect_uniform(init::kaiming_uniform_(blank(), std::sqrt(5.0), kFanOut), std::sqrt(1.0 / 360));
  expect_uniform(init::kaiming_uniform_(blank(), 0, kFanIn, kTanh), 5.0 / 3 * std::sqrt(3.0 / 120));
  expect_normal(init::normal_(blank(), 2, 0.5), 2, 0.5);
  expect_normal(init::xavier_normal_(blank()), 0, std::sqrt(2.0 / 480));
  expect_normal(init::kaiming_normal_(blank(), 0, kFanOut, kReLU), 0, std::sqrt(2.0 / 360));
}

TEST(Init, ConstantOnesWriteInPlaceUnrecorded) {
  const Tensor w = empty({2, 3}, kFloat64).requires_grad_();
  EXPECT_TRUE(init::ones_(w).is_same(w));
  EXPECT_EQ(values(w), Numbers(6, 1));
  EXPECT_EQ(values(init::constant_(w, 2.5)), Numbers(6, 2.5));
  EXPECT_EQ(values(init::eye_(w)), (Numbers{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(values(init::zeros_(w)), Numbers(6, 0));
  EXPECT_TRUE(w.is_leaf() && w.requires_grad());
  const Error e = error_of([] { init::eye_(ones({2})); });
  expect_names(e, __LINE__ - 1, "", {"eye_", "(2)"});
  const Error range = error_of([] { init::uniform_(ones({2}), 2, 1); });
  expect_names(range, __LINE__ - 1, "", {"uniform_", "2", "1"});
}

}  // namespace
}  // namespace taper::testing
