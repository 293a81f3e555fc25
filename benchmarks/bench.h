// Clocks and counters, and the rows that a benchmark reports: ours beside peers, goals and limits.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

// Of this process so far, without those that waited for a disk.
inline long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Keeps the compiler from dropping what made `x`.
template <class T> void keep(const T& x) {
  asm volatile("" : : "g"(&x) : "memory");
}

// Seconds per call of f: repeats it until a sample lasts `sample` seconds; the best of `samples`
// is what the code costs when nobody disturbs it.
template <class F> double seconds_per_call(F f, double sample = 0.01, int samples = 5) {
  f();
  long calls = 1;
  double best = 1e300;
  for (int taken = 0; taken < samples;) {
    const double start = now();
    for (long i = 0; i < calls; ++i) f();
    const double took = now() - start;
    if (took < sample / 2) {
      calls = took <= 0 ? calls * 10
                        : static_cast<long>(static_cast<double>(calls) * sample / took) + 1;
      continue;
    }
    best = std::min(best, took / static_cast<double>(calls));
    ++taken;
  }
  return best;
}

// Seconds of the quickest of the calls that fit into `budget` seconds; there is always one.
template <class F> double best_seconds(F f, double budget) {
  double best = 1e300;
  for (double spent = 0; best == 1e300 || spent < budget;) {
    const double start = now();
    f();
    const double took = now() - start;
    best = std::min(best, took);
    spent += took;
  }
  return best;
}

// Seconds per call of f for one turn of a row: the best of samples of about a millisecond, which
// neighbours seldom interrupt, until 20 are over; of three unless they last a second.
template <class F> double seconds_in_turn(F f) {
  f();
  const auto calls = std::max(1L, static_cast<long>(1e-3 / best_seconds(f, 0)));
  const auto sample = [&] {
    for (long i = 0; i < calls; ++i) f();
  };
  double best = 1e300;
  double spent = 0;
  for (int taken = 0; spent < 0.02 || (taken < 3 && spent < 1); ++taken) {
    const double took = best_seconds(sample, 0);
    best = std::min(best, took);
    spent += took;
  }
  return best / static_cast<double>(calls);
}

// One measured thing. `name` is the same in our program and in the peer's.
struct Result {
  std::string name;
  double value;
};

// What a shell command prints as "name<TAB>value" lines; other lines are not looked at.
inline std::vector<Result> run_lines(const std::string& command) {
  std::vector<Result> out;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  char line[256];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    const std::string text = line;
    if (const auto tab = text.find('\t'); tab != std::string::npos)
      out.push_back({text.substr(0, tab), std::stod(text.substr(tab + 1))});
  }
  pclose(pipe);
  return out;
}

// A column beside ours: the smallest that is possible, or a peer.
inline constexpr const char* kLimit = "limit";
inline constexpr const char* kTorch = "LibTorch";           // in the environment as it is
inline constexpr const char* kBestTorch = "LibTorch best";  // see peers.h

// ours / that column, at most.
struct Goal {
  std::string beside;
  double at_most;
};

struct Row {
  std::string name, unit;
  std::vector<Goal> goals = {};
  double limit = -1;  // ours at most; below 0: none
  double least = -1;  // ours at least; below 0: none
  // Rows that are made from others: the smallest of these, in every column.
  std::vector<std::string> best_of = {};
  // Or what one row has above its limit, which no better program can take away.
  std::string above_limit_of = {};
};

}  // namespace bench
