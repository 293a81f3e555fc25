// Programs with one bug each, on a known line: the first thing that Taper says names that line.
#include <cmath>

#include <gtest/gtest.h>

#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

using namespace taper::lens;

int guilty = 0;

// Stands on the line before the bug's.
void bug_below(int line = __builtin_LINE()) {
  guilty = line + 1;
}

void expect_names_bug(const std::string& text) {
  const std::string name = "seeded_bugs_test.cpp:" + std::to_string(guilty);
  const auto at = text.find("seeded_bugs_test.cpp:");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.compare(at, name.size(), name), 0)
      << "the bug is on line " << guilty << "; the message is\n"
      << text;
  EXPECT_EQ(text.find_first_of("0123456789", at + name.size()) == at + name.size(), false) << text;
}

Tensor parameter(IntArrayRef sizes = {4, 4}) {
  return randn(sizes).requires_grad_();
}

// --- There is no gradient -----------------------------------------------------------------------

TEST(SeededBug, DetachInTheMiddle) {
  const Tensor w = parameter(), head = parameter(), x = randn({2, 4});
  const Tensor h = relu(matmul(x, w));
  bug_below();
  const Tensor z = h.detach();
  const Tensor loss = matmul(z, head).square().mean();
  EXPECT_TRUE(std::isfinite(loss.item<double>()));
  loss.backward();
  EXPECT_TRUE(head.grad().defined());
  expect_names_bug(why_none(w));
}

TEST(SeededBug, MetricsDoNotHideTheCut) {
  const Tensor w = parameter(), head = parameter(), x = randn({2, 4});
  const Tensor h = relu(matmul(x, w));
  const Tensor shown = h.detach().mean();
  bug_below();
  const Tensor z = h.detach();
  const Tensor out = matmul(z, head);
  const Tensor right = (out.argmax(1) == 0).sum();
  out.square().mean().backward();
  expect_names_bug(why_none(w));
}

TEST(SeededBug, NoGradGuardLeftOn) {
  const Tensor w = parameter(), head = parameter(), x = randn({2, 4});
  Tensor h;
  {
    bug_below();
    const NoGradGuard no_grad;
    h = relu(matmul(x, w));
  }
  matmul(h, head).sum().backward();
  expect_names_bug(why_none(w));
}

TEST(SeededBug, LossMadeUnderNoGrad) {
  const Tensor w = parameter();
  Tensor loss;
  {
    bug_below();
    const NoGradGuard no_grad;
    loss = w.square().sum();
  }
  expect_names_bug(message_of([&] { loss.backward(); }));
}

TEST(SeededBug, RoundedToIntegers) {
  const Tensor w = parameter(), head = parameter(), x = randn({2, 4});
  const Tensor h = matmul(x, w);
  bug_below();
  const Tensor z = h.to(kLong);
  matmul(z.to(kFloat), head).sum().backward();
  expect_names_bug(why_none(w));
}

TEST(SeededBug, ArgmaxInTheLoss) {
  const Tensor w = parameter(), x = randn({2, 4});
  const Tensor out = matmul(x, w);
  bug_below();
  const Tensor picked = out.argmax(1);
  const Tensor loss = (picked.to(kFloat) - 1).square().sum();
  expect_names_bug(message_of([&] { loss.backward(); }));
}

TEST(SeededBug, NumberReadByTheHost) {
  const Tensor w = parameter({3}), scale = parameter({1});
  const Tensor norm = w.square().sum();
  bug_below();
  const double n = norm.item<double>();
  (scale * n).sum().backward();
  expect_names_bug(why_none(w));
}

TEST(SeededBug, FrozenByMistake) {
  nn::Linear body(4, 4), head(4, 2);
  for (const Tensor& p : body->parameters()) {
    bug_below();
    p.requires_grad_(false);
  }
  head(relu(body(randn({3, 4})))).sum().backward();
  expect_names_bug(why_none(body->weight));
}

struct ForgetfulImpl : nn::Module {
  ForgetfulImpl() : used(register_module("used", nn::Linear(4, 4))) {
    bug_below();
    extra = register_parameter("extra", randn({4}));
  }
  Tensor forward(const Tensor& x) { return used(x); }
  nn::Linear used;
  Tensor extra;
};
TAPER_MODULE(Forgetful);

