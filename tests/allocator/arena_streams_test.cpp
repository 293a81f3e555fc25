// Taper's policy with several streams: what users reported of PyTorch does not happen, placement
// does not depend on timing, and memory is handed on only after all work that uses it.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "taper/allocator/plan.h"
#include "taper/allocator/twin.h"
#include "taper/tests/allocator/arena_checks.h"
#include "taper/tools/alloc/workloads.h"

namespace taper::testing {
namespace {

TwinSettings quiet(AllocatorPolicy policy = AllocatorPolicy::kTaper) {
  TwinSettings settings;
  settings.options.policy = policy;
  settings.options.trace_events = 0;
  return settings;
}

Trace named(const char* name) {
  return find_workload(name)->make();
}

// T7.
TEST(ArenaReports, OrderOfSizesDoesNotMatter) {
  for (const char* name : {"small_then_large", "large_then_small"})
    EXPECT_EQ(run_twin(named(name), quiet()).stats.reserved_peak, 128 * kMiB) << name;
}

// All orders of three sets of blocks; the peak of reserved memory is that of the largest set.
TEST(ArenaReports, NoOrderOfThreeSizesMatters) {
  struct Set {
    std::uint64_t bytes, count;
  };
  std::vector<Set> sets = {{3 * kMiB, 40}, {10 * kMiB + 512, 11}, {31 * kMiB, 4}};
  const auto by_bytes = [](const Set& a, const Set& b) { return a.bytes < b.bytes; };
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  do {
    TraceBuilder builder("sets");
    for (const Set& set : sets) {
      std::vector<std::uint32_t> blocks;
      for (std::uint64_t i = 0; i < set.count; ++i) blocks.push_back(builder.alloc(set.bytes));
      for (const std::uint32_t block : blocks) builder.free(block);
    }
    const std::uint64_t peak = run_twin(builder.trace, quiet()).stats.reserved_peak;
    least = std::min(least, peak);
    most = std::max(most, peak);
  } while (std::next_permutation(sets.begin(), sets.end(), by_bytes));
  EXPECT_GE(least, 124 * kMiB);
  EXPECT_LE(static_cast<double>(most), 1.02 * static_cast<double>(least));
}

// T3: on 10 GiB, 6 GiB that another stream uses are freed and asked for again.
TEST(ArenaReports, ABlockUsedElsewhereServesAtOnce) {
  TwinSettings settings = quiet();
  settings.capacity = 10 * kGiB;
  const TwinResult result = run_twin(named("used_elsewhere"), settings);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.stats.reserved_peak, 6 * kGiB);
  EXPECT_EQ(result.stats.retries, 0u);
  EXPECT_EQ(result.stats.stream_waits, 1u);
}

// T4: the device need be no larger than what is out at once.
TEST(ArenaReports, AStuckStreamHoldsUpNobody) {
  const Trace trace = named("stuck_stream");
  TwinSettings settings = quiet();
  settings.capacity = max_load(intervals_of(trace));
  const TwinResult result = run_twin(trace, settings);
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.stats.reserved_peak, max_load(intervals_of(trace)));
}

// T5: beyond the layers that are gathered at once, how far the host is ahead changes nothing.
TEST(ArenaReports, RunningAheadTakesNoMemory) {
  std::set<std::uint64_t> peaks, hashes;
  for (const std::uint32_t ahead : {1u, 2u, 4u, 8u, 16u, 32u}) {
    const TwinResult result = run_twin(fsdp_workload(32, 400'000'000, ahead), quiet());
    peaks.insert(result.stats.reserved_peak);
    hashes.insert(result.placement_hash);
    EXPECT_LE(result.peak_ratio(), 1.01) << ahead;
  }
  EXPECT_EQ(peaks.size(), 1u);
  EXPECT_EQ(hashes.size(), 1u);
}

// T8: on 80 GiB, 60 GiB freed in the common pool serve 70 GiB of a private one.
TEST(ArenaReports, PoolsGiveToEachOther) {
  TwinSettings settings = quiet();
  settings.capacity = 80 * kGiB;
  const TwinResult result = run_twin(named("private_pool"), settings);
  EXPECT_TRUE(result.finished);
  EXPECT_LE(result.stats.reserved_peak, 80 * kGiB);
  settings.options.policy = AllocatorPolicy::kTorchNative;
  EXPECT_FALSE(run_twin(named("private_pool"), settings).finished);
}

