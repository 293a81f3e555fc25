// How a functor becomes kernels: one for each element type that it is defined on.
#pragma once

#ifdef __CUDACC__
#pragma nv_diag_suppress 186  // x < 0 in functors of every integer type, unsigned ones too
#endif

#include <type_traits>
#include <utility>

#include "taper/core/functors.h"
#include "taper/cuda/device.cuh"

namespace taper::cuda {

// An operand of a kernel: element i is data[i * step]. step is 1, or 0 for one number.
template <class T> struct Operand {
  const T* data;
  Index step;
};

// Functors with parameters are made from two numbers, the others from nothing.
template <class F> __device__ F make(double first, double second) {
  if constexpr (std::is_constructible_v<F, double, double>) {
    return F(first, second);
  } else {
    return F{};
  }
}

// The types of these kernels do not name F: what launches them is compiled once for each T.
template <class F, class R, class T>
__global__ void unary_kernel(R* out, Operand<T> a, Index n, double first, double second) {
  using C = Compute<T>;
  const F f = make<F>(first, second);
  for (Index i = first_index(); i < n; i += index_step()) {
    out[i] = static_cast<R>(f(static_cast<C>(a.data[i * a.step])));
  }
}

template <class F, class R, class T>
__global__ void binary_kernel(
    R* out, Operand<T> a, Operand<T> b, Index n, double first, double second) {
  using C = Compute<T>;
  const F f = make<F>(first, second);
  for (Index i = first_index(); i < n; i += index_step()) {
    out[i] =
        static_cast<R>(f(static_cast<C>(a.data[i * a.step]), static_cast<C>(b.data[i * b.step])));
  }
}

// Brings operands to a form that kernels take: as they lie, where that is one run of memory in the
// same order for all, else by way of scratch.
template <size_t Inputs> class Operands {
 public:
  template <class... Views>
  Operands(const Exec& exec, const Out& out, const Views&... in)
      : n_(out.layout->numel()), lies_(lies_well(out, in...)), out_(exec, lies_ ? flat_ : out) {
    size_t k = 0;
    ((data_[k] = step_[k] == 0 || lies_ ? in.data : dense(exec, in), ++k), ...);
  }

  Index count() const { return n_; }

  template <class R> R* out() const { return static_cast<R*>(out_.data()); }

  template <class T> Operand<T> in(size_t k) const {
    return {static_cast<const T*>(data_[k]), step_[k]};
  }

  void finish() { out_.finish(); }

 private:
  // Also sets step_, and flat_ to the output as one run.
  template <class... Views> bool lies_well(const Out& out, const Views&... in) {
    Layout layouts[Inputs + 1] = {*out.layout, *in.layout...};
    Layout* pointers[Inputs + 1];
    for (size_t k = 0; k <= Inputs; ++k) pointers[k] = &layouts[k];
    order_dims(pointers, Inputs + 1);
    bool well = layouts[0].ndim == 0 || (layouts[0].ndim == 1 && layouts[0].strides[0] == 1);
    for (size_t k = 0; k < Inputs; ++k) {
      const Layout& layout = layouts[k + 1];
      step_[k] = 0;
      for (int d = 0; d < layout.ndim; ++d) {
        if (layout.strides[d] != 0) step_[k] = 1;
      }
      if (step_[k] == 1) well = well && layout.strides[0] == 1;
    }
    run_ = layouts[0];
    static_cast<View&>(flat_) = out;
    flat_.layout = &run_;
    return well;
  }

  Index n_;
  Layout run_;
  Out flat_;
  Index step_[Inputs] = {};
  bool lies_;
  DenseOut out_;
  const void* data_[Inputs] = {};
};

// "expected a floating-point dtype, got bool", for a functor F of arguments Args in number.
template <class F, class... Args> [[noreturn]] void fail_domain(DType got) {
  constexpr bool kReal = std::is_invocable_v<F, std::conditional_t<true, double, Args>...>;
  constexpr bool kInteger = std::is_invocable_v<F, std::conditional_t<true, std::int64_t, Args>...>;
  fail_dtype(!kReal     ? "an integer or bool"
             : kInteger ? "a number's"
                        : "a floating-point",
             info(got).name);
}

// What an output is stored as: bool for predicates, else as the inputs are.
template <class T, class Result>
using Stored = std::conditional_t<std::is_same_v<Result, Compute<T>>, T, Result>;

template <class R, class T> using UnaryKernel = void (*)(R*, Operand<T>, Index, double, double);
template <class R, class T>
using BinaryKernel = void (*)(R*, Operand<T>, Operand<T>, Index, double, double);

template <class R, class T>
void run(const Exec& exec,
         UnaryKernel<R, T> kernel,
         const Out& out,
         const In& a,
         double first,
         double second) {
  Operands<1> operands(exec, out, a);
  const Index n = operands.count();
  R* to = operands.template out<R>();
  launch_on(exec, blocks_for(n), kThreads, kernel, to, operands.template in<T>(0), n, first,
            second);
  operands.finish();
}

template <class R, class T>
void run(const Exec& exec,
         BinaryKernel<R, T> kernel,
         const Out& out,
         const In& a,
         const In& b,
         double first,
         double second) {
  Operands<2> operands(exec, out, a, b);
  const Index n = operands.count();
  R* to = operands.template out<R>();
  const Operand<T> left = operands.template in<T>(0), right = operands.template in<T>(1);
  launch_on(exec, blocks_for(n), kThreads, kernel, to, left, right, n, first, second);
  operands.finish();
}

template <class F, class T>
void run_unary(const Exec& exec, const Out& out, const In& a, double first, double second) {
  using R = Stored<T, std::invoke_result_t<F, Compute<T>>>;
  run<R, T>(exec, unary_kernel<F, R, T>, out, a, first, second);
}

template <class F, class T>
void run_binary(
    const Exec& exec, const Out& out, const In& a, const In& b, double first, double second) {
  using R = Stored<T, std::invoke_result_t<F, Compute<T>, Compute<T>>>;
  run<R, T>(exec, binary_kernel<F, R, T>, out, a, b, first, second);
}

template <class F> void unary(const Exec& exec, Out out, In a) {
  visit_dtype(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_invocable_v<F, Compute<T>>) {
      run_unary<F, T>(exec, out, a, 0, 0);
    } else {
      fail_domain<F, T>(a.dtype);
    }
  });
}

template <class F> void binary(const Exec& exec, Out out, In a, In b) {
  visit_dtype(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_invocable_v<F, Compute<T>, Compute<T>>) {
      run_binary<F, T>(exec, out, a, b, 0, 0);
    } else {
      fail_domain<F, T, T>(a.dtype);
    }
  });
}

template <template <class> class F> [[noreturn]] void fail_domain2(DType got) {
  constexpr bool kInteger = requires {
    typename F<std::int64_t>;
  };
  fail_dtype(kInteger ? "a number's" : "a floating-point", info(got).name);
}

template <template <class> class F>
void unary2(const Exec& exec, Out out, In a, double first, double second) {
  visit_dtype(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (requires { typename F<Compute<T>>; }) {
      run_unary<F<Compute<T>>, T>(exec, out, a, first, second);
    } else {
      fail_domain2<F>(a.dtype);
    }
  });
}

template <template <class> class F>
void binary2(const Exec& exec, Out out, In a, In b, double first, double second) {
  visit_dtype(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (requires { typename F<Compute<T>>; }) {
      run_binary<F<Compute<T>>, T>(exec, out, a, b, first, second);
    } else {
      fail_domain2<F>(a.dtype);
    }
  });
}

}  // namespace taper::cuda
