// Modules without parameters: each gives what its formula says, and prints its options.
#include "taper/nn/stateless.h"

#include <limits>

#include "taper/tests/nn/nn_testing.h"

namespace taper::testing {
namespace {

const Tensor x = sample({3, 4}, 1, -3, 3);

template <class Module, class F> void expect_formula(const Module& module, const F& f) {
  const Numbers in = values(x), got = values(module(x));
  ASSERT_EQ(got.size(), in.size());
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(got[i], f(in[i]), 1e-12) << in[i];
}

TEST(Activations, AreTheirFormulas) {
  const double root = std::sqrt(2), pi = std::acos(-1.0);
  expect_formula(nn::ReLU(), [](double v) { return v > 0 ? v : 0; });
  expect_formula(nn::ReLU6(), [](double v) { return std::min(std::max(v, 0.0), 6.0); });
  expect_formula(nn::GELU(), [&](double v) { return v / 2 * (1 + std::erf(v / root)); });
  expect_formula(nn::GELU(nn::GELUOptions().approximate("tanh")), [&](double v) {
    return v / 2 * (1 + std::tanh(std::sqrt(2 / pi) * (v + 0.044715 * v * v * v)));
  });
  expect_formula(nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
                 [](double v) { return v > 0 ? v : 0.2 * v; });
  expect_formula(nn::ELU(nn::ELUOptions().alpha(0.7)),
                 [](double v) { return v > 0 ? v : 0.7 * std::expm1(v); });
  expect_formula(nn::Softplus(nn::SoftplusOptions().beta(2).threshold(3)),
                 [](double v) { return 2 * v > 3 ? v : std::log1p(std::exp(2 * v)) / 2; });
  expect_formula(nn::Hardtanh(nn::HardtanhOptions().min_val(-0.5).max_val(2)),
                 [](double v) { return std::min(std::max(v, -0.5), 2.0); });
  expect_formula(nn::SiLU(), [](double v) { return v / (1 + std::exp(-v)); });
  expect_formula(nn::Tanh(), [](double v) { return std::tanh(v); });
  expect_formula(nn::Sigmoid(), [](double v) { return 1 / (1 + std::exp(-v)); });
  expect_formula(nn::LogSigmoid(), [](double v) { return -std::log1p(std::exp(-v)); });
  expect_formula(nn::Identity(), [](double v) { return v; });
}

TEST(Activations, InPlaceOnesWriteTheirInput) {
  const auto writes = [](const auto& module) {
    const Tensor t = x.clone();
    EXPECT_TRUE(module(t).is_alias_of(t));
    expect_close(t, module(x.clone()));
  };
  writes(nn::ReLU(nn::ReLUOptions(true)));
  writes(nn::ReLU6(nn::ReLU6Options(true)));
  writes(nn::LeakyReLU(nn::LeakyReLUOptions().inplace(true)));
  writes(nn::ELU(nn::ELUOptions().inplace(true)));
  writes(nn::Hardtanh(nn::HardtanhOptions().inplace(true)));
}

TEST(Activations, SoftmaxesAddUpToOne) {
  const Numbers in = values(x), soft = values(nn::Softmax(1)(x)),
                logs = values(nn::LogSoftmax(nn::LogSoftmaxOptions(0))(x));
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      double row = 0, column = 0;
      for (std::size_t k = 0; k < 4; ++k) row += std::exp(in[4 * i + k]);
      for (std::size_t k = 0; k < 3; ++k) column += std::exp(in[4 * k + j]);
      EXPECT_NEAR(soft[4 * i + j], std::exp(in[4 * i + j]) / row, 1e-14);
      EXPECT_NEAR(logs[4 * i + j], in[4 * i + j] - std::log(column), 1e-12);
    }
  }
}

// x (1, 1, 4, 4) holds 0 to 15 by rows.
TEST(Pools, TakeTheirWindows) {
  const Tensor grid = arange(16, kFloat64).view({1, 1, 4, 4});
  EXPECT_EQ(values(nn::MaxPool2d(2)(grid)), (Numbers{5, 7, 13, 15}));
  EXPECT_EQ(values(nn::MaxPool2d(nn::MaxPool2dOptions({1, 3}).stride({2, 1}))(grid)),
            (Numbers{2, 3, 10, 11}));
  EXPECT_EQ(values(nn::AvgPool2d(2)(grid)), (Numbers{2.5, 4.5, 10.5, 12.5}));
  EXPECT_EQ(values(nn::AdaptiveAvgPool2d(1)(grid)), (Numbers{7.5}));
  EXPECT_EQ(values(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({2, 1}))(grid)),
            (Numbers{3.5, 11.5}));
  EXPECT_TRUE(nn::Flatten()(grid).sizes() == IntArrayRef({1, 16}));
  EXPECT_TRUE(nn::Flatten(nn::FlattenOptions().start_dim(2).end_dim(3))(grid).sizes() ==
              IntArrayRef({1, 1, 16}));
}

// Sum, mean and none of f(x, t), element by element.
template <class Loss, class Options, class F>
void expect_loss(const Tensor& in, const Tensor& target, const Options& options, const F& f) {
  const Numbers a = values(in), b = values(target);
  Numbers each;
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    each.push_back(f(a[i], b[i]));
    sum += each.back();
  }
  const auto with = [&](Reduction r) { return Loss(Options(options).reduction(r))(in, target); };
  expect_close(with(kNone), tensor(each, kFloat64).view(in.sizes()), 1e-12);
  EXPECT_NEAR(with(kSum).template item<double>(), sum, 1e-12);
  const double mean = sum / static_cast<double>(a.size());
  EXPECT_NEAR(with(kMean).template item<double>(), mean, 1e-12);
  EXPECT_NEAR(Loss(options)(in, target).template item<double>(), mean, 1e-12);
}

