// The ring of events: what it keeps, that it replays, and that it knows who asked.
#include "taper/allocator/ring.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "taper/allocator/twin.h"
#include "taper/core/base/source_loc.h"
#include "taper/tests/allocator/arena_checks.h"

namespace taper::testing {
namespace {

using Blocks = std::map<std::uint64_t, std::uint64_t>;  // offset -> requested

// What is out after the last event.
Blocks out_after(const Trace& trace) {
  std::vector<std::uint64_t> bytes(trace.allocations);
  std::vector<bool> out(trace.allocations);
  for (const TraceEvent& e : trace.events) {
    if (e.action == TraceAction::kAlloc) bytes[e.block] = e.bytes, out[e.block] = true;
    if (e.action == TraceAction::kFree) out[e.block] = false;
  }
  Blocks blocks;
  for (std::uint32_t i = 0; i < trace.allocations; ++i) {
    if (!out[i]) continue;
    EXPECT_TRUE(blocks.emplace(trace.offsets[i], bytes[i]).second) << "two at one place";
  }
  return blocks;
}

Blocks out_now(const OnSim& sim) {
  Blocks blocks;
  for (const SegmentInfo& segment : sim.allocator->memory_map()) {
    for (const BlockInfo& b : segment.blocks) {
      if (b.state == BlockState::kLive) blocks.emplace(b.offset, b.requested);
    }
  }
  return blocks;
}

// Random work on three streams and a pool, on a device so small that pages move; stream 0 does
// most.
class Churn {
 public:
  explicit Churn(const AllocatorOptions& options)
      : sim(options, Torch::at(48 * kMiB)), pool_(sim.allocator->make_pool(false)) {}

  ~Churn() {
    for (const Out& o : out_) sim.free(o.block, o.bytes, o.stream);
  }

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      const auto stream = static_cast<StreamId>(random_() % 40 < 37 ? 0 : random_() % 3);
      if (out_.empty() || (random_() % 2 == 0 && out_.size() < 40)) {
        const bool in_pool = random_() % 16 == 0;
        const std::size_t bytes = 1 + random_() % (std::size_t{1} << (10 + random_() % 11));
        if (in_pool) sim.allocator->begin_pool(pool_, stream);
        out_.push_back({sim.allocate(bytes, stream), bytes, stream});
        if (in_pool) sim.allocator->end_pool(stream);
        ++events;
      } else {
        std::swap(out_[random_() % out_.size()], out_.back());
        const Out o = out_.back();
        out_.pop_back();
        sim.free(o.block, o.bytes, o.stream);
        ++events;
      }
      if (i % 97 == 0) sim.allocator->empty_cache();
    }
  }

  OnSim sim;
  std::size_t events = 0;

 private:
  struct Out {
    Block block;
    std::size_t bytes;
    StreamId stream;
  };

  PoolId pool_;
  std::mt19937_64 random_{3};
  std::vector<Out> out_;
};

std::size_t count_of(const Trace& trace, TraceAction action) {
  return static_cast<std::size_t>(std::count_if(trace.events.begin(), trace.events.end(),
                                                [&](const auto& e) { return e.action == action; }));
}

