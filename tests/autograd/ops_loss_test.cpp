// Losses against slow oracles, their derivatives, their edges.
#include <limits>

#include "taper/autograd/ops/loss.h"
#include "taper/autograd/ops/softmax.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Inputs = std::vector<Tensor>;

constexpr Reduction kAll[] = {kNone, kMean, kSum};

Tensor labels(const NestedNumbers& numbers) {
  return tensor(numbers, kInt64);
}

// Loss of each sample of log-probabilities (N, C), written as a loop.
struct SlowNll {
  Numbers losses, weights;

  SlowNll(const Tensor& log_p, const Numbers& target, const Numbers& weight, double ignored) {
    const Numbers x = values(log_p);
    const auto classes = static_cast<std::size_t>(log_p.size(1));
    for (std::size_t i = 0; i < target.size(); ++i) {
      const bool skip = target[i] == ignored;
      const auto t = static_cast<std::size_t>(skip ? 0 : target[i]);
      weights.push_back(skip ? 0 : weight[t]);
      losses.push_back(skip ? 0 : -weight[t] * x[i * classes + t]);
    }
  }

  double total(const Numbers& of) const {
    double s = 0;
    for (const double x : of) s += x;
    return s;
  }
};

TEST(NllLoss, Values) {
  const Tensor x = log_softmax(sample({5, 3}), 1);
  const Numbers t{0, 2, -100, 1, 2}, w{0.5, 1, 2};
  const SlowNll slow(x, t, w, -100);
  const Tensor target = labels({0, 2, -100, 1, 2}), weight = tensor(w, kFloat64);
  EXPECT_EQ(values(nll_loss(x, target, weight, kNone)), slow.losses);
  EXPECT_NEAR(nll_loss(x, target, weight, kSum).item<double>(), slow.total(slow.losses), 1e-12);
  EXPECT_NEAR(nll_loss(x, target, weight).item<double>(),
              slow.total(slow.losses) / slow.total(slow.weights), 1e-12);
}

TEST(NllLoss, MoreDimsAndOne) {
  const Tensor x = sample({2, 3, 4, 5}), t = labels({0, 1, 2, 1}).expand({2, 5, 4}).mT();
  const Tensor flat = x.permute({0, 2, 3, 1}).reshape({40, 3});
  expect_close(nll_loss(x, t, {}, kNone), nll_loss(flat, t.reshape(40), {}, kNone).view({2, 4, 5}));
  expect_close(nll_loss(x, t), nll_loss(flat, t.reshape(40)));
  const Tensor one = nll_loss(tensor({0.1, 0.2}, kFloat64), labels(1), {}, kNone);
  EXPECT_EQ(one.dim(), 0);
  EXPECT_EQ(values(one), (Numbers{-0.2}));
}

TEST(NllLoss, Gradients) {
  const Tensor t = labels({0, 2, -100}), w = tensor({0.5, 1., 2.}, kFloat64);
  for (const Reduction r : kAll) {
    expect_gradients([=](const Inputs& in) { return nll_loss(in[0], t, w, r); }, {leaf({3, 3})});
  }
}

TEST(CrossEntropy, Values) {
  const Tensor x = sample({4, 3, 2}, 1, -5, 5);
  const Tensor t = labels({{0, 2}, {1, 1}, {-100, 0}, {2, 2}}), w = tensor({0.5, 1., 2.}, kFloat64);
  for (const Reduction r : kAll) {
    expect_close(cross_entropy(x, t, w, r), nll_loss(log_softmax(x, 1), t, w, r));
  }
}

// Against probabilities: a label is a one-hot row.
TEST(CrossEntropy, LabelsAreOneHotProbabilities) {
  const Tensor x = sample({3, 4}, 1, -5, 5), t = labels({1, 0, 3});
  Tensor rows = zeros({3, 4}, kFloat64).scatter(1, t.unsqueeze(1), ones({3, 1}, kFloat64));
  for (const Reduction r : kAll) {
    for (const double smoothing : {0.0, 0.3, 1.0}) {
      expect_close(cross_entropy(x, t, {}, r, -100, smoothing),
                   cross_entropy(x, rows, {}, r, -100, smoothing));
    }
  }
  const Tensor w = tensor({0.5, 1., 2., 3.}, kFloat64);
  expect_close(cross_entropy(x, t, w, kNone, -100, 0.2),
               cross_entropy(x, rows, w, kNone, -100, 0.2));
}

