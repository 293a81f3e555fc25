// Probes on kernel calls: several at once, from several threads, and what they are told.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "taper/taper.h"

namespace taper {
namespace {

class Counting final : public Probe {
 public:
  Counting() { install(*this); }
  ~Counting() override { remove(*this); }

  void before(const KernelCall&) override { ++begun; }

  void after(const KernelCall& call) override {
    ++ended;
    last = slot_name(call.slot);
    reads = call.reads.size();
    writes = call.writes.size();
  }

  std::atomic<int> begun{0}, ended{0};
  std::atomic<const char*> last{""};
  std::atomic<std::size_t> reads{0}, writes{0};
};

TEST(Probes, SeveralSeeTheSameCalls) {
  const Tensor x = ones({3});
  {
    const Counting outer;
    const Tensor y = x * x;
    {
      const Counting inner;
      const Tensor z = x.exp();
      EXPECT_EQ(inner.begun, 1);
      EXPECT_STREQ(inner.last, "exp");
      EXPECT_STREQ(outer.last, "exp");
    }
    EXPECT_EQ(outer.begun, 2);
    EXPECT_EQ(outer.ended, 2);
  }
  EXPECT_EQ(probe.load(), nullptr);
}

TEST(Probes, TheFirstInstalledMayGoFirst) {
  auto first = std::make_unique<Counting>();
  const Counting second;
  first.reset();
  const Tensor y = ones({3});
  EXPECT_EQ(second.begun, 1);
}

// A probe that computes would otherwise watch itself for ever.
TEST(Probes, WhatAProbeCallsIsNotWatched) {
  struct Computing final : Probe {
    Computing() { install(*this); }
    ~Computing() override { remove(*this); }
    void after(const KernelCall&) override {
      ++calls;
      const NoGradGuard no_grad;
      sum += ones({2}).sum().item<double>();
    }
    int calls = 0;
    double sum = 0;
  };
  const Computing computing;
  const Tensor x = ones({3});
  EXPECT_EQ(computing.calls, 1);
  EXPECT_EQ(computing.sum, 2);
}

TEST(Probes, AKernelThatThrowsHasNoEnd) {
  const Tensor x = arange(3), index = tensor({7});
  const Counting counting;
  EXPECT_THROW(x.index_select(0, index), Error);
  EXPECT_EQ(counting.begun - counting.ended, 1);
  const Tensor y = x + x;
  EXPECT_STREQ(counting.last, "add");
}

TEST(Probes, OptimizersTellWhatTheyReadAndWrite) {
  const Tensor a = ones({3}, requires_grad()), b = ones({4}, requires_grad());
  optim::Adam adam({a, b}, 1e-3);
  (a.sum() + b.sum()).backward();
  const Counting counting;
  adam.step();
  ASSERT_STREQ(counting.last, "adam");
  EXPECT_EQ(counting.reads, 2U * 5);
  EXPECT_EQ(counting.writes, 2U * 4);
}

TEST(Probes, ComeAndGoWhileThreadsCompute) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&stop] {
      Tensor x = ones({8});
      while (!stop) x = x * x;
    });
  }
  int seen = 0;
  for (int i = 0; i < 50; ++i) {
    const Counting one, other;
    while (other.ended < 3) std::this_thread::yield();
    seen += other.ended;
    EXPECT_GE(one.begun, 3);
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  EXPECT_GE(seen, 150);
  EXPECT_EQ(probe.load(), nullptr);
}

}  // namespace
}  // namespace taper
