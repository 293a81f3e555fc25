// The thread pool: every chunk once, nesting, errors, several callers, and fork.
#include "taper/cpu/parallel.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "taper/core/base/error.h"

namespace taper::testing {
namespace {

class Parallel : public ::testing::Test {
 protected:
  void SetUp() override { before_ = get_num_threads(); }

  void TearDown() override { set_num_threads(before_); }

 private:
  int before_ = 1;
};

TEST_F(Parallel, RunsEveryIndexOnce) {
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    EXPECT_EQ(get_num_threads(), threads);
    for (const std::int64_t n : {0, 1, 9, 10, 11, 1000, 1003}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
      cpu::parallel_for(n, 10, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_EQ(begin % 10, 0);
        EXPECT_TRUE(end - begin == 10 || end == n);
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (const auto& count : seen) ASSERT_EQ(count, 1);
    }
  }
}

TEST_F(Parallel, ManyShortJobsInARow) {
  set_num_threads(4);
  for (int i = 0; i < 20000; ++i) {
    std::atomic<std::int64_t> sum{0};
    cpu::parallel_for(7, 1, [&](std::int64_t begin, std::int64_t) { sum += begin; });
    ASSERT_EQ(sum, 21);
  }
}

TEST_F(Parallel, NestedCallsRunInline) {
  set_num_threads(3);
  std::atomic<int> count{0};
  cpu::parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
    const std::thread::id own = std::this_thread::get_id();
    cpu::parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), own);
      ++count;
    });
  });
  EXPECT_EQ(count, 64);
}

TEST_F(Parallel, ErrorsReachTheCaller) {
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    for (int round = 0; round < 200; ++round) {
      EXPECT_THROW(cpu::parallel_for(50, 1,
                                     [&](std::int64_t begin, std::int64_t) {
                                       if (begin % 7 == 3) throw std::invalid_argument("no");
                                     }),
                   std::invalid_argument);
    }
    std::atomic<int> count{0};
    cpu::parallel_for(50, 1, [&](std::int64_t, std::int64_t) { ++count; });
    EXPECT_EQ(count, 50);
  }
}

TEST_F(Parallel, CallersDoNotDisturbEachOther) {
  set_num_threads(3);
  std::vector<std::thread> callers;
  std::atomic<bool> wrong{false};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 3000; ++i) {
        std::atomic<std::int64_t> sum{0};
        cpu::parallel_for(100, 9, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t k = begin; k < end; ++k) sum += k;
        });
        if (sum != 4950) wrong = true;
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_FALSE(wrong);
}

TEST_F(Parallel, ChildOfAForkFinishesAlone) {
  set_num_threads(3);
  cpu::parallel_for(100, 1, [](std::int64_t, std::int64_t) {});  // workers are up
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> count{0};
    cpu::parallel_for(100, 1, [&](std::int64_t, std::int64_t) { ++count; });
    _exit(count == 100 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(Parallel, RefusesNonsense) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(set_num_threads(-3), Error);
}

}  // namespace
}  // namespace taper::testing