TEST(ArenaTiming, PlacementIsTheSameForAllTimings) {
  for (const char* name : {"fsdp", "used_elsewhere", "stuck_stream"}) {
    const Trace trace = named(name);
    const std::uint64_t hash = run_twin(trace, quiet()).placement_hash;
    std::set<std::uint64_t> ends;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
      TwinSettings settings = quiet();
      settings.timing_seed = seed;
      const TwinResult result = run_twin(trace, settings);
      ASSERT_EQ(result.placement_hash, hash) << name << ", seed " << seed;
      ends.insert(result.device_nanoseconds);
    }
    EXPECT_GT(ends.size(), 20u) << name << ": the seeds do not change the timing";
  }
}

// The seeds are such that they matter where a policy asks the device what is done.
TEST(ArenaTiming, TimingsMatterToPolling) {
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TwinSettings settings = quiet(AllocatorPolicy::kTorchNative);
    settings.timing_seed = seed;
    hashes.insert(run_twin(named("fsdp"), settings).placement_hash);
  }
  EXPECT_GT(hashes.size(), 1u);
}

TEST(ArenaTiming, RunsAndThreadsDoNotMatter) {
  for (const char* name : {"fsdp", "stuck_stream", "pins", "paged_kv", "embedding"}) {
    const Trace trace = named(name);
    std::set<std::uint64_t> hashes;
    for (const int threads : {1, 1, 2, 2}) {
      TwinSettings settings = quiet();
      settings.capacity = 80 * kGiB;
      settings.threads = threads;
      const TwinResult result = run_twin(trace, settings);
      EXPECT_TRUE(result.finished) << name;
      hashes.insert(result.placement_hash);
    }
    EXPECT_EQ(hashes.size(), 1u) << name;
  }
}

constexpr StreamId kUsers = 4;

// A simulated device that knows until when each 512 bytes of each physical page are in use.
class WatchedDevice final : public MemoryDevice {
 public:
  struct Uses {
    std::uint64_t until[kPageBytes / kBlockBytes][kUsers] = {};
  };

  explicit WatchedDevice(const SimDevice::Settings& settings) : sim(settings) {}

  std::size_t reserve(std::size_t most, std::size_t least) override {
    return sim.reserve(most, least);
  }

  char* base() const override { return sim.base(); }

  bool create(std::size_t count, PhysicalPage* pages) override { return sim.create(count, pages); }

  void destroy(ArrayRef<PhysicalPage> pages) override { sim.destroy(pages); }

  bool map(std::size_t first, ArrayRef<PhysicalPage> pages) override {
    if (!sim.map(first, pages)) return false;
    for (const PhysicalPage page : pages) at_[first++] = page;
    return true;
  }

  void unmap(std::size_t first, ArrayRef<PhysicalPage> pages) override {
    for (const PhysicalPage page : pages) {
      for (const auto& unit : uses_[page].until) {
        for (const std::uint64_t until : unit)
          if (until > sim.host_time()) ++unfinished;  // a page in use is unmapped
      }
    }
    sim.unmap(first, pages);
  }

  StreamMark mark(StreamId stream) override { return sim.mark(stream); }

  void wait(StreamId stream, StreamId other, StreamMark mark) override {
    sim.wait(stream, other, mark);
  }

  bool reached(StreamId stream, StreamMark mark) override { return sim.reached(stream, mark); }

  void synchronize(StreamId stream, StreamMark mark) override { sim.synchronize(stream, mark); }

  std::size_t capacity() const override { return sim.capacity(); }

  std::size_t available() const override { return sim.available(); }

  std::string name() const override { return sim.name(); }

  // The stream has used the block by all that it was given until now.
  void use(const Block& block, StreamId stream) {
    each_unit(block, [&](std::uint64_t(&until)[kUsers]) {
      until[stream] = std::max(until[stream], sim.mark(stream));
    });
  }

  // Whether all that used the block is done before what the stream is given next.
  bool may_use(const Block& block, StreamId stream) {
    const std::uint64_t now = sim.mark(stream);
    bool may = true;
    each_unit(block, [&](std::uint64_t(&until)[kUsers]) {
      for (const std::uint64_t t : until) may = may && t <= now;
    });
    return may;
  }

  SimDevice sim;
  std::uint64_t unfinished = 0;

 private:
  template <class F> void each_unit(const Block& block, F f) {
    const auto begin = static_cast<std::uint64_t>(static_cast<char*>(block.data) - base());
    for (std::uint64_t at = begin; at < begin + block.bytes; at += kBlockBytes)
      f(uses_[at_[at / kPageBytes]].until[at % kPageBytes / kBlockBytes]);
  }

  std::map<std::size_t, PhysicalPage> at_;
  std::map<PhysicalPage, Uses> uses_;
};

