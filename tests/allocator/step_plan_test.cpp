// plan:on: steps that repeat are served from a plan, and a step that differs loses nothing.
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "taper/allocator/allocator.h"
#include "taper/allocator/options.h"
#include "taper/allocator/plan.h"
#include "taper/allocator/sim_device.h"
#include "taper/allocator/twin.h"
#include "taper/core/base/error.h"
#include "taper/tools/alloc/workloads.h"

namespace taper {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Planned {
  explicit Planned(bool plan = true) {
    AllocatorOptions options;
    options.plan = plan;
    auto owned = std::make_unique<SimDevice>();
    device = owned.get();
    allocator = make_allocator(options, std::move(owned));
  }

  Block take(std::size_t bytes) {
    const Block block = allocator->allocate(bytes, 0);
    const auto begin = reinterpret_cast<std::uintptr_t>(block.data);
    const auto after = out.lower_bound(begin);
    EXPECT_TRUE(after == out.end() || begin + block.bytes <= after->first) << "overlaps the next";
    EXPECT_TRUE(after == out.begin() || std::prev(after)->second <= begin) << "overlaps another";
    out[begin] = begin + block.bytes;
    return block;
  }

  void give(const Block& block, std::size_t bytes) {
    out.erase(reinterpret_cast<std::uintptr_t>(block.data));
    allocator->free(block, bytes, 0);
  }

  SimDevice* device = nullptr;
  std::unique_ptr<Allocator> allocator;
  std::map<std::uintptr_t, std::uintptr_t> out;  // live blocks: begin -> end
};

// Forward makes blocks, backward drops them from the last on, with a temporary at each.
void step(Planned& p, const std::vector<std::size_t>& sizes) {
  std::vector<Block> saved;
  for (const std::size_t bytes : sizes) saved.push_back(p.take(bytes));
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const Block gradient = p.take(sizes[i] / 2 + 1);
    p.give(saved[i], sizes[i]);
    p.give(gradient, sizes[i] / 2 + 1);
  }
  p.allocator->note_step();
}

