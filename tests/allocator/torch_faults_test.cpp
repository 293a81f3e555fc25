// PyTorch's policies under random work and on devices that refuse: nothing is lost, all adds up.
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "taper/tests/allocator/replaying.h"
#include "taper/tools/alloc/workloads.h"

namespace taper::testing {
namespace {

constexpr AllocatorPolicy kNative = AllocatorPolicy::kTorchNative;
constexpr AllocatorPolicy kExpandable = AllocatorPolicy::kTorchExpandable;
constexpr AllocatorPolicy kBoth[] = {kNative, kExpandable};

// Random work on three streams and two pools, on a device that is nearly too small.
void churn(Torch& torch, std::uint64_t seed, int operations, int check_every) {
  Allocator& a = *torch.allocator;
  struct Out {
    Block block;
    std::size_t bytes;
    StreamId stream;
  };
  std::mt19937_64 random(seed);
  std::vector<Out> out;
  const PoolId pool = a.make_pool(true);
  for (int i = 0; i < operations; ++i) {
    const auto stream = static_cast<StreamId>(random() % 3);
    const std::uint64_t kind = random() % 100;
    if (kind < 50) {
      const std::size_t bytes = 1 + random() % (std::size_t{1} << (9 + random() % 17));
      const bool from_pool = random() % 8 == 0;
      if (from_pool) a.begin_pool(pool, stream);
      try {
        out.push_back({torch.allocate(bytes, stream), bytes, stream});
      } catch (const OutOfMemory&) {
      }
      if (from_pool) a.end_pool(stream);
    } else if (kind < 90 && !out.empty()) {
      std::swap(out[random() % out.size()], out.back());
      if (random() % 4 == 0) a.record_stream(out.back().block, stream);
      torch.free(out.back().block, out.back().bytes, out.back().stream);
      out.pop_back();
    } else if (kind < 96) {
      torch.device->work(stream, random() % 10'000);
    } else if (kind < 99) {
      torch.device->advance_host(torch.device->host_time() + random() % 10'000);
    } else {
      a.empty_cache();
    }
    if (i % check_every == 0) {
      ASSERT_EQ(first_wrong(torch), "") << "operation " << i;
    }
  }
  for (const Out& o : out) torch.free(o.block, o.bytes, o.stream);
  a.release_pool(pool);
  a.empty_cache();
  ASSERT_EQ(first_wrong(torch), "");
  EXPECT_EQ(torch.device->created_pages(), 0u);
  EXPECT_EQ(a.stats().frees, a.stats().allocations);
}

TEST(TorchChurn, NothingIsLost) {
  for (const AllocatorPolicy policy : kBoth) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      AllocatorOptions options = Torch::with(policy);
      options.trace_events = 0;  // thousands are refused: none is asked what would have fit
      if (seed == 2) options.max_split_size = 21 * kMiB;
      if (seed == 3) options.roundup_power2_divisions = 4;
      if (seed == 4) {
        options.limit = 400 * kMiB;
        options.garbage_threshold = 0.6;
      }
      Torch torch(options, Torch::at(500 * kMiB));
      churn(torch, seed, 20'000, 50);
    }
  }
}

// Each call of create and map that a run makes is refused once, which costs a retry; on a device
// that is nearly full the refused call may be a retry itself, and then the next allocation works.
void refuse_each_call(const Trace& trace,
                      AllocatorPolicy policy,
                      std::size_t capacity,
                      bool nearly_full = false) {
  std::uint64_t calls = 0;
  {
    Torch torch(policy, capacity);
    ASSERT_TRUE(Replay(torch).run(trace));
    calls = torch.device->calls();
  }
  ASSERT_GT(calls, 1u);
  const std::uint64_t stride = calls / 64 + 1;  // of long runs, some
  for (std::uint64_t k = 1; k <= calls; k += stride) {
    Torch torch(Torch::with(policy), Torch::at(capacity, k));
    Replay replay(torch);
    const bool done = replay.run(trace);
    EXPECT_GE(torch.allocator->stats().retries, 1u) << "call " << k;
    ASSERT_EQ(first_wrong(torch), "") << "call " << k;
    EXPECT_EQ(torch.allocator->stats().ooms, done ? 0u : 1u);
    if (!done) {
      EXPECT_TRUE(nearly_full && replay.run(trace)) << "call " << k;
    }
    replay.free_all();
    torch.device->synchronize_all();
    torch.allocator->empty_cache();
    ASSERT_EQ(first_wrong(torch), "") << "call " << k;
    EXPECT_EQ(torch.device->created_pages(), 0u) << "call " << k;
    EXPECT_EQ(torch.allocator->stats().allocated, 0u);
  }
}

TEST(TorchFaults, EachDeviceCallRefused) {
  for (const char* name :
       {"small_then_large", "large_then_small", "embedding_records", "splinters", "used_elsewhere",
        "stuck_stream", "fsdp", "oversize", "host_powers", "pins", "kv_cat", "experts"}) {
    const Trace trace = find_workload(name)->make();
    for (const AllocatorPolicy policy : kBoth) {
      SCOPED_TRACE(name);
      refuse_each_call(trace, policy, 80 * kGiB);
    }
  }
}

TEST(TorchFaults, EachDeviceCallRefusedUnderPressure) {
  const Trace trace = find_workload("embedding")->make();
  refuse_each_call(trace, kNative, 2600 * kMiB, true);
  refuse_each_call(trace, kExpandable, 2100 * kMiB, true);
}

TEST(TorchFaults, ARefusalIsRetried) {
  for (const AllocatorPolicy policy : kBoth) {
    for (const std::uint64_t k : {1u, 2u}) {
      Torch torch(Torch::with(policy), Torch::at(kGiB, k));
      EXPECT_NO_THROW(torch.allocate(20 * kMiB));
      EXPECT_EQ(torch.allocator->stats().retries, 1u);
      EXPECT_EQ(first_wrong(torch), "");
    }
  }
}

// While a pool is filled there is no retry: the allocation fails, and the next one works.
TEST(TorchFaults, ARefusalWhileAPoolIsFilledIsOutOfMemory) {
  const Trace trace = find_workload("private_pool")->make();
  for (const AllocatorPolicy policy : kBoth) {
    for (const std::uint64_t k : {3u, 4u}) {  // create and map of the second allocation
      Torch torch(Torch::with(policy), Torch::at(200 * kGiB, k));
      Replay replay(torch);
      EXPECT_FALSE(replay.run(trace));
      EXPECT_EQ(torch.allocator->stats().ooms, 1u);
      EXPECT_EQ(torch.reserved(), 60 * kGiB);
      EXPECT_EQ(first_wrong(torch), "");
      EXPECT_TRUE(replay.run(trace));
      EXPECT_EQ(first_wrong(torch), "");
    }
  }
}

TEST(TorchThreads, OneLockServesAll) {
  for (const AllocatorPolicy policy : kBoth) {
    Torch torch(policy);
    std::vector<std::thread> threads;
    for (StreamId stream = 0; stream < 4; ++stream) {
      threads.emplace_back([&torch, stream] {
        for (std::size_t i = 0; i < 2000; ++i) {
          const std::size_t bytes = (i % 37 + 1) * 100'000;
          const Block block = torch.allocate(bytes, stream);
          torch.allocator->record_stream(block, stream + 1);
          torch.free(block, bytes, stream);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    torch.allocator->empty_cache();
    EXPECT_EQ(torch.allocator->stats().allocations, 8000u);
    EXPECT_EQ(first_wrong(torch), "");
    EXPECT_EQ(torch.device->created_pages(), 0u);
  }
}

}  // namespace
}  // namespace taper::testing
