// Answers to what a user asks when training goes wrong: why is there no gradient, why is it zero,
// what keeps the tape alive, who wrote here, what would a narrower format lose?
#pragma once
#include <string>
#include <vector>

#include "taper/autograd/backward.h"

namespace taper::lens {

// Why param.grad() is undefined: the first line names where its path was cut, or that nothing used
// it, or that no backward came by. Tells also when there is a gradient after all. `param` may be a
// tensor that is no leaf.
std::string why_none(const Tensor& param, Loc loc = Loc::current());

// Why the gradient of `param` is all zeros: runs the derivative of `root` (undefined: the latest
// recorded result that depends on param) once more, adds nothing up, calls no hooks, and names the
// ops in which a gradient came in and none went out. Throws Error when the tape has given back what
// it saved: ask before backward, or run that with retain_graph.
std::string why_zero(const Tensor& param, const Tensor& root = {}, Loc loc = Loc::current());

// Who wrote to t's storage last, newest first, one line each; "" when nobody did.
std::string writers(const Tensor& t);

// What looks wrong in what was recorded for `root`: an op that stretched both its operands (two
// vectors that became a matrix), an input whose own path was cut. One line each, oldest first; ""
// when nothing does.
std::string suspects(const Tensor& root, Loc loc = Loc::current());

// The entries alive at one moment, to compare with those of a later one.
class TapeMark {
 public:
  TapeMark();  // now

  // What the tape has grown by since: first where new entries hold on to those of before, then
  // results that tensors hold, then lines by how many entries they have more. "" when it has not
  // grown. Take both at the same place of two steps.
  std::string grown() const;

  std::size_t entries() const { return entries_; }

 private:
  struct Line {
    std::string text;  // "add at loss.cpp:88 in main"
    std::size_t entries = 0;
    std::uint64_t saved_bytes = 0;
  };

  static std::vector<Line> count(const std::vector<Ref<Entry>>& entries);

  std::vector<Line> lines_;
  std::size_t entries_ = 0;
  std::uint64_t next_index_ = 0;
};

// How the numbers of a tensor spread over powers of two, and what a narrower format would make of
// them, by rounding each (to nearest, ties to even).
struct Exponents {
  struct Loss {
    const char* format;       // "fp16", "bf16", "fp8 e4m3", "fp8 e5m2"
    double to_zero = 0;       // shares of the elements that are neither 0 nor NaN nor infinite
    double to_subnormal = 0;  // kept, with fewer bits
    double overflow = 0;      // beyond the largest number
  };

  std::int64_t total = 0, zeros = 0, infinities = 0, nans = 0;
  int lowest = 0;                    // exponent of counts[0]: x lies in [2^e, 2^(e+1))
  std::vector<std::int64_t> counts;  // empty when there is no finite number but 0
  std::vector<Loss> losses;
};

Exponents exponents(const Tensor& t, Loc loc = Loc::current());
std::string to_string(const Exponents& exponents);  // a histogram, one line for each exponent

}  // namespace taper::lens