const std::vector<std::size_t> kSizes = {3 * kMiB, 100, 7 * kMiB + 5, 40'000, kMiB, 12 * kMiB};

TEST(StepPlan, TheThirdOfEqualStepsFollowsAPlanWithoutTheDevice) {
  Planned p;
  step(p, kSizes);
  step(p, kSizes);
  const AllocatorStats before = p.allocator->stats();
  std::vector<void*> places[2];
  for (auto& places_of_step : places) {
    std::vector<Block> saved;
    for (const std::size_t bytes : kSizes) {
      saved.push_back(p.take(bytes));
      places_of_step.push_back(saved.back().data);
    }
    for (std::size_t i = kSizes.size(); i-- > 0;) {
      const Block gradient = p.take(kSizes[i] / 2 + 1);
      places_of_step.push_back(gradient.data);
      p.give(saved[i], kSizes[i]);
      p.give(gradient, kSizes[i] / 2 + 1);
    }
    p.allocator->note_step();
  }
  EXPECT_EQ(places[0], places[1]);
  const AllocatorStats after = p.allocator->stats();
  EXPECT_EQ(after.device_calls, before.device_calls);
  EXPECT_EQ(after.allocated, before.allocated);  // the region alone
  EXPECT_GT(after.allocations, before.allocations);
}

TEST(StepPlan, TheRegionIsAsSmallAsAPlanSays) {
  Planned p;
  step(p, kSizes);
  const std::uint64_t load = p.allocator->stats().allocated_peak;
  step(p, kSizes);
  EXPECT_LE(static_cast<double>(p.allocator->stats().allocated), 1.01 * static_cast<double>(load));
}

TEST(StepPlan, AnotherStepIsServedAsEverAndTheNextOneIsPlannedAgain) {
  Planned p;
  for (int i = 0; i < 3; ++i) step(p, kSizes);
  std::vector<std::size_t> other = kSizes;
  other[3] *= 2;
  step(p, other);
  const std::uint64_t calls = p.allocator->stats().device_calls;
  step(p, kSizes);
  EXPECT_EQ(p.allocator->stats().device_calls, calls);
  step(p, other);
  step(p, other);  // equal to the one before: now it is the plan
  const std::uint64_t settled = p.allocator->stats().device_calls;
  step(p, other);
  EXPECT_EQ(p.allocator->stats().device_calls, settled);
  EXPECT_TRUE(p.out.empty());
}

// What outlives its step, as optimizer states do, and what is freed in a later one.
TEST(StepPlan, BlocksThatOutliveTheirStepAreNotPlanned) {
  Planned p;
  std::vector<Block> kept;
  const auto with_kept = [&] {
    kept.push_back(p.take(2 * kMiB));
    step(p, kSizes);
    if (kept.size() > 3) {
      p.give(kept.front(), 2 * kMiB);
      kept.erase(kept.begin());
    }
  };
  for (int i = 0; i < 12; ++i) with_kept();
  for (const Block& b : kept) p.give(b, 2 * kMiB);
  EXPECT_TRUE(p.out.empty());
}

// A twentieth of the events of each step differ: sizes, order, lifetimes.
TEST(StepPlan, NothingOverlapsWhateverAStepDoes) {
  std::mt19937 random(7);
  for (int run = 0; run < 40; ++run) {
    Planned p;
    std::vector<std::size_t> sizes;
    for (int i = 0; i < 60; ++i) sizes.push_back(1 + random() % (4 * kMiB));
    std::map<std::size_t, std::size_t> late;  // blocks kept over the step's end
    std::vector<std::pair<Block, std::size_t>> kept;
    for (int s = 0; s < 20; ++s) {
      const bool clean = s % 4 != 3;
      std::vector<std::pair<Block, std::size_t>> out;
      for (const std::size_t bytes : sizes) {
        const bool differs = !clean && random() % 20 == 0;
        const std::size_t now = differs ? 1 + random() % (4 * kMiB) : bytes;
        out.emplace_back(p.take(now), now);
        if (out.size() > 8) {
          const std::size_t victim = differs ? random() % out.size() : 3;
          p.give(out[victim].first, out[victim].second);
          out.erase(out.begin() + static_cast<std::ptrdiff_t>(victim));
        }
      }
      while (!out.empty()) {
        if (!clean && random() % 20 == 0) kept.push_back(out.back());
        else p.give(out.back().first, out.back().second);
        out.pop_back();
      }
      p.allocator->note_step();
      if (s % 5 == 4) {
        for (const auto& [block, bytes] : kept) p.give(block, bytes);
        kept.clear();
      }
    }
    for (const auto& [block, bytes] : kept) p.give(block, bytes);
    EXPECT_TRUE(p.out.empty());
    EXPECT_EQ(p.allocator->stats().blocks, p.allocator->stats().allocated == 0 ? 0u : 1u);
  }
}

// Memory of the plan that another stream uses is not handed out before that use.
TEST(StepPlan, AUseOnAnotherStreamEndsThePlanForTheStep) {
  Planned p;
  for (int i = 0; i < 3; ++i) step(p, kSizes);
  const Block block = p.take(kSizes[0]);
  p.device->work(1, 1'000'000);
  p.allocator->record_stream(block, 1);
  p.give(block, kSizes[0]);
  const Block next = p.take(kSizes[1]);  // the plan would have it
  p.give(next, kSizes[1]);
  p.allocator->note_step();
  step(p, kSizes);
  EXPECT_GE(p.device->stream_time(0), 1'000'000u);
  EXPECT_TRUE(p.out.empty());
}

// What is out at once counts, whoever serves it; only with several heaps are there totals to tell.
TEST(StepPlan, PlannedBlocksRaiseThePeakOfAllStreams) {
  Planned p;
  p.allocator->free(p.allocator->allocate(512, 1), 512, 1);
  for (int i = 0; i < 3; ++i) step(p, kSizes);
  p.allocator->reset_peaks();
  step(p, kSizes);
  std::uint64_t sum = 0;
  for (const std::size_t bytes : kSizes) sum += bytes;
  EXPECT_GE(p.allocator->stats().requested_peak + 2 * kMiB, sum);
}

TEST(StepPlan, APlannedBlockIsNotUsedOnAStreamThatCannotBe) {
  Planned p;
  for (int i = 0; i < 3; ++i) step(p, kSizes);
  const Block block = p.take(kSizes[0]);
  EXPECT_THROW(p.allocator->record_stream(block, 5000), Error);
  p.give(block, kSizes[0]);
}

// What is recorded under a plan is what the program did: the region is not one of its blocks.
TEST(StepPlan, ARecordingDoesNotCountTheRegion) {
  std::uint64_t loads[2];
  for (const bool plan : {false, true}) {
    Planned p(plan);
    for (int i = 0; i < 5; ++i) step(p, kSizes);
    const Block kept = p.take(kMiB);
    const Trace trace = p.allocator->recent_events();
    EXPECT_EQ(first_fault(trace), "");
    loads[plan] = max_load(intervals_of(trace));
    EXPECT_EQ(p.allocator->stats().requested, kMiB);
    p.give(kept, kMiB);
  }
  EXPECT_EQ(loads[0], loads[1]);
}

// More work given to another stream after the step's end, while a planned block is still out.
TEST(StepPlan, ABlockThatIsStillOutIsWaitedForWhenItsPlaceIsUsedAgain) {
  Planned p;
  for (int i = 0; i < 3; ++i) step(p, kSizes);
  const Block block = p.take(kSizes[0]);
  p.allocator->record_stream(block, 1);
  p.allocator->note_step();
  p.device->work(1, 1'000'000);
  p.give(block, kSizes[0]);
  p.allocator->note_step();
  step(p, kSizes);
  EXPECT_GE(p.device->stream_time(0), 1'000'000u);
}

TEST(StepPlan, ATrainingTraceReplaysWithoutMapsOnceItIsPlanned) {
  const Workload* gpt = find_workload("gpt_fixed");
  ASSERT_NE(gpt, nullptr);
  TwinSettings settings;
  settings.options.trace_events = 0;
  settings.options.plan = true;
  const TwinResult planned = run_twin(gpt->make(), settings);
  EXPECT_TRUE(planned.finished);
  EXPECT_EQ(planned.mapped_after_warmup, 0u);
  EXPECT_LE(planned.peak_ratio(), 1.02);
}

}  // namespace
}  // namespace taper
