// SGD, Adam and AdamW against their formulas, one number at a time, in double.
#include "taper/tests/optim/optim_testing.h"

namespace taper::testing {
namespace {

using optim::AdamOptions, optim::AdamWOptions, optim::SGDOptions;

constexpr unsigned kSteps = 20;

double tolerance_of(DType dtype) {
  return dtype == kFloat64 ? 1e-13 : 1e-5;
}

// Numbers that a step keeps for one parameter.
struct Memory {
  Numbers first, second, largest;
  int steps = 0;
};

void sgd_by_hand(Numbers& w, const Numbers& grad, Memory& memory, const SGDOptions& o) {
  if (memory.steps++ == 0) memory.first = Numbers(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    double g = grad[i] + o.weight_decay() * w[i];
    if (o.momentum() != 0) {
      double& v = memory.first[i];
      v = memory.steps == 1 ? g : o.momentum() * v + (1 - o.dampening()) * g;
      g = o.nesterov() ? g + o.momentum() * v : v;
    }
    w[i] -= o.lr() * g;
  }
}

void adam_by_hand(
    Numbers& w, const Numbers& grad, Memory& memory, const AdamOptions& o, bool decoupled) {
  if (memory.steps++ == 0) {
    memory.first = memory.second = memory.largest = Numbers(w.size());
  }
  const auto [b1, b2] = o.betas();
  for (std::size_t i = 0; i < w.size(); ++i) {
    double g = grad[i];
    if (decoupled) w[i] -= o.lr() * o.weight_decay() * w[i];
    else g += o.weight_decay() * w[i];
    double &m = memory.first[i], &v = memory.second[i];
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    memory.largest[i] = std::max(memory.largest[i], v);
    const double m_hat = m / (1 - std::pow(b1, memory.steps));
    const double v_hat = (o.amsgrad() ? memory.largest[i] : v) / (1 - std::pow(b2, memory.steps));
    w[i] -= o.lr() * m_hat / (std::sqrt(v_hat) + o.eps());
  }
}

// Walks both, and compares after each step.
template <class Optimizer, class Options, class ByHand>
void expect_walk(const Options& options, const ByHand& by_hand) {
  for (const DType dtype : {kFloat64, kFloat32}) {
    const std::vector<Tensor> params = parameters_of(dtype);
    std::vector<Numbers> want = values_of(params);
    std::vector<Memory> memories(params.size());
    Optimizer optimizer(params, options);
    for (unsigned t = 1; t <= kSteps; ++t) {
      give_gradients(params, t);
      for (std::size_t i = 0; i < params.size(); ++i) {
        by_hand(want[i], values(params[i].grad()), memories[i], options);
      }
      optimizer.step();
      ASSERT_NO_FATAL_FAILURE(expect_near(params, want, tolerance_of(dtype))) << "step " << t;
    }
  }
}

TEST(SGD, StepsByItsFormula) {
  for (const SGDOptions& o :
       {SGDOptions(0.1), SGDOptions(0.1).weight_decay(0.05), SGDOptions(0.05).momentum(0.9),
        SGDOptions(0.05).momentum(0.9).dampening(0.3).weight_decay(0.01),
        SGDOptions(0.05).momentum(0.8).nesterov(true).weight_decay(0.01)}) {
    expect_walk<optim::SGD>(o, sgd_by_hand);
  }
}

TEST(Adam, StepsByItsFormula) {
  const auto by_hand = [](Numbers& w, const Numbers& g, Memory& m, const AdamOptions& o) {
    adam_by_hand(w, g, m, o, false);
  };
  for (const AdamOptions& o :
       {AdamOptions(), AdamOptions(0.02).betas({0.5, 0.9}).eps(1e-3),
        AdamOptions(0.02).weight_decay(0.1), AdamOptions(0.02).amsgrad(true).betas({0.9, 0.5})}) {
    expect_walk<optim::Adam>(o, by_hand);
  }
}

TEST(AdamW, StepsByItsFormula) {
  const auto by_hand = [](Numbers& w, const Numbers& g, Memory& m, const AdamWOptions& o) {
    adam_by_hand(w, g, m, o, true);
  };
  EXPECT_EQ(AdamWOptions().weight_decay(), 0.01);
  for (const AdamWOptions& o :
       {AdamWOptions(), AdamWOptions(0.02).weight_decay(0.3),
        AdamWOptions(0.02).amsgrad(true).betas({0.9, 0.5}), AdamWOptions(0.1).weight_decay(0)}) {
    expect_walk<optim::AdamW>(o, by_hand);
  }
}

// Momentum switched on late: its buffer begins as the gradient, whatever the step.
TEST(SGD, MomentumMayBeginLate) {
  const std::vector<Tensor> params = parameters_of(kFloat64);
  optim::SGD optimizer(params, SGDOptions(0.1));
  give_gradients(params, 1);
  optimizer.step();
  std::vector<Numbers> want = values_of(params);
  const auto options = SGDOptions(0.1).momentum(0.9).dampening(0.5);
  static_cast<SGDOptions&>(optimizer.param_groups()[0].options()) = options;
  std::vector<Memory> memories(params.size());
  for (unsigned t = 2; t <= 5; ++t) {
    give_gradients(params, t);
    for (std::size_t i = 0; i < params.size(); ++i)
      sgd_by_hand(want[i], values(params[i].grad()), memories[i], options);
    optimizer.step();
  }
  expect_near(params, want, 1e-13);
}

// A parameter without a gradient is left alone, and its own steps are counted from its first.
TEST(Adam, SkipsParametersWithoutGradient) {
  const std::vector<Tensor> params = parameters_of(kFloat64);
  optim::AdamW optimizer(params, AdamWOptions(0.02).weight_decay(0.3));
  std::vector<Numbers> want = values_of(params);
  std::vector<Memory> memories(params.size());
  for (unsigned t = 1; t <= 6; ++t) {
    give_gradients(params, t);
    for (std::size_t i = 0; i < params.size(); ++i) {
      if ((t + i) % 3 != 0) {
        adam_by_hand(want[i], values(params[i].grad()), memories[i],
                     AdamWOptions(0.02).weight_decay(0.3), true);
      } else {
        params[i].mutable_grad() = Tensor();
      }
    }
    optimizer.step();
  }
  expect_near(params, want, 1e-13);
}

TEST(Steps, AreNotRecordedButRaiseVersions) {
  const Tensor w = sample({3}).requires_grad_();
  optim::SGD optimizer({w}, SGDOptions(0.1));
  const Tensor y = (w * w).sum();
  w.mutable_grad() = ones({3}, kFloat64);
  const auto before = w.version();
  optimizer.step();
  EXPECT_GT(w.version(), before);
  EXPECT_TRUE(w.is_leaf() && w.requires_grad());
  expect_error([&] { y.backward(); }, {"mul", "SGD"});
}

TEST(Steps, DecreaseAnObviousLoss) {
  const auto expect_less = [](auto&& make) {
    const Tensor w = sample({4}, 3).requires_grad_();
    const auto optimizer = make(std::vector<Tensor>{w});
    const auto loss = [&] { return (w - 2).square().sum(); };
    const double before = loss().template item<double>();
    for (int i = 0; i < 50; ++i) {
      optimizer->zero_grad();
      loss().backward();
      optimizer->step();
    }
    EXPECT_LT(loss().template item<double>(), before / 10);
  };
  expect_less([](auto p) { return std::make_unique<optim::SGD>(p, SGDOptions(0.1)); });
  expect_less([](auto p) { return std::make_unique<optim::Adam>(p, AdamOptions(0.1)); });
  expect_less([](auto p) { return std::make_unique<optim::AdamW>(p, AdamWOptions(0.1)); });
}

}  // namespace
}  // namespace taper::testing
