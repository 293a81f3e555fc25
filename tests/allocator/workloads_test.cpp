// The generated traces: sound, the same at each call, and of the shapes that they claim.
#include "taper/tools/alloc/workloads.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "taper/allocator/plan.h"
#include "taper/tests/allocator/replaying.h"
#include "taper/tools/alloc/workload_writer.h"

namespace taper::testing {
namespace {

TEST(Workloads, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  int in_corpus = 0;
  for (const Workload& workload : workloads()) {
    EXPECT_TRUE(names.insert(workload.name).second) << workload.name;
    EXPECT_EQ(find_workload(workload.name), &workload);
    in_corpus += workload.in_corpus ? 1 : 0;
  }
  EXPECT_EQ(in_corpus, 7);
  EXPECT_EQ(find_workload("none"), nullptr);
}

TEST(Workloads, AreSoundAndRepeatable) {
  for (const Workload& workload : workloads()) {
    const Trace trace = workload.make();
    EXPECT_EQ(first_fault(trace), "") << workload.name;
    EXPECT_EQ(trace.source, workload.name);
    EXPECT_GT(trace.allocations, 0u) << workload.name;
    EXPECT_TRUE(trace == workload.make()) << workload.name;
    std::uint64_t time = 0;
    int steps = 0;
    for (const TraceEvent& e : trace.events) {
      EXPECT_GE(e.time, time) << workload.name;
      time = e.time;
      if (e.action == TraceAction::kAlloc) {
        EXPECT_NE(e.site, 0u) << workload.name;
      }
      if (e.action == TraceAction::kStep) ++steps;
    }
    EXPECT_GT(steps, 0) << workload.name;
  }
}

// The sizes that a step asks for and frees, in order.
std::vector<std::vector<std::uint64_t>> by_step(const Trace& trace) {
  std::vector<std::vector<std::uint64_t>> steps{1};
  for (const TraceEvent& e : trace.events) {
    if (e.action == TraceAction::kStep) steps.emplace_back();
    else steps.back().push_back(e.action == TraceAction::kAlloc ? e.bytes : 0);
  }
  return steps;
}

TEST(Workloads, FixedShapesAreFixed) {
  int fixed = 0, varying = 0;
  for (const Workload& workload : workloads()) {
    const auto steps = by_step(workload.make());
    if (steps.size() < 4) continue;
    const bool same = steps[steps.size() - 3] == steps[steps.size() - 2] && steps[1] == steps[2];
    EXPECT_TRUE(same || !workload.fixed_shapes) << workload.name;
    ++(workload.fixed_shapes ? fixed : varying);
  }
  EXPECT_EQ(fixed, 2);
  EXPECT_GT(varying, 8);
}

// What is still out at the end: weights, optimizer states, and what a report keeps.
TEST(Workloads, FreeWhatTheyShould) {
  for (const Workload& workload : workloads()) {
    const Trace trace = workload.make();
    std::vector<bool> out;
    for (const TraceEvent& e : trace.events) {
      if (e.action == TraceAction::kAlloc) out.push_back(true);
      if (e.action == TraceAction::kFree) out[e.block] = false;
    }
    std::set<std::string> kept;
    for (const TraceEvent& e : trace.events) {
      if (e.action == TraceAction::kAlloc && out[e.block]) kept.insert(trace.sites[e.site].op);
    }
    std::set<std::string> expected;
    const std::string name = workload.name;
    if (name.starts_with("gpt"))
      expected = {"parameter", "first moment", "second moment", "master weight"};
    if (name == "embedding") expected = {"weight"};
    if (name == "oversize") expected = {"kept"};
    EXPECT_EQ(kept, expected) << name;
  }
}

TEST(Workloads, SizesOfTheReports) {
  EXPECT_EQ(max_load(intervals_of(find_workload("embedding_records")->make())), 1023 * kMiB);
  EXPECT_EQ(max_load(intervals_of(find_workload("small_then_large")->make())), 128 * kMiB);
  EXPECT_EQ(max_load(intervals_of(find_workload("private_pool")->make())), 70 * kGiB);
  EXPECT_EQ(max_load(intervals_of(find_workload("oversize")->make())), 57'600'000'000u);
  // 64 tensors of 8 x 8 x 128 numbers in f16 for each of 712 tokens, one of them twice.
  EXPECT_EQ(max_load(intervals_of(find_workload("kv_cat")->make())), (712 * 64 + 711) * 16'384u);
}

TEST(Workloads, ChanceIsTheSameEverywhere) {
  Chance chance(0);
  EXPECT_EQ(chance.next(), 0xe220a8397b1dcdafu);  // the published first value
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t n = chance.between(5, 7);
    EXPECT_TRUE(n >= 5 && n <= 7);
  }
}

TEST(Workloads, SitesAreNamedOnce) {
  const Trace trace = find_workload("gpt_fixed")->make();
  std::set<std::pair<std::string, std::string>> seen;
  for (const TraceSite& site : trace.sites) EXPECT_TRUE(seen.insert({site.op, site.scope}).second);
  EXPECT_TRUE(seen.count({"gelu", "layer.3"}) == 1);
}

}  // namespace
}  // namespace taper::testing
