// What is said when memory runs out: the sums are exact, the hints are true, the text is good.
#include "taper/allocator/out_of_memory.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "taper/allocator/plan.h"
#include "taper/allocator/twin.h"
#include "taper/core/base/source_loc.h"
#include "taper/tests/allocator/arena_checks.h"
#include "taper/tests/allocator/scarce.h"
#include "taper/tools/alloc/workloads.h"

namespace taper::testing {
namespace {

constexpr AllocatorPolicy kPolicies[] = {AllocatorPolicy::kTaper, AllocatorPolicy::kTorchNative,
                                         AllocatorPolicy::kTorchExpandable};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_exact(const MemoryReport& r, const OnSim& sim) {
  const AllocatorStats s = sim.allocator->stats();
  const std::uint64_t idle =
      (sim.device->created_pages() - sim.device->mapped_pages()) * kPageBytes;
  EXPECT_EQ(r.capacity, r.live + r.pending + r.releasable + r.pinned + r.others + r.unused);
  EXPECT_EQ(r.live, s.allocated);
  EXPECT_EQ(r.pending, s.pending);
  EXPECT_EQ(r.releasable, s.releasable);
  EXPECT_EQ(r.pinned, s.inactive_split);
  EXPECT_EQ(r.largest_free, std::max(s.largest_free, idle));
  EXPECT_EQ(r.others, 0u);
  EXPECT_TRUE(r.fragmentation >= 0 && r.fragmentation <= 1) << r.fragmentation;
  std::uint64_t held = 0, pinned = 0;
  for (const Pinner& p : r.holders) held += p.bytes;
  for (const Pinner& p : r.pinners) pinned += p.pinned;
  EXPECT_LE(held, r.live);
  EXPECT_LE(pinned, r.pinned);
  EXPECT_LE(r.holders.size(), 5u);
  EXPECT_TRUE(std::is_sorted(r.holders.begin(), r.holders.end(),
                             [](const Pinner& a, const Pinner& b) { return a.bytes > b.bytes; }));
}

// The events that led to the refusal, and the refused request.
Trace with_refused(const OnSim& sim, std::uint64_t asked) {
  Trace trace = sim.allocator->recent_events();
  TraceEvent last = trace.events.back();  // kOom
  last.action = TraceAction::kAlloc;
  last.bytes = asked;
  last.block = trace.allocations++;
  trace.events.push_back(last);
  return trace;
}

bool finishes_on(const Trace& trace, std::uint64_t capacity) {
  TwinSettings settings;
  settings.options.trace_events = 0;
  settings.capacity = capacity;
  return run_twin(trace, settings).finished;
}

// The bytes that a hint names: "... 1.00 MiB (1048576 bytes) ...".
std::uint64_t bytes_in(const std::string& hint) {
  const std::size_t at = hint.find('(');
  return at == std::string::npos ? 0 : std::stoull(hint.substr(at + 1));
}

void expect_true(const MemoryReport& r, const OnSim& sim) {
  const AllocatorOptions& options = sim.allocator->options();
  const Trace trace = with_refused(sim, r.asked);
  for (const std::string& hint : r.would_fit) {
    SCOPED_TRACE(hint);
    const std::uint64_t bytes = bytes_in(hint);
    if (contains(hint, "need at least")) {
      EXPECT_GE(bytes, max_load(intervals_of(trace)));
      EXPECT_LE(bytes, max_load(intervals_of(trace)) + trace.allocations * kBlockBytes);
    } else if (contains(hint, "offline plan")) {
      EXPECT_LE(bytes, r.capacity);
      EXPECT_EQ(bytes, plan_offsets(intervals_of(trace), kBlockBytes).bytes);
    } else if (contains(hint, "under policy:taper") || contains(hint, "smallest capacity")) {
      const bool fits = contains(hint, "under policy:taper");
      EXPECT_TRUE(!fits || options.policy != AllocatorPolicy::kTaper);
      EXPECT_EQ(bytes <= r.capacity, fits);
      EXPECT_TRUE(finishes_on(trace, bytes));
      EXPECT_FALSE(finishes_on(trace, bytes - kPageBytes));
    } else if (contains(hint, "limit:")) {
      EXPECT_LT(options.limit, sim.device->capacity());
      EXPECT_NE(options.limit, 0u);
    } else {
      EXPECT_TRUE(contains(hint, "the request alone")) << hint;
      EXPECT_GT(r.asked, r.capacity);
    }
  }
}

void refuse_at(const Trace& trace, AllocatorOptions options, std::size_t capacity, int& refused) {
  SCOPED_TRACE(str(to_string(options), " on ", capacity));
  OnSim sim(options, Torch::at(capacity));
  Replay replay(sim, false);
  if (replay.run(trace)) return;
  ++refused;
  const MemoryReport& r = replay.refusal();
  EXPECT_EQ(r.asked, trace.events[replay.done()].bytes);
  EXPECT_GE(r.rounded, r.asked);
  EXPECT_EQ(r.capacity, options.limit == 0 ? capacity : options.limit);
  EXPECT_EQ(r.options, to_string(options));
  expect_exact(r, sim);
  expect_true(r, sim);
  replay.free_all();
}

TEST(OutOfMemory, SumsAreExactAndHintsTrue) {
  int refused = 0;
  for (const char* name : report_names()) {
    SCOPED_TRACE(name);
    const Trace trace = find_workload(name)->make();
    for (const AllocatorPolicy policy : kPolicies) {
      TwinSettings settings;
      settings.options.policy = policy;
      const std::size_t least = min_capacity(trace, settings);
      refuse_at(trace, settings.options, least - kPageBytes, refused);
      refuse_at(trace, settings.options, pages_of(least * 9 / 10) * kPageBytes, refused);
      refuse_at(trace, settings.options, pages_of(least / 3) * kPageBytes, refused);
      settings.options.limit = pages_of(least * 3 / 4) * kPageBytes;
      refuse_at(trace, settings.options, 2 * least, refused);
    }
  }
  EXPECT_GE(refused, 9 * 3 * 3);
}

// An option that is on is not proposed; one that is in the way is named.
TEST(OutOfMemory, TheLimitIsNamedWhereItIsTheReason) {
  AllocatorOptions options;
  options.limit = 64 * kMiB;
  for (const std::size_t capacity : {64 * kMiB, kGiB}) {
    OnSim sim(options, Torch::at(capacity));
    try {
      sim.allocate(65 * kMiB);
      FAIL();
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(contains(error.what(), "limit:64.0 MiB is set"), capacity == kGiB) << error.what();
      EXPECT_EQ(error.report().capacity, 64 * kMiB);
    }
  }
}

TEST(OutOfMemory, Text) {
  OnSim sim(AllocatorPolicy::kTaper, 64 * kMiB);
  const auto allocate = [&](std::size_t bytes, std::uint32_t line, const char* function) {
    const SourceLoc at("model/train.cpp", "main", line);
    const Call call(at, function);
    return sim.allocate(bytes);
  };
  const Scope scope("encoder");
  const Block first = allocate(20 * kMiB, 12, "matmul");
  const Block second = allocate(9 * kMiB, 13, "relu");
  allocate(30 * kMiB - 100, 14, "matmul");
  sim.free(first, 20 * kMiB);
  sim.allocator->record_stream(second, 1);
  try {
    allocate(27 * kMiB - 1000, 20, "softmax");
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(
        error.what(),
        R"(softmax: out of memory on sim: asked for 28310552 bytes (27.0 MiB), rounded to 28311040
  capacity      64.0 MiB
  live          39.0 MiB  in tensors
  pending            0 B  freed, in use by other streams
  releasable    20.0 MiB  cached in whole pages
  pinned        1.00 MiB  cached, but beside live blocks
  others             0 B  not ours
  unused        4.00 MiB
  largest free: 20.0 MiB, fragmentation 0.05
  held: 30.0 MiB in 1 block of matmul at train.cpp:14 in main, scope encoder
  held: 9.00 MiB in 1 block of relu at train.cpp:13 in main, scope encoder
  pinned: 1.00 MiB by 1 block of matmul at train.cpp:14 in main, scope encoder
  options: policy:taper
  these allocations need at least 66.0 MiB (69205504 bytes) at once
  the smallest capacity at which they fit is 66.0 MiB (69206016 bytes)
  at train.cpp:20 in main, scope encoder)");
  }
}

// The host's own memory may be what is short: then the map cannot be had, but the sums can.
TEST(OutOfMemory, SumsNeedNoMemory) {
  for (const AllocatorPolicy policy : kPolicies) {
    OnSim sim(policy, 64 * kMiB);
    std::vector<Block> blocks;
    for (int i = 0; i < 10'000; ++i) blocks.push_back(sim.allocate(kBlockBytes));
    for (std::size_t i = 0; i < blocks.size(); i += 2) sim.free(blocks[i], kBlockBytes);
    MemoryReport report;
    {
      const Scarce scarce(std::size_t{64} << 10);
      try {
        sim.allocate(80 * kMiB);
      } catch (const OutOfMemory& error) {
        report = error.report();
      }
    }
    expect_exact(report, sim);
    EXPECT_EQ(report.asked, 80 * kMiB);
    EXPECT_GT(report.pinned, 2 * kMiB);
    EXPECT_TRUE(report.holders.empty());
  }
}

// free cannot fail, so what it needs is there before.
TEST(OutOfMemory, FreeNeedsNoMemory) {
  for (const char* text :
       {"policy:taper", "plan:on", "policy:torch_native", "policy:torch_expandable"}) {
    SCOPED_TRACE(text);
    OnSim sim(parse_allocator_options(text), Torch::at(16 * kGiB));
    const bool taper = sim.allocator->options().policy == AllocatorPolicy::kTaper;
    for (int step = 0; step < 5; ++step) {
      std::vector<std::pair<Block, std::size_t>> out;
      for (const std::size_t each : {100 * kMiB, 90 * kMiB, kMiB, 600 * kMiB, kBlockBytes}) {
        for (StreamId user = 0; user < 4; ++user) {
          const std::size_t bytes = each + kBlockBytes * user;
          out.emplace_back(sim.allocate(bytes), bytes);
          if (taper && step == 2) sim.allocator->record_stream(out.back().first, user);
        }
      }
      if (step == 4) std::swap(out[1], out[5]);  // freed in another order than planned
      {
        const Scarce scarce(0);
        for (std::size_t odd = 0; odd < 2; ++odd) {
          for (std::size_t i = odd; i < out.size(); i += 2) sim.free(out[i].first, out[i].second);
        }
      }
      sim.allocator->note_step();
    }
    EXPECT_LE(sim.allocator->stats().blocks, sim.allocator->options().plan ? 1u : 0u);
  }
}

// Where nothing is known of sites, and where nothing is recorded.
TEST(OutOfMemory, WithoutSitesAndEvents) {
  AllocatorOptions options;
  options.trace_events = 0;
  OnSim sim(options, Torch::at(16 * kMiB));
  const Block block = sim.allocate(10 * kMiB);
  try {
    sim.allocate(10 * kMiB);
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_TRUE(contains(error.what(), "1 block of no op")) << error.what();
    EXPECT_EQ(error.report().would_fit.size(), 0u);
    EXPECT_EQ(error.report().unused, 6 * kMiB);
  }
  sim.free(block, 10 * kMiB);
  EXPECT_EQ(first_left_over(sim), "");
}

}  // namespace
}  // namespace taper::testing