TEST(Losses, OfElementsAreTheirFormulas) {
  const Tensor t = sample({3, 4}, 2, -2, 2), p = sample({3, 4}, 3, 0.05, 0.95),
               q = sample({3, 4}, 4, 0, 1);
  expect_loss<nn::MSELoss>(x, t, nn::MSELossOptions(),
                           [](double a, double b) { return (a - b) * (a - b); });
  expect_loss<nn::L1Loss>(x, t, nn::L1LossOptions(),
                          [](double a, double b) { return std::fabs(a - b); });
  expect_loss<nn::HuberLoss>(x, t, nn::HuberLossOptions().delta(0.7), [](double a, double b) {
    const double d = std::fabs(a - b);
    return d < 0.7 ? d * d / 2 : 0.7 * (d - 0.35);
  });
  expect_loss<nn::SmoothL1Loss>(x, t, nn::SmoothL1LossOptions().beta(0.7), [](double a, double b) {
    const double d = std::fabs(a - b);
    return d < 0.7 ? d * d / 1.4 : d - 0.35;
  });
  expect_loss<nn::BCELoss>(p, q, nn::BCELossOptions(), [](double a, double b) {
    return -b * std::log(a) - (1 - b) * std::log(1 - a);
  });
  expect_loss<nn::BCEWithLogitsLoss>(x, q, nn::BCEWithLogitsLossOptions(), [](double a, double b) {
    return std::log1p(std::exp(a)) - a * b;
  });
}

TEST(Losses, OfClassesPickTheLabelsScore) {
  const Tensor labels = tensor({2, 0, 3}, kInt64);
  const Numbers logs = values(x.log_softmax(1));
  const double want = -(logs[2] + logs[4] + logs[11]) / 3;
  EXPECT_NEAR(nn::CrossEntropyLoss()(x, labels).item<double>(), want, 1e-12);
  EXPECT_NEAR(nn::NLLLoss()(x.log_softmax(1), labels).item<double>(), want, 1e-12);
  const nn::CrossEntropyLoss ignoring(nn::CrossEntropyLossOptions().ignore_index(0));
  EXPECT_NEAR(ignoring(x, labels).item<double>(), -(logs[2] + logs[11]) / 2, 1e-12);
}

TEST(Stateless, ErrorsNameShapesAndLine) {
  const nn::CrossEntropyLoss loss;
  const Error e = error_of([&] { loss(x, tensor({0, 1}, kInt64)); });
  expect_names(e, __LINE__ - 1, "", {"(3, 4)", "(2)"});
  const Error label = error_of([&] { loss(x, tensor({0, 1, 4}, kInt64)); });
  expect_names(label, __LINE__ - 1, "", {"4"});
  const Error pool = error_of([&] { nn::MaxPool2d(3)(ones({1, 1, 2, 2})); });
  expect_names(pool, __LINE__ - 1, "", {"max_pool2d", "(1, 1, 2, 2)"});
  const Error dim = error_of([&] { nn::Softmax(2)(x); });
  expect_names(dim, __LINE__ - 1, "", {"dim 2"});
  const Error mse = error_of([&] { nn::MSELoss()(x, ones({5}, kFloat64)); });
  expect_names(mse, __LINE__ - 1, "", {"(3, 4)", "(5)"});
}

TEST(Stateless, PrintTheirOptions) {
  EXPECT_EQ(printed(*nn::ReLU()), "ReLU()");
  EXPECT_EQ(printed(*nn::ReLU6(nn::ReLU6Options(true))), "ReLU6(inplace=true)");
  EXPECT_EQ(printed(*nn::GELU()), "GELU()");
  EXPECT_EQ(printed(*nn::LeakyReLU()), "LeakyReLU(negative_slope=0.01)");
  EXPECT_EQ(printed(*nn::ELU(nn::ELUOptions().inplace(true))), "ELU(alpha=1, inplace=true)");
  EXPECT_EQ(printed(*nn::Softplus()), "Softplus(beta=1, threshold=20)");
  EXPECT_EQ(printed(*nn::Hardtanh()), "Hardtanh(min_val=-1, max_val=1)");
  EXPECT_EQ(printed(*nn::Softmax(1)), "Softmax(dim=1)");
  EXPECT_EQ(printed(*nn::LogSoftmax(-1)), "LogSoftmax(dim=-1)");
  EXPECT_EQ(printed(*nn::Tanh()), "Tanh()");
  EXPECT_EQ(printed(*nn::MaxPool2d(2)),
            "MaxPool2d(kernel_size=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1], "
            "ceil_mode=false)");
  EXPECT_EQ(printed(*nn::AvgPool2d(nn::AvgPool2dOptions({2, 3}).stride(1).padding(1))),
            "AvgPool2d(kernel_size=[2, 3], stride=[1, 1], padding=[1, 1])");
  EXPECT_EQ(printed(*nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({3, 4}))),
            "AdaptiveAvgPool2d(output_size=[3, 4])");
  EXPECT_EQ(printed(*nn::Flatten()), "Flatten(start_dim=1, end_dim=-1)");
  EXPECT_EQ(printed(*nn::CrossEntropyLoss()), "CrossEntropyLoss()");
}

}  // namespace
}  // namespace taper::testing
