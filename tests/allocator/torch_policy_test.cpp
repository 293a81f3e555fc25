// PyTorch's policies against what is published of them: sizes, scenarios, and users' reports.
#include "taper/allocator/torch_policy.h"

#include <gtest/gtest.h>

#include "taper/allocator/plan.h"
#include "taper/tests/allocator/replaying.h"
#include "taper/tools/alloc/workloads.h"

namespace taper::testing {
namespace {

constexpr AllocatorPolicy kNative = AllocatorPolicy::kTorchNative;
constexpr AllocatorPolicy kExpandable = AllocatorPolicy::kTorchExpandable;

std::vector<Block> several(Torch& torch, int count, std::size_t bytes) {
  std::vector<Block> blocks;
  for (int i = 0; i < count; ++i) blocks.push_back(torch.allocate(bytes));
  return blocks;
}

void free_all(Torch& torch, const std::vector<Block>& blocks) {
  for (const Block& block : blocks) torch.free(block);
}

// What a request of that many bytes takes from an empty device, and the size of its block.
struct Taken {
  std::size_t reserved = 0, block = 0;

  bool operator==(const Taken&) const = default;
};

Taken taken(AllocatorPolicy policy, std::size_t bytes) {
  Torch torch(policy);
  const Block block = torch.allocate(bytes);
  return {torch.reserved(), block.bytes};
}

TEST(TorchSizes, RequestsAreRoundedTo512) {
  EXPECT_EQ(torch_rounded(1, 0), 512u);
  EXPECT_EQ(torch_rounded(511, 0), 512u);
  EXPECT_EQ(torch_rounded(512, 0), 512u);
  EXPECT_EQ(torch_rounded(513, 0), 1024u);
  EXPECT_EQ(torch_rounded(kMiB - 1, 0), kMiB);
  EXPECT_EQ(torch_rounded(kMiB + 1, 0), kMiB + 512);
}

TEST(TorchSizes, PowersOfTwoAreDividedAsAsked) {
  EXPECT_EQ(torch_rounded(1200 << 10, 4), std::size_t{1280} << 10);
  EXPECT_EQ(torch_rounded(kMiB, 4), kMiB);
  EXPECT_EQ(torch_rounded(kMiB - 1, 4), kMiB);
  EXPECT_EQ(torch_rounded(kMiB + 1, 4), kMiB + kMiB / 4);
  EXPECT_EQ(torch_rounded(kMiB + 1, 1), kMiB + 512);  // one division is none
  // Up to 512 for each division, 512 it is.
  EXPECT_EQ(torch_rounded(2047, 4), 2048u);
  EXPECT_EQ(torch_rounded(2048, 4), 2048u);
  EXPECT_EQ(torch_rounded(2049, 4), 2560u);
  EXPECT_EQ(torch_rounded(4095, 8), 4096u);
  EXPECT_EQ(torch_rounded(4097, 8), 4608u);
  EXPECT_EQ(torch_rounded(9000, 4), 10240u);
}

// The pool is chosen by the rounded size: a byte above 1 MiB is a large request.
TEST(TorchSizes, NativeSegments) {
  EXPECT_EQ(taken(kNative, kMiB - 1), (Taken{2 * kMiB, kMiB}));
  EXPECT_EQ(taken(kNative, kMiB), (Taken{2 * kMiB, kMiB}));
  EXPECT_EQ(taken(kNative, kMiB + 1), (Taken{20 * kMiB, kMiB + 512}));
  EXPECT_EQ(taken(kNative, 10 * kMiB - 512), (Taken{20 * kMiB, 10 * kMiB - 512}));
  EXPECT_EQ(taken(kNative, 10 * kMiB - 511).reserved, 10 * kMiB);  // rounded to 10 MiB
  EXPECT_EQ(taken(kNative, 10 * kMiB).reserved, 10 * kMiB);
  EXPECT_EQ(taken(kNative, 10 * kMiB + 1).reserved, 12 * kMiB);
  EXPECT_EQ(taken(kNative, 12 * kMiB).reserved, 12 * kMiB);
  EXPECT_EQ(taken(kNative, 12 * kMiB + 1).reserved, 14 * kMiB);
}

TEST(TorchSizes, ExpandableGranules) {
  EXPECT_EQ(taken(kExpandable, kMiB), (Taken{2 * kMiB, kMiB}));
  EXPECT_EQ(taken(kExpandable, kMiB + 1), (Taken{20 * kMiB, kMiB + 512}));
  EXPECT_EQ(taken(kExpandable, 20 * kMiB - 1), (Taken{20 * kMiB, 20 * kMiB}));
  EXPECT_EQ(taken(kExpandable, 20 * kMiB), (Taken{20 * kMiB, 20 * kMiB}));
  EXPECT_EQ(taken(kExpandable, 20 * kMiB + 1), (Taken{40 * kMiB, 20 * kMiB + 512}));
}

// Native: a remainder is cut off if it is larger than 1 MiB; small blocks and expandable segments:
// from 512 bytes on.
TEST(TorchSizes, WhatIsLeftIsSplitOff) {
  EXPECT_EQ(taken(kNative, 19 * kMiB - 1).block, 20 * kMiB);
  EXPECT_EQ(taken(kNative, 19 * kMiB).block, 20 * kMiB);
  EXPECT_EQ(taken(kNative, 19 * kMiB - 512).block, 19 * kMiB - 512);
  EXPECT_EQ(taken(kExpandable, 19 * kMiB).block, 19 * kMiB);
  EXPECT_EQ(taken(kExpandable, 20 * kMiB - 512).block, 20 * kMiB - 512);
  EXPECT_EQ(taken(kNative, kMiB - 512).block, kMiB - 512);
}

TEST(TorchSizes, NothingTakesNothing) {
  Torch torch(kNative);
  const Block block = torch.allocate(0);
  EXPECT_EQ(block.data, nullptr);
  torch.allocator->record_stream(block, 1);
  torch.free(block);
  EXPECT_EQ(torch.device->calls(), 0u);
  EXPECT_THROW(torch.allocate((std::size_t{1} << 60) + 1), Error);
}

// The devlog of 2026-06-01.
TEST(TorchScenarios, NativeKeepsWhatTheOrderOfSizesLeft) {
  Torch up(kNative), down(kNative);
  free_all(up, several(up, 8, 16 * kMiB));
  EXPECT_EQ(up.reserved(), 128 * kMiB);
  several(up, 4, 32 * kMiB);
  EXPECT_EQ(up.reserved(), 256 * kMiB);

  free_all(down, several(down, 4, 32 * kMiB));
  several(down, 8, 16 * kMiB);
  EXPECT_EQ(down.reserved(), 128 * kMiB);
}

TEST(TorchScenarios, ExpandableMapsAsBlocksArrive) {
  Torch torch(kExpandable);
  std::vector<Block> blocks;
  for (const std::size_t mapped : {20u, 40u, 60u, 80u, 80u, 100u, 120u, 140u}) {
    blocks.push_back(torch.allocate(16 * kMiB));
    EXPECT_EQ(torch.reserved(), mapped * kMiB) << blocks.size();
  }
  free_all(torch, blocks);
  ASSERT_EQ(torch.allocator->memory_map().size(), 1u);
  EXPECT_EQ(torch.allocator->memory_map()[0].blocks.size(), 1u);
  several(torch, 4, 32 * kMiB);
  EXPECT_EQ(torch.reserved(), 140 * kMiB);
}

TEST(TorchScenarios, LiveBlocksPinAnExpandableSegment) {
  Torch torch(kExpandable);
  const std::vector<Block> blocks = several(torch, 4, 16 * kMiB);
  EXPECT_EQ(torch.reserved(), 80 * kMiB);
  torch.free(blocks[0]);
  torch.free(blocks[2]);
  EXPECT_EQ(torch.allocator->stats().largest_free, 16 * kMiB);
  Block large = torch.allocate(32 * kMiB);
  EXPECT_EQ(torch.reserved(), 100 * kMiB);
  free_all(torch, {large, blocks[1], blocks[3]});
  large = torch.allocate(32 * kMiB);
  EXPECT_EQ(torch.reserved(), 100 * kMiB);
}

TEST(TorchScenarios, SmallAndLargeBlocksShareNothing) {
  for (const AllocatorPolicy policy : {kNative, kExpandable}) {
    Torch crossing(policy), staying(policy);
    crossing.free(crossing.allocate(2 * kMiB));
    crossing.allocate(kMiB / 2);
    EXPECT_EQ(crossing.reserved(), 22 * kMiB);
    staying.free(staying.allocate(2 * kMiB));
    staying.allocate(2 * kMiB);
    EXPECT_EQ(staying.reserved(), 20 * kMiB);
  }
}

// A free block before unmapped space counts with that space, so another of the request's size or
// more is preferred, wherever it is.
TEST(TorchScenarios, ExpandablePrefersTheInsideToTheTail) {
  Torch torch(kExpandable);
  const Block inside = torch.allocate(18 * kMiB);
  const Block wall = torch.allocate(kMiB + 512);  // leaves less than 1 MiB of 20
  const Block more = torch.allocate(4 * kMiB);    // leaves less than 17 MiB of 40
  EXPECT_EQ(torch.reserved(), 40 * kMiB);
  torch.free(inside);
  const Block found = torch.allocate(16 * kMiB);  // the tail is the tighter fit
  EXPECT_EQ(torch.offset(found), torch.offset(inside));
  free_all(torch, {wall, more, found});
}

TEST(TorchScenarios, BestFitThenLowestAddress) {
  Torch torch(kNative);
  const std::vector<Block> blocks = several(torch, 3, 30 * kMiB);
  const Block tight = torch.allocate(24 * kMiB);
  free_all(torch, {blocks[2], blocks[0], tight});
  EXPECT_EQ(torch.offset(torch.allocate(23 * kMiB + 1)), torch.offset(tight));
  EXPECT_EQ(torch.offset(torch.allocate(23 * kMiB + 1)), torch.offset(blocks[0]));
  EXPECT_EQ(torch.offset(torch.allocate(30 * kMiB)), torch.offset(blocks[2]));
}

// Splits the remains of one block and joins them again, from both sides.
TEST(TorchScenarios, FreeNeighboursAreJoined) {
  for (const AllocatorPolicy policy : {kNative, kExpandable}) {
    Torch torch(policy);
    torch.free(torch.allocate(60 * kMiB));
    const std::vector<Block> blocks = several(torch, 3, 20 * kMiB);
    EXPECT_EQ(torch.reserved(), 60 * kMiB);
    EXPECT_EQ(torch.allocator->stats().largest_free, 0u);
    torch.free(blocks[0]);
    torch.free(blocks[2]);
    EXPECT_EQ(torch.allocator->stats().largest_free, 20 * kMiB);
    EXPECT_EQ(first_wrong(torch), "");
    torch.free(blocks[1]);
    EXPECT_EQ(torch.allocator->stats().largest_free, 60 * kMiB);
    EXPECT_EQ(first_wrong(torch), "");
  }
}

Trace workload(const char* name) {
  return find_workload(name)->make();
}

// T1: each record gets a segment of its own, so they add up; expandable grows to the last.
TEST(TorchReports, RecordLengthsAddUp) {
  Torch native(kNative), expandable(kExpandable);
  EXPECT_TRUE(Replay(native).run(workload("embedding_records")));
  EXPECT_EQ(native.reserved(), 10'770 * kMiB);
  EXPECT_TRUE(Replay(expandable).run(workload("embedding_records")));
  EXPECT_EQ(expandable.reserved(), 1040 * kMiB);
}

// T2.
TEST(TorchReports, SplintersKeepAHugeBlock) {
  const Trace trace = workload("splinters");
  Torch native(kNative, 16 * kGiB), expandable(kExpandable, 16 * kGiB);
  EXPECT_FALSE(Replay(native).run(trace));
  const AllocatorStats s = native.allocator->stats();
  EXPECT_EQ(s.reserved >> 20, 11'104u);  // 10.84 GiB
  EXPECT_NEAR(static_cast<double>(s.allocated) / kGiB, 0.97, 0.005);
  EXPECT_EQ(s.ooms, 1u);
  EXPECT_EQ(s.inactive_split, s.reserved - s.allocated);
  EXPECT_EQ(first_wrong(native), "");

  EXPECT_TRUE(Replay(expandable).run(trace));
  const double most = static_cast<double>(expandable.allocator->stats().reserved_peak);
  EXPECT_NEAR(most / kGiB, 12.6, 0.005);
  EXPECT_EQ(first_wrong(expandable), "");
}

// T3: the wait before the last try brings back a block that would do, but blocks are not searched
// again, and this one is part of a segment that stays.
TEST(TorchReports, WhatAWaitBringsBackIsNotSearched) {
  Torch torch(kNative, 10 * kGiB);
  torch.free(torch.allocate(8 * kGiB));
  const Block part = torch.allocate(6 * kGiB), rest = torch.allocate(kGiB);
  torch.allocator->record_stream(part, 1);
  torch.device->work(1, 1'000'000'000);
  torch.free(part);
  EXPECT_THROW(torch.allocate(6 * kGiB), OutOfMemory);
  EXPECT_EQ(torch.allocator->stats().largest_free, 6 * kGiB);
  EXPECT_NO_THROW(torch.allocate(6 * kGiB));  // the second call finds it
  torch.free(rest);
  EXPECT_EQ(first_wrong(torch), "");
}

TEST(TorchReports, AWholeSegmentComesBackOnTheFirstCall) {
  for (const AllocatorPolicy policy : {kNative, kExpandable}) {
    Torch torch(policy, 10 * kGiB);
    EXPECT_TRUE(Replay(torch).run(workload("used_elsewhere")));
    EXPECT_EQ(torch.allocator->stats().retries, 1u);
  }
}

// T4: stream 2 is done, so its blocks come back although stream 1's were freed first.
TEST(TorchReports, AStuckStreamHoldsOnlyItsOwn) {
  for (const AllocatorPolicy policy : {kNative, kExpandable}) {
    Torch torch(policy, 12 * kGiB);
    const Trace trace = workload("stuck_stream");
    EXPECT_TRUE(Replay(torch).run(trace));
    EXPECT_EQ(torch.allocator->stats().reserved_peak, 10 * kGiB);
    EXPECT_EQ(torch.allocator->stats().retries, 0u);
  }
}

// T5: each layer that the host is ahead costs one more buffer.
TEST(TorchReports, RunAheadStacksBuffers) {
  std::vector<std::uint64_t> peaks;
  for (const std::uint32_t ahead : {1u, 2u, 4u, 8u}) {
    Torch torch(kNative);
    EXPECT_TRUE(Replay(torch).run(fsdp_workload(32, 400 * kMiB, ahead)));
    peaks.push_back(torch.allocator->stats().reserved_peak / (400 * kMiB));
  }
  EXPECT_EQ(peaks, (std::vector<std::uint64_t>{1, 2, 4, 8}));
}

// T6: blocks of max_split_size are not split, so the 576 MB block serves none of the 115 MB.
TEST(TorchReports, OversizeBlocksServeOnlyTheirLike) {
  AllocatorOptions options = Torch::with(kNative);
  Torch plain(options);
  EXPECT_TRUE(Replay(plain).run(workload("oversize")));
  options.max_split_size = 128 * kMiB;
  Torch native(options);
  EXPECT_TRUE(Replay(native).run(workload("oversize")));
  EXPECT_EQ(native.reserved(), (550 + 500 * 110) * kMiB);
  EXPECT_EQ(plain.reserved(), (550 + 495 * 110) * kMiB);

  // Expandable segments know no such limit.
  options.policy = kExpandable;
  Torch expandable(options), without(kExpandable);
  EXPECT_TRUE(Replay(expandable).run(workload("oversize")));
  EXPECT_TRUE(Replay(without).run(workload("oversize")));
  EXPECT_EQ(expandable.reserved(), without.reserved());
}

// T7: native depends on the order, which the scenarios above show in full.
TEST(TorchReports, OrderOfSizes) {
  for (const auto& [name, native_mib, expandable_mib] :
       {std::tuple{"small_then_large", 256, 140}, std::tuple{"large_then_small", 128, 140}}) {
    Torch native(kNative), expandable(kExpandable);
    EXPECT_TRUE(Replay(native).run(workload(name)));
    EXPECT_TRUE(Replay(expandable).run(workload(name)));
    EXPECT_EQ(native.reserved(), static_cast<std::size_t>(native_mib) * kMiB) << name;
    EXPECT_EQ(expandable.reserved(), static_cast<std::size_t>(expandable_mib) * kMiB) << name;
  }
}

// T8: a stream that fills a private pool gets nothing that the common pool caches.
TEST(TorchReports, APrivatePoolStarvesBesideAFullCache) {
  for (const AllocatorPolicy policy : {kNative, kExpandable}) {
    Torch torch(policy, 80 * kGiB);
    const Trace trace = workload("private_pool");
    Replay replay(torch);
    EXPECT_FALSE(replay.run(trace));
    EXPECT_EQ(torch.allocator->stats().releasable, 60 * kGiB);
    torch.allocator->empty_cache();
    EXPECT_TRUE(replay.run(trace));
    EXPECT_EQ(first_wrong(torch), "");
  }
}

TEST(TorchReports, Corpus) {
  struct Row {
    const char* name;
    double native, expandable;  // peak of reserved / largest load, of an independent model
  };
  for (const Row& row : {Row{"embedding", 3.8373, 1.3672}, Row{"kv_cat", 1.4438, 1.0234},
                         Row{"pins", 1.9702, 1.0832}, Row{"rmm_random", 1.1701, 1.1146},
                         Row{"experts", 1.2207, 1.0277}, Row{"paged_kv", 1.0037, 1.0009},
                         Row{"gpt_variable", 1.4995, 1.0027}, Row{"gpt_checkpoint", 2.0539, 1.0462},
                         Row{"pangu_like", 1.5124, 1.2061}, Row{"resnet_like", 1.2226, 1.0400}}) {
    const Trace trace = workload(row.name);
    Torch native(kNative), expandable(kExpandable);
    EXPECT_TRUE(Replay(native).run(trace));
    EXPECT_TRUE(Replay(expandable).run(trace));
    const auto load = static_cast<double>(max_load(intervals_of(trace)));
    const auto ratio = [&](const Torch& t) {
      return static_cast<double>(t.allocator->stats().reserved_peak) / load;
    };
    EXPECT_NEAR(ratio(native), row.native, 0.00006) << row.name;
    EXPECT_NEAR(ratio(expandable), row.expandable, 0.00006) << row.name;
    EXPECT_EQ(first_wrong(native), "") << row.name;
    EXPECT_EQ(first_wrong(expandable), "") << row.name;
  }
}

}  // namespace
}  // namespace taper::testing
