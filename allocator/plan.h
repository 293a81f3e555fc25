// Offline planning: where each of many blocks with known lifetimes goes, so that the whole is low.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "taper/core/base/array_ref.h"

namespace taper {

struct Trace;

// A block to be placed: it is out during the events [begin, end).
struct Interval {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

struct MemoryPlan {
  std::vector<std::uint64_t> offsets;  // of each interval; 0 for one without bytes or events
  std::uint64_t bytes = 0;             // what the plan takes: its highest end
  std::uint64_t max_load = 0;          // of the rounded sizes; no plan takes less
};

// Greedy first fit in several orders, of which the lowest wins; the same for the same input. Sizes
// are rounded up to `alignment`, a power of two. Throws taper::Error for an interval that ends
// before it begins, and where the sizes add up to more than 2^63.
MemoryPlan plan_offsets(ArrayRef<Interval> intervals, std::uint64_t alignment);

// The most bytes that are out at once, sizes rounded up to `alignment`. Throws as plan_offsets.
std::uint64_t max_load(ArrayRef<Interval> intervals, std::uint64_t alignment = 1);

// The allocations of a trace, by block number; one that is never freed lives to the end. A
// lifetime ends with the host's free: what other streams still do then is not in it.
std::vector<Interval> intervals_of(const Trace& trace);

// Nothing, or "intervals 3 and 7 share offset 4096 at event 12". Sizes are not rounded here.
std::string first_overlap(ArrayRef<Interval> intervals, const MemoryPlan& plan);

}  // namespace taper
