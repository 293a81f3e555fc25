// Progress of long work: a bar that redraws itself on a terminal, now and then a line elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace taper::tools {

class Progress {
 public:
  // `label` stands in front; `total` units of work, of which `done` are done already.
  Progress(std::FILE* out, std::string label, std::int64_t total, std::int64_t done = 0);
  ~Progress() { finish(""); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `status` is what is worth seeing: "loss 0.43". Draws at most ten times a second on a terminal,
  // every tenth of the work elsewhere.
  void update(std::int64_t done, const std::string& status);
  // Ends the line, with a last word.
  void finish(const std::string& status);

  double seconds() const;

 private:
  std::string line(std::int64_t done, const std::string& status) const;

  using Clock = std::chrono::steady_clock;
  std::FILE* out_;
  std::string label_;
  std::int64_t total_, first_, done_;
  int tenths_ = 0;
  bool terminal_, open_ = true;
  Clock::time_point start_ = Clock::now(), drawn_{};
};

// "3.4 s", "2 min 10 s".
std::string duration(double seconds);

}  // namespace taper::tools
