// The machine that a pickle is a program for, as far as snapshots of PyTorch need it: it makes
// values, and calls nothing.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "taper/tools/alloc/pickle_shapes.h"

namespace taper::tools {

// Runs a pickle of protocol 2 to 5. Lists and dicts are handed to the shapes as they are filled,
// and only what those make of them is kept: so a list of events costs nothing.
class PickleParser {
 public:
  PickleParser(TraceInput& input, PickleShapes& shapes);

  void run();

 private:
  // Returns false at the end.
  bool step(unsigned char opcode);
  void constant(unsigned char opcode);
  void text(std::uint64_t bytes);
  void data(std::uint64_t bytes);
  void long_number(std::uint64_t bytes);
  void memoize(std::uint64_t slot);
  void recall(std::uint64_t slot);
  void append(std::size_t from);
  void set_items(std::size_t from);
  void tuple(std::size_t from);
  [[noreturn]] void refuse_opcode(unsigned char opcode) const;

  void push(PickleKind kind, std::uint64_t bits = 0);
  PickleValue& top();
  std::size_t pop_mark();  // where the items after it begin; the mark is gone
  std::size_t last(std::size_t count) const;
  void replace(std::size_t at, PickleValue value);  // and what the memo knows of it

  TraceInput& in_;
  PickleShapes& shapes_;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;
  std::vector<std::uint32_t> memo_;
  std::size_t most_values_;
};

}  // namespace taper::tools
