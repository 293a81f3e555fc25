// Taking one dim out of the layouts of several operands.
#include "taper/cpu/lines.h"

namespace taper::cpu {
namespace {

constexpr std::int64_t kShort = 64;  // elements of a line that is not worth a loop of its own

std::int64_t magnitude(std::int64_t x) {
  return x < 0 ? -x : x;
}

}  // namespace

Lines lines_along(int dim, const View* const* views, int count) {
  Lines lines;
  Layout others[kMostOperands];
  for (int k = 0; k < count; ++k) {
    const Layout& layout = *views[k]->layout;
    Line& line = lines.operands[k];
    line.dtype = views[k]->dtype;
    line.step = element_size(line.dtype);
    for (int d = 0; d < layout.ndim; ++d) {
      if (d == dim) {
        lines.length = layout.sizes[d];
        if (lines.length > 1) line.step *= layout.strides[d];
        continue;
      }
      others[k].sizes[others[k].ndim] = layout.sizes[d];
      others[k].strides[others[k].ndim] = layout.strides[d];
      ++others[k].ndim;
    }
  }
  lines.count = others[0].numel();
  order_dims(others, count);
  lines.ndim = others[0].ndim;
  for (int d = 0; d < lines.ndim; ++d) lines.sizes[d] = others[0].sizes[d];
  for (int k = 0; k < count; ++k) {
    lines.operands[k].starts = strided({views[k]->data, &others[k], views[k]->dtype});
  }
  return lines;
}

bool go_side_by_side(const Lines& lines, int k) {
  if (lines.ndim == 0) return false;
  const std::int64_t neighbours = lines.sizes[lines.ndim - 1];
  const bool closer = magnitude(across(lines, k).step) < magnitude(lines.operands[k].step);
  return (closer && neighbours > 3) || (lines.length <= kShort && neighbours >= kShort / 2);
}

Line across(const Lines& lines, int k) {
  Line line = lines.operands[k];
  line.step = line.starts.strides[lines.ndim - 1];
  return line;
}

}  // namespace taper::cpu
