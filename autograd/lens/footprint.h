// Which bytes a view's elements take, and whether two views share one.
#pragma once
#include "taper/core/exec.h"

namespace taper::lens {

// Runs of bytes that repeat along dims: (R, C) out of (R, 2 C) is R runs, a dense view one.
struct Footprint {
  struct Dim {
    std::int64_t count, stride;  // in bytes, positive
  };

  std::uintptr_t begin = 0, end = 0;  // equal: there is no byte
  std::int64_t run = 0;
  int ndim = 0;
  Dim dims[kMaxDims];  // the longest stride first
};

// Along a stride of 0 there is one element, whatever the size: so it is in a reduction's output.
Footprint footprint(const View& view);

// Exact for what is sliced, transposed and selected out of one tensor. Of views that would take
// more than some ten thousand steps to compare, the answer is yes.
bool meet(const Footprint& a, const Footprint& b);

// Whether every byte of `b` is one of `a`; may say no of what is strided.
bool covers(const Footprint& a, const Footprint& b);

}  // namespace taper::lens
