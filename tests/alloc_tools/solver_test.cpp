// The long search for low plans: valid, never above the greedy plan, and optimal where that is
// known.
#include "taper/tools/alloc/solver.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "taper/tests/allocator/lifetimes.h"
#include "taper/tests/message_of.h"

namespace taper::tools {
namespace {

// Cuts a full rectangle of events and bytes into blocks, so that a plan as high as the peak is
// known to exist.
std::vector<Interval> guillotine(std::size_t n, std::uint32_t seed) {
  struct Rectangle {
    std::uint64_t begin, end, bytes;
  };
  std::mt19937 random(seed);
  std::vector<Rectangle> all = {{0, 4096, 4096}};
  while (all.size() < n) {
    const auto largest = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return (a.end - a.begin) * a.bytes < (b.end - b.begin) * b.bytes;
    });
    Rectangle a = *largest, b = *largest;
    if (a.end - a.begin > a.bytes) {
      a.end = b.begin = a.begin + 1 + random() % (a.end - a.begin - 1);
    } else {
      a.bytes = 1 + random() % (b.bytes - 1), b.bytes -= a.bytes;
    }
    *largest = a;
    all.push_back(b);
  }
  std::vector<Interval> intervals;
  for (const Rectangle& r : all) intervals.push_back({r.begin, r.end, r.bytes});
  std::shuffle(intervals.begin(), intervals.end(), random);
  return intervals;
}

TEST(Solver, FindsFullPlansThatGreedyMisses) {
  int full = 0, greedy_full = 0;
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    const std::vector<Interval> intervals = guillotine(80, seed);
    const MemoryPlan greedy = plan_offsets(intervals, 1), plan = solve(intervals, 1, 0.5, 1);
    EXPECT_EQ(first_overlap(intervals, plan), "");
    EXPECT_EQ(plan.max_load, 4096u);
    EXPECT_LE(plan.bytes, greedy.bytes);
    full += plan.bytes == plan.max_load, greedy_full += greedy.bytes == greedy.max_load;
  }
  EXPECT_LE(greedy_full, 5);
  EXPECT_GE(full, 9);
}

TEST(Solver, KeepsToAlignmentAndSkipsWhatIsEmpty) {
  std::vector<Interval> intervals = guillotine(25, 3);
  for (Interval& i : intervals) i.bytes *= 7;
  intervals.push_back({0, 4096, 0}), intervals.push_back({5, 5, 100});
  const MemoryPlan plan = solve(intervals, 512, 0.3, 1);
  EXPECT_EQ(first_overlap(intervals, plan), "");
  EXPECT_LE(plan.bytes, plan_offsets(intervals, 512).bytes);
  for (const std::uint64_t offset : plan.offsets) EXPECT_EQ(offset % 512, 0u);
}

TEST(Solver, EndsEarlyAtTheOptimum) {
  const std::vector<Interval> intervals = {{0, 2, 10}, {2, 4, 10}};
  EXPECT_EQ(solve(intervals, 1, 1000, 1).bytes, 10u);
  EXPECT_EQ(solve(std::vector<Interval>{}, 1, 1000, 1).bytes, 0u);
}

TEST(Solver, RefusesAsThePlannerDoes) {
  EXPECT_NE(message_of([] { solve(std::vector<Interval>{{3, 2, 1}}, 1, 1, 1); }), "no error");
  const std::vector<Interval> many(10'001, Interval{0, 1, 1});
  EXPECT_NE(message_of([&] { solve(many, 1, 1, 1); }).find("at most 10000 blocks, not 10001"),
            std::string::npos);
}

// The instances of MiniMalloc, known to fit into 1,048,576 bytes: some are solved soon; of the
// others only the first half second is tried.
TEST(Solver, MiniMalloc) {
  int present = 0;
  for (const char name : std::string("ABCDEFGHIJK")) {
    const std::vector<Interval> intervals =
        recorded_lifetimes(TAPER_TESTS_DIR, std::string("minimalloc/") + name + ".1048576.csv");
    if (intervals.empty()) continue;
    ++present;
    const bool soon = std::string("BFGH").find(name) != std::string::npos;
    const MemoryPlan plan = solve(intervals, 1, soon ? 60 : 0.5, 1);
    EXPECT_EQ(first_overlap(intervals, plan), "") << name;
    EXPECT_LE(plan.bytes, soon ? 1'048'576 : plan_offsets(intervals, 1).bytes) << name;
  }
  if (present == 0) GTEST_SKIP() << "there is no ../shared/data/alloc/minimalloc";
  EXPECT_EQ(present, 11);
}

}  // namespace
}  // namespace taper::tools