TEST(CrossEntropy, Gradients) {
  const Tensor t = labels({0, 2, -100}), w = tensor({0.5, 1., 2.}, kFloat64);
  for (const Reduction r : kAll) {
    for (const double smoothing : {0.0, 0.3}) {
      expect_gradients(
          [=](const Inputs& in) { return cross_entropy(in[0], t, w, r, -100, smoothing); },
          {leaf({3, 3})});
    }
    expect_gradients([=](const Inputs& in) { return cross_entropy(in[0], in[1], w, r); },
                     {leaf({2, 3}), leaf({2, 3}, 2, 0, 1)});
  }
}

TEST(CrossEntropy, AllIgnored) {
  const Tensor t = labels({-100, -100});
  for (const Reduction r : kAll) {
    const Tensor x = leaf({2, 3});
    const Tensor y = cross_entropy(x, t, {}, r);
    if (r == kMean) EXPECT_TRUE(std::isnan(y.item<double>()));
    else EXPECT_EQ(values(y.sum()), (Numbers{0}));
    y.sum().backward();
    EXPECT_EQ(values(x.grad()), Numbers(6, 0));
  }
}

TEST(CrossEntropy, IgnoreIndexMayBeAClassOrNot) {
  const Tensor x = sample({2, 3});
  EXPECT_EQ(values(cross_entropy(x, labels({255, 255}), {}, kNone, 255)), (Numbers{0, 0}));
  EXPECT_EQ(values(cross_entropy(x, labels({1, 1}), {}, kNone, 1)), (Numbers{0, 0}));
}

TEST(CrossEntropy, LabelsOutsideTheClassesThrow) {
  const Tensor x = sample({2, 3});
  expect_error(
      [&] {
        cross_entropy(x, labels({0, 3}));
      },
      {"label 3", "3 classes", "ops_loss_test.cpp"});
  expect_error([&] { cross_entropy(x, labels({-4, 0})); }, {"label -4", "3 classes"});
}

TEST(CrossEntropy, Errors) {
  const Tensor x = sample({2, 3});
  expect_error([&] { cross_entropy(x, labels({0})); }, {"(2, 3)", "(2)", "(1)"});
  expect_error([&] { cross_entropy(x, sample({2, 4})); }, {"(2, 3)", "(2, 4)"});
  expect_error([&] { cross_entropy(x, labels({0, 1}), sample({2})); }, {"weight", "(3)", "(2)"});
  expect_error([&] { cross_entropy(x, labels({0, 1}), {}, kMean, -100, 2); }, {"label_smoothing"});
  expect_error([&] { nll_loss(x, sample(2)); }, {"class labels", "f64"});
}

TEST(CrossEntropy, SixteenBits) {
  const Tensor x = zeros({3000, 2}, TensorOptions(kFloat16).requires_grad(true));
  const Tensor y = cross_entropy(x, zeros({3000}, kInt64));
  EXPECT_EQ(y.dtype(), kFloat16);
  EXPECT_NEAR(y.item<double>(), std::log(2), 1e-3);
  y.backward();
  EXPECT_EQ(x.grad().dtype(), kFloat16);
}

TEST(MseLoss, ValuesAndGradients) {
  const Tensor x = sample({2, 3}), t = sample({2, 3}, 2);
  expect_close(mse_loss(x, t, kNone), (x - t) * (x - t));
  expect_close(mse_loss(x, t), sum((x - t) * (x - t)) / 6);
  expect_gradients([](const Inputs& in) { return mse_loss(in[0], in[1]); },
                   {leaf({2, 3}), leaf({2, 3}, 2)});
}

TEST(L1Loss, ValuesAndGradients) {
  const Tensor x = sample({2, 3}), t = sample({2, 3}, 2);
  expect_close(l1_loss(x, t, kSum), sum(abs(x - t)));
  expect_gradients([](const Inputs& in) { return l1_loss(in[0], in[1]); },
                   {leaf({2, 3}), leaf({2, 3}, 2)});
}

