// Looks at every index of an index tensor once, and says which one is out of range.
#include "taper/cpu/index_check.h"

#include <atomic>

#include "taper/core/base/error.h"
#include "taper/cpu/move.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
namespace {

// True when one of n indices, `step` bytes apart, is below `low` or not below `size`.
bool has_bad(
    const std::byte* data, std::int64_t step, std::int64_t n, std::int64_t low, std::int64_t size) {
  const auto width = static_cast<std::uint64_t>(size - low);
  std::uint64_t bad = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t index = *reinterpret_cast<const std::int64_t*>(data + i * step);
    bad |= static_cast<std::uint64_t>(static_cast<std::uint64_t>(index - low) >= width);
  }
  return bad != 0;
}

[[noreturn]] void fail_first(
    const View& index, const Layout& layout, int dim, std::int64_t low, std::int64_t size) {
  const Strided in = strided({index.data, &layout, index.dtype});
  Cursor cursor(layout.ndim, layout.sizes, 0);
  while (!has_bad(in.data + cursor.offset(in.strides), 0, 1, low, size)) cursor.advance(1);
  const auto* bad = reinterpret_cast<const std::int64_t*>(in.data + cursor.offset(in.strides));
  fail(str("index ", *bad, " is out of range for dim ", dim, " of size ", size));
}

}  // namespace

void check_indices(const View& index, int dim, std::int64_t size, bool wraps) {
  Layout layout = *index.layout;
  for (int d = 0; d < layout.ndim; ++d) {
    if (layout.strides[d] == 0 && layout.sizes[d] > 0) layout.sizes[d] = 1;  // the same ones again
  }
  const std::int64_t low = wraps ? -size : 0;
  Layout merged = layout;
  order_dims(&merged, 1);
  const Strided in = strided({index.data, &merged, index.dtype});
  const int last = merged.ndim - 1;
  const std::int64_t step = last < 0 ? 0 : in.strides[last];
  std::atomic<bool> bad{false};
  parallel_for(merged.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    Cursor cursor(merged.ndim, merged.sizes, begin);
    while (begin < end) {
      const std::int64_t left = cursor.left_in_row();
      const std::int64_t n = left < end - begin ? left : end - begin;
      if (has_bad(in.data + cursor.offset(in.strides), step, n, low, size)) bad = true;
      begin += n;
      cursor.advance(n);
    }
  });
  if (bad) fail_first(index, layout, dim, low, size);
}

}  // namespace taper::cpu