TEST(SeededBug, ParameterThatNothingUses) {
  Forgetful net;
  net(randn({2, 4})).sum().backward();
  expect_names_bug(why_none(net->extra));
}

TEST(SeededBug, ResultThatTheLossForgets) {
  const Tensor w = parameter(), aux = parameter(), x = randn({2, 4});
  const Tensor main = matmul(x, w);
  bug_below();
  const Tensor penalty = aux.square().sum();
  main.sum().backward();
  expect_names_bug(why_none(aux));
}

TEST(SeededBug, GradientDroppedBeforeTheStep) {
  nn::Linear fc(4, 2);
  optim::SGD optimizer(fc->parameters(), optim::SGDOptions(0.1));
  fc(randn({2, 4})).sum().backward();
  bug_below();
  optimizer.zero_grad();
  optimizer.step();
  expect_names_bug(why_none(fc->weight));
}

// What happened long ago is not the cause, and what happens every step does not hide it.
TEST(SeededBug, DetachInALaterStep) {
  nn::Linear body(4, 4), head(4, 2);
  const auto step = [&](bool bug) {
    body->zero_grad();
    head->zero_grad();
    Tensor h = relu(body(randn({3, 4})));
    if (bug) {
      bug_below();
      h = h.detach();
    }
    head(h).square().mean().backward();
  };
  step(false);
  step(true);
  expect_names_bug(why_none(body->weight));
}

TEST(SeededBug, ForgottenAfterAnEvaluation) {
  nn::Linear used(4, 4), forgotten(4, 4);
  const Tensor x = randn({3, 4});
  {
    const NoGradGuard no_grad;
    forgotten(used(x));
  }
  forgotten->weight.requires_grad_(false);
  forgotten->weight.requires_grad_(true);
  const Tensor h = used(x);
  bug_below();
  const Tensor lost = forgotten(h);
  h.sum().backward();
  expect_names_bug(why_none(forgotten->weight));
}

TEST(SeededBug, LoggingDoesNotHideTheCut) {
  const Tensor w = parameter(), head = parameter();
  const Tensor h = matmul(randn({2, 4}), w);
  bug_below();
  const Tensor z = h.detach();
  matmul(z, head).sum().backward();
  double shown = h.mean().item<double>();
  shown += h.max().item<double>();
  shown += h.min().item<double>();
  shown += h.sum().item<double>();
  shown += h.square().sum().item<double>();
  EXPECT_TRUE(std::isfinite(shown));
  expect_names_bug(why_none(w));
}

TEST(SeededBug, TheSameParameterCutAtTwoPlaces) {
  const Tensor w = parameter(), head = parameter();
  const auto other = [&] { return w.detach(); };
  const auto bug = [&] {
    bug_below();
    return w.detach();
  };
  for (int i = 0; i < 1500; ++i) {
    bug();
    if (i % 500 == 0) other();
    const double sum = head.square().sum().item<double>();
    EXPECT_TRUE(std::isfinite(sum));
  }
  matmul(bug(), head).sum().backward();
  expect_names_bug(why_none(w));
}

// --- The gradient is zero -----------------------------------------------------------------------

TEST(SeededBug, DeadRelu) {
  const Tensor w = parameter(), b = full({4}, -100.0).requires_grad_(), x = randn({2, 4});
  const Tensor z = matmul(x, w) + b;
  bug_below();
  const Tensor h = relu(z);
  const Tensor loss = h.square().sum() + h.sum();
  expect_names_bug(why_zero(w, loss));
  expect_names_bug(why_zero(w));
}

TEST(SeededBug, MaskOfZeros) {
  const Tensor w = parameter(), x = randn({2, 4}), mask = zeros({2, 4});
  const Tensor h = matmul(x, w);
  bug_below();
  const Tensor kept = h * mask;
  expect_names_bug(why_zero(w, kept.square().sum()));
}

