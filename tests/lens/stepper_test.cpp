// Stepping a backward pass: forth, back and anywhere; what is kept, what is refused.
#include <random>

#include <gtest/gtest.h>

#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

using namespace taper::lens;

struct NetImpl : nn::Module {
  NetImpl()
      : fc1(register_module("fc1", nn::Linear(6, 16))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({16})))),
        fc2(register_module("fc2", nn::Linear(16, 3))) {}

  Tensor forward(const Tensor& x) {
    const Tensor h = norm(relu(fc1(x)));
    return log_softmax(fc2(h + h * h), 1);
  }

  nn::Linear fc1;
  nn::LayerNorm norm;
  nn::Linear fc2;
};
TAPER_MODULE(Net);

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  return !a.defined() || (a.sizes() == b.sizes() && equal(a, b));
}

class Stepping : public testing::Test {
 protected:
  Stepping() {
    manual_seed(7);
    net = Net();
    x = randn({5, 6}, requires_grad());
  }

  Tensor loss() const { return net->forward(x).square().mean(); }

  std::vector<Tensor> grads() const {
    std::vector<Tensor> all{x.grad()};
    for (const Tensor& p : net->parameters()) all.push_back(p.grad());
    return all;
  }

  void clear() {
    net->zero_grad();
    x.mutable_grad() = Tensor();
  }

  Net net{nullptr};
  Tensor x;
};

TEST_F(Stepping, StepsAddUpToBackward) {
  loss().backward();
  const std::vector<Tensor> expected = grads();
  clear();
  Backward pass(loss());
  std::size_t n = 0;
  while (pass.step()) EXPECT_EQ(pass.position(), ++n);
  EXPECT_GT(n, 10U);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(same_bits(grads()[i], expected[i])) << i;
  EXPECT_FALSE(pass.step());
}

TEST_F(Stepping, ThousandRandomSeeksGiveTheSameBits) {
  loss().backward();
  const std::vector<Tensor> expected = grads();
  clear();
  int calls = 0;
  x.register_hook([&calls](const Tensor& g) {
    ++calls;
    return g * 3;
  });
  Backward pass(loss());
  std::vector<Moment> seen(1);
  while (pass.step()) {
    seen.push_back(pass.here());
    for (Tensor& g : seen.back().grads_in) g = g.defined() ? g.clone() : g;
    for (Tensor& g : seen.back().grads_out) g = g.defined() ? g.clone() : g;
  }
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    const std::size_t to = random() % seen.size();
    pass.seek(to);
    ASSERT_EQ(pass.position(), to);
    if (to == 0) {
      EXPECT_NE(message_of([&] { pass.here(); }).find("before its first node"), std::string::npos);
      continue;
    }
    const Moment now = pass.here();
    const Moment& then = seen[to];
    ASSERT_EQ(now.entry, then.entry);
    for (std::size_t i = 0; i < then.grads_in.size(); ++i) {
      ASSERT_TRUE(same_bits(now.grads_in[i], then.grads_in[i])) << to;
    }
    for (std::size_t i = 0; i < then.grads_out.size(); ++i) {
      ASSERT_TRUE(same_bits(now.grads_out[i], then.grads_out[i])) << to;
    }
  }
  pass.finish();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(same_bits(grads()[0], expected[0] * 3));
  for (std::size_t i = 1; i < expected.size(); ++i)
    EXPECT_TRUE(same_bits(grads()[i], expected[i])) << i;
}

TEST_F(Stepping, StopsWhereItIsTold) {
  Backward pass(loss());
  ASSERT_TRUE(pass.run_until(op("log_softmax")));
  EXPECT_EQ(pass.here().op, "log_softmax");
  EXPECT_EQ(pass.here().loc.line, 22U);
  ASSERT_TRUE(pass.run_until(at("stepper_test.cpp", 21)));
  EXPECT_EQ(pass.here().scope, "norm");
  ASSERT_TRUE(pass.run_until(param("fc1.weight") | nonfinite()));
  EXPECT_TRUE(pass.here().is_leaf);
  EXPECT_EQ(pass.here().scope, "fc1.weight");
  EXPECT_FALSE(pass.run_until(op("no such op")));
  pass.seek(0);
  ASSERT_TRUE(pass.run_until(bytes_freed(1)));
  ASSERT_TRUE(pass.next_module());
  const std::string first = pass.here().scope;
  ASSERT_TRUE(pass.next_module());
  EXPECT_NE(pass.here().scope, first);
}

TEST_F(Stepping, BackUndoesAStep) {
  Backward pass(loss());
  EXPECT_NE(message_of([&] { pass.back(); }).find("no step has been taken"), std::string::npos);
  pass.step();
  const std::uint64_t first = pass.here().entry;
  pass.step();
  pass.back();
  EXPECT_EQ(pass.here().entry, first);
  EXPECT_EQ(pass.position(), 1U);
}

