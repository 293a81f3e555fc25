// The elementwise loop: rows of any strides and types brought to a function over dense elements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "taper/core/exec.h"

// Note [Rows]
// A kernel knows one thing: how to compute n dense elements. Everything else is here, once, and not
// a template: dims are merged and ordered by the output's strides, the range is cut for the
// threads, and operands that are strided, or of a 16-bit type, pass through a buffer of kBlock
// elements that stays in the first-level cache. So each functor is compiled for dense rows of the
// types it computes in, and for nothing else, and is vectorised whatever the layout.
namespace taper::cpu {

inline constexpr int kMostOperands = 4;
inline constexpr std::int64_t kBlock = 512;

// Computes out[i] = f(in1[i], in2[i], ...) for n elements; operands[0] is out. Inputs whose bit is
// set in `scalars` are one element for all i. `fn` is the functor.
using RowFn = void (*)(const void* fn, void* const* operands, std::int64_t n, unsigned scalars);

// Converts n dense elements; `out` and `in` do not overlap.
using ConvertFn = void (*)(void* out, const void* in, std::int64_t n);

// Whether one of n dense elements is a NaN or an infinity. Of floating types only.
using NonfiniteFn = bool (*)(const void* x, std::int64_t n, DType dtype);

struct Row {
  RowFn run = nullptr;
  const void* fn = nullptr;
  bool takes_scalars = false;  // else a scalar is stretched to a buffer
  std::int64_t cost = 1;       // work of one element, in additions
  // For operands that the row computes in another type than they are stored in.
  ConvertFn convert[kMostOperands] = {};
  NonfiniteFn any_nonfinite = nullptr;  // for a FiniteWatch; null: the output is not looked at
};

// Runs `row` over all elements. operands[0] is written; sizes are equal. Operands may coincide
// exactly, not overlap otherwise.
void elementwise(const Row& row, const View* const* operands, int count);

[[noreturn]] void fail_division_by_zero();

}  // namespace taper::cpu