TEST(Ring, WhatItKeepsReplays) {
  for (const std::size_t events : {1u, 64u, 1'024u, 65'536u}) {
    SCOPED_TRACE(events);
    AllocatorOptions options;
    options.trace_events = events;
    Churn churn(options);
    for (int round = 0; round < 40; ++round) {
      churn.run(100);
      const Trace trace = churn.sim.allocator->recent_events();
      ASSERT_EQ(first_fault(trace), "");
      ASSERT_EQ(trace.offsets.size(), trace.allocations);
      ASSERT_EQ(out_after(trace), out_now(churn.sim)) << "round " << round;
      EXPECT_TRUE(run_twin(trace, {}).finished);
      EXPECT_TRUE(
          std::is_sorted(trace.events.begin(), trace.events.end(),
                         [](const TraceEvent& a, const TraceEvent& b) { return a.time < b.time; }));
    }
    const Trace trace = churn.sim.allocator->recent_events();
    const std::size_t kept =
        count_of(trace, TraceAction::kAlloc) + count_of(trace, TraceAction::kFree);
    if (events == 65'536) EXPECT_EQ(kept, churn.events);
    else EXPECT_LT(kept, churn.events);
  }
}

TEST(Ring, ATraceFileKeepsAll) {
  AllocatorOptions options;
  options.trace_events = 16;
  options.trace_file = "never_written.bin";
  Churn churn(options);
  churn.run(5'000);
  const Trace trace = churn.sim.allocator->recent_events();
  EXPECT_EQ(count_of(trace, TraceAction::kAlloc) + count_of(trace, TraceAction::kFree), 5'000u);
  EXPECT_EQ(first_fault(trace), "");
  EXPECT_EQ(out_after(trace), out_now(churn.sim));
  EXPECT_GT(count_of(trace, TraceAction::kUnmap), 10u);
}

// A replay of all events places as the run did.
TEST(Ring, AReplayPlacesAsTheRunDid) {
  OnSim sim(AllocatorPolicy::kTaper, 80 * kGiB);
  std::mt19937_64 random(5);
  std::vector<Block> out;
  for (int i = 0; i < 2'000; ++i) {
    if (out.empty() || random() % 2 == 0) {
      out.push_back(sim.allocate(1 + random() % 3'000'000));
    } else {
      std::swap(out[random() % out.size()], out.back());
      sim.free(out.back());
      out.pop_back();
    }
  }
  const Trace trace = sim.allocator->recent_events();
  TwinSettings settings;
  settings.capacity = 80 * kGiB;
  struct Places final : TwinObserver {
    void after(std::size_t, const Allocator&) override {}

    void placed(std::size_t, std::uint64_t offset, std::uint64_t) override {
      offsets.push_back(offset);
    }

    std::vector<std::uint64_t> offsets;
  } places;
  run_twin(trace, settings, &places);
  EXPECT_EQ(places.offsets, trace.offsets);
}

TEST(Ring, ByItself) {
  TraceRing off(0, false), few(5, false), all(5, true);
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (TraceRing* ring : {&off, &few, &all})
      ring->record(TraceAction::kAlloc, i * kBlockBytes, i, 0, i, 70'000, 300);
  }
  std::vector<TraceEvent> events;
  off.copy_to(events);
  EXPECT_EQ(events.size(), 0u);
  few.copy_to(events);
  ASSERT_EQ(events.size(), 8u);  // the next power of two
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(events[i].bytes, 92 + i);
    EXPECT_EQ(events[i].block, 92 + i);
  }
  EXPECT_EQ(events[0].pool, 255);
  events.clear();
  all.copy_to(events);
  ASSERT_EQ(events.size(), 100u);
  EXPECT_EQ(events.front().bytes, 0u);
  EXPECT_EQ(events.back().bytes, 99u);
}

TEST(Sites, NameTheCall) {
  OnSim sim(AllocatorPolicy::kTaper, kGiB);
  const Block outside = sim.allocate(100);
  {
    const Scope scope("encoder");
    const Scope inner("attn");
    const SourceLoc at("model.cpp", "forward", 42);
    const Call call(at, "softmax");
    sim.allocate(200);
    const SourceLoc inside("inside.cpp", "helper", 7);
    const Call nested(inside, "exp");
    sim.allocate(300);
  }
  sim.free(outside);
  const Trace trace = sim.allocator->recent_events();
  std::map<std::uint64_t, TraceSite> sites;
  for (const TraceEvent& e : trace.events) {
    if (e.action == TraceAction::kAlloc) sites[e.bytes] = trace.sites[e.site];
  }
  EXPECT_EQ(sites[100], TraceSite());
  for (const std::uint64_t bytes : {200u, 300u}) {  // what runs inside inherits the line
    EXPECT_EQ(sites[bytes].op, "softmax");
    EXPECT_EQ(sites[bytes].scope, "encoder.attn");
    ASSERT_EQ(sites[bytes].frames.size(), 1u);
    EXPECT_EQ(sites[bytes].frames[0], (TraceFrame{"model.cpp", "forward", 42}));
  }
  bool seen = false;
  for (const SegmentInfo& segment : sim.allocator->memory_map()) {
    for (const BlockInfo& b : segment.blocks) {
      if (b.requested != 200) continue;
      seen = true;
      EXPECT_EQ(site_of(b.site).frames.at(0).line, 42u);
    }
  }
  EXPECT_TRUE(seen);
}

// Eight threads meet the same sites in other orders: each has one number, and no two the same.
TEST(Sites, ThreadsAgreeOnNumbers) {
  constexpr std::uint32_t kSites = 500, kThreads = 8;
  std::vector<std::vector<std::uint32_t>> numbers(kThreads, std::vector<std::uint32_t>(kSites));
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&numbers, t] {
      for (std::uint32_t i = 0; i < 4 * kSites; ++i) {
        const std::uint32_t line = (i * 7 + t * 61) % kSites;
        const SourceLoc at("threads.cpp", "run", 1'000 + line);
        const Call call(at, "add");
        const std::uint32_t number = current_site();
        EXPECT_TRUE(numbers[t][line] == 0 || numbers[t][line] == number);
        numbers[t][line] = number;
        EXPECT_EQ(site_of(number).frames.at(0).line, 1'000 + line);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t t = 1; t < kThreads; ++t) EXPECT_EQ(numbers[t], numbers[0]);
  const std::set<std::uint32_t> distinct(numbers[0].begin(), numbers[0].end());
  EXPECT_EQ(distinct.size(), kSites);
  EXPECT_EQ(distinct.count(0), 0u);
  EXPECT_EQ(current_site(), 0u);
  EXPECT_EQ(site_of(1u << 16), TraceSite());
}

// Forks while another thread meets new sites and scopes, which a child is to be able to as well.
// 0: each child was.
int fork_while_interning() {
  cpu_allocator();  // its locks are held over a fork, and those of the tables with them
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (std::uint32_t line = 1; !done; ++line) {
      const Scope scope(str("layer", line % 1'000));
      const SourceLoc at("forks.cpp", "run", line);
      const Call call(at, "add");
      current_site();
    }
  });
  int failures = 0;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);  // a lock that stays taken ends the child
      const Scope scope(str("child", i));
      const SourceLoc at("child.cpp", "run", i);
      const Call call(at, "add");
      current_site();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    failures += status != 0;
    if (failures > 0) break;
  }
  done = true;
  other.join();
  return failures;
}

TEST(Sites, AForkedChildCanEnterThem) {
  const pid_t child = fork();  // the table is full afterwards: let it be another process's
  if (child == 0) _exit(fork_while_interning());
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taper::testing
