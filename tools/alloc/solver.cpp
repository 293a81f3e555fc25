// Depth-first search over the order in which blocks are stacked, with restarts.
//
// Think of offsets as time and of the spans between events as machines: a block is a job that needs
// some neighbouring machines at once, for as long as it has bytes. A plan below a capacity is a
// schedule before a deadline; an order of jobs is given up as soon as what is still to be done on
// some machine cannot be done in time. Which rules find an order differs from instance to instance,
// so many are tried, each for a while.
#include "taper/tools/alloc/solver.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "taper/core/base/error.h"

namespace taper::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::size_t kMost = 10'000;  // intervals: the search calls itself as often

struct Job {
  std::size_t index = 0;             // of the interval
  std::uint32_t begin = 0, end = 0;  // machines
  std::uint64_t bytes = 0;

  bool meets(std::uint32_t from, std::uint32_t to) const { return begin < to && from < end; }
};

// Machines [begin, end) that a dead end is about.
struct Blame {
  std::uint32_t begin = ~std::uint32_t{0}, end = 0;

  void add(std::uint32_t from, std::uint32_t to) {
    begin = std::min(begin, from), end = std::max(end, to);
  }
};

// splitmix64
struct Random {
  std::uint64_t state;

  double operator()() {  // in [0, 1)
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
  }
};

// How a search ranks the jobs that it could place next.
struct Taste {
  bool lowest_first = false;  // before all else; otherwise by what their machines have still to do
  bool focus = false;         // work where it has failed most, not at the lowest offset
  double by_start = 0, by_bytes = 0, by_length = 0, noise = 0;
};

