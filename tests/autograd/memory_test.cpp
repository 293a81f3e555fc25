// What the tape gives back: bytes and entries, after every op that saves, and after long chains.
#include <gtest/gtest.h>
#include <pthread.h>

#include "taper/taper.h"

namespace taper {
namespace {

// Bytes out of the allocator and entries alive, as they were, and whether they are so again.
struct Ledger {
  std::uint64_t bytes = cpu_allocator().stats().allocated;
  std::uint64_t requested = cpu_allocator().stats().requested;
  std::size_t entries = live_entries();

  void expect_balanced(const char* what) const {
    EXPECT_EQ(cpu_allocator().stats().allocated, bytes) << what;
    EXPECT_EQ(cpu_allocator().stats().requested, requested) << what;
    EXPECT_EQ(live_entries(), entries) << what;
  }
};

Tensor leaf(IntArrayRef sizes) {
  return full(sizes, 0.5, TensorOptions(kFloat64).requires_grad(true));
}

struct Saver {
  const char* name;
  Tensor (*call)(const Tensor& x);  // x is (3, 4), between 0 and 1
};

const Saver kSavers[] = {
    {"exp", [](const Tensor& x) { return x.exp(); }},
    {"expm1", [](const Tensor& x) { return x.expm1(); }},
    {"sqrt", [](const Tensor& x) { return x.sqrt(); }},
    {"rsqrt", [](const Tensor& x) { return x.rsqrt(); }},
    {"reciprocal", [](const Tensor& x) { return x.reciprocal(); }},
    {"sigmoid", [](const Tensor& x) { return x.sigmoid(); }},
    {"tanh", [](const Tensor& x) { return x.tanh(); }},
    {"tan", [](const Tensor& x) { return x.tan(); }},
    {"softmax", [](const Tensor& x) { return x.softmax(1); }},
    {"log_softmax", [](const Tensor& x) { return x.log_softmax(1); }},
    {"logsumexp", [](const Tensor& x) { return x.logsumexp(1); }},
    {"norm", [](const Tensor& x) { return x.norm(2, 1); }},
    {"std", [](const Tensor& x) { return (x * arange(4)).std(IntArrayRef(1)); }},
    {"amax", [](const Tensor& x) { return x.amax(1); }},
    {"max", [](const Tensor& x) { return std::get<0>(x.max(1)); }},
    {"cumprod", [](const Tensor& x) { return x.cumprod(1); }},
    {"prod", [](const Tensor& x) { return x.prod(1); }},
    {"relu", [](const Tensor& x) { return x.relu(); }},
    {"mul", [](const Tensor& x) { return x * x; }},
    {"pow", [](const Tensor& x) { return x.pow(3); }},
    {"matmul", [](const Tensor& x) { return x.matmul(x.t()); }},
    {"sort", [](const Tensor& x) { return std::get<0>(x.sort(1)); }},
    {"index",
     [](const Tensor& x) {
       return x.index({tensor({0, 2, 0})});
     }},
    {"layer_norm", [](const Tensor& x) { return layer_norm(x * arange(4), 4); }},
    {"attention",
     [](const Tensor& x) { return scaled_dot_product_attention(x, x * 2, x, {}, 0, true); }},
    {"slice", [](const Tensor& x) { return x.slice(1, 1, 3); }},
    {"in place", [](const Tensor& x) { return (x * 1).mul_(2).exp_(); }},
    {"in a view",
     [](const Tensor& x) {
       const Tensor y = x * 1;
       y.select(0, 0).mul_(3);
       return y;
     }},
    {"dropout", [](const Tensor& x) { return dropout(x, 0.5); }},
    {"cross_entropy",
     [](const Tensor& x) {
       return cross_entropy(x, tensor({0, 1, 2}));
     }},
};

// First and second derivatives, by grad and by backward.
void differentiate_twice(const Saver& saver, const Tensor& x) {
  const Tensor y = saver.call(x).sum();
  const Tensor g = grad({y}, {x}, {}, std::nullopt, true)[0];
  if (g.requires_grad()) (g * g).sum().backward();
  saver.call(x).sum().backward();
}

#if defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 100;  // each round is slow there, and LeakSanitizer sees a single leak
#else
constexpr int kRounds = 2000;
#endif

TEST(TapeMemory, OpsGiveBackWhatTheySave) {
  const Tensor x = leaf({3, 4});
  for (const Saver& saver : kSavers) {
    differentiate_twice(saver, x);  // makes grad
    const Ledger before;
    for (int round = 0; round < kRounds; ++round) differentiate_twice(saver, x);
    before.expect_balanced(saver.name);
  }
}

TEST(TapeMemory, ForwardAloneGivesBackToo) {
  const Tensor x = leaf({3, 4});
  for (const Saver& saver : kSavers) {
    const Ledger before;
    for (int round = 0; round < 100; ++round) saver.call(x);
    before.expect_balanced(saver.name);
  }
}

TEST(TapeMemory, LoopsOfCreateGraph) {
  const auto round = [] {
    const Tensor x = leaf({2});
    const Tensor y = (x.exp() * x.tanh()).sigmoid().sum();
    const Tensor g = grad({y}, {x}, {}, std::nullopt, true)[0];
    const Tensor h = grad({(g * g).sum()}, {x}, {}, std::nullopt, true)[0];
    h.sum().backward();
  };
  const Ledger before;
  for (int i = 0; i < kRounds; ++i) round();
  before.expect_balanced("create_graph");
}

// backward with create_graph leaves a grad that has a history; dropping it drops the history.
TEST(TapeMemory, AGradWithHistoryGoesWithItsGrad) {
  const Tensor x = leaf({2});
  const Ledger before;
  for (int i = 0; i < 200; ++i) {
    x.exp().sum().backward({}, true, true);
    EXPECT_GT(live_entries(), before.entries);
    x.mutable_grad() = Tensor();
  }
  before.expect_balanced("grad");
}

TEST(TapeMemory, ErrorsInForwardAndBackwardLeaveNothing) {
  const Tensor x = leaf({3, 4});
  const Ledger before;
  for (int i = 0; i < 200; ++i) {
    EXPECT_THROW(x.exp().matmul(x), Error);
    const Tensor y = x.exp();
    y.detach().add_(1);
    EXPECT_THROW(y.sum().backward(), Error);
  }
  before.expect_balanced("errors");
}

TEST(TapeMemory, HooksAndRetainedGradsDieWithTheirTensors) {
  const Tensor x = leaf({2});
  x.exp().sum().backward();
  const Ledger before;
  for (int i = 0; i < 200; ++i) {
    const Tensor y = x.exp();
    y.retain_grad();
    y.register_hook([big = zeros({1000})](const Tensor& g) { return g * 2; });
    y.sum().backward();
  }
  before.expect_balanced("hooks");
}

void build_and_drop_chain() {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 1'000'000; ++i) y = y + x;
}

TEST(TapeMemory, AMillionEntriesGoWithoutRecursion) {
  const Ledger before;
  build_and_drop_chain();
  before.expect_balanced("chain");
}

// Runs f on a thread whose stack would not hold a frame for each entry.
void on_small_stack(void* (*f)(void*)) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, f, nullptr), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

TEST(TapeMemory, AMillionEntriesGoOnASmallStack) {
  const Ledger before;
  on_small_stack([](void*) -> void* {
    build_and_drop_chain();
    return nullptr;
  });
  before.expect_balanced("chain on a small stack");
}

// Also backwards, and where each entry is saved by the next.
TEST(TapeMemory, LongChainsRunBackwardsOnASmallStack) {
  const Ledger before;
  on_small_stack([](void*) -> void* {
    const Tensor x = leaf({1});
    Tensor y = x;
    for (int i = 0; i < 100'000; ++i) y = (y * 1.0).sin();
    y.backward();
    EXPECT_TRUE(x.grad().defined());
    return nullptr;
  });
  before.expect_balanced("backward on a small stack");
}

}  // namespace
}  // namespace taper
