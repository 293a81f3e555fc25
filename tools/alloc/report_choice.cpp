// Chooses blocks by the peaks that they are part of, and by area.
#include "taper/tools/alloc/report_choice.h"

#include <algorithm>
#include <numeric>

namespace taper::tools {
namespace {

// The point at which `curve` is highest, and `then` at the highest of that.
std::size_t peak(const ReportCurve& curve, const ReportCurve& then) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < curve.high.size(); ++i) {
    const bool as_high = curve.high[i] == curve.high[best] && then.high[i] > then.high[best];
    if (curve.high[i] > curve.high[best] || as_high) best = i;
  }
  return best;
}

// Around the peaks of each run, `reach` events to either side.
std::vector<Window> windows_of(const std::vector<ReportRun>& runs,
                               std::size_t events,
                               std::size_t reach) {
  std::vector<Window> windows;
  for (const ReportRun& run : runs) {
    for (const std::size_t point :
         {peak(run.reserved, run.allocated), peak(run.requested, run.requested)}) {
      const std::size_t begin = point * run.events_per_point, end = begin + run.events_per_point;
      windows.push_back({begin > reach ? begin - reach : 0, std::min(events, end + reach)});
    }
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