TEST_F(Stepping, FinishFreesAsItGoesAndEndsTheWayBack) {
  const Tensor l = loss();
  Backward pass(l);
  pass.step();
  pass.step();
  pass.back();
  pass.finish();
  EXPECT_NE(message_of([&] { pass.back(); }).find("finished"), std::string::npos);
  EXPECT_NE(message_of([&] { pass.seek(1); }).find("finished"), std::string::npos);
  EXPECT_NE(message_of([&] { pass.here(); }).find("finished"), std::string::npos);
  const std::string again = message_of([&] { Backward(l).finish(); });
  EXPECT_NE(again.find("already run backwards at stepper_test.cpp:"), std::string::npos) << again;
}

TEST_F(Stepping, SeekBeyondTheEndSaysHowFarItGoes) {
  Backward pass(loss());
  pass.step();
  const std::string message = message_of([&] { pass.seek(100000); });
  EXPECT_NE(message.find("seek: to node 100000 of a pass that has at most"), std::string::npos)
      << message;
  EXPECT_EQ(pass.position(), 1U);
}

TEST_F(Stepping, AFailingRuleLeavesThePassWhereItWas) {
  const Tensor y = x.exp();
  const Tensor l = (y * y).sum();
  {
    const NoGradGuard no_grad;
    y.add_(1);
  }
  Backward pass(l);
  ASSERT_TRUE(pass.step());
  EXPECT_THROW(pass.step(), Error);
  EXPECT_EQ(pass.position(), 1U);
  EXPECT_EQ(pass.here().op, "sum");
  EXPECT_THROW(pass.step(), Error);
}

TEST_F(Stepping, HooksOfARuleThatFailsRunOnce) {
  const Tensor y = x.exp();
  const Tensor z = y * y;
  int calls = 0;
  z.register_hook([&calls](const Tensor&) { ++calls; });
  const Tensor l = z.sum();
  {
    const NoGradGuard no_grad;
    y.add_(1);
  }
  Backward pass(l);
  pass.step();
  EXPECT_THROW(pass.step(), Error);
  EXPECT_THROW(pass.step(), Error);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(taper_debug_v1.passes->seeking, 0U);
}

TEST_F(Stepping, AHookAddedAfterItsNodeRanIsNotCalledOnTheWayBack) {
  const Tensor y = x * 2;
  Backward pass(y.sum());
  while (pass.step()) {
  }
  int calls = 0;
  y.register_hook([&calls](const Tensor&) { ++calls; });
  pass.seek(0);
  pass.finish();
  EXPECT_EQ(calls, 0);
}

// However a rule is reached that fails, no gradient gets lost in silence.
TEST_F(Stepping, AFailureNeverLosesAGradient) {
  const auto failing = [&](const Tensor& y) {
    const Tensor l = (y * y).sum() + x.sum();
    const NoGradGuard no_grad;
    y.add_(1);
    return l;
  };
  const char* cause = "has been written since";
  {
    Backward pass(failing(x.exp()));
    EXPECT_NE(message_of([&] { pass.finish(); }).find(cause), std::string::npos);
    const std::string again = message_of([&] { pass.finish(); });
    EXPECT_NE(again.find("this pass failed in #"), std::string::npos) << again;
    EXPECT_NE(message_of([&] { pass.step(); }).find("make a new Backward"), std::string::npos);
  }
  {
    Backward pass(failing(x.exp()));
    pass.step();
    const std::size_t start = pass.position();
    EXPECT_NE(message_of([&] { pass.seek(6); }).find(cause), std::string::npos);
    EXPECT_EQ(pass.position(), start);
    EXPECT_NE(message_of([&] { pass.finish(); }).find(cause), std::string::npos);
  }
  {
    const Tensor y = x.exp();
    const Tensor l = (y * y).sum();
    Backward pass(l);
    pass.step();
    pass.step();
    pass.step();
    l.backward();  // gives back what the first pass needs
    EXPECT_NE(message_of([&] { pass.back(); }).find("already run backwards"), std::string::npos);
    EXPECT_EQ(taper_debug_v1.passes->seeking, 0U);
    EXPECT_NE(message_of([&] { pass.finish(); }).find("this pass failed"), std::string::npos);
  }
}

TEST_F(Stepping, AHookMayNotStepItsOwnPass) {
  const Tensor y = x * 2;
  Backward* pass = nullptr;
  std::string message;
  y.register_hook([&](const Tensor&) {
    message = message_of([&] { pass->step(); }) + message_of([&] { pass->here(); });
  });
  Backward made((y * y).sum());
  pass = &made;
  made.finish();
  EXPECT_NE(message.find("step: called from within a node"), std::string::npos) << message;
  EXPECT_NE(message.find("a node runs just now"), std::string::npos) << message;
}