class Search {
 public:
  Search(const std::vector<Job>& jobs, std::size_t machines, Clock::time_point until)
      : jobs_(jobs),
        meet_(jobs.size()),
        on_(machines),
        all_left_(machines, 0),
        failures_(machines, 0),
        until_(until) {
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      const Job& job = jobs_[i];
      for (std::uint32_t j = 0; j < jobs_.size(); ++j) {
        if (i != j && job.meets(jobs_[j].begin, jobs_[j].end)) meet_[i].push_back(j);
      }
      for (std::uint32_t m = job.begin; m < job.end; ++m) {
        on_[m].push_back(i);
        all_left_[m] += job.bytes;
      }
    }
  }

  // Whether all fit below `capacity`, which is at least the load; gives up after `nodes`.
  bool run(std::uint64_t capacity, const Taste& taste, std::uint64_t nodes, Random& random) {
    begin(capacity, taste, random);
    liking_.resize(jobs_.size());
    for (std::size_t i = 0; i < jobs_.size(); ++i) liking_[i] = liking(jobs_[i], random);
    return finish(nodes);
  }

  // The same with the ranks of the last success, some of them changed.
  bool run_again(std::uint64_t capacity, std::uint64_t nodes, Random& random) {
    begin(capacity, best_taste_, random);
    liking_ = best_liking_;
    const double rate = std::pow(10, -2 + 1.5 * random()), most = 0.3 * random();
    for (double& x : liking_) {
      if (random() >= rate) continue;
      x += most * (2 * random() - 1) * (taste_.lowest_first ? std::abs(x) : 1);
    }
    return finish(nodes);
  }

  bool has_succeeded() const { return !best_liking_.empty(); }

  const std::vector<std::uint64_t>& starts() const { return start_; }

 private:
  void begin(std::uint64_t capacity, const Taste& taste, Random& random) {
    capacity_ = capacity, taste_ = taste;
    left_ = all_left_;
    start_.assign(jobs_.size(), 0);
    placed_.assign(jobs_.size(), 0);
    changes_.clear();
    const double remembered = random() < 0.5 ? 0 : 0.5;
    for (double& f : failures_) f *= remembered;
  }

  bool finish(std::uint64_t nodes) {
    nodes_ = nodes;
    Blame blame;
    if (!place_rest(jobs_.size(), blame)) return false;
    best_taste_ = taste_, best_liking_ = liking_;
    return true;
  }

  bool place_rest(std::size_t rest, Blame& blame) {
    if (rest == 0) return true;
    if (nodes_ > 0 && --nodes_ % 256 == 0 && Clock::now() >= until_) nodes_ = 0;
    if (nodes_ == 0) return false;
    // In every tight plan the job that could end first starts as early as that, or one that it
    // meets starts before its end.
    const std::uint32_t first = first_to_end();
    const std::uint64_t first_end = start_[first] + jobs_[first].bytes;
    std::vector<std::pair<double, std::uint32_t>> next = {{-rank(first), first}};
    for (const std::uint32_t j : meet_[first]) {
      if (!placed_[j] && start_[j] < first_end) next.emplace_back(-rank(j), j);
    }
    std::sort(next.begin(), next.end());
    for (const auto& [unused, i] : next) {
      const std::size_t changes = changes_.size();
      Blame fault;
      const bool fits = place(i, fault);
      if (fits && place_rest(rest - 1, fault)) return true;
      if (nodes_ == 0) return false;
      take_back(i, changes);
      // Where it would have failed without this job too, the others here do not help.
      const bool elsewhere = fits && !jobs_[i].meets(fault.begin, fault.end);
      blame.add(fault.begin, fault.end);
      if (elsewhere) return false;
      blame.add(jobs_[i].begin, jobs_[i].end);
    }
    return false;
  }

  // The job that could end first: of all, or of those around the machine that failed most.
  std::uint32_t first_to_end() const {
    std::uint32_t low = 0, high = static_cast<std::uint32_t>(left_.size());
    if (taste_.focus) low = most_failed(), high = low + 1;
    std::uint32_t first = 0;
    std::uint64_t first_end = kNever;
    for (;;) {
      bool earlier = false;
      for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
        if (placed_[i] || !jobs_[i].meets(low, high)) continue;
        const std::uint64_t end = start_[i] + jobs_[i].bytes;
        if (end < first_end) first = i, first_end = end, earlier = true;
      }
      if (!earlier || !taste_.focus) return first;
      // Those that it competes with may themselves wait for one that ends earlier.
      low = jobs_[first].begin, high = jobs_[first].end;
      for (const std::uint32_t j : meet_[first]) {
        if (placed_[j] || start_[j] >= first_end) continue;
        low = std::min(low, jobs_[j].begin), high = std::max(high, jobs_[j].end);
      }
    }
  }

  std::uint32_t most_failed() const {
    std::uint32_t best = 0;
    for (std::uint32_t m = 1; m < left_.size(); ++m) {
      if (left_[m] == 0) continue;
      const auto key = std::pair(failures_[m], left_[m]);
      if (left_[best] == 0 || key > std::pair(failures_[best], left_[best])) best = m;
    }
    return best;
  }

  std::uint64_t most_left(const Job& job) const {
    std::uint64_t most = 0;
    for (std::uint32_t m = job.begin; m < job.end; ++m) most = std::max(most, left_[m]);
    return most;
  }

  // The part of a job's rank that does not change as others are placed; in capacities.
  double liking(const Job& job, Random& random) const {
    const auto capacity = static_cast<double>(capacity_), bytes = static_cast<double>(job.bytes);
    const auto length = static_cast<double>(job.end - job.begin);
    if (!taste_.lowest_first) {
      return taste_.by_bytes * std::log(bytes) + taste_.by_length * std::log(length) +
             taste_.noise * random();
    }
    const double share = length / static_cast<double>(left_.size());
    const double load = static_cast<double>(most_left(job)) / capacity;
    return (load + taste_.by_length * share + taste_.by_bytes * share * bytes / capacity) *
           (1 + taste_.noise * random());
  }

  double rank(std::uint32_t i) const {
    const auto capacity = static_cast<double>(capacity_), start = static_cast<double>(start_[i]);
    if (taste_.lowest_first) return liking_[i] - 1e9 * start / capacity;
    const auto left = static_cast<double>(most_left(jobs_[i]));
    return (left - taste_.by_start * start) / capacity + liking_[i];
  }

  // Places job `i` where it can start; false if some machine then cannot do all that it has to.
  bool place(std::uint32_t i, Blame& fault) {
    const Job& job = jobs_[i];
    placed_[i] = 1;
    for (std::uint32_t m = job.begin; m < job.end; ++m) left_[m] -= job.bytes;
    const std::uint64_t top = start_[i] + job.bytes;
    std::uint32_t low = job.begin, high = job.end;
    for (const std::uint32_t j : meet_[i]) {
      if (placed_[j] || start_[j] >= top) continue;
      changes_.push_back({j, start_[j]});
      start_[j] = top;
      low = std::min(low, jobs_[j].begin), high = std::max(high, jobs_[j].end);
    }
    for (std::uint32_t m = low; m < high; ++m) {
      const std::uint64_t latest = capacity_ - left_[m];
      const auto in_time = [&](std::uint32_t j) { return !placed_[j] && start_[j] <= latest; };
      if (left_[m] == 0 || std::any_of(on_[m].begin(), on_[m].end(), in_time)) continue;
      failures_[m] += 1;
      fault.add(m, m + 1);
      for (const std::uint32_t j : on_[m]) {
        if (!placed_[j]) fault.add(jobs_[j].begin, jobs_[j].end);
      }
      return false;
    }
    return true;
  }

  void take_back(std::uint32_t i, std::size_t changes) {
    for (; changes_.size() > changes; changes_.pop_back())
      start_[changes_.back().job] = changes_.back().start;
    for (std::uint32_t m = jobs_[i].begin; m < jobs_[i].end; ++m) left_[m] += jobs_[i].bytes;
    placed_[i] = 0;
  }

  struct Change {
    std::uint32_t job;
    std::uint64_t start;
  };

  std::vector<Job> jobs_;
  std::vector<std::vector<std::uint32_t>> meet_, on_;  // by job, by machine
  std::vector<std::uint64_t> all_left_;
  std::vector<std::uint64_t> left_;   // bytes still to be placed on each machine
  std::vector<std::uint64_t> start_;  // where each job lies, or could at the lowest
  std::vector<char> placed_;
  std::vector<Change> changes_;   // of start_, to be taken back
  std::vector<double> failures_;  // of each machine, in this run and somewhat in those before
  Taste taste_, best_taste_;
  std::vector<double> liking_, best_liking_;
  Clock::time_point until_;
  std::uint64_t capacity_ = 0, nodes_ = 0;
};

