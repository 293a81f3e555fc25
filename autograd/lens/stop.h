// Where a backward pass may be told to stop: at a line, an op, a parameter, a number gone bad.
#pragma once
#include <string>
#include <vector>

#include "taper/core/base/source_loc.h"

namespace taper::lens {

// A condition on the step that was just run; `a | b` holds where either does.
//   bw.run_until(at("train.cpp", 42) | nonfinite());
struct Stop {
  enum class What : std::uint8_t { kLine, kOp, kParam, kNonfinite, kBytesFreed, kEntry, kScope };

  struct Test {
    What what;
    std::string text;          // file, op, parameter or scope
    std::uint64_t number = 0;  // line, bytes or entry
  };

  std::vector<Test> any;
};

Stop operator|(Stop a, const Stop& b);

// The forward stands at that line; the file by its whole name or the end of its path.
Stop at(std::string file, std::uint32_t line);
// The op of that name: "softmax".
Stop op(std::string name);
// The gradient of that parameter is added up: "fc1.weight".
Stop param(std::string full_name);
// A gradient that came in or goes out holds a NaN or an infinity.
Stop nonfinite();
// Plain backward would by now have given back this much of what entries had saved.
Stop bytes_freed(std::uint64_t bytes);
// The entry of that number.
Stop entry(std::uint64_t index);
// An entry of that module, or of one inside it: "encoder.3".
Stop scope(std::string name);

inline namespace literals {
constexpr std::uint64_t operator""_KiB(unsigned long long n) {
  return n << 10;
}
constexpr std::uint64_t operator""_MiB(unsigned long long n) {
  return n << 20;
}
constexpr std::uint64_t operator""_GiB(unsigned long long n) {
  return n << 30;
}
}  // namespace literals

}  // namespace taper::lens
