// Taking one dim out of the layouts of several operands.
#include "taper/cpu/lines.h"

namespace taper::cpu {

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

}  // namespace taper::cpu
