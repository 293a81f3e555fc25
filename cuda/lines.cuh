// The lines of several operands along one dim, for kernels that work on a whole line at a time.
#pragma once

#include "taper/cuda/lanes.cuh"

namespace taper::cuda {

// An operand over lines along one dim: element i of a line that starts at `base` is base[i * step].
template <class T> struct Lined {
  T* data;
  Dims starts;  // over the other dims
  Index step;

  __device__ T* line(Index i) const { return data + starts.offset(i); }
};

struct Lines {
  Index count = 1, length = 1;
  bool dense = true;  // all lines lie without gaps
};

// Takes `dim` out of the layouts; a 0-dim tensor is a line of one element.
template <size_t Count>
Lines take_lines(const View* const (&views)[Count],
                 int dim,
                 Layout (&others)[Count],
                 Index* steps) {
  Lines lines;
  Layout* pointers[Count];
  for (size_t k = 0; k < Count; ++k) {
    const Layout& layout = *views[k]->layout;
    steps[k] = 1;
    for (int d = 0; d < layout.ndim; ++d) {
      if (d == dim) {
        lines.length = layout.sizes[d];
        if (lines.length > 1) steps[k] = layout.strides[d];
        continue;
      }
      others[k].sizes[others[k].ndim] = layout.sizes[d];
      others[k].strides[others[k].ndim++] = layout.strides[d];
    }
    lines.dense = lines.dense && steps[k] == 1;
    pointers[k] = &others[k];
  }
  lines.count = others[0].numel();
  if (lines.count > 0) order_dims(pointers, Count);
  return lines;
}

}  // namespace taper::cuda
