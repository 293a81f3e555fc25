// Calls a slot of both columns with twins, and compares all that was written.
#pragma once

#include "taper/tests/cuda/twin.h"

namespace taper::cuda {

inline constexpr DType kEveryDType[] = {kFloat64, kFloat32, kFloat16, kBFloat16,
                                        kInt64,   kInt32,   kUInt8,   kBool};

// The lies that an output may have.
inline constexpr Lie kEveryOutLie[] = {Lie::kRowMajor, Lie::kReversed, Lie::kGaps, Lie::kBackwards};

inline void compare(const Twin& out) {
  const std::string difference = out.difference();
  EXPECT_EQ(difference, "");
}

// An argument of a slot: a Twin becomes a view of its machine, the rest stays.
template <class V> struct As { Twin& twin; };

template <class V> V cpu_of(const As<V>& as) {
  return as.twin.template on_cpu<V>();
}

template <class V> V cuda_of(const As<V>& as) {
  return as.twin.template on_cuda<V>();
}

// Several twins for a slot that takes a list.
using AsList = std::vector<Twin*>;

inline std::vector<In> cpu_of(const AsList& twins) {
  std::vector<In> views;
  for (Twin* twin : twins) views.push_back(twin->on_cpu<In>());
  return views;
}

inline std::vector<In> cuda_of(const AsList& twins) {
  std::vector<In> views;
  for (Twin* twin : twins) views.push_back(twin->on_cuda<In>());
  return views;
}

template <class T> const T& cpu_of(const T& x) {
  return x;
}

template <class T> const T& cuda_of(const T& x) {
  return x;
}

inline As<In> in(Twin& twin) {
  return {twin};
}

// V is what the slot takes `out` as.
template <class V = Out, class Slot, class... Args>
void check(Slot slot, Twin& out, const Args&... args) {
  Both<>::run(
      slot,
      [&](const auto& kernel, const Exec& exec) { kernel(exec, out.on_cpu<V>(), cpu_of(args)...); },
      [&](const auto& kernel, const Exec& exec) {
        kernel(exec, out.on_cuda<V>(), cuda_of(args)...);
      });
  compare(out);
}

template <class Slot> std::string where(Slot slot, DType dtype, int lie) {
  return str(slot_name(&(cpu_kernels().*slot)), " of ", dtype, ", lie ", lie);
}

// Few and many elements, in and out of one block, with dims of 1 and without elements.
inline const std::vector<std::vector<std::int64_t>> kShapes = {
    {}, {7}, {3, 1, 5}, {4, 33, 6}, {0, 3}};

}  // namespace taper::cuda
