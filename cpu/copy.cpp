// copy, fill and arange, and every conversion between element types. 1 read, 1 write.
#include "taper/cpu/elementwise.h"
#include "taper/cpu/move.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

template <class To, class From> void convert(void* out, const void* in, std::int64_t n) {
  To* to = static_cast<To*>(out);
  const From* from = static_cast<const From*>(in);
  const auto count = static_cast<std::size_t>(n);
  if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>) {
    half_to_float(from, to, count);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>) {
    float_to_half(from, to, count);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = fn::Cast<To>{}(from[i]);
  }
}

// All converters, by [to][from].
struct Converters {
  ConvertFn table[kNumDTypes][kNumDTypes];
};

template <int To, int From> constexpr void add_converters(Converters& all) {
  if constexpr (To < kNumDTypes) {
    all.table[To][From] =
        convert<typename CppTypeOf<DType{To}>::type, typename CppTypeOf<DType{From}>::type>;
    constexpr bool kLast = From + 1 == kNumDTypes;
    add_converters<kLast ? To + 1 : To, kLast ? 0 : From + 1>(all);
  }
}

constexpr Converters kConverters = [] {
  Converters all{};
  add_converters<0, 0>(all);
  return all;
}();

}  // namespace

ConvertFn converter(DType to, DType from) {
  return kConverters.table[static_cast<int>(to)][static_cast<int>(from)];
}

namespace {

void convert_row(const void* fn, void* const* operands, std::int64_t n, unsigned) {
  (*static_cast<const ConvertFn*>(fn))(operands[0], operands[1], n);
}

// Elements are filled by their size; these may stand for any type.
using U8 [[gnu::may_alias]] = std::uint8_t;
using U16 [[gnu::may_alias]] = std::uint16_t;
using U32 [[gnu::may_alias]] = std::uint32_t;
using U64 [[gnu::may_alias]] = std::uint64_t;

template <class U> void fill_row(const void* fn, void* const* operands, std::int64_t n, unsigned) {
  const U value = *static_cast<const U*>(fn);
  U* out = static_cast<U*>(operands[0]);
  for (std::int64_t i = 0; i < n; ++i) out[i] = value;
}

TAPER_INLINE RowFn fill_row_of(std::int64_t size) {
  switch (size) {
    case 1: return fill_row<U8>;
    case 2: return fill_row<U16>;
    case 4: return fill_row<U32>;
    default: return fill_row<U64>;
  }
}

// Element i is start + i * step, computed in T, in row-major order.
template <class T> void arange_in(const View& out, DType type, T start, T step) {
  const ConvertFn convert = converter(out.dtype, type);
  const Strided target = strided(out);
  const Layout& layout = *out.layout;
  const fn::Arange<T> f{start, step};
  parallel_for(layout.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    T values[kBlock];
    alignas(64) std::byte stored[kBlock * 8];
    for (std::int64_t first = begin; first < end; first += kBlock) {
      const std::int64_t n = end - first < kBlock ? end - first : kBlock;
      const T base = static_cast<T>(first);
      for (std::int32_t i = 0; i < n; ++i) values[i] = f.at(base + static_cast<T>(i));
      convert(stored, values, n);
      unpack(target, stored, Cursor(layout.ndim, layout.sizes, first), n);
    }
  });
}

}  // namespace

void run_rows(RowFn run, const void* fn, int cost, const View* const* operands, int count) {
  const bool takes_scalars = cost == 1 && count == 3;  // see binary_row
  Row row{run, fn, takes_scalars, cost, {}, any_nonfinite};
  for (int k = 0; k < count; ++k) {
    const DType stored = operands[k]->dtype, wanted = computed(stored);
    if (stored == wanted) continue;
    row.convert[k] = k == 0 ? converter(stored, wanted) : converter(wanted, stored);
  }
  elementwise(row, operands, count);
}

void copy(const Exec&, Out out, In in) {
  if (out.dtype == in.dtype) return move(out, in);
  const ConvertFn convert = converter(out.dtype, in.dtype);
  const View* const operands[] = {&out, &in};
  elementwise({convert_row, &convert, false, 1, {}, any_nonfinite}, operands, 2);
}

void fill(const Exec&, Out out, Scalar value) {
  alignas(8) std::byte stored[8];
  if (value.is_floating_point()) {
    const double x = value.to_double();
    converter(out.dtype, kFloat64)(stored, &x, 1);
  } else {
    const std::int64_t x = value.to_int();
    converter(out.dtype, kInt64)(stored, &x, 1);
  }
  if (finite_watch != nullptr && is_floating_point(out.dtype)) {  // one look is enough
    finite_watch->looked_at = out.data;
    finite_watch->found = out.layout->numel() != 0 && any_nonfinite(stored, 1, out.dtype);
  }
  const View* const operands[] = {&out};
  elementwise({fill_row_of(element_size(out.dtype)), stored, false, 1, {}}, operands, 1);
}

void arange(const Exec&, Out out, Scalar start, Scalar step) {
  if (start.is_floating_point() || step.is_floating_point() || is_floating_point(out.dtype)) {
    arange_in(out, kFloat64, start.to_double(), step.to_double());
  } else {
    arange_in(out, kInt64, start.to_int(), step.to_int());
  }
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
