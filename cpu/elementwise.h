// How a functor becomes kernels: one row function for each type that it computes in.
#pragma once
#include <type_traits>

#include "taper/core/functors.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/loops.h"

namespace taper::cpu {
inline namespace TAPER_ISA {

template <class T>
concept Stored16 = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// 16-bit floats are computed in f32.
TAPER_INLINE DType computed(DType stored) {
  return stored == kFloat16 || stored == kBFloat16 ? kFloat32 : stored;
}

// Work of one element, in additions: functors for floating numbers alone are mostly polynomials.
template <class F, class... Args> inline constexpr int cost_of = 4;
template <class F, class... Args>
requires(std::is_invocable_v<F, std::conditional_t<true, std::int64_t, Args>...> ||
         std::is_same_v<F, fn::Div>) inline constexpr int cost_of<F, Args...> = 1;

template <class F, class T>
void unary_row(const void* fn, void* const* operands, std::int64_t n, unsigned) {
  using Result = std::invoke_result_t<F, T>;
  const F f = *static_cast<const F*>(fn);
  Result* out = static_cast<Result*>(operands[0]);
  const T* in = static_cast<const T*>(operands[1]);
  for (std::int64_t i = 0; i < n; ++i) out[i] = f(in[i]);
}

template <class F, class T>
void binary_row(const void* fn, void* const* operands, std::int64_t n, unsigned scalars) {
  using Result = std::invoke_result_t<F, T, T>;
  const F f = *static_cast<const F*>(fn);
  Result* out = static_cast<Result*>(operands[0]);
  const T* a = static_cast<const T*>(operands[1]);
  const T* b = static_cast<const T*>(operands[2]);
  if (scalars == 0) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
    return;
  }
  if constexpr (cost_of<F, T, T> == 1) {  // the others take no scalars
    const T first = *a, second = *b;
    if (scalars == 2) {
      for (std::int64_t i = 0; i < n; ++i) out[i] = f(first, b[i]);
    } else if (scalars == 4) {
      for (std::int64_t i = 0; i < n; ++i) out[i] = f(a[i], second);
    } else {
      for (std::int64_t i = 0; i < n; ++i) out[i] = f(first, second);
    }
  }
}

// Converts dense elements. copy.cpp.
ConvertFn converter(DType to, DType from);

// Runs `run` over the operands, through float where they are stored in 16 bits. copy.cpp.
void run_rows(RowFn run, const void* fn, int cost, const View* const* operands, int count);

// "expected a floating-point dtype, got bool", for a functor F of arguments Args in number.
template <class F, class... Args> [[noreturn]] void fail_domain(DType got) {
  constexpr bool kReal = std::is_invocable_v<F, std::conditional_t<true, double, Args>...>;
  constexpr bool kInteger = std::is_invocable_v<F, std::conditional_t<true, std::int64_t, Args>...>;
  fail_dtype(!kReal     ? "an integer or bool"
             : kInteger ? "a number's"
                        : "a floating-point",
             info(got).name);
}

template <class F> void unary(const Exec&, Out out, In in) {
  const View* const operands[] = {&out, &in};
  visit_dtype(computed(in.dtype), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_invocable_v<F, T> && !Stored16<T>) {
      const F f{};
      run_rows(unary_row<F, T>, &f, cost_of<F, T>, operands, 2);
    } else {
      fail_domain<F, T>(in.dtype);
    }
  });
}

template <class F> void binary(const Exec&, Out out, In a, In b) {
  const View* const operands[] = {&out, &a, &b};
  visit_dtype(computed(a.dtype), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_invocable_v<F, T, T> && !Stored16<T>) {
      const F f{};
      run_rows(binary_row<F, T>, &f, cost_of<F, T, T>, operands, 3);
    } else {
      fail_domain<F, T, T>(a.dtype);
    }
  });
}

template <template <class> class F>
void unary2(const Exec&, Out out, In in, double first, double second) {
  const View* const operands[] = {&out, &in};
  visit_dtype(computed(in.dtype), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (requires { typename F<T>; } && !Stored16<T>) {
      const F<T> f(first, second);
      run_rows(unary_row<F<T>, T>, &f, cost_of<F<T>, T>, operands, 2);
    } else {
      fail_dtype(
          requires { typename F<std::int64_t>; } ? "a number's" : "a floating-point",
          info(in.dtype).name);
    }
  });
}

template <template <class> class F>
void binary2(const Exec&, Out out, In a, In b, double first, double second) {
  const View* const operands[] = {&out, &a, &b};
  visit_dtype(computed(a.dtype), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (requires { typename F<T>; } && !Stored16<T>) {
      const F<T> f(first, second);
      run_rows(binary_row<F<T>, T>, &f, cost_of<F<T>, T, T>, operands, 3);
    } else {
      fail_dtype(
          requires { typename F<std::int64_t>; } ? "a number's" : "a floating-point",
          info(a.dtype).name);
    }
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
