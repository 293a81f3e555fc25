// BatchNorm and Dropout: what differs between training and evaluation.
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/random.h"
#include "taper/nn/layers.h"
#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

nn::BatchNorm2d norm_of(const nn::BatchNorm2dOptions& options) {
  nn::BatchNorm2d norm(options);
  norm->to(kFloat64);
  return norm;
}

struct Moments {
  double mean = 0, var = 0;  // var over n, not n - 1
};

// Of channel c of x (N, C, H, W).
Moments moments_of(const Tensor& x, std::int64_t c) {
  const Numbers v = values(x.select(1, c));
  Moments m;
  for (const double e : v) m.mean += e / static_cast<double>(v.size());
  for (const double e : v) m.var += (e - m.mean) * (e - m.mean) / static_cast<double>(v.size());
  return m;
}

TEST(BatchNorm2d, NormalisesEachChannelByItsBatchWhileTraining) {
  const auto norm = norm_of(nn::BatchNorm2dOptions(3).eps(0.01));
  norm->weight.detach().copy_(sample({3}, 2));
  norm->bias.detach().copy_(sample({3}, 3));
  const Tensor x = sample({2, 3, 4, 5});
  const Tensor y = norm(x);
  ASSERT_TRUE(y.sizes() == x.sizes());
  for (std::int64_t c = 0; c < 3; ++c) {
    const Moments m = moments_of(x, c);
    const Tensor want =
        (x.select(1, c) - m.mean) / std::sqrt(m.var + 0.01) * norm->weight[c].item<double>() +
        norm->bias[c].item<double>();
    expect_close(y.select(1, c), want, 1e-12);
  }
  expect_parameter_gradients(*norm, [&] { return norm(x); });
}

// One channel of {1, 2, 3, 6}: mean 3, unbiased variance 14/3.
TEST(BatchNorm2d, RunningStatisticsMoveByTheMomentum) {
  const auto norm = norm_of(nn::BatchNorm2dOptions(1).momentum(0.25));
  const Tensor x = tensor({1, 2, 3, 6}, kFloat64).view({1, 1, 2, 2});
  norm(x);
  EXPECT_NEAR(norm->running_mean.item<double>(), 0.75, 1e-15);
  EXPECT_NEAR(norm->running_var.item<double>(), 0.75 + 0.25 * 14 / 3, 1e-15);
  norm(x);
  EXPECT_NEAR(norm->running_mean.item<double>(), 0.75 * 0.75 + 0.75, 1e-15);
  EXPECT_NEAR(norm->running_var.item<double>(), 0.75 * (0.75 + 0.25 * 14 / 3) + 0.25 * 14 / 3,
              1e-15);
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 2);
  EXPECT_FALSE(norm->running_mean.requires_grad());
  norm->reset_running_stats();
  EXPECT_EQ(norm->running_mean.item<double>(), 0);
  EXPECT_EQ(norm->running_var.item<double>(), 1);
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 0);
}

TEST(BatchNorm2d, WithoutMomentumTheyAreThePlainAverage) {
  const auto norm = norm_of(nn::BatchNorm2dOptions(2).momentum(std::nullopt));
  double mean = 0, var = 0;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    const Tensor x = sample({3, 2, 2, 2}, seed);
    norm(x);
    const Moments m = moments_of(x, 1);
    mean += m.mean / 4;
    var += m.var * 12 / 11 / 4;
  }
  EXPECT_NEAR(norm->running_mean[1].item<double>(), mean, 1e-14);
  EXPECT_NEAR(norm->running_var[1].item<double>(), var, 1e-14);
  norm->eval();
  const Tensor x = sample({3, 2, 2, 2}, 9);
  expect_close(norm(x).select(1, 1), (x.select(1, 1) - mean) / std::sqrt(var + 1e-5), 1e-12);
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 4);
}

TEST(BatchNorm2d, EvaluationUsesAndKeepsTheRunningStatistics) {
  const auto norm = norm_of(nn::BatchNorm2dOptions(2));
  norm->running_mean.copy_(tensor({1., 2.}, kFloat64));
  norm->running_var.copy_(tensor({4., 9.}, kFloat64));
  norm->eval();
  const Tensor x = sample({1, 2, 1, 1});
  const Numbers in = values(x), got = values(norm(x));
  EXPECT_NEAR(got[0], (in[0] - 1) / std::sqrt(4 + 1e-5), 1e-14);
  EXPECT_NEAR(got[1], (in[1] - 2) / std::sqrt(9 + 1e-5), 1e-14);
  EXPECT_EQ(values(norm->running_mean), (Numbers{1, 2}));
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 0);
  expect_parameter_gradients(*norm, [&] { return norm(x); });
}

