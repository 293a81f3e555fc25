// Memory is refused only where no order of pages could have served: under random work on several
// streams, on devices that are nearly full, and on devices that refuse a call.
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "taper/allocator/twin.h"
#include "taper/tests/allocator/arena_checks.h"
#include "taper/tools/alloc/workloads.h"

namespace taper::testing {
namespace {

AllocatorOptions quiet() {
  AllocatorOptions options;
  options.trace_events = 0;
  return options;
}

// What a refusal must show: the pages that live blocks touch and those asked for are too many.
void expect_justified(const OnSim& sim, std::size_t asked) {
  const std::uint64_t touched = pages_touched(sim.allocator->memory_map());
  ASSERT_GT(touched + pages_of(asked), sim.device->capacity() / kPageBytes)
      << asked << " bytes were refused";
}

// Fills the device until it refuses, frees some blocks, and fills it again.
class Pressure {
 public:
  Pressure(std::size_t capacity, std::uint64_t seed)
      : sim_(quiet(), Torch::at(capacity)), random_(seed), largest_(capacity / 8) {
    pool_ = sim_.allocator->make_pool(false);
  }

  void churn(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFatalFailure(); ++i) {
      if (i % 50'000 == 0) {
        ASSERT_EQ(first_wrong_in_arena(sim_), "") << "operation " << i;
      }
      if (draining_ == 0 || out_.empty()) {
        allocate();
        continue;
      }
      --draining_;
      free_one();
    }
    while (!out_.empty()) free_one();
    EXPECT_EQ(first_left_over(sim_), "");
    EXPECT_EQ(sim_.allocator->stats().ooms, refused);
  }

  std::uint64_t refused = 0;

 private:
  struct Out {
    Block block;
    std::size_t bytes;
    StreamId stream;
  };

  // 512 bytes to an eighth of the device, and now and then up to half of it.
  std::size_t some_bytes() {
    const std::size_t most = random_() % 64 == 0 ? 4 * largest_ : largest_;
    const auto bits = static_cast<unsigned>(9 + random_() % 29);
    const std::size_t bytes = 1 + random_() % (std::size_t{1} << bits);
    return bytes < most ? bytes : 1 + random_() % most;
  }

  void allocate() {
    const auto stream = static_cast<StreamId>(random_() % 4);
    const std::size_t bytes = some_bytes();
    const bool in_pool = random_() % 8 == 0;
    if (in_pool) sim_.allocator->begin_pool(pool_, stream);
    try {
      out_.push_back({sim_.allocate(bytes, stream), bytes, stream});
    } catch (const OutOfMemory&) {
      ++refused;
      expect_justified(sim_, bytes);
      draining_ = random_() % (out_.size() + 1);
    }
    if (in_pool) sim_.allocator->end_pool(stream);
    if (out_.size() > 2'000) draining_ = out_.size() / 2;
  }

  void free_one() {
    std::swap(out_[random_() % out_.size()], out_.back());
    const Out o = out_.back();
    out_.pop_back();
    if (random_() % 8 == 0) {
      const auto user = static_cast<StreamId>(random_() % 4);
      sim_.device->work(user, random_() % 1'000'000);
      sim_.allocator->record_stream(o.block, user);
    }
    sim_.free(o.block, o.bytes, o.stream);
  }

  OnSim sim_;
  std::mt19937_64 random_;
  std::size_t largest_, draining_ = 0;
  PoolId pool_ = 0;
  std::vector<Out> out_;
};

void press(std::size_t capacity, int operations) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Pressure pressure(capacity, seed);
    pressure.churn(operations / 4);
    EXPECT_GT(pressure.refused, 10u) << seed;
  }
}

TEST(NoFalseOutOfMemory, UnderPressure) {
  for (const std::size_t capacity : {64 * kMiB, kGiB, 80 * kGiB}) press(capacity, 240'000);
}

TEST(NoFalseOutOfMemory, TenMillionOperationsUnderPressure) {
  if (std::getenv("TAPER_LONG_TESTS") == nullptr) GTEST_SKIP() << "TAPER_LONG_TESTS is not set";
  for (const std::size_t capacity : {64 * kMiB, kGiB, 80 * kGiB}) press(capacity, 10'000'000);
}

// Each call of create and map that a run makes is refused once. Another try always serves, unless
// the pages have become too few.
void refuse_each_call(const Trace& trace, std::size_t capacity) {
  std::uint64_t calls = 0;
  {
    OnSim sim(quiet(), Torch::at(capacity));
    ASSERT_TRUE(Replay(sim, false).run(trace));
    calls = sim.device->calls();
  }
  ASSERT_GT(calls, 1u);
  const std::uint64_t stride = calls < 64 ? 1 : calls / 64;
  for (std::uint64_t k = 1; k <= calls; k += stride) {
    SCOPED_TRACE(str("call ", k));
    OnSim sim(quiet(), Torch::at(capacity, k));
    Replay replay(sim, false);
    const bool done = replay.run(trace);
    ASSERT_EQ(first_wrong_in_arena(sim), "");
    EXPECT_GE(sim.allocator->stats().retries, 1u);
    EXPECT_EQ(sim.allocator->stats().ooms, done ? 0u : 1u);
    if (!done) expect_justified(sim, trace.events[replay.done()].bytes);
    replay.free_all();
    ASSERT_EQ(first_left_over(sim), "");
  }
}

TEST(NoFalseOutOfMemory, EachDeviceCallRefused) {
  for (const char* name : report_names()) {
    SCOPED_TRACE(name);
    refuse_each_call(find_workload(name)->make(), 80 * kGiB);
  }
}

TEST(NoFalseOutOfMemory, EachDeviceCallRefusedOnTheSmallestDevice) {
  for (const char* name : report_names()) {
    SCOPED_TRACE(name);
    const Trace trace = find_workload(name)->make();
    TwinSettings settings;
    settings.options = quiet();
    refuse_each_call(trace, min_capacity(trace, settings));
  }
}

// What a refused map leaves is used by the next try: no page is lost, none created in vain.
TEST(NoFalseOutOfMemory, ARefusedMapKeepsItsPages) {
  OnSim sim(quiet(), Torch::at(kGiB, 2));
  const Block block = sim.allocate(20 * kMiB);
  EXPECT_EQ(sim.device->created_pages(), 10u);
  EXPECT_EQ(sim.device->mapped_pages(), 10u);
  EXPECT_EQ(sim.allocator->stats().retries, 1u);
  sim.free(block, 20 * kMiB);
  EXPECT_EQ(first_left_over(sim), "");
}

}  // namespace
}  // namespace taper::testing
