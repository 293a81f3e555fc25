// Private pools of Taper's policy, what goes back to the device, and the options that bound it.
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>

#include "taper/core/base/error.h"
#include "taper/tests/allocator/arena_checks.h"

namespace taper::testing {
namespace {

OnSim taper_on(std::size_t capacity, const AllocatorOptions& options = {}) {
  return OnSim(options, Torch::at(capacity));
}

// Offsets of the pages of a pool that are mapped.
std::vector<std::uint64_t> pages_of_pool(const OnSim& sim, PoolId pool) {
  std::vector<std::uint64_t> pages;
  for (const SegmentInfo& segment : sim.allocator->memory_map()) {
    if (segment.pool != pool) continue;
    for (std::uint64_t i = 0; i < segment.bytes; i += kPageBytes)
      pages.push_back(segment.offset + i);
  }
  return pages;
}

std::vector<std::uint64_t> whole_free_pages(const OnSim& sim) {
  std::vector<std::uint64_t> pages;
  for (const SegmentInfo& segment : sim.allocator->memory_map()) {
    for (const BlockInfo& b : segment.blocks) {
      if (b.state == BlockState::kLive) continue;
      for (std::uint64_t p = pages_of(b.offset); (p + 1) * kPageBytes <= b.offset + b.bytes; ++p)
        pages.push_back(p * kPageBytes);
    }
  }
  return pages;
}

TEST(ArenaPools, KeptPagesStayUntilThePoolIsReleased) {
  OnSim sim = taper_on(100 * kMiB);
  Allocator& a = *sim.allocator;
  const PoolId pool = a.make_pool(true);
  a.begin_pool(pool, 0);
  const Block captured = sim.allocate(60 * kMiB);
  sim.free(captured, 60 * kMiB);
  a.end_pool(0);
  const std::vector<std::uint64_t> kept = pages_of_pool(sim, pool);
  ASSERT_EQ(kept.size(), 30u);
  // Neither an emptied cache nor the fear of failing moves them.
  a.empty_cache();
  EXPECT_EQ(pages_of_pool(sim, pool), kept);
  EXPECT_EQ(a.stats().releasable, 0u);
  EXPECT_EQ(a.stats().inactive_split, 60 * kMiB);
  EXPECT_EQ(first_wrong_in_arena(sim), "");
  const Block common = sim.allocate(40 * kMiB);
  EXPECT_THROW(sim.allocate(kMiB), OutOfMemory);
  EXPECT_THROW(sim.allocate(kMiB, 1), OutOfMemory);
  EXPECT_EQ(pages_of_pool(sim, pool), kept);
  // A graph that runs again finds its addresses.
  a.begin_pool(pool, 0);
  const Block again = sim.allocate(60 * kMiB);
  a.end_pool(0);
  EXPECT_EQ(again.data, captured.data);
  sim.free(again, 60 * kMiB);
  EXPECT_EQ(first_wrong_in_arena(sim), "");
  a.release_pool(pool);
  EXPECT_EQ(a.stats().releasable, 60 * kMiB);
  EXPECT_EQ(a.stats().inactive_split, 0u);
  const Block now = sim.allocate(60 * kMiB, 1);
  EXPECT_EQ(pages_of_pool(sim, pool).size(), 0u);
  sim.free(now, 60 * kMiB, 1);
  sim.free(common, 40 * kMiB);
  EXPECT_EQ(first_left_over(sim), "");
}

TEST(ArenaPools, OthersGiveTheirPages) {
  for (const bool private_first : {false, true}) {
    OnSim sim = taper_on(80 * kGiB);
    Allocator& a = *sim.allocator;
    const PoolId pool = a.make_pool(false);
    const auto in_pool = [&](bool in, std::size_t bytes) {
      if (in) a.begin_pool(pool, 0);
      const Block block = sim.allocate(bytes);
      if (in) a.end_pool(0);
      sim.free(block, bytes);
    };
    in_pool(private_first, 60 * kGiB);
    in_pool(!private_first, 70 * kGiB);
    EXPECT_LE(a.stats().reserved_peak, 80 * kGiB);
    EXPECT_EQ(a.stats().ooms, 0u);
    EXPECT_EQ(first_wrong_in_arena(sim), "");
  }
}

TEST(ArenaPools, BlocksOutliveTheirPool) {
  OnSim sim = taper_on(kGiB);
  Allocator& a = *sim.allocator;
  const PoolId pool = a.make_pool(true);
  a.begin_pool(pool, 0);
  const Block block = sim.allocate(3 * kMiB);
  a.end_pool(0);
  a.release_pool(pool);
  a.empty_cache();
  EXPECT_EQ(a.pool_stats(pool).allocated, 3 * kMiB);
  EXPECT_EQ(a.pool_stats(0).allocated, 0u);
  EXPECT_EQ(pages_of_pool(sim, pool).size(), 2u);
  EXPECT_THROW(a.begin_pool(pool, 0), Error);
  EXPECT_THROW(a.release_pool(pool), Error);
  EXPECT_THROW(a.release_pool(0), Error);
  EXPECT_THROW(a.begin_pool(pool + 1, 0), Error);
  sim.free(block, 3 * kMiB);
  EXPECT_EQ(first_left_over(sim), "");
}

std::uint64_t address_space() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

// A program that captures graphs and drops them, for days.
TEST(ArenaPools, ReleasedPoolsLeaveNothingBehind) {
  OnSim sim = taper_on(kGiB);
  Allocator& a = *sim.allocator;
  sim.free(sim.allocate(kMiB), kMiB);
  std::uint64_t space = 0;
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    const PoolId pool = a.make_pool(i % 2 == 0);
    a.begin_pool(pool, i % 3 == 0 ? 1 : 0);
    const Block block = sim.allocate(3 * kMiB, i % 3 == 0 ? 1 : 0);
    a.end_pool(i % 3 == 0 ? 1 : 0);
    ASSERT_EQ(a.pool_stats(pool).allocations, 1u);
    ASSERT_EQ(a.pool_stats(pool).allocated_peak, 3 * kMiB);
    ASSERT_EQ(a.stats().allocations, i + 1);
    if (i % 2 == 0) a.release_pool(pool);
    sim.free(block, 3 * kMiB);
    if (i % 2 == 1) a.release_pool(pool);
    if (i == 10) space = address_space();
  }
  EXPECT_LT(address_space(), space + 16 * kMiB);
  EXPECT_EQ(a.stream_stats(0).allocations + a.stream_stats(1).allocations, 10'001u);
  EXPECT_LE(a.stats().reserved_peak, 32 * kMiB);
  EXPECT_EQ(first_left_over(sim), "");
}

// What pools and streams count by themselves adds up to the whole.
TEST(ArenaPools, FiguresOfPoolsAndStreamsAddUp) {
  OnSim sim = taper_on(kGiB);
  Allocator& a = *sim.allocator;
  const PoolId pool = a.make_pool(false);
  std::vector<Block> blocks;
  for (StreamId stream = 0; stream < 3; ++stream) {
    blocks.push_back(sim.allocate(kMiB * (stream + 1), stream));
    a.begin_pool(pool, stream);
    blocks.push_back(sim.allocate(5 * kMiB, stream));
    a.end_pool(stream);
  }
  std::uint64_t by_stream = 0, reserved = 0;
  for (StreamId stream = 0; stream < 3; ++stream) {
    by_stream += a.stream_stats(stream).allocated;
    reserved += a.stream_stats(stream).reserved;
  }
  EXPECT_EQ(by_stream, 21 * kMiB);
  EXPECT_EQ(reserved, a.stats().reserved);
  EXPECT_EQ(a.stream_stats(1).allocated, 7 * kMiB);
  EXPECT_EQ(a.pool_stats(pool).allocated, 15 * kMiB);
  EXPECT_EQ(a.pool_stats(0).allocated, 6 * kMiB);
  EXPECT_EQ(a.pool_stats(0).reserved + a.pool_stats(pool).reserved, a.stats().reserved);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto stream = static_cast<StreamId>(i / 2);
    sim.free(blocks[i], i % 2 == 1 ? 5 * kMiB : kMiB * (stream + 1), stream);
  }
  EXPECT_EQ(first_left_over(sim), "");
}

TEST(ArenaReturns, ExactlyTheWholeFreePages) {
  OnSim sim = taper_on(kGiB);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 60; ++i) blocks.push_back(sim.allocate((i % 7 + 1) * 700'000));
  for (std::size_t i = 0; i < 60; ++i) {
    if (i % 5 != 0) sim.free(blocks[i], (i % 7 + 1) * 700'000);
  }
  const std::uint64_t before = sim.device->created_pages();
  const std::vector<std::uint64_t> whole = whole_free_pages(sim);
  const AllocatorStats stats = sim.allocator->stats();
  ASSERT_GT(whole.size(), 10u);
  EXPECT_EQ(stats.releasable, whole.size() * kPageBytes);
  EXPECT_GT(stats.inactive_split, 0u);
  sim.allocator->empty_cache();
  EXPECT_EQ(sim.device->created_pages(), before - whole.size());
  EXPECT_EQ(sim.allocator->stats().releasable, 0u);
  EXPECT_EQ(sim.allocator->stats().inactive_split, stats.inactive_split);
  EXPECT_EQ(whole_free_pages(sim).size(), 0u);
  sim.allocator->empty_cache();  // again: nothing
  EXPECT_EQ(sim.device->created_pages(), before - whole.size());
  EXPECT_EQ(first_wrong_in_arena(sim), "");
  for (std::size_t i = 0; i < 60; i += 5) sim.free(blocks[i], (i % 7 + 1) * 700'000);
  EXPECT_EQ(first_left_over(sim), "");
}

TEST(ArenaBounds, TheLimitIsNeverPassed) {
  AllocatorOptions options;
  options.limit = 100 * kMiB + 1;
  OnSim sim = taper_on(kGiB, options);
  std::vector<Block> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(sim.allocate(kMiB));
  EXPECT_EQ(sim.allocator->stats().reserved, 100 * kMiB);
  EXPECT_THROW(sim.allocate(1), OutOfMemory);
  for (const Block& b : blocks) sim.free(b, kMiB);
  EXPECT_THROW(sim.allocate(101 * kMiB), OutOfMemory);
  const Block all = sim.allocate(100 * kMiB, 1);
  EXPECT_EQ(sim.allocator->stats().reserved_peak, 100 * kMiB);
  sim.free(all, 100 * kMiB, 1);
  EXPECT_EQ(first_left_over(sim), "");
}

// A stream's blocks of one size, freed but for every eighth, and then larger ones.
AllocatorStats after_larger_blocks(const AllocatorOptions& options, std::size_t capacity) {
  OnSim sim = taper_on(capacity, options);
  std::vector<Block> blocks;
  for (int i = 0; i < 128; ++i) blocks.push_back(sim.allocate(4 * kMiB));
  for (std::size_t i = 0; i < 128; ++i) {
    if (i % 8 != 0) sim.free(blocks[i], 4 * kMiB);
  }
  for (int i = 0; i < 8; ++i) sim.allocate(40 * kMiB);
  return sim.allocator->stats();
}

TEST(ArenaBounds, SlackDecidesBetweenGrowthAndMoves) {
  AllocatorOptions tight, loose;
  tight.slack = 0;
  loose.slack = 1;
  const AllocatorStats with_tight = after_larger_blocks(tight, 1024 * kGiB);
  const AllocatorStats with_loose = after_larger_blocks(loose, 1024 * kGiB);
  EXPECT_EQ(with_loose.pages_unmapped, 0u);
  EXPECT_GT(with_tight.pages_unmapped, 100u);
  EXPECT_GE(with_loose.reserved_peak, with_tight.reserved_peak + 200 * kMiB);
  EXPECT_LE(with_tight.reserved_peak, 128 * 4 * kMiB + 20 * kMiB);
}

TEST(ArenaBounds, TheGarbageThresholdIsGrownToAndNotBeyond) {
  AllocatorOptions options;
  options.slack = 1;
  options.garbage_threshold = 0.6;  // of 1 GiB
  const AllocatorStats stats = after_larger_blocks(options, kGiB);
  EXPECT_GT(stats.pages_unmapped, 50u);
  EXPECT_GT(stats.reserved_peak, 550 * kMiB);
  EXPECT_LE(stats.reserved_peak, kGiB * 6 / 10);
}

}  // namespace
}  // namespace taper::testing
