// Finds the first NaN or infinity: one pass that only ors bits, and a close look where it hits.
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

// The bits of a float, of any floating type of their size.
template <class U> using Bits [[gnu::may_alias]] = U;

// The highest bit is set when all bits of the exponent are: adding one at their lowest carries.
template <class U> TAPER_INLINE U carry(U bits, U lowest) {
  constexpr U kHighest = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  return static_cast<U>((bits & static_cast<U>(kHighest - 1)) + lowest);
}

template <class U> TAPER_INLINE bool is_nonfinite(U bits, U lowest) {
  return carry(bits, lowest) >> (8 * sizeof(U) - 1) != 0;
}

// Of n elements, `step` apart; n when there is none.
template <class U> Index first_of_run(const U* x, Index step, Index n, U lowest) {
  for (Index piece = 0; piece < n; piece += kPiece) {
    const Index m = n - piece < kPiece ? n - piece : kPiece;
    const U* from = x + piece * step;
    U any = 0;
    if (step == 1) {
      for (Index i = 0; i < m; ++i) any |= carry<U>(from[i], lowest);
    } else {
      for (Index i = 0; i < m; ++i) any |= carry<U>(from[i * step], lowest);
    }
    if (any >> (8 * sizeof(U) - 1) == 0) continue;
    Index i = 0;
    while (!is_nonfinite<U>(from[i * step], lowest)) ++i;
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

// Bytes: each element once, up to the first one that counts.
void first_nonfinite(const Exec&, Out index, In x) {
  Index& out = *index.as<Index>();
  if (x.dtype == kFloat64) out = first_in<std::uint64_t>(x, std::uint64_t{1} << 52);
  else if (x.dtype == kFloat32) out = first_in<std::uint32_t>(x, std::uint32_t{1} << 23);
  else if (x.dtype == kFloat16) out = first_in<std::uint16_t>(x, std::uint16_t{1} << 10);
  else if (x.dtype == kBFloat16) out = first_in<std::uint16_t>(x, std::uint16_t{1} << 7);
  else fail_dtype("a floating-point", info(x.dtype).name);
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
