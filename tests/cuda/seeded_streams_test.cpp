// The orders in which emulated streams work when a seed draws them.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "taper/tests/cuda/again.h"

namespace taper::cuda {
namespace {

constexpr int kStreams = 3, kSteps = 4;

struct Step {
  std::vector<int>* order;
  int number;
};

void take(void* at) {
  const Step& step = *static_cast<Step*>(at);
  step.order->push_back(step.number);
}

// Prints in what order pieces of work ran, 10 times the stream and the step, -1 where the host had
// given all of them and began to wait. Part of the next test.
TEST(SeededStreams, DISABLED_AnOrder) {
  std::vector<int> order;
  std::vector<Step> steps;
  for (int step = 0; step < kSteps; ++step) {
    for (int stream = 0; stream < kStreams; ++stream) steps.push_back({&order, stream * 10 + step});
  }
  cudaStream_t streams[kStreams];
  for (cudaStream_t& stream : streams) {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    ASSERT_EQ(cudaLaunchHostFunc(streams[i % kStreams], take, &steps[i]), cudaSuccess);
  }
  order.push_back(-1);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  std::string text = "order";
  for (const int number : order) text += " " + std::to_string(number);
  std::printf("%s\n", text.c_str());
}

std::vector<int> order_of(int seed) {
  const Rerun run = run_again("TAPER_EMULATED_STREAMS=seeded:" + std::to_string(seed),
                              "SeededStreams.DISABLED_AnOrder");
  EXPECT_TRUE(run.passed()) << run.output;
  std::istringstream text(run.output.substr(run.output.find("\norder") + 6));
  std::vector<int> order;
  for (int number = 0; text >> number;) order.push_back(number);
  return order;
}

TEST(SeededStreams, ASeedGivesOneOrderAndSeedsGiveMany) {
  std::set<std::vector<int>> orders;
  bool some_early = false, some_late = false;
  for (int seed = 1; seed <= 8; ++seed) {
    const std::vector<int> order = order_of(seed);
    ASSERT_EQ(order.size(), size_t{kStreams * kSteps + 1}) << seed;
    EXPECT_EQ(order_of(seed), order) << seed;
    orders.insert(order);
    some_early |= order.front() == 0;
    some_late |= order.back() != -1;
    for (int stream = 0; stream < kStreams; ++stream) {
      int next = 0;
      for (const int number : order) {
        if (number / 10 == stream && number >= 0) {
          EXPECT_EQ(number % 10, next++) << "a stream's own order, seed " << seed;
        }
      }
    }
  }
  EXPECT_GE(orders.size(), 7u);
  EXPECT_TRUE(some_early);
  EXPECT_TRUE(some_late);
}

// The default stream works in order with those that wait for it, in all orders of streams.
TEST(SeededStreams, TheDefaultStreamKeepsItsOrder) {
  std::vector<int> order;
  std::vector<Step> steps;
  for (int i = 0; i < 40; ++i) steps.push_back({&order, i});
  cudaStream_t beside, apart;
  ASSERT_EQ(cudaStreamCreate(&beside), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking), cudaSuccess);
  int elsewhere = 0;
  for (Step& step : steps) {
    cudaStream_t stream = step.number % 3 == 0 ? nullptr : beside;
    ASSERT_EQ(cudaLaunchHostFunc(stream, take, &step), cudaSuccess);
    const auto count = [](void* at) { ++*static_cast<int*>(at); };
    ASSERT_EQ(cudaLaunchHostFunc(apart, count, &elsewhere), cudaSuccess);
  }
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  ASSERT_EQ(order.size(), steps.size());  // the last piece is the default stream's
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], int(i));
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(elsewhere, 40);
  EXPECT_EQ(cudaStreamDestroy(beside), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(apart), cudaSuccess);
}

}  // namespace
}  // namespace taper::cuda
