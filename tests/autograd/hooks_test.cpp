// Hooks, retained gradients, custom functions and inference mode, as LibTorch means them.
#include <thread>

#include <gtest/gtest.h>

#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

using autograd::AutogradContext;
using autograd::Function;
using autograd::variable_list;

Tensor leaf(double x) {
  return full({2}, x, TensorOptions(kFloat64).requires_grad(true));
}

double first(const Tensor& t) {
  return t[0].item<double>();
}

TEST(Hooks, MayRemoveThemselves) {
  const Tensor x = leaf(1);
  unsigned handle = 0;
  handle = x.register_hook([&](const Tensor&) { x.remove_hook(handle); });
  x.register_hook([](const Tensor& g) { return g * 2; });
  (x * 2).sum().backward();
  EXPECT_EQ(first(x.grad()), 4);
}

TEST(RetainGrad, AddsUp) {
  const Tensor y = leaf(1) * 3;
  y.retain_grad();
  const Tensor loss = y.sum();
  loss.backward({}, true);
  loss.backward();
  EXPECT_EQ(first(y.grad()), 2);
}

TEST(RetainGrad, IsItsOwnTensor) {
  const Tensor y = leaf(1) * 3, g = ones({2}, kFloat64);
  y.retain_grad();
  y.backward(g);
  g.fill_(7);
  EXPECT_EQ(first(y.grad()), 1);
}

TEST(RetainGrad, FollowsAWriteInPlace) {
  const Tensor y = leaf(1) * 3;
  y.retain_grad();
  y.mul_(5);
  y.sum().backward();
  EXPECT_EQ(first(y.grad()), 1);
}

TEST(RetainGrad, EndsWithDetach) {
  const Tensor w = leaf(2), y = leaf(1) * 3;
  y.retain_grad();
  y.detach_();
  EXPECT_FALSE(y.retains_grad());
  y.mul_(w);
  y.sum().backward();
  EXPECT_EQ(first(w.grad()), 3);
}

struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x, Tensor()});
    ctx->saved_data["three"] = 3;
    return x * x * x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    EXPECT_FALSE(saved.at(1).defined());
    return {grads[0] * ctx->saved_data["three"].toInt() * saved[0].square()};
  }
};

TEST(CustomFunction, RunsBackwardOnSeveralThreads) {
  const Tensor x = leaf(2);
  const Tensor y = Cube::apply(x).sum();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) EXPECT_EQ(first(grad({y}, {x}, {}, true)[0]), 12);
    });
  }
  for (std::thread& t : threads) t.join();
}

struct Weighted : Function<Weighted> {
  static Tensor forward(AutogradContext*,
                        const std::vector<Tensor>& list,
                        double by,
                        const std::optional<Tensor>& last) {
    Tensor sum = list[0] + list[1] * by;
    return last ? sum + *last * 5 : sum;
  }
  static variable_list backward(AutogradContext*, variable_list g) {
    return {g[0], g[0] * 2, Tensor(), g[0] * 5};
  }
};

TEST(CustomFunction, TakesListsAndOptionals) {
  const Tensor a = leaf(1), b = leaf(1), c = leaf(1);
  Weighted::apply(std::vector<Tensor>{a, b}, 2.0, std::optional<Tensor>(c)).sum().backward();
  EXPECT_EQ(first(a.grad()), 1);
  EXPECT_EQ(first(b.grad()), 2);
  EXPECT_EQ(first(c.grad()), 5);
}

struct Twice : Function<Twice> {  // a view whose gradient is not that of a view
  static Tensor forward(AutogradContext*, const Tensor& x) { return x.view({2, 1}); }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0].view({2}) * 2}; }
};

TEST(CustomFunction, ItsViewsCannotBeWritten) {
  const Tensor a = leaf(1) * 1;
  const Tensor view = Twice::apply(a);
  const std::string text = message_of([&] { view.mul_(3); });
  EXPECT_NE(text.find("bypass"), std::string::npos) << text;
  const Tensor x = leaf(1);
  Twice::apply(x).sum().backward();
  EXPECT_EQ(first(x.grad()), 2);
}

TEST(Errors, AreNamedAsTheUserCalls) {
  const auto begins = [](const std::string& text, const char* with) {
    return text.rfind(with, 0) == 0;
  };
  const std::string custom = message_of([] { Twice::apply(ones({3})); });
  EXPECT_TRUE(begins(custom, "view: ")) << custom;  // what failed inside of it
  nn::Linear linear(2, 2);
  const std::string file = message_of([&] { load(linear, "/nowhere"); });
  EXPECT_TRUE(begins(file, "load: ")) << file;
  const std::string expand = message_of([] { ones({3}).expand({2, 2}); });
  EXPECT_TRUE(begins(expand, "expand: ")) << expand;
}

TEST(InferenceModeTensors, ParametersCanBeMade) {
  const InferenceMode guard;
  nn::Linear linear(2, 2);
  EXPECT_TRUE(linear->weight.requires_grad());
  EXPECT_EQ(linear(ones({1, 2})).dim(), 2);
}

TEST(InferenceModeTensors, ViewsOfOrdinaryTensorsStayOrdinary) {
  const Tensor w = ones({2, 3}, TensorOptions(kFloat64)), x = ones({1, 3}, kFloat64);
  x.requires_grad_();
  Tensor turned, fresh;
  {
    const InferenceMode guard;
    turned = w.t();
    fresh = w * 2;
  }
  EXPECT_FALSE(turned.is_inference());
  EXPECT_TRUE(fresh.is_inference());
  x.matmul(turned).sum().backward();
  EXPECT_EQ(x.grad()[0][0].item<double>(), 2);
}

TEST(NoGradViews, OfALeafCannotBeWrittenBehindItsBack) {
  const Tensor w = leaf(1);
  Tensor view;
  {
    const NoGradGuard guard;
    view = w.slice(0, 0, 1);
  }
  EXPECT_NE(message_of([&] { view.mul_(7); }).find("view"), std::string::npos);
  EXPECT_EQ(first(w), 1);
  const NoGradGuard guard;
  view.mul_(7);  // as optimizers do
  EXPECT_EQ(first(w), 7);
}

TEST(CreateGraph, LocalLeavesGoWithTheirGradients) {
  const std::size_t before = live_entries();
  for (int i = 0; i < 100; ++i) {
    const Tensor v = leaf(0.5);
    v.exp().sum().backward({}, true, true);
    const Tensor y = v * 2;
    y.retain_grad();
    y.exp().sum().backward({}, true, true);
  }
  EXPECT_EQ(live_entries(), before);
}

}  // namespace
}  // namespace taper
