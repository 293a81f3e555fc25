// Optimizers as containers: groups, state that follows parameters and comes back, what is refused.
#include "taper/nn/layers.h"
#include "taper/optim/lr_scheduler.h"
#include "taper/tests/nn/nn_testing.h"
#include "taper/tests/optim/optim_testing.h"

namespace taper::testing {
namespace {

using optim::AdamOptions, optim::AdamWOptions, optim::SGDOptions;
using Groups = std::vector<optim::OptimizerParamGroup>;

std::unique_ptr<SGDOptions> sgd_options(double lr) {
  return std::make_unique<SGDOptions>(lr);
}

Tensor parameter(unsigned seed = 1, DType dtype = kFloat64) {
  return sample({3}, seed).to(dtype).clone().requires_grad_();
}

TEST(Groups, HaveTheirOwnOptions) {
  const Tensor a = parameter(1), b = parameter(2);
  const Numbers a0 = values(a), b0 = values(b);
  Groups groups;
  groups.emplace_back(std::vector<Tensor>{a});
  groups.emplace_back(std::vector<Tensor>{b}, sgd_options(0.5));
  optim::SGD optimizer(std::move(groups), SGDOptions(0.1));
  EXPECT_EQ(optimizer.param_groups().size(), 2U);
  EXPECT_EQ(optimizer.size(), 2U);
  a.mutable_grad() = ones({3}, kFloat64);
  b.mutable_grad() = ones({3}, kFloat64);
  optimizer.step();
  optimizer.param_groups()[0].options().set_lr(0.2);
  optimizer.step();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(values(a)[i], a0[i] - 0.1 - 0.2, 1e-15);
    EXPECT_NEAR(values(b)[i], b0[i] - 1, 1e-15);
  }
  EXPECT_EQ(static_cast<const SGDOptions&>(optimizer.defaults()).lr(), 0.1);
}

TEST(Groups, AreAddedLater) {
  const Tensor a = parameter(1), b = parameter(2), c = parameter(3);
  const Numbers c0 = values(c);
  optim::SGD optimizer({a}, SGDOptions(0.1));
  optimizer.add_parameters({b});
  EXPECT_EQ(optimizer.param_groups()[0].params().size(), 2U);
  optimizer.add_param_group({{c}, sgd_options(1)});
  EXPECT_EQ(optimizer.size(), 3U);
  c.mutable_grad() = ones({3}, kFloat64);
  optimizer.step();
  EXPECT_NEAR(values(c)[1], c0[1] - 1, 1e-15);
  const Error e = error_of([&] { optimizer.add_parameters({parameter(4)}); });
  expect_names(e, __LINE__ - 1, "", {"add_param_group"});
}

TEST(Groups, RefuseWhatCannotBeOptimized) {
  const Tensor a = parameter(1), b = parameter(2);
  const Tensor made = a * 2;
  const Error leaf = error_of([&] { optim::SGD({a, made}, 0.1); });
  expect_names(leaf, __LINE__ - 1, "", {"optimizer", "(3)", "mul", "leaves"});
  const Error twice = error_of([&] { optim::Adam({a, b, a}); });
  expect_names(twice, __LINE__ - 1, "", {"optimizer", "(3)", "twice"});
  optim::SGD optimizer({a}, 0.1);
  const Error again = error_of([&] { optimizer.add_param_group({{b, a}}); });
  expect_names(again, __LINE__ - 1, "", {"twice"});
  const Error added = error_of([&] { optimizer.add_parameters({a}); });
  expect_names(added, __LINE__ - 1, "", {"twice"});
  const Error grown = error_of([&] { optimizer.add_parameters({made}); });
  expect_names(grown, __LINE__ - 1, "", {"leaves"});
  const Error undefined = error_of([&] { optimizer.add_param_group({{Tensor()}}); });
  expect_names(undefined, __LINE__ - 1, "", {"undefined"});
  EXPECT_EQ(optimizer.size(), 1U);
  EXPECT_EQ(optimizer.param_groups().size(), 1U);
}

// An SGD reads SGDOptions: other ones would be read as what they are not.
TEST(Groups, RefuseOptionsOfAnotherOptimizer) {
  const Tensor a = parameter(1), b = parameter(2);
  optim::SGD optimizer({a}, 0.1);
  const auto add = [&] { optimizer.add_param_group({{b}, std::make_unique<AdamOptions>(0.1)}); };
  expect_error(add, {"optimizer", "options"});
  EXPECT_EQ(optimizer.size(), 1U);
}

TEST(Options, OutOfRangeAreRefused) {
  const std::vector<Tensor> p = {parameter()};
  const Error lr = error_of([&] { optim::SGD(p, SGDOptions(-1)); });
  expect_names(lr, __LINE__ - 1, "", {"SGD", "lr", "-1"});
  const Error momentum = error_of([&] { optim::SGD(p, SGDOptions(1).momentum(-0.5)); });
  expect_names(momentum, __LINE__ - 1, "", {"SGD", "momentum", "-0.5"});
  const Error nesterov = error_of([&] { optim::SGD(p, SGDOptions(1).nesterov(true)); });
  expect_names(nesterov, __LINE__ - 1, "", {"SGD", "nesterov"});
  const Error eps = error_of([&] { optim::Adam(p, AdamOptions(1).eps(-1)); });
  expect_names(eps, __LINE__ - 1, "", {"Adam", "eps", "-1"});
  const Error beta = error_of([&] { optim::AdamW(p, AdamWOptions(1).betas({0.9, 1})); });
  expect_names(beta, __LINE__ - 1, "", {"AdamW", "betas", "0.9", "1"});
  const Error nan = error_of([&] { optim::Adam(p, AdamOptions(std::nan(""))); });
  expect_names(nan, __LINE__ - 1, "", {"Adam", "lr", "nan"});
}

TEST(ZeroGrad, DropsOrClears) {
  const Tensor a = parameter(1), b = parameter(2);
  optim::SGD optimizer({a, b}, 0.1);
  a.mutable_grad() = ones({3}, kFloat64);
  const Tensor grad = a.grad();
  optimizer.zero_grad(false);
  EXPECT_TRUE(a.grad().is_alias_of(grad));
  EXPECT_EQ(values(grad), Numbers(3, 0));
  EXPECT_FALSE(b.grad().defined());
  optimizer.zero_grad();
  EXPECT_FALSE(a.grad().defined());
}

TEST(Closure, IsCalledWithRecordingOnAndItsLossReturned) {
  const Tensor w = parameter();
  const Numbers before = values(w);
  optim::SGD optimizer({w}, 0.5);
  const auto closure = [&] {
    optimizer.zero_grad();
    const Tensor loss = w.sum();
    loss.backward();
    return loss;
  };
  const NoGradGuard no_grad;
  const Tensor loss = optimizer.step(closure);
  EXPECT_NEAR(loss.item<double>(), before[0] + before[1] + before[2], 1e-15);
  EXPECT_NEAR(values(w)[0], before[0] - 0.5, 1e-15);
  EXPECT_FALSE(GradMode::is_enabled());
}

TEST(Step, ErrorsNameTheOptimizerAndLine) {
  const Tensor w = parameter();
  optim::AdamW optimizer({w});
  w.mutable_grad() = ones({4}, kFloat64);
  const Error shape = error_of([&] { optimizer.step(); });
  expect_names(shape, __LINE__ - 1, "", {"AdamW", "(3)", "(4)"});
  w.mutable_grad() = ones({3}, kFloat32);
  const Error dtype = error_of([&] { optimizer.step(); });
  expect_names(dtype, __LINE__ - 1, "", {"AdamW", "f64", "f32"});
  EXPECT_EQ(optimizer.state_dict()["0.step"].item<std::int64_t>(), 0);
}

// pytorch#30508: a module moved after its optimizer was made.
TEST(State, FollowsTheModuleToAnotherDtype) {
  const auto walk = [](bool moved_first) {
    const nn::Linear fc(3, 2);
    fc->weight.detach().copy_(sample({2, 3}));
    fc->bias.detach().zero_();
    if (moved_first) fc->to(kFloat64);
    optim::Adam optimizer(fc->parameters(), AdamOptions(0.1));
    for (unsigned t = 1; t <= 6; ++t) {
      if (t == 3) fc->to(kFloat64);
      give_gradients(fc->parameters(), t);
      optimizer.step();
    }
    for (const auto& item : optimizer.state_dict()) {
      const bool counts = item.key().ends_with("step");
      EXPECT_EQ(item.value().dtype(), counts ? kInt64 : kFloat64) << item.key();
    }
    return values(fc->weight);
  };
  const Numbers late = walk(false), early = walk(true);
  for (std::size_t i = 0; i < early.size(); ++i) EXPECT_NEAR(late[i], early[i], 1e-5);
}

template <class Optimizer, class Options> void expect_resume(const Options& options) {
  for (const DType dtype : {kFloat64, kFloat32}) {
    const std::vector<Tensor> params = parameters_of(dtype);
    Optimizer through(params, options);
    for (unsigned t = 1; t <= 3; ++t) {
      give_gradients(params, t);
      through.step();
    }
    through.param_groups()[0].options().set_lr(0.03);
    std::vector<Tensor> copies;
    for (const Tensor& p : params) copies.push_back(p.detach().clone().requires_grad_());
    Optimizer resumed(copies, options);
    resumed.load_state_dict(through.state_dict());
    EXPECT_EQ(resumed.param_groups()[0].options().get_lr(), 0.03);
    for (unsigned t = 4; t <= 6; ++t) {
      give_gradients(params, t);
      give_gradients(copies, t);
      through.step();
      resumed.step();
    }
    EXPECT_EQ(values_of(copies), values_of(params));
    EXPECT_EQ(resumed.state_dict().keys(), through.state_dict().keys());
    for (const auto& item : through.state_dict()) {
      EXPECT_EQ(values(resumed.state_dict()[item.key()]), values(item.value())) << item.key();
    }
  }
}

TEST(State, ResumesToTheBit) {
  expect_resume<optim::SGD>(SGDOptions(0.1).momentum(0.9).dampening(0.2));
  expect_resume<optim::SGD>(SGDOptions(0.1));
  expect_resume<optim::Adam>(AdamOptions(0.1).amsgrad(true));
  expect_resume<optim::AdamW>(AdamWOptions(0.1));
}

TEST(State, ThatDoesNotFitIsRefusedAndChangesNothing) {
  const Tensor a = parameter(1), b = parameter(2);
  optim::Adam two({a, b}, AdamOptions(0.1)), one({a}, AdamOptions(0.2));
  for (const Tensor& p : {a, b}) p.mutable_grad() = ones({3}, kFloat64);
  two.step();
  const Error more = error_of([&] { one.load_state_dict(two.state_dict()); });
  expect_names(more, __LINE__ - 1, "", {"load_state_dict"});
  const Error fewer = error_of([&] { two.load_state_dict(one.state_dict()); });
  expect_names(fewer, __LINE__ - 1, "", {"load_state_dict", "'1.step'"});
  auto state = one.state_dict();
  state.insert("0.exp_avg", ones({4}));
  const Error shape = error_of([&] { one.load_state_dict(state); });
  expect_names(shape, __LINE__ - 1, "", {"0.exp_avg", "(4)", "(3)"});
  EXPECT_EQ(one.param_groups()[0].options().get_lr(), 0.2);
  EXPECT_EQ(one.state_dict().keys(), (std::vector<std::string>{"0.step", "group0.lr"}));
  EXPECT_EQ(two.state_dict()["1.step"].item<std::int64_t>(), 1);
}

}  // namespace
}  // namespace taper::testing
