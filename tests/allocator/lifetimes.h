// Lifetimes to plan: files of the bench's data folder, where that is at hand, and made-up ones.
#pragma once
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "taper/allocator/plan.h"

namespace taper {

// The rows "id,lower,upper,size" of ../shared/data/alloc/`name`, seen from the folder `tests`; none
// where there is no such file.
inline std::vector<Interval> read_lifetimes(const std::string& tests, const std::string& name) {
  std::ifstream in(tests + "/../../shared/data/alloc/" + name);
  std::vector<Interval> intervals;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    unsigned long long begin = 0, end = 0, bytes = 0;
    if (std::sscanf(line.c_str(), "%*[^,],%llu,%llu,%llu", &begin, &end, &bytes) == 3)
      intervals.push_back({begin, end, bytes});
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
