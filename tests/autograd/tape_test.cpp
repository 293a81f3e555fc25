// The tape: what is recorded, when it dies, what backward gives, and what errors say.
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "taper/autograd/backward.h"
#include "taper/autograd/function.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

Tensor leaf(const NestedNumbers& numbers) {
  return tensor(numbers, TensorOptions(kFloat64).requires_grad(true));
}

std::vector<double> values(const Tensor& t) {
  const Tensor flat = t.detach().to(kFloat64).contiguous();
  const auto* p = flat.data_ptr<double>();
  return std::vector<double>(p, p + flat.numel());
}

using Numbers = std::vector<double>;

// The line on which it stands.
int line(SourceLoc loc = SourceLoc::current()) {
  return static_cast<int>(loc.line);
}

std::string at(int line_number) {
  return "tape_test.cpp:" + std::to_string(line_number);
}

TEST(Tape, ProductRule) {
  const Tensor a = leaf({2., 3.}), b = leaf({5., 7.});
  const Tensor y = (a * b).sum();
  y.backward();
  EXPECT_EQ(values(a.grad()), (Numbers{5, 7}));
  EXPECT_EQ(values(b.grad()), (Numbers{2, 3}));
}

TEST(Tape, GradientsAddUp) {
  const Tensor a = leaf({2.});
  (a * 3).backward();
  (a * 4).backward();
  EXPECT_EQ(values(a.grad()), Numbers{7});
  const Tensor y = a + a + a;
  y.backward();
  EXPECT_EQ(values(a.grad()), Numbers{10});
}

TEST(Tape, BroadcastSums) {
  const Tensor a = leaf({{1.}, {2.}}), b = leaf({1., 2., 3.});
  const Tensor weight = arange(6, kFloat64).view({2, 3});
  ((a + b) * weight).sum().backward();
  EXPECT_EQ(values(a.grad()), (Numbers{3, 12}));
  EXPECT_EQ(values(b.grad()), (Numbers{3, 5, 7}));
}

TEST(Tape, GradientTakesTheInputsDtype) {
  const Tensor a = tensor({1., 2.}, TensorOptions(kFloat32).requires_grad(true));
  const Tensor b = tensor({3., 4.}, kFloat64);
  (a * b).sum().backward();
  EXPECT_EQ(a.grad().dtype(), kFloat32);
  EXPECT_EQ(values(a.grad()), (Numbers{3, 4}));
}

TEST(Tape, SecondDerivative) {
  const Tensor x = leaf({3.});
  const Tensor y = x * x * x;
  const Tensor g = grad({y}, {x}, {}, std::nullopt, true)[0];
  EXPECT_EQ(values(g), Numbers{27});
  EXPECT_EQ(values(grad({g}, {x})[0]), Numbers{18});
  EXPECT_FALSE(x.grad().defined());
}

TEST(Tape, NoGradRecordsNothing) {
  const Tensor x = leaf({3.});
  const NoGradGuard guard;
  EXPECT_FALSE((x * 2).requires_grad());
}

TEST(Tape, EntriesDieWithTheirTensors) {
  const std::size_t before = live_entries();
  {
    const Tensor x = leaf({3.});
    Tensor y = x * 2 + 1;
    EXPECT_EQ(live_entries(), before + 2);
    y = Tensor();
    EXPECT_EQ(live_entries(), before);
  }
}

TEST(Tape, BackwardGivesBackWhatWasSaved) {
  const Tensor x = leaf({3.});
  const Tensor y = leaf({4.}) * 1;
  const Tensor z = x * y;
  const auto users = y.storage().use_count();
  z.backward();
  EXPECT_EQ(y.storage().use_count(), users - 1);
}

TEST(Tape, SavesOnlyWhatTheRuleNeeds) {
  const Tensor x = leaf({3.}), constant = tensor({4.}, kFloat64);
  const auto users = x.storage().use_count();
  const Tensor z = x * constant;
  EXPECT_EQ(x.storage().use_count(), users);  // d z needs the constant alone
}

