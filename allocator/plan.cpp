// Greedy first fit over (event, offset) rectangles.
#include "taper/allocator/plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "taper/allocator/trace.h"
#include "taper/core/base/error.h"

namespace taper {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 63;  // bytes, of all blocks together

// What is to be placed, with its times numbered from 0 in order: only their order matters.
struct Rectangle {
  std::uint32_t begin = 0, end = 0;
  std::uint64_t bytes = 0;

  bool empty() const { return bytes == 0 || begin == end; }
};

struct Problem {
  std::vector<Rectangle> rectangles;
  std::uint32_t times = 0;
  std::uint64_t max_load = 0;
};

std::uint64_t peak(const Problem& problem) {
  std::vector<std::uint64_t> rises(problem.times, 0), falls(problem.times, 0);
  for (const Rectangle& r : problem.rectangles) {
    if (r.empty()) continue;
    rises[r.begin] += r.bytes, falls[r.end] += r.bytes;
  }
  std::uint64_t load = 0, most = 0;
  for (std::size_t t = 0; t < problem.times; ++t) {
    load = load - falls[t] + rises[t];
    most = std::max(most, load);
  }
  return most;
}

Problem problem_of(ArrayRef<Interval> intervals, std::uint64_t alignment) {
  TAPER_CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0,
              "the alignment of a plan must be a power of two, not ", alignment);
  TAPER_CHECK(intervals.size() < (std::size_t{1} << 31), "a plan of ", intervals.size(),
              " intervals is too large");
  std::vector<std::uint64_t> times;
  times.reserve(2 * intervals.size());
  for (const Interval& i : intervals) times.push_back(i.begin), times.push_back(i.end);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto number = [&](std::uint64_t time) {
    return static_cast<std::uint32_t>(std::lower_bound(times.begin(), times.end(), time) -
                                      times.begin());
  };
  Problem problem;
  problem.times = static_cast<std::uint32_t>(times.size());
  problem.rectangles.reserve(intervals.size());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Interval& it = intervals[i];
    TAPER_CHECK(it.begin <= it.end, "interval ", i, " of a plan ends at event ", it.end,
                ", before it begins at ", it.begin);
    const std::uint64_t more = it.bytes & (alignment - 1) ? alignment : 0;
    const std::uint64_t kept = it.bytes & ~(alignment - 1);
    TAPER_CHECK(kept <= kMost - more && sum <= kMost - (kept + more),
                "the sizes of a plan add up to more than 2^63 bytes at interval ", i);
    sum += kept + more;
    problem.rectangles.push_back({number(it.begin), number(it.end), kept + more});
  }
  problem.max_load = peak(problem);
  return problem;
}

// What is placed, by windows of time: each lists what is out in it by offset. A block that lives
// for one window or two, as most do, has nothing to do with the others.
class Shelves {
 public:
  explicit Shelves(std::uint32_t times) : windows_(times / kTimes + 1), next_(windows_.size()) {}

  // Places a block at the lowest free offset, which it returns; places nothing where it would end
  // above `limit`.
  std::uint64_t place(const Rectangle& r, std::uint64_t limit) {
    const std::size_t first = r.begin / kTimes, last = (r.end - 1) / kTimes;
    std::uint64_t at = 0;
    for (std::size_t w = first; w <= last; ++w) next_[w] = 0;
    // Whatever window says that the block must lie higher, all have to agree again.
    std::size_t agree = 0;
    for (std::size_t w = first; agree <= last - first; w = w == last ? first : w + 1, ++agree) {
      if (raise(w, r, at)) agree = 0;
      if (at + r.bytes > limit) return at;
    }
    for (std::size_t w = first; w <= last; ++w) {
      std::vector<Placed>& window = windows_[w];
      const auto above =
          std::upper_bound(window.begin(), window.end(), at,
                           [](std::uint64_t offset, const Placed& p) { return offset < p.offset; });
      window.insert(above, {r.begin, r.end, at, at + r.bytes});
    }
    return at;
  }

 private:
  static constexpr std::uint32_t kTimes =
      1024;  // in a window; 256 measured slower, 4096 no quicker

  struct Placed {
    std::uint32_t begin, end;
    std::uint64_t offset, top;
  };

  // Raises `at` to the next offset that is free in window `w`; says whether that is another one.
  bool raise(std::size_t w, const Rectangle& r, std::uint64_t& at) {
    const std::uint64_t before = at;
    const std::vector<Placed>& window = windows_[w];
    std::size_t i = next_[w];
    for (; i < window.size(); ++i) {
      const Placed& p = window[i];
      if (p.begin >= r.end || r.begin >= p.end) continue;
      if (p.offset >= at + r.bytes) break;
      at = std::max(at, p.top);
    }
    next_[w] = i;
    return at != before;
  }

  std::vector<std::vector<Placed>> windows_;
  std::vector<std::size_t> next_;  // in each window, the first that may be in the block's way
};

