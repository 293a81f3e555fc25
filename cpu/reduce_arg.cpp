// argmax and argmin. One read of the input, a second one of the blocks that hold a new best.
#include "taper/cpu/reduce.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

// The best element so far of one output and block, and its index along the reduced dim.
template <class T> struct Best {
  T value;
  std::int64_t index;
};

template <class R, class T>
TAPER_INLINE void consider(Best<T>& best, const T* x, std::int64_t n, std::int64_t first) {
  const T value = reduce_dense<typename R::Value>(x, n, T(0));
  if (best.index >= 0 && !R::is_better(value, best.value)) return;
  std::int64_t i = 0;
  while (value == value ? x[i] != value : x[i] == x[i]) ++i;
  best = {value, first + i};
}

template <class R, class T>
void arg_by_output(const ReducePlan& plan, ConvertFn convert, Best<T>* partial) {
  for_each_block(plan, [&](std::int64_t output, std::int64_t block, std::byte* base,
                           std::int64_t first, std::int64_t n) {
    Best<T> best{T(0), -1};
    std::int64_t at = first;
    for_each_piece<T>(plan, convert, base, first, n, [&](const T* x, std::int64_t m) {
      consider<R>(best, x, m, at);
      at += m;
    });
    partial[block * plan.outputs + output] = best;
  });
}

template <class R, class T>
void arg_by_column(const ReducePlan& plan, ConvertFn convert, Best<T>* partial) {
  for_each_strip<T>(plan, [&](std::int64_t output, std::int64_t width, std::int64_t block,
                              std::byte* base, std::int64_t first, std::int64_t n) {
    constexpr std::int64_t kWidth = kStripWidth<T>;
    T value[std::size_t{kWidth}];
    std::int64_t index[std::size_t{kWidth}];
    for_each_strip_row<T>(plan, convert, base, width, first, n, [&](const T* x, std::int64_t row) {
      for (std::int64_t j = 0; j < width; ++j) {
        const bool better = row == 0 || R::is_better(x[j], value[j]);
        value[j] = better ? x[j] : value[j];
        index[j] = better ? first + row : index[j];
      }
    });
    for (std::int64_t j = 0; j < width; ++j) {
      partial[block * plan.outputs + output + j] = {value[j], index[j]};
    }
  });
}

template <class R, class T>
void arg_in(const Exec& exec, const View& out, const View& in, DType dtype) {
  const View* const outs[] = {&out};
  const ReducePlan plan = reduce_plan(exec, in, outs, 1);
  if (plan.outputs == 0) return;
  if (plan.length == 0) fail_empty_reduction();
  const std::int64_t blocks = blocks_of(plan.length);
  const auto bytes = static_cast<std::size_t>(plan.outputs * blocks) * sizeof(Best<T>);
  Best<T>* partial = static_cast<Best<T>*>(exec.scratch(bytes));
  const ConvertFn convert = converter_to(dtype, in.dtype);
  if (plan.by_column) arg_by_column<R, T>(plan, convert, partial);
  else arg_by_output<R, T>(plan, convert, partial);
  auto* indices =
      static_cast<std::int64_t*>(exec.scratch(static_cast<std::size_t>(plan.outputs) * 8));
  for (std::int64_t i = 0; i < plan.outputs; ++i) {
    Best<T> best = partial[i];
    for (std::int64_t b = 1; b < blocks; ++b) {
      const Best<T>& later = partial[b * plan.outputs + i];
      if (R::is_better(later.value, best.value)) best = later;
    }
    indices[i] = best.index;
  }
  const Layout dense = contiguous_layout(plan.out[0].shape());
  copy(exec, Out{{out.data, &plan.out[0], out.dtype}}, In{{indices, &dense, kInt64}});
}

template <class R> void arg(const Exec& exec, const View& out, const View& in) {
  const DType dtype = computed(in.dtype);
  if (dtype == kFloat64) return arg_in<R, double>(exec, out, in, kFloat64);
  if (dtype == kFloat32) return arg_in<R, float>(exec, out, in, kFloat32);
  arg_in<R, std::int64_t>(exec, out, in, kInt64);
}

}  // namespace

void argmax(const Exec& exec, Out out, In in, int) {
  arg<fn::ArgMax>(exec, out, in);
}

void argmin(const Exec& exec, Out out, In in, int) {
  arg<fn::ArgMin>(exec, out, in);
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
