// PyTorch's policies over time: streams, what is given back, limits, garbage, private pools.
#include <gtest/gtest.h>

#include "taper/tests/allocator/replaying.h"

namespace taper::testing {
namespace {

constexpr AllocatorPolicy kNative = AllocatorPolicy::kTorchNative;
constexpr AllocatorPolicy kExpandable = AllocatorPolicy::kTorchExpandable;
constexpr AllocatorPolicy kBoth[] = {kNative, kExpandable};

TEST(TorchStreams, ABlockStaysWithItsStream) {
  for (const AllocatorPolicy policy : kBoth) {
    Torch torch(policy);
    const Block block = torch.allocate(20 * kMiB, 0);
    torch.free(block);
    EXPECT_NE(torch.allocate(20 * kMiB, 1).data, block.data);
    EXPECT_EQ(torch.allocate(20 * kMiB, 0).data, block.data);
    EXPECT_EQ(torch.allocator->stream_stats(1).reserved, 20 * kMiB);
    EXPECT_EQ(torch.allocator->stream_stats(0).allocations, 2u);
    EXPECT_EQ(torch.allocator->stream_stats(7).reserved, 0u);
    EXPECT_EQ(first_wrong(torch), "");
  }
}

TEST(TorchStreams, AUseElsewhereDelaysReuseUntilItIsDone) {
  for (const AllocatorPolicy policy : kBoth) {
    Torch torch(policy);
    const Block block = torch.allocate(20 * kMiB);
    torch.device->work(1, 1000);
    torch.allocator->record_stream(block, 1);
    torch.allocator->record_stream(block, 1);
    torch.free(block);
    EXPECT_EQ(torch.allocator->stats().pending, 20 * kMiB);
    EXPECT_EQ(torch.allocator->stats().allocated, 0u);
    EXPECT_EQ(first_wrong(torch), "");
    torch.device->advance_host(999);
    const Block other = torch.allocate(20 * kMiB);
    EXPECT_NE(other.data, block.data);
    torch.device->advance_host(1000);
    EXPECT_EQ(torch.allocator->stats().pending, 20 * kMiB);  // only an allocation asks
    EXPECT_EQ(torch.allocate(20 * kMiB).data, block.data);
    EXPECT_EQ(torch.allocator->stats().pending, 0u);
    EXPECT_EQ(torch.allocator->stats().pending_peak, 20 * kMiB);
  }
}

TEST(TorchStreams, AUseOnItsOwnStreamIsNone) {
  Torch torch(kNative);
  const Block block = torch.allocate(20 * kMiB, 3);
  torch.device->work(3, 1000);
  torch.allocator->record_stream(block, 3);
  torch.free(block);
  EXPECT_EQ(torch.allocate(20 * kMiB, 3).data, block.data);
}

TEST(TorchStreams, AllStreamsMustBeDone) {
  Torch torch(kNative);
  const Block block = torch.allocate(20 * kMiB);
  torch.device->work(1, 1000);
  torch.device->work(2, 5000);
  torch.allocator->record_stream(block, 1);
  torch.allocator->record_stream(block, 2);
  torch.free(block);
  torch.device->advance_host(1000);
  EXPECT_NE(torch.allocate(20 * kMiB).data, block.data);
  torch.device->advance_host(5000);
  EXPECT_EQ(torch.allocate(20 * kMiB).data, block.data);
}

// Marks are of the time of the free, and asked in the order of frees.
TEST(TorchStreams, FreesAreAskedInTheirOrder) {
  Torch torch(kNative);
  const Block first = torch.allocate(20 * kMiB), second = torch.allocate(20 * kMiB);
  torch.allocator->record_stream(second, 1);
  torch.allocator->record_stream(first, 1);
  torch.device->work(1, 1000);
  torch.free(first);
  torch.device->work(1, 1000);
  torch.free(second);
  torch.device->advance_host(1500);
  EXPECT_EQ(torch.allocate(20 * kMiB).data, first.data);
  EXPECT_EQ(torch.allocator->stats().pending, 20 * kMiB);
  torch.device->advance_host(2000);
  EXPECT_EQ(torch.allocate(20 * kMiB).data, second.data);
}

// A pending block is no neighbour to be joined with.
TEST(TorchStreams, PendingBlocksAreNotJoined) {
  for (const AllocatorPolicy policy : kBoth) {
    Torch torch(policy);
    torch.free(torch.allocate(60 * kMiB));
    const Block left = torch.allocate(20 * kMiB), middle = torch.allocate(20 * kMiB);
    torch.device->work(1, 1000);
    torch.allocator->record_stream(middle, 1);
    torch.free(middle);
    torch.free(left);
    EXPECT_EQ(torch.allocator->stats().largest_free, 20 * kMiB);
    EXPECT_EQ(first_wrong(torch), "");
    torch.allocator->empty_cache();  // waits
    EXPECT_EQ(torch.device->host_time(), 1000u);
    EXPECT_EQ(torch.reserved(), 0u);
    EXPECT_EQ(torch.device->created_pages(), 0u);
  }
}

// Pages go back only when the work that was given to their stream is done.
TEST(TorchStreams, GivingBackWaitsForTheStream) {
  for (const AllocatorPolicy policy : kBoth) {
    Torch torch(policy);
    const Block block = torch.allocate(20 * kMiB, 1);
    torch.device->work(1, 7000);
    torch.free(block, 0, 1);
    EXPECT_EQ(torch.device->host_time(), 0u);
    torch.allocator->empty_cache();
    EXPECT_EQ(torch.device->host_time(), 7000u);
  }
}

TEST(TorchRelease, OnlyWholeSegmentsOrGranulesGoBack) {
  Torch native(kNative), expandable(kExpandable);
  for (Torch* torch : {&native, &expandable}) {
    torch->free(torch->allocate(100 * kMiB));
    const Block small = torch->allocate(2 * kMiB);
    const AllocatorStats s = torch->allocator->stats();
    EXPECT_EQ(s.releasable, torch == &native ? 0 : 80 * kMiB);
    EXPECT_EQ(s.inactive_split, torch == &native ? 98 * kMiB : 18 * kMiB);
    torch->allocator->empty_cache();
    EXPECT_EQ(torch->reserved(), torch == &native ? 100 * kMiB : 20 * kMiB);
    EXPECT_EQ(first_wrong(*torch), "");
    torch->free(small);
  }
}

// What was unmapped in the middle is mapped again before the segment grows.
TEST(TorchRelease, TheLowestRoomIsMappedAgain) {
  Torch torch(kExpandable, 120 * kMiB);
  const Block low = torch.allocate(40 * kMiB), wall = torch.allocate(20 * kMiB);
  torch.allocate(40 * kMiB, 1);
  torch.free(low);
  torch.allocate(40 * kMiB, 1);  // there is room for it only when the first is given back
  EXPECT_EQ(torch.allocator->stats().retries, 1u);
  EXPECT_EQ(torch.reserved(), 100 * kMiB);
  EXPECT_EQ(torch.offset(torch.allocate(20 * kMiB)), torch.offset(low));
  EXPECT_EQ(first_wrong(torch), "");
  torch.free(wall);
}

TEST(TorchRelease, AddressSpaceIsUsedAgain) {
  Torch torch(kNative);
  const Block first = torch.allocate(30 * kMiB), second = torch.allocate(50 * kMiB);
  torch.free(first);
  torch.free(second);
  torch.allocator->empty_cache();
  EXPECT_EQ(torch.offset(torch.allocate(80 * kMiB)), 0u);
}

TEST(TorchLimit, CountsWhatIsReserved) {
  for (const AllocatorPolicy policy : kBoth) {
    AllocatorOptions options = Torch::with(policy);
    options.limit = 100 * kMiB;
    Torch torch(options);
    const Block block = torch.allocate(80 * kMiB);
    EXPECT_THROW(torch.allocate(22 * kMiB), OutOfMemory);
    EXPECT_NO_THROW(torch.allocate(20 * kMiB));
    EXPECT_THROW(torch.allocate(1), OutOfMemory);
    torch.free(block);
    EXPECT_NO_THROW(torch.allocate(70 * kMiB, 1));  // another stream's: the first's is given back
    EXPECT_EQ(torch.allocator->stats().ooms, 2u);
    EXPECT_EQ(first_wrong(torch), "");
  }
}

// All blocks of the common pool age by its requests, on whatever stream.
void age(Torch& torch, Block& live) {
  if (live.data == nullptr) live = torch.allocate(2 * kMiB, 1);
  for (int i = 0; i < 10; ++i) torch.free(torch.allocate(2 * kMiB, 1), 0, 1);
}

TEST(TorchGarbage, TheOldestGoFirstThenTheNext) {
  AllocatorOptions options = Torch::with(kNative);
  options.limit = 1000 * kMiB;
  options.garbage_threshold = 0.5;
  Torch torch(options);
  const Block old = torch.allocate(200 * kMiB), young = torch.allocate(250 * kMiB);
  Block live;
  torch.free(old);
  age(torch, live);
  torch.free(young);
  EXPECT_EQ(torch.reserved(), 470 * kMiB);
  torch.allocate(300 * kMiB);  // 470 MiB is below the threshold of 500
  EXPECT_EQ(torch.reserved(), 770 * kMiB);
  torch.allocate(260 * kMiB);  // 270 MiB must go: the old block does not suffice
  EXPECT_EQ(torch.allocator->stats().retries, 0u);
  EXPECT_EQ(torch.reserved(), (20 + 300 + 260) * kMiB);
  EXPECT_EQ(first_wrong(torch), "");
}

TEST(TorchGarbage, TheYoungMayStay) {
  AllocatorOptions options = Torch::with(kNative);
  options.limit = 1000 * kMiB;
  options.garbage_threshold = 0.5;
  Torch torch(options);
  Block live;
  age(torch, live);
  const Block old = torch.allocate(200 * kMiB), held = torch.allocate(200 * kMiB);
  const Block young = torch.allocate(150 * kMiB);
  torch.free(old);
  age(torch, live);
  torch.free(young);
  EXPECT_EQ(torch.reserved(), 570 * kMiB);
  torch.allocate(210 * kMiB);  // 70 MiB must go: the old block alone
  EXPECT_EQ(torch.reserved(), 580 * kMiB);
  EXPECT_EQ(torch.allocate(150 * kMiB).data, young.data);
  torch.free(held);
}

TEST(TorchGarbage, NeedsALimit) {
  AllocatorOptions options = Torch::with(kNative);
  options.garbage_threshold = 0.01;
  Torch torch(options, Torch::at(1000 * kMiB));
  torch.free(torch.allocate(500 * kMiB));
  torch.allocate(500 * kMiB, 1);
  EXPECT_EQ(torch.reserved(), 1000 * kMiB);
}

TEST(TorchSplitLimit, LargeRequestsTakeBlocksUpTo20MiBLarger) {
  AllocatorOptions options = Torch::with(kNative);
  options.max_split_size = 100 * kMiB;
  Torch torch(options);
  const Block block = torch.allocate(200 * kMiB);
  torch.free(block);
  EXPECT_NE(torch.allocate(180 * kMiB).data, block.data);
  const Block near = torch.allocate(180 * kMiB + 512);
  EXPECT_EQ(near.data, block.data);
  EXPECT_EQ(near.bytes, 200 * kMiB);  // whole
  torch.free(near);
  EXPECT_NE(torch.allocate(99 * kMiB).data, block.data);  // below the limit: not of those above
  EXPECT_EQ(first_wrong(torch), "");
  options.max_split_size = 20 * kMiB;
  EXPECT_THROW(Torch{options}, Error);
  options.max_split_size = 0;
  options.roundup_power2_divisions = 3;
  EXPECT_THROW(Torch{options}, Error);
}

// Under pressure one oversize block that suffices goes back, or several, and nothing else.
TEST(TorchSplitLimit, OversizeBlocksGoBackFirst) {
  AllocatorOptions options = Torch::with(kNative);
  options.max_split_size = 100 * kMiB;
  Torch one(options, Torch::at(1000 * kMiB));
  for (const std::size_t mib : {90u, 200u, 300u, 400u}) one.free(one.allocate(mib * kMiB));
  one.allocate(260 * kMiB);  // 300 is within 20 of nothing: it is given back for this
  EXPECT_EQ(one.allocator->stats().retries, 0u);
  EXPECT_EQ(one.reserved(), (90 + 200 + 260 + 400) * kMiB);

  Torch several(options, Torch::at(1000 * kMiB));
  for (const std::size_t mib : {90u, 200u, 300u, 400u}) several.free(several.allocate(mib * kMiB));
  several.allocate(610 * kMiB);  // 400 and 300 together
  EXPECT_EQ(several.allocator->stats().retries, 0u);
  EXPECT_EQ(several.reserved(), (90 + 200 + 610) * kMiB);
  EXPECT_EQ(first_wrong(several), "");
}

TEST(TorchPools, BlocksComeFromThePoolThatIsFilled) {
  for (const AllocatorPolicy policy : kBoth) {
    Torch torch(policy);
    Allocator& a = *torch.allocator;
    const Block common = torch.allocate(20 * kMiB);
    torch.free(common);
    const PoolId pool = a.make_pool(true);
    a.begin_pool(pool, 0);
    const Block mine = torch.allocate(20 * kMiB);
    const Block others = torch.allocate(20 * kMiB, 1);  // no stream of the pool
    a.end_pool(0);
    EXPECT_NE(mine.data, common.data);
    EXPECT_EQ(a.pool_stats(pool).allocated, 20 * kMiB);
    EXPECT_EQ(a.pool_stats(0).allocated, 20 * kMiB);
    EXPECT_EQ(torch.allocate(20 * kMiB).data, common.data);
    torch.free(mine);
    EXPECT_NE(torch.allocate(20 * kMiB).data, mine.data);
    EXPECT_EQ(first_wrong(torch), "");
    torch.free(others, 0, 1);
  }
}

// A pool's memory goes back after its release, with its last block.
TEST(TorchPools, AReleasedPoolIsDrained) {
  for (const AllocatorPolicy policy : kBoth) {
    Torch torch(policy);
    Allocator& a = *torch.allocator;
    const PoolId pool = a.make_pool(true);
    a.begin_pool(pool, 0);
    const Block kept = torch.allocate(20 * kMiB), gone = torch.allocate(40 * kMiB);
    a.end_pool(0);
    torch.free(gone);
    a.empty_cache();
    EXPECT_EQ(torch.reserved(), 60 * kMiB);
    EXPECT_EQ(a.stats().releasable, 0u);
    a.release_pool(pool);
    EXPECT_EQ(a.stats().releasable, 40 * kMiB);
    EXPECT_EQ(a.pool_stats(pool).releasable, 40 * kMiB);
    EXPECT_EQ(first_wrong(torch), "");
    a.empty_cache();
    EXPECT_EQ(torch.reserved(), 20 * kMiB);
    torch.free(kept);
    a.empty_cache();
    EXPECT_EQ(torch.device->created_pages(), 0u);
    EXPECT_THROW(a.begin_pool(pool, 0), Error);
    EXPECT_THROW(a.release_pool(pool), Error);
  }
}

TEST(TorchPools, MisuseIsAnError) {
  Torch torch(kNative);
  Allocator& a = *torch.allocator;
  EXPECT_THROW(a.begin_pool(0, 0), Error);
  EXPECT_THROW(a.begin_pool(5, 0), Error);
  EXPECT_THROW(a.end_pool(0), Error);
  const PoolId pool = a.make_pool(false), other = a.make_pool(false);
  a.begin_pool(pool, 0);
  EXPECT_THROW(a.begin_pool(other, 0), Error);
  EXPECT_THROW(a.release_pool(pool), Error);
  a.end_pool(0);
  a.release_pool(pool);
}

// While a pool is filled no events are asked or made, and nothing is given back.
TEST(TorchPools, FillingPutsEventsOff) {
  Torch torch(kNative, 100 * kMiB);
  Allocator& a = *torch.allocator;
  const Block block = torch.allocate(60 * kMiB);
  const PoolId pool = a.make_pool(true);
  a.record_stream(block, 1);
  a.begin_pool(pool, 0);
  torch.free(block);
  EXPECT_EQ(a.stats().pending, 60 * kMiB);
  EXPECT_THROW(torch.allocate(60 * kMiB), OutOfMemory);
  a.empty_cache();
  EXPECT_EQ(torch.reserved(), 60 * kMiB);
  torch.device->work(1, 1000);  // after the free and the attempt, but before the mark
  a.end_pool(0);
  torch.free(torch.allocate(kMiB));  // makes the mark
  torch.device->advance_host(999);
  torch.free(torch.allocate(kMiB));
  EXPECT_EQ(a.stats().pending, 60 * kMiB);
  torch.device->advance_host(1000);
  EXPECT_EQ(torch.allocate(60 * kMiB).data, block.data);
  EXPECT_EQ(first_wrong(torch), "");
}

TEST(TorchStats, PeaksAreKeptUntilReset) {
  Torch torch(kNative);
  torch.free(torch.allocate(30 * kMiB + 1, 2), 0, 2);
  EXPECT_EQ(torch.allocator->stats().requested_peak, 30 * kMiB + 1);
  EXPECT_EQ(torch.allocator->stream_stats(2).allocated_peak, 30 * kMiB + 512);
  torch.allocator->reset_peaks();
  EXPECT_EQ(torch.allocator->stats().requested_peak, 0u);
  EXPECT_EQ(torch.allocator->stream_stats(2).allocated_peak, 0u);
  EXPECT_EQ(torch.allocator->stats().reserved_peak, 32 * kMiB);
  EXPECT_EQ(torch.allocator->stats().device_calls, 2u);
  EXPECT_EQ(torch.allocator->stats().pages_mapped, 16u);
}

}  // namespace
}  // namespace taper::testing