enum class Order { kBytes, kArea, kLength, kBegin };

// Whether `a` is to be placed before `b`.
bool before(Order order, const Rectangle& a, const Rectangle& b) {
  const std::uint32_t a_length = a.end - a.begin, b_length = b.end - b.begin;
  switch (order) {
    case Order::kBytes: break;
    case Order::kArea: {
      const double a_area = static_cast<double>(a.bytes) * a_length;
      const double b_area = static_cast<double>(b.bytes) * b_length;
      if (a_area != b_area) return a_area > b_area;
      break;
    }
    case Order::kLength:
      if (a_length != b_length) return a_length > b_length;
      break;
    case Order::kBegin:
      if (a.begin != b.begin) return a.begin < b.begin;
      break;
  }
  return a.bytes > b.bytes;
}

// Takes over into `plan` if all fits below what that takes.
void try_order(const Problem& problem, Order order, MemoryPlan& plan) {
  std::vector<std::uint32_t> queue;
  for (std::uint32_t i = 0; i < problem.rectangles.size(); ++i) {
    if (!problem.rectangles[i].empty()) queue.push_back(i);
  }
  std::stable_sort(queue.begin(), queue.end(), [&](std::uint32_t a, std::uint32_t b) {
    return before(order, problem.rectangles[a], problem.rectangles[b]);
  });
  std::vector<std::uint64_t> offsets(problem.rectangles.size(), 0);
  std::uint64_t height = 0;
  Shelves shelves(problem.times);
  for (const std::uint32_t i : queue) {
    const Rectangle& r = problem.rectangles[i];
    offsets[i] = shelves.place(r, plan.bytes);
    height = std::max(height, offsets[i] + r.bytes);
    if (height >= plan.bytes) return;
  }
  plan.offsets = std::move(offsets);
  plan.bytes = height;
}

}  // namespace

MemoryPlan plan_offsets(ArrayRef<Interval> intervals, std::uint64_t alignment) {
  const Problem problem = problem_of(intervals, alignment);
  MemoryPlan plan;
  plan.max_load = problem.max_load;
  plan.offsets.assign(intervals.size(), 0);
  if (problem.max_load == 0) return plan;
  plan.bytes = kMost + 1;
  for (const Order order : {Order::kBytes, Order::kArea, Order::kLength, Order::kBegin}) {
    if (plan.bytes > plan.max_load) try_order(problem, order, plan);
  }
  return plan;
}

std::uint64_t max_load(ArrayRef<Interval> intervals, std::uint64_t alignment) {
  return problem_of(intervals, alignment).max_load;
}

std::vector<Interval> intervals_of(const Trace& trace) {
  std::vector<Interval> intervals(trace.allocations);
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    if (e.action == TraceAction::kAlloc) intervals[e.block] = {i, trace.events.size(), e.bytes};
    if (e.action == TraceAction::kFree) intervals[e.block].end = i;
  }
  return intervals;
}

std::string first_overlap(ArrayRef<Interval> intervals, const MemoryPlan& plan) {
  TAPER_CHECK(plan.offsets.size() == intervals.size(), "a plan of ", plan.offsets.size(),
              " offsets is not one of ", intervals.size(), " intervals");
  // Ends come before beginnings at the same time; what is out lies in `out`, by offset.
  std::vector<std::size_t> begins, ends;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (intervals[i].bytes == 0 || intervals[i].begin >= intervals[i].end) continue;
    if (plan.offsets[i] > plan.bytes || intervals[i].bytes > plan.bytes - plan.offsets[i])
      return str("interval ", i, " ends above the plan's ", plan.bytes, " bytes");
    begins.push_back(i), ends.push_back(i);
  }
  std::sort(begins.begin(), begins.end(),
            [&](std::size_t a, std::size_t b) { return intervals[a].begin < intervals[b].begin; });
  std::sort(ends.begin(), ends.end(),
            [&](std::size_t a, std::size_t b) { return intervals[a].end < intervals[b].end; });
  std::map<std::uint64_t, std::size_t> out;
  const auto clash = [&](std::size_t a, std::size_t b) {
    return str("intervals ", std::min(a, b), " and ", std::max(a, b), " share offset ",
               std::max(plan.offsets[a], plan.offsets[b]), " at event ",
               std::max(intervals[a].begin, intervals[b].begin));
  };
  auto ending = ends.begin();
  for (const std::size_t i : begins) {
    for (; intervals[*ending].end <= intervals[i].begin; ++ending) out.erase(plan.offsets[*ending]);
    const std::uint64_t at = plan.offsets[i], top = at + intervals[i].bytes;
    const auto above = out.lower_bound(at);
    if (above != out.end() && above->first < top) return clash(above->second, i);
    if (above != out.begin()) {
      const std::size_t below = std::prev(above)->second;
      if (plan.offsets[below] + intervals[below].bytes > at) return clash(below, i);
    }
    out[at] = i;
  }
  return "";
}

}  // namespace taper
