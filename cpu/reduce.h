// The two ways through the elements of a reduction: output by output, and column by column.
#pragma once
#include "taper/cpu/elementwise.h"
#include "taper/cpu/lanes.h"
#include "taper/cpu/parallel.h"
#include "taper/cpu/reduce_plan.h"
#include "taper/cpu/strip.h"

namespace taper::cpu {
inline namespace TAPER_ISA {

TAPER_INLINE std::int64_t blocks_of(std::int64_t length) {
  return length > fn::kReduceBlock ? (length - 1) / fn::kReduceBlock + 1 : 1;
}

// An input as T: its converter, or null where it is stored so.
TAPER_INLINE ConvertFn converter_to(DType wanted, DType stored) {
  return wanted == stored ? nullptr : converter(wanted, stored);
}

// Calls piece(x, n) with the elements [first, first + n) of the output whose sequence starts at
// `base`, one dense piece after another; each is a multiple of 64 elements, but the last.
template <class T, class Piece>
TAPER_INLINE void for_each_piece(const ReducePlan& plan,
                                 ConvertFn convert,
                                 std::byte* base,
                                 std::int64_t first,
                                 std::int64_t n,
                                 const Piece& piece) {
  std::byte* dense = base + first * plan.reduced.size;
  if (plan.dense && convert == nullptr) return piece(reinterpret_cast<const T*>(dense), n);
  alignas(64) std::byte stored[kBlock * 8];
  alignas(64) T values[kBlock];
  Strided in = plan.reduced;
  in.data = base;
  Cursor cursor(plan.reduced_ndim, plan.reduced_sizes, first);
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t m = n - i < kBlock ? n - i : kBlock;
    void* packed = convert != nullptr ? static_cast<void*>(stored) : values;
    if (plan.dense) {
      packed = dense + i * in.size;
    } else {
      pack(packed, in, cursor, m);
      cursor.advance(m);
    }
    if (convert != nullptr) convert(values, packed, m);
    piece(values, m);
  }
}

// For every output and block of it: unit(output, block, base, first, n).
template <class Unit> TAPER_INLINE void for_each_block(const ReducePlan& plan, const Unit& unit) {
  const std::int64_t blocks = blocks_of(plan.length);
  const std::int64_t work = plan.length < fn::kReduceBlock ? plan.length : fn::kReduceBlock;
  parallel_for(plan.outputs * blocks, grain_of(work), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t output = begin / blocks, block = begin % blocks;
    Cursor cursor(plan.kept_ndim, plan.kept_sizes, output);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = block * fn::kReduceBlock;
      const std::int64_t left = plan.length - first;
      unit(output, block, plan.kept.data + cursor.offset(plan.kept.strides), first,
           left < fn::kReduceBlock ? left : fn::kReduceBlock);
      if (++block < blocks) continue;
      block = 0;
      ++output;
      cursor.advance(1);
    }
  });
}

// For every strip of at most kStripWidth<T> neighbouring outputs and block of theirs:
// unit(output, width, block, base, first, n), where `output` is the first of the strip.
template <class T, class Unit>
TAPER_INLINE void for_each_strip(const ReducePlan& plan, const Unit& unit) {
  constexpr std::int64_t kWidth = kStripWidth<T>;
  const int last = plan.kept_ndim - 1;
  const std::int64_t columns = plan.kept_sizes[last];
  const std::int64_t strips = (columns - 1) / kWidth + 1, blocks = blocks_of(plan.length);
  const std::int64_t count = plan.outputs / columns * strips * blocks;
  const std::int64_t rows = plan.length < fn::kReduceBlock ? plan.length : fn::kReduceBlock;
  const std::int64_t grain = grain_of(rows * (columns < kWidth ? columns : kWidth));
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t strip = i / blocks % strips, outer = i / blocks / strips;
      const std::int64_t first = i % blocks * fn::kReduceBlock, column = strip * kWidth;
      const Cursor cursor(last, plan.kept_sizes, outer);
      std::byte* base =
          plan.kept.data + cursor.offset(plan.kept.strides) + column * plan.kept.strides[last];
      const std::int64_t width = columns - column < kWidth ? columns - column : kWidth;
      const std::int64_t left = plan.length - first;
      unit(outer * columns + column, width, i % blocks, base, first,
           left < fn::kReduceBlock ? left : fn::kReduceBlock);
    }
  });
}

// Calls row(x, i) for the rows [first, first + n) of a strip of `width` columns at `base`.
template <class T, class Row>
TAPER_INLINE void for_each_strip_row(const ReducePlan& plan,
                                     ConvertFn convert,
                                     std::byte* base,
                                     std::int64_t width,
                                     std::int64_t first,
                                     std::int64_t n,
                                     const Row& row) {
  alignas(64) std::byte stored[kColumnBytes];
  alignas(64) T values[kColumnBytes / sizeof(T)];
  const std::int64_t step = plan.kept.strides[plan.kept_ndim - 1];
  const bool dense = step == plan.kept.size;
  Strided in{base, plan.kept.size, {step}};
  const std::int64_t reduced_step = plan.reduced.strides[plan.reduced_ndim - 1];
  Cursor cursor(plan.reduced_ndim, plan.reduced_sizes, first);
  for (std::int64_t i = 0; i < n;) {
    std::byte* at = base + cursor.offset(plan.reduced.strides);
    const std::int64_t run = cursor.left_in_row() < n - i ? cursor.left_in_row() : n - i;
    for (const std::int64_t end = i + run; i < end; ++i, at += reduced_step) {
      if (dense && convert == nullptr) {
        row(reinterpret_cast<const T*>(at), i);
        continue;
      }
      void* packed = at;
      if (!dense) {
        packed = convert != nullptr ? static_cast<void*>(stored) : values;
        in.data = at;
        pack(packed, in, Cursor(1, &width, 0), width);
      }
      if (convert != nullptr) convert(values, packed, width);
      row(values, i);
    }
    cursor.advance(run);
  }
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