TEST_F(Stepping, WhatAHookMadeIsReplayed) {
  const Tensor y = x * 2;
  const unsigned scaled = y.register_hook([](const Tensor& g) { return g * 10; });
  const unsigned once = x.register_hook([](const Tensor& g) { return g * 3; });
  Backward pass(y.sum());
  while (pass.step()) {
  }
  const std::size_t end = pass.position();
  const double norm = pass.here().norms_in[0];
  y.remove_hook(scaled);
  x.remove_hook(once);
  pass.seek(0);
  pass.seek(end);
  EXPECT_EQ(pass.here().norms_in[0], norm);
  EXPECT_TRUE(equal(x.grad(), full_like(x, 60)));
}

TEST_F(Stepping, TheEndIsStillAtItsLastNode) {
  x.sum().backward();
  Backward pass((x * 2).sum());
  while (pass.step()) {
  }
  const Moment last = pass.here();
  EXPECT_TRUE(last.is_leaf);
  EXPECT_TRUE(equal(last.grads_in[0], full_like(x, 2)));  // what came, not what has added up
  EXPECT_FALSE(pass.run_until(op("no such op")));
  EXPECT_EQ(pass.here().entry, last.entry);
}

TEST_F(Stepping, BytesFreedAreThoseThatNothingElseHolds) {
  const Tensor w = randn({64, 64}, requires_grad());
  Tensor h = randn({1, 64});
  for (int i = 0; i < 10; ++i) h = matmul(h, w);
  const Tensor loss = h.sum();
  h = Tensor();
  Backward pass(loss);
  EXPECT_FALSE(pass.run_until(bytes_freed(16384)));  // w itself stays; its products are 256 B each
  pass.seek(0);
  EXPECT_TRUE(pass.run_until(bytes_freed(1024)));
}

TEST_F(Stepping, StopsAtEntriesScopesAndBadNumbers) {
  const Tensor l = loss();
  Backward pass(l);
  ASSERT_TRUE(pass.run_until(scope("fc1")));
  const std::uint64_t number = pass.here().entry;
  EXPECT_EQ(pass.here().scope, "fc1");
  pass.seek(0);
  ASSERT_TRUE(pass.run_until(entry(number)));
  EXPECT_EQ(pass.here().op, "linear");
  EXPECT_FALSE(pass.run_until(at("other_test.cpp", 21)));
  const Tensor bad = x.square().sum().sqrt() * zeros({}) / zeros({});
  Backward nan_pass(bad);
  ASSERT_TRUE(nan_pass.run_until(nonfinite()));
  EXPECT_EQ(nan_pass.here().op, "div");
}

TEST_F(Stepping, GoingBackToTheBeginningLeavesTheGraphWhole) {
  const Tensor l = x.square().sum();
  {
    Backward pass(l);
    pass.step();
    pass.back();
  }
  l.backward();
  EXPECT_TRUE(equal(x.grad(), x.detach() * 2));
}

TEST_F(Stepping, HooksThatWriteInPlaceDoNotReachWhatIsKept) {
  const Tensor y = x * 2;
  y.register_hook([](const Tensor& g) { g.mul_(3); });
  Backward pass(y.sum());
  while (pass.step()) {
  }
  const std::size_t end = pass.position();
  for (int i = 0; i < 3; ++i) {
    pass.seek(0);
    pass.seek(end);
  }
  pass.finish();
  EXPECT_TRUE(equal(x.grad(), full_like(x, 6)));
}

// Peak of what tensors take while f runs.
template <class F> std::uint64_t peak_of(const F& f) {
  memory::reset_peak_stats();
  f();
  return memory::stats().allocated_peak;
}

TEST(SteppingMemory, StaysWithinATenthOfRetainGraph) {
  manual_seed(1);
  nn::Sequential net;
  for (int layer = 0; layer < 24; ++layer) {
    net->push_back(nn::Linear(64, 64));
    net->push_back(nn::Tanh());
  }
  const Tensor x = randn({2048, 64});
  const Tensor loss = net->forward(x).square().mean();
  const std::uint64_t retained = peak_of([&] { loss.backward({}, true); });
  net->zero_grad();
  const std::uint64_t stepped = peak_of([&] {
    Backward pass(loss);
    while (pass.step()) {
    }
    std::mt19937 random(5);
    const std::size_t end = pass.position();
    for (int i = 0; i < 100; ++i) pass.seek(random() % (end + 1));
    pass.finish();
  });
  EXPECT_LE(static_cast<double>(stepped), 1.1 * static_cast<double>(retained));
  std::printf("peak over that of retain_graph: %.3f\n",
              static_cast<double>(stepped) / static_cast<double>(retained));
}

TEST(SteppingMemory, PlainBackwardFreesAsItGoes) {
  const Tensor x = randn({1024, 1024}, requires_grad());
  Tensor y = x;
  for (int i = 0; i < 16; ++i) y = y.tanh();
  const Tensor loss = y.sum();
  y = Tensor();
  const std::uint64_t before = memory::stats().allocated;
  Backward pass(loss);
  pass.step();
  pass.step();
  pass.finish();
  EXPECT_LT(memory::stats().allocated, before - 14 * 4096 * 1024);
}

}  // namespace
}  // namespace taper
