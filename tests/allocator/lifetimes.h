// Lifetimes to plan: files of the bench's data folder, where that is at hand, and made-up ones.
#pragma once
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "taper/allocator/plan.h"
#include "taper/tools/alloc/trace_file.h"

namespace taper {

// The lifetimes in ../shared/data/alloc/`name`, seen from the folder `tests`; none where there is
// no such file.
inline std::vector<Interval> recorded_lifetimes(const std::string& tests, const std::string& name) {
  const std::string path = tests + "/../../shared/data/alloc/" + name;
  if (!std::filesystem::exists(path)) return {};
  const Trace trace = std::move(tools::read_trace_file(path).at(0));
  std::vector<Interval> intervals;
  for (const TraceEvent& e : trace.events) {  // by the file's times, not by event
    if (e.action == TraceAction::kAlloc) intervals.push_back({e.time, e.time, e.bytes});
    if (e.action == TraceAction::kFree) intervals[e.block].end = e.time;
  }
  return intervals;
}

// A training step: each layer leaves activations that its backward frees, last layer first, beside
// temporaries of either pass; sizes come in a few kinds, as those of a network do.
inline std::vector<Interval> training_step(std::size_t layers, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  const std::uint64_t kinds[] = {4096, 512 * 100, 1 << 20, 3 << 20, 10'485'760, 100};
  std::vector<Interval> intervals;
  const std::uint64_t steps = 10 * layers, end = 2 * steps;
  for (std::uint64_t layer = 0; layer < layers; ++layer) {
    const std::uint64_t forward = 10 * layer, backward = end - forward;
    for (std::uint64_t i = 0; i < 6; ++i) {
      intervals.push_back({forward + i, backward - pick(10), kinds[pick(6)]});
      intervals.push_back({forward + i, forward + i + 1 + pick(4), kinds[pick(6)]});
      intervals.push_back({backward - 10 + i, backward - 9 + i + pick(4), kinds[pick(6)]});
    }
    intervals.push_back({0, end, kinds[pick(6)]});  // a weight
  }
  return intervals;
}

}  // namespace taper