TEST(Tape, AMillionEntriesAreFreedWithoutRecursion) {
  const Tensor x = leaf({1.});
  {
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i) y = y + x;
  }
  Tensor y = x;
  for (int i = 0; i < 100'000; ++i) y = y * x;
  y.backward();
  EXPECT_EQ(values(x.grad()), Numbers{100'001});
}

TEST(Tape, IndexOrderIsReverseTopologicalAcrossThreads) {
  const Tensor x = leaf({1.});
  std::vector<Tensor> parts(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < parts.size(); ++t) {
    threads.emplace_back([&, t] {
      Tensor y = x;
      for (int i = 0; i < 1000; ++i) y = y + x;
      parts[t] = y;
    });
  }
  for (std::thread& t : threads) t.join();
  Tensor total = parts[0];
  for (std::size_t t = 1; t < parts.size(); ++t) total = total + parts[t];
  // Walks all that is reachable: each edge must point to a smaller index.
  std::vector<const Node*> stack{gradient_edge(total).node.get()};
  std::size_t edges = 0;
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node->is_leaf) continue;
    for (const Edge& e : static_cast<const Entry*>(node)->inputs) {
      if (!e) continue;
      ++edges;
      ASSERT_LT(e.node->index, node->index);
      stack.push_back(e.node.get());
    }
  }
  EXPECT_EQ(edges, 8 * 2000u + 14u);
  total.backward();
  EXPECT_EQ(values(x.grad()), Numbers{8 * 1001});
}

TEST(Tape, ConcurrentBackwardMeetsAtTheLeaf) {
  const Tensor x = leaf({1.});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) (x * 2).backward();
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(values(x.grad()), Numbers{1600});
}

TEST(Tape, SecondBackwardNamesBothLines) {
  const Tensor x = leaf({1.});
  const int forward = line() + 1;
  const Tensor y = x * x;
  const int first = line() + 1;
  y.backward();
  const std::string text = message_of([&] { y.backward(); });
  EXPECT_NE(text.find("retain_graph"), std::string::npos) << text;
  EXPECT_NE(text.find(at(forward)), std::string::npos) << text;
  EXPECT_NE(text.find(at(first)), std::string::npos) << text;
}

TEST(Tape, RetainGraphAllowsAnother) {
  const Tensor x = leaf({3.});
  const Tensor y = x * x;
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(values(x.grad()), Numbers{12});
}

TEST(Tape, ErrorsNameOpShapesAndLine) {
  const Tensor a = zeros({2, 3}), b = zeros({4});
  const int here = line() + 1;
  const std::string text = message_of([&] { a* b; });
  EXPECT_NE(text.find("mul: "), std::string::npos) << text;
  EXPECT_NE(text.find("(2, 3)"), std::string::npos) << text;
  EXPECT_NE(text.find("(4)"), std::string::npos) << text;
  EXPECT_NE(text.find(at(here)), std::string::npos) << text;
}

TEST(Tape, ErrorsInsideCompositesNameTheUsersLine) {
  const Tensor a = zeros({2, 3});
  const int here = line() + 1;
  const std::string text = message_of([&] { roll(a, {1, 2}, {0}); });
  EXPECT_NE(text.find(at(here)), std::string::npos) << text;
}

TEST(Tape, HooksSeeAndReplaceGradients) {
  const Tensor x = leaf({3.});
  const Tensor y = x * 2;
  Tensor seen;
  y.register_hook([&](const Tensor& g) { seen = g; });
  const unsigned handle = y.register_hook([](const Tensor& g) { return g * 10; });
  (y * 1).backward({}, true);
  EXPECT_EQ(values(seen), Numbers{1});
  EXPECT_EQ(values(x.grad()), Numbers{20});
  y.remove_hook(handle);
  x.mutable_grad() = Tensor();
  x.register_hook([](const Tensor& g) { return g + 1; });
  (y * 1).backward();
  EXPECT_EQ(values(x.grad()), Numbers{3});
}