TEST(HuberLoss, ValuesAndGradients) {
  const Tensor x = tensor({0., 0.25, 1., 3., -2.}, kFloat64), t = zeros({5}, kFloat64);
  EXPECT_EQ(values(huber_loss(x, t, kNone, 1)), (Numbers{0, 0.03125, 0.5, 2.5, 1.5}));
  EXPECT_EQ(values(smooth_l1_loss(x, t, kNone, 0.5)), (Numbers{0, 0.0625, 0.75, 2.75, 1.75}));
  EXPECT_EQ(values(smooth_l1_loss(x, t, kNone, 0)), (Numbers{0, 0.25, 1, 3, 2}));
  const auto both = [](const Inputs& in) {
    return huber_loss(in[0], in[1], kSum, 0.5) + smooth_l1_loss(in[0], in[1], kSum, 0.3);
  };
  expect_gradients(both, {leaf({3, 3}, 1, -2, 2), leaf({3, 3}, 2, -2, 2)});
}

TEST(HuberLoss, GradientFarOut) {
  const Tensor x = leaf(tensor({std::numeric_limits<double>::infinity()}, kFloat64));
  huber_loss(x, zeros({1}, kFloat64)).backward();
  EXPECT_EQ(values(x.grad()), (Numbers{1}));
}

TEST(BinaryCrossEntropy, ValuesAndGradients) {
  const Tensor x = sample({2, 3}, 1, 0.1, 0.9), t = sample({2, 3}, 2, 0, 1);
  expect_close(binary_cross_entropy(x, t, {}, kNone), -(t * log(x) + (1 - t) * log(1 - x)));
  const Tensor w = sample({2, 3}, 3, 0, 1);
  expect_gradients([=](const Inputs& in) { return binary_cross_entropy(in[0], in[1], w); },
                   {leaf(x), leaf(t)});
}

TEST(BinaryCrossEntropy, LogarithmsEndAtMinus100) {
  const Tensor x = leaf(tensor({0., 1.}, kFloat64));
  const Tensor y = binary_cross_entropy(x, tensor({1., 0.}, kFloat64), {}, kNone);
  EXPECT_EQ(values(y), (Numbers{100, 100}));
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{-1e12, 1e12}));
}

TEST(BinaryCrossEntropyWithLogits, ValuesAndGradients) {
  const Tensor x = sample({2, 3}, 1, -3, 3), t = sample({2, 3}, 2, 0, 1);
  const Tensor w = sample({3}, 3, 0, 1), p = sample({3}, 4, 0, 3), s = sigmoid(x);
  expect_close(binary_cross_entropy_with_logits(x, t, w, p, kNone),
               -w * (p * t * log(s) + (1 - t) * log(1 - s)));
  expect_gradients(
      [=](const Inputs& in) { return binary_cross_entropy_with_logits(in[0], in[1], w, p); },
      {leaf(x), leaf(t)});
  const Tensor far = tensor({-1000., 1000.}, kFloat64), ends = tensor({0., 1.}, kFloat64);
  EXPECT_EQ(values(binary_cross_entropy_with_logits(far, ends, {}, {}, kNone)), (Numbers{0, 0}));
}

TEST(KlDiv, ValuesAndGradients) {
  const Tensor x = log_softmax(sample({2, 3}), 1), t = softmax(sample({2, 3}, 2), 1);
  expect_close(kl_div(x, t, kSum), sum(t * (log(t) - x)));
  expect_close(kl_div(x, t, kBatchMean), sum(t * (log(t) - x)) / 2);
  expect_close(kl_div(x, log(t), kMean, true), kl_div(x, t));
  EXPECT_EQ(values(kl_div(tensor({1.}), tensor({0.}), kNone)), (Numbers{0}));
  for (const bool log_target : {false, true}) {
    expect_gradients([=](const Inputs& in) { return kl_div(in[0], in[1], kMean, log_target); },
                     {leaf({2, 3}), leaf({2, 3}, 2, 0.1, 1)});
  }
  expect_error([&] { mse_loss(x, t, kBatchMean); }, {"kl_div"});
}

}  // namespace
}  // namespace taper::testing