TEST(BatchNorm2d, WithoutTrackingEvaluationUsesTheBatch) {
  const auto norm =
      norm_of(nn::BatchNorm2dOptions(2).track_running_stats(false).momentum(std::nullopt));
  EXPECT_TRUE(norm->named_buffers().is_empty());
  const Tensor x = sample({3, 2, 2, 2});
  const Tensor trained = norm(x);
  norm->eval();
  expect_close(norm(x), trained);
  const Moments m = moments_of(x, 0);
  expect_close(trained.select(1, 0), (x.select(1, 0) - m.mean) / std::sqrt(m.var + 1e-5), 1e-12);
}

TEST(BatchNorm2d, ErrorsNameShapesAndLine) {
  const nn::BatchNorm2d norm(3);
  const Error dims = error_of([&] { norm(ones({2, 3})); });
  expect_names(dims, __LINE__ - 1, "", {"BatchNorm2d", "(2, 3)"});
  const Error channels = error_of([&] { norm(ones({2, 4, 2, 2})); });
  expect_names(channels, __LINE__ - 1, "", {"BatchNorm2d", "(N, 3, H, W)", "(2, 4, 2, 2)"});
  const Error one = error_of([&] { norm(ones({1, 3, 1, 1})); });
  expect_names(one, __LINE__ - 1, "", {"batch_norm", "(1, 3, 1, 1)"});
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 0);
  EXPECT_EQ(values(norm->running_mean), Numbers(3, 0));
}

TEST(BatchNorm2d, PrintsItsOptions) {
  const auto options = nn::BatchNorm2dOptions(4).momentum(std::nullopt).affine(false);
  EXPECT_EQ(printed(*nn::BatchNorm2d(options)),
            "BatchNorm2d(4, eps=1e-05, momentum=None, affine=false, track_running_stats=true)");
}

// The numbers are PyTorch's.
TEST(BatchNorm1d, NormalisesChannelsOfRowsAndOfSeries) {
  nn::BatchNorm1d rows(nn::BatchNorm1dOptions(2).eps(0));
  rows->to(kFloat64);
  const Tensor y = rows(tensor({{1, 2}, {3, 5}, {5, 14}}, kFloat64));
  const double side = std::sqrt(1.5);
  expect_close(
      y,
      tensor({{-side, -5 / std::sqrt(26.)}, {0., -2 / std::sqrt(26.)}, {side, 7 / std::sqrt(26.)}},
             kFloat64),
      1e-14);
  expect_close(rows->running_mean, tensor({0.3, 0.7}, kFloat64), 1e-14);
  expect_close(rows->running_var, tensor({1.3, 4.8}, kFloat64), 1e-14);

  nn::BatchNorm1d series(nn::BatchNorm1dOptions(2).eps(0));
  series->to(kFloat64);
  const Tensor z = series(arange(12, kFloat64).view({2, 2, 3}));
  ASSERT_TRUE(z.sizes() == IntArrayRef({2, 2, 3}));
  EXPECT_NEAR(values(z)[0], -1.2865350418053538, 1e-14);
  EXPECT_NEAR(values(z)[11], 1.286535041805354, 1e-14);
  expect_close(series->running_var, tensor({2.06, 2.06}, kFloat64), 1e-14);
  EXPECT_EQ(series->num_batches_tracked.item<std::int64_t>(), 1);
  series->eval();
  const Tensor w = series(ones({1, 2}, kFloat64));
  EXPECT_NEAR(values(w)[0], 0.6 / std::sqrt(2.06), 1e-14);
}

TEST(BatchNorm1d, CopiesPrintsAndRefuses) {
  const nn::BatchNorm1d norm(3);
  EXPECT_EQ(printed(*norm),
            "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)");
  EXPECT_NE(std::dynamic_pointer_cast<nn::BatchNorm1dImpl>(norm->clone()), nullptr);
  const Error dims = error_of([&] { norm(ones({2, 3, 4, 4})); });
  expect_names(dims, __LINE__ - 1, "", {"BatchNorm1d", "(N, 3)", "(2, 3, 4, 4)"});
}