TEST(SeededBug, ClampedAway) {
  const Tensor w = parameter({4});
  const Tensor big = w * w + 5;
  bug_below();
  const Tensor bounded = clamp(big, 0, 1);
  expect_names_bug(why_zero(w, bounded.sum()));
}

// --- Something was written ----------------------------------------------------------------------

TEST(SeededBug, WrittenAfterItWasSaved) {
  const Tensor x = parameter();
  const Tensor y = x.exp();
  const Tensor loss = (y * y).sum();
  {
    const NoGradGuard no_grad;
    bug_below();
    y.add_(1);
  }
  const std::string message = message_of([&] { loss.backward(); });
  EXPECT_NE(message.find("add at"), std::string::npos) << message;
  expect_names_bug(writers(y));
}

TEST(SeededBug, WrittenThroughAView) {
  const Tensor x = parameter();
  const Tensor y = x.sigmoid();
  const Tensor row = y.detach()[0];
  bug_below();
  row.zero_();
  EXPECT_NE(message_of([&] { y.sum().backward(); }).find(str(":", guilty, " ")), std::string::npos);
  expect_names_bug(writers(y));
}

// --- The graph is wrong -------------------------------------------------------------------------

TEST(SeededBug, ColumnAgainstRow) {
  const Tensor w = parameter({4, 1}), x = randn({8, 4}), target = randn({8});
  const Tensor out = matmul(x, w);
  bug_below();
  const Tensor loss = (out - target).square().mean();
  expect_names_bug(suspects(loss));
}

TEST(SeededBug, SecondBackward) {
  const Tensor x = parameter();
  const Tensor loss = x.square().sum();
  loss.backward();
  const std::string message = message_of([&] { loss.backward(); });
  EXPECT_NE(message.find(str("already run backwards at seeded_bugs_test.cpp:", __LINE__ - 2)),
            std::string::npos)
      << message;
}

TEST(SeededBug, TotalThatKeepsItsTape) {
  const Tensor w = parameter();
  Tensor total = zeros({});
  const auto step = [&] {
    const Tensor loss = matmul(randn({2, 4}), w).square().mean();
    loss.backward();
    bug_below();
    total += loss;
  };
  step();
  const TapeMark mark;
  step();
  expect_names_bug(mark.grown());
}

TEST(SeededBug, StateThatGoesOnFromTheLastStep) {
  const Tensor w = parameter();
  Tensor state = zeros({2, 4});
  const auto step = [&] {
    bug_below();
    const Tensor mixed = matmul(state, w);
    state = mixed.tanh();
  };
  step();
  const TapeMark mark;
  step();
  expect_names_bug(mark.grown());
}

TEST(SeededBug, LossesKeptInAList) {
  const Tensor w = parameter();
  std::vector<Tensor> losses;
  const auto step = [&] {
    const Tensor out = matmul(randn({2, 4}), w);
    bug_below();
    losses.push_back(out.square().mean());
    losses.back().backward();
  };
  step();
  const TapeMark mark;
  step();
  expect_names_bug(mark.grown());
}

TEST(SeededBug, HookOfAnotherShape) {
  const Tensor x = parameter();
  const Tensor y = x * 2;
  bug_below();
  y.register_hook([](const Tensor& g) { return g.sum(); });
  const Tensor loss = y.sum();
  expect_names_bug(message_of([&] { loss.backward(); }));
}

struct Halved : autograd::Function<Halved> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& a, const Tensor& b) {
    return a * b;
  }
  static autograd::tensor_list backward(autograd::AutogradContext*, autograd::tensor_list grads) {
    return {grads[0]};
  }
};

TEST(SeededBug, RuleThatForgetsAnInput) {
  const Tensor a = parameter(), b = parameter();
  bug_below();
  const Tensor y = Halved::apply(a, b);
  const Tensor loss = y.sum();
  expect_names_bug(message_of([&] { loss.backward(); }));
}

// --- A number goes bad --------------------------------------------------------------------------

TEST(SeededBug, LogOfZero) {
  const Hunt hunt;
  const Tensor w = parameter({4});
  const Tensor p = relu(w - 100);
  bug_below();
  const Tensor entropy = p * log(p);
  const Tensor loss = entropy.sum();
  expect_names_bug(message_of([&] { loss.backward(); }));
}

