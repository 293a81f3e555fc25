// Division with a remainder, and powers. 2 elements read, one written, a library call for each.
#include "taper/cpu/elementwise.h"
#include "taper/cpu/move.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

template <class T> bool has_zero(const View& view) {
  Layout layout = *view.layout;
  for (int d = 0; d < layout.ndim; ++d) {
    if (layout.strides[d] == 0 && layout.sizes[d] > 1) layout.sizes[d] = 1;  // the same again
  }
  const Strided in = strided({view.data, &layout, view.dtype});
  const std::int64_t numel = layout.numel();
  T block[kBlock];
  Cursor cursor(layout.ndim, layout.sizes, 0);
  for (std::int64_t first = 0; first < numel; first += kBlock) {
    const std::int64_t n = numel - first < kBlock ? numel - first : kBlock;
    pack(block, in, cursor, n);
    cursor.advance(n);
    bool found = false;
    for (std::int64_t i = 0; i < n; ++i) found |= block[i] == 0;
    if (found) return true;
  }
  return false;
}

}  // namespace

template <class F> void binary_nonzero(const Exec& exec, Out out, In a, In b) {
  visit_dtype(b.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (fn::Integer<T>) {
      if (has_zero<T>(b)) fail_division_by_zero();
    }
  });
  binary<F>(exec, out, a, b);
}

template void binary_nonzero<fn::FloorDivide>(const Exec&, Out, In, In);
template void binary_nonzero<fn::Remainder>(const Exec&, Out, In, In);
template void binary_nonzero<fn::Fmod>(const Exec&, Out, In, In);
template void binary<fn::Pow>(const Exec&, Out, In, In);

}  // namespace TAPER_ISA
}  // namespace taper::cpu
