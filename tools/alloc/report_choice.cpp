// Chooses blocks by the peaks that they are part of, and by area.
#include "taper/tools/alloc/report_choice.h"

#include <algorithm>
#include <numeric>

namespace taper::tools {
namespace {

// The first of a curve's points that is highest.
std::size_t highest(const ReportCurve& curve) {
  const auto best = std::max_element(curve.high.begin(), curve.high.end());
  return static_cast<std::size_t>(best - curve.high.begin());
}

// Around the peaks of each run, `reach` events to either side.
std::vector<Window> windows_of(const std::vector<ReportRun>& runs,
                               std::size_t events,
                               std::size_t reach) {
  std::vector<Window> windows;
  const auto around = [&](std::size_t begin, std::size_t end) {
    windows.push_back({begin > reach ? begin - reach : 0, std::min(events, end + reach)});
  };
  for (const ReportRun& run : runs) {
    around(run.peak.event, run.peak.event + 1);
    const std::size_t point = highest(run.requested);
    around(point * run.events_per_point, (point + 1) * run.events_per_point);
  }
  return windows;
}

}  // namespace

std::vector<Life> lives_of(const Trace& trace) {
  const auto events = static_cast<std::uint32_t>(trace.events.size());
  std::vector<Life> lives(trace.allocations);
  for (std::uint32_t i = 0; i < events; ++i) {
    const TraceEvent& e = trace.events[i];
    if (e.action == TraceAction::kAlloc) lives[e.block] = {i, events, 0};
    if (e.action == TraceAction::kFree) lives[e.block].end = i;
  }
  for (Life& life : lives) {
    life.area = static_cast<double>(trace.events[life.begin].bytes) *
                static_cast<double>(life.end - life.begin);
  }
  return lives;
}

Choice choose(const std::vector<Life>& lives,
              const std::vector<ReportRun>& runs,
              std::size_t events,
              std::size_t most) {
  Choice choice;
  choice.blocks.resize(lives.size());
  std::iota(choice.blocks.begin(), choice.blocks.end(), 0u);
  if (lives.size() <= most) {
    choice.windows.push_back({0, events});
    return choice;
  }
  std::vector<bool> needed(lives.size(), false);
  for (std::size_t reach = most / 4;; reach /= 2) {
    choice.windows = windows_of(runs, events, reach);
    std::size_t count = 0;
    for (std::size_t b = 0; b < lives.size(); ++b) {
      needed[b] = std::any_of(choice.windows.begin(), choice.windows.end(), [&](const Window& w) {
        return lives[b].begin < w.end && w.begin < lives[b].end;
      });
      count += needed[b];
    }
    if (count <= most / 2) break;
    if (reach == 0) {  // not even the peaks fit
      choice.windows.clear();
      needed.assign(lives.size(), false);
      break;
    }
  }
  const auto last = choice.blocks.begin() + static_cast<std::ptrdiff_t>(most);
  std::nth_element(choice.blocks.begin(), last, choice.blocks.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     if (needed[a] != needed[b]) return bool{needed[a]};
                     return lives[a].area != lives[b].area ? lives[a].area > lives[b].area : a < b;
                   });
  choice.blocks.erase(last, choice.blocks.end());
  std::sort(choice.blocks.begin(), choice.blocks.end());
  return choice;
}

}  // namespace taper::tools