// Random work on a device of 32 pages, so that they move between streams.
class Hazards {
 public:
  explicit Hazards(std::uint64_t seed) : random_(seed) {
    AllocatorOptions options;
    options.trace_events = 0;
    SimDevice::Settings settings = Torch::at(64 * kMiB);
    settings.timing_seed = seed;
    auto owned = std::make_unique<WatchedDevice>(settings);
    device = owned.get();
    allocator = make_allocator(options, std::move(owned));
  }

  void churn(int operations) {
    for (int i = 0; i < operations; ++i) {
      const auto stream = static_cast<StreamId>(random_() % kUsers);
      const std::uint64_t kind = random_() % 100;
      if (kind < 45) allocate(stream);
      else if (kind < 80 && !out_.empty()) free_one(stream);
      else if (kind < 95) device->sim.work(stream, random_() % 10'000);
      else device->sim.advance_host(device->sim.host_time() + random_() % 1'000);
    }
    while (!out_.empty()) free_one(0);
    allocator->empty_cache();
  }

  WatchedDevice* device;
  std::unique_ptr<Allocator> allocator;
  int hazards = 0;

 private:
  struct Out {
    Block block;
    std::size_t bytes;
    StreamId stream;
  };

  void allocate(StreamId stream) {
    const std::size_t bytes = 1 + random_() % (std::size_t{1} << (10 + random_() % 14));
    try {
      const Block block = allocator->allocate(bytes, stream);
      hazards += device->may_use(block, stream) ? 0 : 1;
      out_.push_back({block, bytes, stream});
    } catch (const OutOfMemory&) {
    }
  }

  // Its stream has used it, and often another one too.
  void free_one(StreamId user) {
    std::swap(out_[random_() % out_.size()], out_.back());
    const Out o = out_.back();
    out_.pop_back();
    device->sim.work(o.stream, random_() % 10'000);
    device->use(o.block, o.stream);
    if (random_() % 2 == 0) {
      allocator->record_stream(o.block, user);
      device->sim.work(user, random_() % 100'000);
      device->use(o.block, user);
    }
    allocator->free(o.block, o.bytes, o.stream);
  }

  std::mt19937_64 random_;
  std::vector<Out> out_;
};

TEST(ArenaHazards, MemoryIsHandedOnAfterAllItsUses) {
  std::uint64_t waits = 0, unmapped = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Hazards run(seed);
    run.churn(10'000);
    EXPECT_EQ(run.hazards, 0) << seed;
    EXPECT_EQ(run.device->unfinished, 0u) << seed;
    EXPECT_EQ(run.device->sim.created_pages(), 0u);
    waits += run.allocator->stats().stream_waits;
    unmapped += run.allocator->stats().pages_unmapped;
  }
  EXPECT_GT(waits, 1'000u);
  EXPECT_GT(unmapped, 400u);
}

// The watch sees it when a use is not told.
TEST(ArenaHazards, AUseThatIsNotRecordedIsSeen) {
  Hazards run(1);
  const Block block = run.allocator->allocate(1'000, 0);
  run.device->sim.work(1, 5'000);
  run.device->use(block, 1);
  run.allocator->free(block, 1'000, 0);
  const Block again = run.allocator->allocate(1'000, 0);
  EXPECT_EQ(again.data, block.data);
  EXPECT_FALSE(run.device->may_use(again, 0));
  run.allocator->free(again, 1'000, 0);
}

// One wait for each stream that used it, and none where the next user is the last one.
TEST(ArenaHazards, WaitsForThoseThatUsedItAlone) {
  OnSim sim(AllocatorPolicy::kTaper, kGiB);
  const Block block = sim.allocate(kMiB, 0);
  sim.allocator->record_stream(block, 1);
  sim.allocator->record_stream(block, 1);
  sim.allocator->record_stream(block, 0);
  sim.device->work(1, 7'000);
  sim.free(block, kMiB, 0);
  EXPECT_EQ(sim.allocator->stats().pending, 2 * kMiB);  // joined with what is free behind it
  const Block other = sim.allocate(kMiB, 2);
  EXPECT_EQ(sim.device->stream_time(2), 0u);  // other pages: nothing to wait for
  const Block again = sim.allocate(kMiB, 0);
  EXPECT_EQ(again.data, block.data);
  EXPECT_EQ(sim.device->stream_time(0), 7'000u);
  EXPECT_EQ(sim.device->host_time(), 0u);
  EXPECT_EQ(sim.allocator->stats().stream_waits, 1u);
  sim.free(other, kMiB, 2);
  sim.free(again, kMiB, 0);
  EXPECT_EQ(sim.allocator->stats().pending, 0u);
  EXPECT_EQ(first_left_over(sim), "");
}

}  // namespace
}  // namespace taper::testing
