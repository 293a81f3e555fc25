// Clipping of gradients by norm and by value.
#include <limits>

#include "taper/tests/nn/nn_testing.h"
#include "taper/tests/optim/optim_testing.h"

namespace taper::testing {
namespace {

using nn::utils::clip_grad_norm_, nn::utils::clip_grad_value_;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Numbers> gradients_of(const std::vector<Tensor>& params) {
  std::vector<Numbers> out;
  for (const Tensor& p : params) out.push_back(values(p.grad()));
  return out;
}

double norm_of(const std::vector<Numbers>& grads, double p) {
  double total = 0;
  for (const Numbers& g : grads) {
    for (const double x : g) {
      total = std::isinf(p) ? std::max(total, std::fabs(x)) : total + std::pow(std::fabs(x), p);
    }
  }
  return std::isinf(p) ? total : std::pow(total, 1 / p);
}

TEST(ClipGradNorm, ScalesAllByOneFactor) {
  for (const double p : {2.0, 1.0, 3.0, 0.5, kInfinity}) {
    const std::vector<Tensor> params = parameters_of(kFloat64);
    give_gradients(params, 1);
    std::vector<Numbers> want = gradients_of(params);
    const double norm = norm_of(want, p), most = norm / 3;
    EXPECT_NEAR(clip_grad_norm_(params, most, p), norm, 1e-12 * norm) << p;
    for (std::size_t i = 0; i < want.size(); ++i) {
      for (double& x : want[i]) x *= most / (norm + 1e-6);
      expect_close(params[i].grad(), tensor(want[i], kFloat64).view(params[i].sizes()), 1e-12);
    }
  }
}

TEST(ClipGradNorm, LeavesSmallOnesAlone) {
  const std::vector<Tensor> params = parameters_of(kFloat64);
  give_gradients(params, 1);
  const auto before = gradients_of(params);
  clip_grad_norm_(params, norm_of(before, 2) * 2);
  EXPECT_EQ(gradients_of(params), before);
}

TEST(ClipGradNorm, OfNothingIsZero) {
  EXPECT_EQ(clip_grad_norm_({}, 1.0), 0);
  const Tensor without = ones({2}).requires_grad_();
  EXPECT_EQ(clip_grad_norm_({without}, 1.0), 0);
  EXPECT_FALSE(without.grad().defined());
  const Tensor empty = zeros({0, 3}).requires_grad_();
  empty.mutable_grad() = zeros({0, 3});
  EXPECT_EQ(clip_grad_norm_({empty}, 1.0), 0);
  EXPECT_EQ(clip_grad_norm_({empty}, 1.0, kInfinity), 0);
}

TEST(ClipGradNorm, MixesDtypes) {
  const Tensor a = ones({1}, kFloat64).requires_grad_(), b = ones({1}).requires_grad_();
  a.mutable_grad() = tensor({3.}, kFloat64);
  b.mutable_grad() = tensor({4.F});
  EXPECT_NEAR(clip_grad_norm_({a, b}, 1.0), 5, 1e-12);
  EXPECT_NEAR(b.grad().item<double>(), 0.8, 1e-6);
}

TEST(ClipGradNorm, NonFiniteNormsAreReportedOrPassedOn) {
  for (const double bad : {kInfinity, std::nan("")}) {
    const Tensor w = ones({2}, kFloat64).requires_grad_();
    w.mutable_grad() = tensor({1., bad}, kFloat64);
    for (const double p : {2.0, kInfinity}) {
      const Error e = error_of([&] { clip_grad_norm_({w}, 1.0, p, true); });
      expect_names(e, __LINE__ - 1, "", {"clip_grad_norm_", std::isnan(bad) ? "nan" : "inf"});
      EXPECT_EQ(values(w.grad())[0], 1);
    }
    EXPECT_FALSE(std::isfinite(clip_grad_norm_({w}, 1.0)));
  }
  const Error bound = error_of([] { clip_grad_norm_({}, -1); });
  expect_names(bound, __LINE__ - 1, "", {"clip_grad_norm_", "max_norm", "-1"});
  const Error type = error_of([] { clip_grad_norm_({}, 1.0, 0); });
  expect_names(type, __LINE__ - 1, "", {"clip_grad_norm_", "norm_type"});
}

TEST(ClipGradValue, ClampsEachElement) {
  const std::vector<Tensor> params = parameters_of(kFloat32);
  give_gradients(params, 1);
  std::vector<Tensor> want;
  for (const Tensor& p : params) want.push_back(p.grad().clamp(-0.25, 0.25));
  clip_grad_value_(params, 0.25);
  for (std::size_t i = 0; i < params.size(); ++i) expect_close(params[i].grad(), want[i], 0);
  clip_grad_value_({}, 1);
  const Error e = error_of([&] { clip_grad_value_(params, -1); });
  expect_names(e, __LINE__ - 1, "", {"clip_grad_value_", "-1"});
}

}  // namespace
}  // namespace taper::testing
