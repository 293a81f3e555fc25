// Which blocks a report shows one by one, where it cannot show all.
#pragma once
#include <cstdint>
#include <vector>

#include "taper/tools/alloc/report.h"

namespace taper::tools {

// When a block was out, by events: from its allocation to its end.
struct Life {
  std::uint32_t begin = 0, end = 0;
  double area = 0;  // bytes times events
};

// Of each block of the trace, by number.
std::vector<Life> lives_of(const Trace& trace);

// Events [begin, end) of which every block is shown.
struct Window {
  std::size_t begin = 0, end = 0;
};

// What is shown one by one.
struct Choice {
  std::vector<std::uint32_t> blocks;  // by number, ascending
  std::vector<Window> windows;
};

// At most `most` blocks: those of windows around the peaks of all runs, as wide as half of `most`
// allows, and then those with the largest areas.
Choice choose(const std::vector<Life>& lives,
              const std::vector<ReportRun>& runs,
              std::size_t events,
              std::size_t most);

}  // namespace taper::tools