TEST(SeededBug, RootOfZeroInTheDerivative) {
  const Hunt hunt;
  const Tensor w = zeros({4}).requires_grad_();
  const Tensor squares = w.square();
  bug_below();
  const Tensor length = squares.sum().sqrt();
  const Tensor loss = length * 2;
  const std::string message = message_of([&] { loss.backward(); });
  EXPECT_NE(message.find(str("sqrt, recorded at seeded_bugs_test.cpp:", guilty)), std::string::npos)
      << message;
}

TEST(SeededBug, ExpThatOverflows) {
  const Hunt hunt;
  const Tensor w = full({3}, 100.0).requires_grad_();
  bug_below();
  const Tensor odds = exp(w);
  const Tensor share = odds / odds.sum();
  const Tensor loss = share.square().sum();
  expect_names_bug(message_of([&] { loss.backward(); }));
}

TEST(SeededBug, HalfPrecisionOverflows) {
  const Hunt hunt;
  const Tensor w = full({2}, 300.0).requires_grad_();
  const Tensor squares = w.square();
  bug_below();
  const Tensor half = squares.to(kHalf);
  const Tensor loss = half.sum();
  expect_names_bug(message_of([&] { loss.backward(); }));
}

TEST(SeededBug, MeanOfNothing) {
  const Hunt hunt;
  const Tensor w = parameter({4});
  const Tensor chosen = masked_select(w, w > 1e6);
  bug_below();
  const Tensor mean = chosen.mean();
  const Tensor loss = mean + w.sum();
  expect_names_bug(message_of([&] { loss.backward(); }));
}

// --- No bug: no false alarm ---------------------------------------------------------------------

TEST(NoBug, NothingIsSaidOfAHealthyStep) {
  nn::Linear fc(4, 2);
  const auto step = [&] {
    const Tensor loss = fc(randn({3, 4})).square().mean();
    EXPECT_EQ(suspects(loss), "");
    loss.backward();
    return loss.item<double>();
  };
  step();
  const TapeMark mark;
  step();
  EXPECT_EQ(mark.grown(), "");
  EXPECT_NE(why_none(fc->weight).find("there is a gradient"), std::string::npos);
  const Tensor loss = fc(randn({3, 4})).square().mean();
  EXPECT_NE(why_zero(fc->weight, loss).find("is not zero"), std::string::npos);
}

// Asking leaves no trace, and a second output that nobody takes is no cut.
TEST(NoBug, QuestionsAreNoCuts) {
  const Tensor w = parameter({4, 4});
  const Tensor l = std::get<0>(w.max(1)).sum();
  Backward pass(l, BackwardOptions{.create_graph = true});
  while (pass.step()) EXPECT_GE(pass.here().norms_in[0], 0);
  pass.finish();
  w.mutable_grad() = Tensor();
  EXPECT_NE(why_none(w).find("added to its gradient, which was reset since"), std::string::npos)
      << why_none(w);
}

TEST(NoBug, NamesAreThoseOfTheFirstModule) {
  nn::Sequential net(nn::Linear(3, 3));
  const Tensor loss = net->forward(randn({2, 3})).sum() + net->parameters()[0].square().sum();
  Backward pass(loss);
  EXPECT_TRUE(pass.run_until(param("Sequential.0.weight")));
}

TEST(NoBug, AFreshParameterSaysWhatItIsFor) {
  const Tensor plain = randn({2});
  EXPECT_NE(why_none(plain).find("does not require grad, and never did"), std::string::npos);
  const Tensor x = parameter();
  const Tensor y = x * 2;
  EXPECT_NE(why_none(y).find("retain_grad()"), std::string::npos);
}

TEST(NoBug, MaskedScoresAreNoAlarm) {
  const Hunt hunt;
  const Tensor scores = parameter({4, 4});
  const Tensor mask = tril(ones({4, 4})) == 0;
  const Tensor loss = softmax(scores.masked_fill(mask, -HUGE_VAL), 1).square().sum();
  EXPECT_EQ(message_of([&] { loss.backward(); }), "no error");
}

}  // namespace
}  // namespace taper
