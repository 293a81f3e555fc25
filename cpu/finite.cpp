// Finds the first NaN or infinity: one pass that only ors bits, and a close look where it hits.
#include "taper/cpu/finite.h"

#include "taper/cpu/kernels.h"
#include "taper/cpu/move.h"
#include "taper/cpu/parallel.h"
#include "taper/cpu/walk.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

using Index = std::int64_t;

constexpr Index kChunk = 4 * kGrain;  // a chunk is read at the speed of memory
constexpr Index kPiece = 512;         // looked at as one before the next

// Of n elements, `step` apart; n when there is none.
template <class U> Index first_of_run(const U* x, Index step, Index n, U lowest) {
  for (Index piece = 0; piece < n; piece += kPiece) {
    const Index m = n - piece < kPiece ? n - piece : kPiece;
    const U* from = x + piece * step;
    if (!has_carried(carries_of<U>(from, step, m, lowest))) continue;
    Index i = 0;
    while (!has_carried(carry<U>(from[i * step], lowest))) ++i;
    return piece + i;
  }
  return n;
}

// In the order of `layout`; -1 when there is none.
template <class U> Index search(const U* x, const Layout& layout, U lowest) {
  Walk<1> rows;
  rows.count = 1;
  rows.ndim = layout.ndim > 0 ? layout.ndim - 1 : 0;
  for (int d = 0; d < rows.ndim; ++d) {
    rows.sizes[d] = layout.sizes[d];
    rows.strides[0][d] = layout.strides[d];
  }
  const Index length = layout.ndim > 0 ? layout.sizes[rows.ndim] : 1;
  const Index step = layout.ndim > 0 ? layout.strides[rows.ndim] : 1;
  Index found = layout.numel();
  const Index numel = found;
  parallel_for(numel, kChunk, [&](Index begin, Index end) {
    Walk<1> walk = rows;
    walk.seek(begin / length);
    for (Index i = begin; i < end && i < __atomic_load_n(&found, __ATOMIC_RELAXED); walk.next()) {
      const Index in_row = i % length;
      const Index n = length - in_row < end - i ? length - in_row : end - i;
      const Index at = first_of_run<U>(x + walk.offset[0] + in_row * step, step, n, lowest);
      i += at;
      if (at == n) continue;
      Index best = __atomic_load_n(&found, __ATOMIC_RELAXED);
      while (i < best && !__atomic_compare_exchange_n(&found, &best, i, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
      }
      return;
    }
  });
  return found < numel ? found : -1;
}

// In the order of memory, which is fast; if something is there, and the orders differ, again.
template <class U> Index first_in(const In& in, U lowest) {
  const auto* x = in.as<const Bits<U>>();
  Layout logical = *in.layout;
  if (logical.is_contiguous()) {
    logical.sizes[0] = logical.numel();
    logical.strides[0] = logical.ndim = 1;
    return search<U>(x, logical, lowest);
  }
  Layout* const one[] = {&logical};
  coalesce(one, 1);
  Layout physical = *in.layout;
  order_dims(&physical, 1);
  const Index found = search<U>(x, physical, lowest);
  const bool same_order =
      physical.shape() == logical.shape() && physical.steps() == logical.steps();
  return found < 0 || same_order ? found : search<U>(x, logical, lowest);
}

}  // namespace

bool any_nonfinite(const void* x, std::int64_t n, DType dtype) {
  return visit_bits(dtype, [&](auto lowest) {
    using U = decltype(lowest);
    return has_carried(carries_of<U>(static_cast<const Bits<U>*>(x), 1, n, lowest));
  });
}

// Bytes: each element once, up to the first one that counts.
void first_nonfinite(const Exec&, Out index, In x) {
  if (!is_floating_point(x.dtype)) fail_dtype("a floating-point", info(x.dtype).name);
  *index.as<Index>() =
      visit_bits(x.dtype, [&](auto lowest) { return first_in<decltype(lowest)>(x, lowest); });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
