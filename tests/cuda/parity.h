// Calls a slot of both columns with twins of the same operands, and compares what it writes.
#pragma once

#include "taper/tests/cuda/twin.h"

namespace taper::cuda {

inline constexpr DType kEveryDType[] = {kFloat64, kFloat32, kFloat16, kBFloat16,
                                        kInt64,   kInt32,   kUInt8,   kBool};

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

template <class T> const T& cpu_of(const T& x) {
  return x;
}

template <class T> const T& cuda_of(const T& x) {
  return x;
}

inline As<In> in(Twin& twin) {
  return {twin};
}

template <class Slot, class... Args> void check(Slot slot, Twin& out, const Args&... args) {
  Both<>::run(
      slot,
      [&](const auto& kernel, const Exec& exec) {
        kernel(exec, out.on_cpu<Out>(), cpu_of(args)...);
      },
      [&](const auto& kernel, const Exec& exec) {
        kernel(exec, out.on_cuda<Out>(), cuda_of(args)...);
      });
  compare(out);
}

}  // namespace taper::cuda