TEST(Dropout2d, DropsWholeChannels) {
  const nn::Dropout2d drop(0.25);
  for (const bool batched : {true, false}) {
    const Tensor x = (batched ? ones({100, 40, 2, 3}) : ones({4000, 2, 3})).requires_grad_();
    const Tensor y = drop(x);
    const Tensor channels = y.reshape({4000, 6});
    const auto low = values(channels.amin({1})), high = values(channels.amax({1}));
    EXPECT_EQ(low, high);
    double zeroed = 0;
    for (const double v : low) {
      if (v == 0) ++zeroed;
      else ASSERT_FLOAT_EQ(static_cast<float>(v), 4.0F / 3);
    }
    EXPECT_NEAR(zeroed, 1000, 5 * std::sqrt(0.25 * 0.75 * 4000));
    y.sum().backward();
    EXPECT_EQ(values(x.grad()), values(y));
  }
}

TEST(Dropout2d, EndsOfTheRange) {
  const Tensor x = sample({1, 2, 3, 4});
  EXPECT_EQ(values(nn::Dropout2d(0)(x)), values(x));
  EXPECT_EQ(values(nn::Dropout2d(1)(x)), Numbers(24, 0));
  nn::Dropout2d drop(0.9);
  drop->eval();
  EXPECT_EQ(values(drop(x)), values(x));
  EXPECT_EQ(printed(*drop), "Dropout2d(p=0.9, inplace=false)");
  const Tensor t = x.clone();
  EXPECT_TRUE(nn::Dropout2d(nn::Dropout2dOptions(1).inplace(true))(t).is_same(t));
  EXPECT_EQ(values(t), Numbers(24, 0));
  expect_error([] { nn::Dropout2d{1.1}; }, {"Dropout2d", "[0, 1]"});
  const Error dims = error_of([&] { drop(ones({2, 3})); });
  expect_names(dims, __LINE__ - 1, "", {"dropout2d", "(2, 3)"});
}

TEST(Dropout, ZeroesSomeAndScalesTheRestWhileTraining) {
  const nn::Dropout drop(0.25);
  const std::int64_t n = 40000;
  manual_seed(5);
  const Tensor x = ones({n}).requires_grad_();
  const Tensor y = drop(x);
  std::int64_t zeroed = 0;
  for (const double v : values(y)) {
    if (v == 0) ++zeroed;
    else ASSERT_FLOAT_EQ(static_cast<float>(v), 4.0F / 3);
  }
  const double sigma = std::sqrt(0.25 * 0.75 * static_cast<double>(n));
  EXPECT_NEAR(static_cast<double>(zeroed), 0.25 * static_cast<double>(n), 5 * sigma);
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), values(y));
  manual_seed(5);
  EXPECT_EQ(values(drop(x)), values(y));
  EXPECT_NE(values(drop(x)), values(y));
}

TEST(Dropout, DoesNothingInEvaluation) {
  const nn::Dropout drop(0.9);
  drop->eval();
  const Tensor x = sample({3, 4});
  EXPECT_EQ(values(drop(x)), values(x));
}

TEST(Dropout, EndsOfTheRange) {
  const Tensor x = sample({3, 4});
  EXPECT_EQ(values(nn::Dropout(0)(x)), values(x));
  EXPECT_EQ(values(nn::Dropout(1)(x)), Numbers(12, 0));
  EXPECT_EQ(nn::Dropout()->options.p(), 0.5);
  const Tensor t = x.clone();
  EXPECT_TRUE(nn::Dropout(nn::DropoutOptions(1).inplace(true))(t).is_same(t));
  EXPECT_EQ(values(t), Numbers(12, 0));
  for (const double p : {-0.1, 1.1, std::nan("")}) {
    expect_error([&] { nn::Dropout{p}; }, {"Dropout", "[0, 1]"});
  }
  EXPECT_EQ(printed(*nn::Dropout(0.2)), "Dropout(p=0.2, inplace=false)");
}

}  // namespace
}  // namespace taper::testing