Taste taste_of(int round, Random& random) {
  Taste taste;
  taste.lowest_first = round % 5 > 2;
  if (taste.lowest_first) {
    taste.by_bytes = std::pow(10, -3 + 4 * random());
    taste.by_length = std::pow(10, -3 + 3 * random());
  } else {
    taste.by_start = 1.5 * random();
    taste.by_bytes = 0.05 * random();
    taste.by_length = 0.05 * random();
  }
  taste.noise = round % 4 == 0 ? 0 : 0.1 * random() * random();
  taste.focus = random() < 0.5;
  return taste;
}

// Jobs, and how many machines they have.
std::pair<std::vector<Job>, std::size_t> jobs_of(ArrayRef<Interval> intervals,
                                                 std::uint64_t alignment) {
  std::vector<std::uint64_t> times;
  for (const Interval& i : intervals) times.push_back(i.begin), times.push_back(i.end);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto number = [&](std::uint64_t t) {
    return static_cast<std::uint32_t>(std::lower_bound(times.begin(), times.end(), t) -
                                      times.begin());
  };
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const Interval& it = intervals[i];
    if (it.bytes == 0 || it.begin == it.end) continue;
    const std::uint64_t bytes = (it.bytes + alignment - 1) / alignment * alignment;
    jobs.push_back({i, number(it.begin), number(it.end), bytes});
  }
  return {std::move(jobs), times.size()};
}

}  // namespace

MemoryPlan solve(ArrayRef<Interval> intervals,
                 std::uint64_t alignment,
                 double seconds,
                 std::uint64_t seed,
                 const std::function<void(double, std::uint64_t)>& watch) {
  TAPER_CHECK(intervals.size() <= kMost, "the search is for at most ", kMost, " blocks, not ",
              intervals.size());
  const auto start = Clock::now();
  const auto until =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  MemoryPlan plan = plan_offsets(intervals, alignment);
  if (plan.bytes == plan.max_load) return plan;
  const auto [jobs, machines] = jobs_of(intervals, alignment);
  Search search(jobs, machines, until);
  Random random{seed};
  double step = 0.05;  // how much lower than the best plan the next is to be
  for (int round = 0; plan.bytes > plan.max_load && Clock::now() < until; ++round) {
    if (watch) watch(std::chrono::duration<double>(Clock::now() - start).count(), plan.bytes);
    // By turns: as low as can be; quickly, near to what succeeded; a step lower, for longer.
    const int turn = round % 3;
    std::uint64_t capacity = plan.max_load;
    if (turn != 0) {
      const double wish = static_cast<double>(plan.bytes) * (1 - step);
      capacity = std::clamp(static_cast<std::uint64_t>(wish), plan.max_load, plan.bytes - 1);
    }
    // Few nodes mostly, now and then many.
    std::uint64_t nodes = 20 * jobs.size();
    nodes <<= std::countr_zero(static_cast<unsigned>(round / 24 + 1));
    if (turn == 1 && round / 3 % 10 != 0) nodes = jobs.size() * 3 / 2;
    const bool again = turn == 1 && round >= 16 && search.has_succeeded();
    const bool fits = again ? search.run_again(capacity, nodes, random)
                            : search.run(capacity, taste_of(round, random), nodes, random);
    if (turn != 0) step = fits ? std::min(0.1, step * 1.5) : std::max(0.002, step * 0.9);
    if (!fits) continue;
    plan.bytes = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      plan.offsets[jobs[i].index] = search.starts()[i];
      plan.bytes = std::max(plan.bytes, search.starts()[i] + jobs[i].bytes);
    }
  }
  return plan;
}

}  // namespace taper::tools
