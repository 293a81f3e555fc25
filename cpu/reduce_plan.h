// How a reduction's dims fall into those that are kept and those that are reduced.
#pragma once
#include "taper/cpu/loops.h"
#include "taper/cpu/move.h"

namespace taper::cpu {

struct ReducePlan {
  std::int64_t outputs = 1;  // how many there are
  std::int64_t length = 1;   // elements that each one reduces
  // The input, once over the dims that are kept, ordered by falling stride, and once over those
  // that are reduced, in their own order.
  int kept_ndim = 0, reduced_ndim = 0;
  std::int64_t kept_sizes[kMaxDims], reduced_sizes[kMaxDims];
  Strided kept, reduced;
  bool dense = false;      // the reduced elements lie one after another
  bool by_column = false;  // neighbouring outputs are reduced side by side
  // The outputs over the kept dims.
  Layout out[2];
};

// Output layouts have stride 0 along reduced dims. An input in which every step of a long reduction
// would be to another cache line is first copied, in order, to scratch memory of `exec`.
ReducePlan reduce_plan(const Exec& exec, const View& in, const View* const* outs, int count);

[[noreturn]] void fail_empty_reduction();

}  // namespace taper::cpu