TEST(Tape, RetainGradKeepsThatOfANonLeaf) {
  const Tensor x = leaf({3.});
  const Tensor y = x * 2;
  y.retain_grad();
  (y * y).backward();
  EXPECT_EQ(values(y.grad()), Numbers{12});
}

TEST(Tape, GradOnlyRunsPathsToItsInputs) {
  const Tensor a = leaf({2.}), b = leaf({3.});
  const Tensor c = a * b;
  const Tensor d = c * c;
  const std::vector<Tensor> g = grad({d}, {c, a}, {}, true);
  EXPECT_EQ(values(g[0]), Numbers{12});
  EXPECT_EQ(values(g[1]), Numbers{36});
  EXPECT_FALSE(b.grad().defined());
  const std::string text = message_of([&] { grad({a * 2}, {b}); });
  EXPECT_NE(text.find("allow_unused"), std::string::npos) << text;
  EXPECT_FALSE(grad({a * 2}, {b}, {}, std::nullopt, false, true)[0].defined());
}

TEST(Tape, InferenceTensorsAreRefusedByName) {
  Tensor frozen;
  {
    const InferenceMode mode;
    frozen = ones({2}, kFloat64);
  }
  const Tensor x = leaf({1., 2.});
  const int here = line() + 1;
  const std::string text = message_of([&] { x* frozen; });
  EXPECT_NE(text.find("inference"), std::string::npos) << text;
  EXPECT_NE(text.find(at(here)), std::string::npos) << text;
  EXPECT_NO_THROW(x + frozen);  // nothing is saved
  EXPECT_THROW(frozen.add_(1), Error);
  EXPECT_THROW(frozen.requires_grad_(), Error);
}

TEST(Tape, DetachCutsAndSharesTheVersion) {
  const Tensor x = leaf({2.});
  const Tensor y = x * 2;
  const Tensor d = y.detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_TRUE(d.is_alias_of(y));
  d.add_(1);
  EXPECT_EQ(y.version(), d.version());
}

struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, double scale) {
    ctx->save_for_backward({x});
    ctx->saved_data["scale"] = scale;
    return x * x * x * scale;
  }

  static autograd::tensor_list backward(autograd::AutogradContext* ctx, autograd::tensor_list g) {
    const Tensor x = ctx->get_saved_variables()[0];
    return {g[0] * x * x * (3 * ctx->saved_data["scale"].toDouble()), Tensor()};
  }
};

TEST(CustomFunction, RunsForwardBackwardAndTwice) {
  const Tensor x = leaf({2.});
  const Tensor y = Cube::apply(x, 0.5);
  EXPECT_STREQ(y.grad_fn(), "Cube");
  EXPECT_EQ(values(y), Numbers{4});
  const Tensor g = grad({y}, {x}, {}, std::nullopt, true)[0];
  EXPECT_EQ(values(g), Numbers{6});
  EXPECT_EQ(values(grad({g}, {x})[0]), Numbers{6});
}

std::int64_t resident_pages() {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

TEST(Tape, LoopsOfCreateGraphDoNotLeak) {
  const std::size_t entries = live_entries();
  std::int64_t after_warmup = 0;
  for (int round = 0; round < 2000; ++round) {
    const Tensor x = leaf({0.5, 0.25});
    const Tensor y = (x.exp() * x.tanh()).sigmoid().sum();
    const Tensor g = grad({y}, {x}, {}, std::nullopt, true)[0];
    (g * g).sum().backward();
    if (round == 200) after_warmup = resident_pages();
  }
  EXPECT_EQ(live_entries(), entries);
  // AddressSanitizer's quarantine keeps freed memory; LeakSanitizer looks there instead.
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_LE(resident_pages(), after_warmup + 256);
#else
  static_cast<void>(after_warmup);
#endif
}

}  // namespace
}  // namespace taper
