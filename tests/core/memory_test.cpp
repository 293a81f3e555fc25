// What users ask of memory: figures, maps and files, for a run that is small enough to know.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "taper/allocator/trace.h"
#include "taper/taper.h"

namespace taper {
namespace {

std::string first_bytes(const std::filesystem::path& file, std::size_t count) {
  std::ifstream in(file, std::ios::binary);
  std::string text(count, '\0');
  in.read(text.data(), static_cast<std::streamsize>(count));
  return text;
}

TEST(Memory, StatsCountTensors) {
  const AllocatorStats before = memory::stats();
  {
    const Tensor x = zeros({1000});
    const AllocatorStats now = memory::stats();
    EXPECT_EQ(now.allocated - before.allocated, 4096u);
    EXPECT_EQ(now.requested - before.requested, 4000u);
    EXPECT_EQ(now.blocks - before.blocks, 1u);
  }
  EXPECT_EQ(memory::stats().allocated, before.allocated);
}

TEST(Memory, PeaksBeginAnew) {
  { const Tensor x = zeros({1'000'000}); }
  memory::reset_peak_stats();
  const AllocatorStats now = memory::stats();
  EXPECT_EQ(now.allocated_peak, now.allocated);
  const Tensor y = zeros({1000});
  EXPECT_EQ(memory::stats().allocated_peak, now.allocated + 4096);
}

TEST(Memory, EmptyCacheGivesWholeFreePagesBack) {
  { const Tensor x = zeros({5'000'000}); }
  EXPECT_GE(memory::stats().releasable, 16u << 20);
  memory::empty_cache();
  EXPECT_EQ(memory::stats().releasable, 0u);
}

TEST(Memory, TheSummaryAndTheMapSayWhatTheFiguresSay) {
  const Tensor x = zeros({1'000'000});
  const std::string summary = memory::summary();
  for (const char* row : {"memory of cpu", "reserved", "allocated", "inactive split", "active",
                          "device calls", "fragmentation"})
    EXPECT_NE(summary.find(row), std::string::npos) << row << " in\n" << summary;
  EXPECT_NE(memory::map().find("of stream 0"), std::string::npos);
  EXPECT_EQ(std::string(taper_mem_map()), memory::map());
}

TEST(Memory, SnapshotsAreWrittenInTheFormOfTheirName) {
  const Tensor x = ones({100}) * 2;
  const auto folder = std::filesystem::temp_directory_path() / "taper_memory_test";
  std::filesystem::create_directories(folder);
  memory::snapshot(folder / "a.pickle");
  memory::snapshot(folder / "a.json");
  memory::snapshot(folder / "a.trace");
  EXPECT_EQ(first_bytes(folder / "a.pickle", 1), "\x80");
  EXPECT_EQ(first_bytes(folder / "a.json", 1), "{");
  EXPECT_EQ(first_bytes(folder / "a.trace", 8), "TAPRTRCE");
  try {
    memory::snapshot(folder / "no" / "such" / "folder.json");
    ADD_FAILURE() << "it was written";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("folder.json"), std::string::npos) << e.message();
  }
  std::filesystem::remove_all(folder);
}

// The ring knows the user's line, the op, and the entry that was recorded.
TEST(Memory, EventsNameTheLineTheOpAndTheEntry) {
  const Tensor x = ones({300'000}, requires_grad());
  const std::uint32_t line = __LINE__ + 1;
  const Tensor y = exp(x);
  const Trace trace = cpu_allocator().recent_events();
  const TraceEvent* found = nullptr;
  for (const TraceEvent& e : trace.events) {
    if (e.action == TraceAction::kAlloc && e.bytes == 1'200'000) found = &e;
  }
  ASSERT_NE(found, nullptr);
  const TraceSite& site = trace.sites[found->site];
  EXPECT_EQ(site.op, "exp");
  ASSERT_EQ(site.frames.size(), 1u);
  EXPECT_EQ(site.frames[0].line, line);
  EXPECT_EQ(found->entry, static_cast<std::uint32_t>(gradient_edge(y).node->index));
}

TEST(Memory, OptimizersEndSteps) {
  const Tensor w = ones({10}, requires_grad());
  optim::SGD sgd({w}, 0.1);
  const auto steps = [] {
    std::size_t count = 0;
    for (const TraceEvent& e : cpu_allocator().recent_events().events)
      count += e.action == TraceAction::kStep;
    return count;
  };
  const std::size_t before = steps();
  sum(w).backward();
  sgd.step();
  EXPECT_EQ(steps(), before + 1);
}

TEST(Memory, ADeviceThatIsNotThereIsNamed) {
  EXPECT_THROW(memory::stats(Device(kCUDA, 99)), Error);
  EXPECT_THROW(memory::stats(kMeta), Error);
}

}  // namespace
}  // namespace taper
