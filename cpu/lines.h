// The lines of several operands along one dim, for kernels that work on a whole line at a time.
#pragma once
#include "taper/cpu/loops.h"
#include "taper/cpu/move.h"

namespace taper::cpu {

// One operand: element i of a line that starts at `base` lies at base + i * step.
struct Line {
  Strided starts;     // over the other dims
  std::int64_t step;  // bytes
  DType dtype;

  TAPER_INLINE bool is_dense() const { return step == starts.size; }
};

struct Lines {
  std::int64_t count = 1, length = 1;
  int ndim = 0;  // the other dims, ordered by falling stride of operand 0
  std::int64_t sizes[kMaxDims];
  Line operands[kMostOperands];
};

// Sizes are equal. A 0-dim tensor is a line of one element.
Lines lines_along(int dim, const View* const* views, int count);

// Whether lines are better worked on side by side than one after another: there are neighbours that
// lie closer to each other, in operand k, than the elements of a line, or the lines are short.
bool go_side_by_side(const Lines& lines, int k);

// The operand's elements across neighbouring lines, as a line.
Line across(const Lines& lines, int k);

// The bases of the operands' lines, one line after another.
class LineCursor {
 public:
  TAPER_INLINE LineCursor(const Lines& lines, std::int64_t first)
      : lines_(lines), cursor_(lines.ndim, lines.sizes, first) {}

  TAPER_INLINE std::byte* base(int operand) const {
    const Strided& starts = lines_.operands[operand].starts;
    return starts.data + cursor_.offset(starts.strides);
  }

  TAPER_INLINE void next() { cursor_.advance(1); }

 private:
  const Lines& lines_;
  Cursor cursor_;
};

}  // namespace taper::cpu
