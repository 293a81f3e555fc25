// Arithmetic, and the choice of `where`. 2 to 3 elements moved and about one operation for each.
#include "taper/cpu/elementwise.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

// A choice moves elements as they are stored; these may stand for any type of their size.
using U8 [[gnu::may_alias]] = std::uint8_t;
using U16 [[gnu::may_alias]] = std::uint16_t;
using U32 [[gnu::may_alias]] = std::uint32_t;
using U64 [[gnu::may_alias]] = std::uint64_t;

template <class U> void where_row(const void*, void* const* operands, std::int64_t n, unsigned) {
  U* out = static_cast<U*>(operands[0]);
  const bool* condition = static_cast<const bool*>(operands[1]);
  const U* a = static_cast<const U*>(operands[2]);
  const U* b = static_cast<const U*>(operands[3]);
  for (std::int64_t i = 0; i < n; ++i) {
    const U x = a[i], y = b[i];  // both are loaded, so that the loop has no branch
    out[i] = condition[i] ? x : y;
  }
}

TAPER_INLINE RowFn where_row_of(std::int64_t size) {
  switch (size) {
    case 1: return where_row<U8>;
    case 2: return where_row<U16>;
    case 4: return where_row<U32>;
    default: return where_row<U64>;
  }
}

}  // namespace

void where(const Exec&, Out out, In condition, In a, In b) {
  const View* const operands[] = {&out, &condition, &a, &b};
  elementwise({where_row_of(element_size(out.dtype)), nullptr, false, 1, {}, any_nonfinite},
              operands, 4);
}

template void binary<fn::Add>(const Exec&, Out, In, In);
template void binary<fn::Sub>(const Exec&, Out, In, In);
template void binary<fn::Mul>(const Exec&, Out, In, In);
template void binary<fn::Div>(const Exec&, Out, In, In);
template void binary<fn::Maximum>(const Exec&, Out, In, In);
template void binary<fn::Minimum>(const Exec&, Out, In, In);
template void unary<fn::Neg>(const Exec&, Out, In);
template void unary<fn::Abs>(const Exec&, Out, In);
template void unary<fn::Sign>(const Exec&, Out, In);
template void unary<fn::Square>(const Exec&, Out, In);
template void unary<fn::Reciprocal>(const Exec&, Out, In);

}  // namespace TAPER_ISA
}  // namespace taper::cpu
