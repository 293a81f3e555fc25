// How a functor becomes kernels: one for each element type that it is defined on.
#pragma once

#ifdef __CUDACC__
#pragma nv_diag_suppress 186  // x < 0 in functors of every integer type, unsigned ones too
#endif

#include <initializer_list>
#include <type_traits>

#include "taper/core/functors.h"
#include "taper/cuda/device.cuh"

namespace taper::cuda {

// Note [Packs]
// A kernel walks over rows that lie evenly in every operand; one thread takes as many
// elements of a row as fill 16 bytes of their type together, a pack. Where an operand's rows are
// dense and aligned, the pack is one load or store; else it goes element by element, by the
// operand's stride, as the ends of a row do. So one kernel reads and writes every layout, and
// compiles its functor for a single loop.
struct Rows {
  static constexpr int kMostOperands = 4;  // the output and three inputs

  struct Operand {
    void* data;
    bool packed;  // packs are aligned
    Index step, strides[kMaxDims];
  };

  Index count = 0, length = 1;  // rows, and elements of one
  Index packs = 0, head = 0;    // of a row; elements by which its first pack is short
  int ndim = 0;                 // dims over the rows
  Index sizes[kMaxDims] = {};
  Operand operands[kMostOperands] = {};  // the output is the first
};

using RowsKernel = void (*)(Rows, double, double);

// Runs a kernel over views of equal sizes, the output first; a pack has `pack` elements.
void run_rows(const Exec& exec,
              RowsKernel kernel,
              int pack,
              std::initializer_list<const View*> views,
              double first,
              double second);

// No pack is wider than what one instruction moves.
template <class R, class T>
inline constexpr int kPackOf = 16 / static_cast<int>(sizeof(R) > sizeof(T) ? sizeof(R) : sizeof(T));

// Where one pack is: elements [col, col + kSize) of a row, the first at offset[k] in operand k.
template <int kOperands, int kSize> struct Place {
  Index col, offset[size_t{kOperands}];
  bool whole;

  __device__ Place(const Rows& rows, Index pack) {
    Index row = 0;
    if (rows.count > 1) {
      row = pack / rows.packs;
      pack -= row * rows.packs;
    }
    col = pack * kSize - rows.head;
    for (int k = 0; k < kOperands; ++k) offset[k] = col * rows.operands[k].step;
    for (int d = rows.ndim - 1; d >= 0; --d) {
      const Index at = row % rows.sizes[d];
      row /= rows.sizes[d];
      for (int k = 0; k < kOperands; ++k) offset[k] += at * rows.operands[k].strides[d];
    }
    whole = col >= 0 && col + kSize <= rows.length;
  }

  template <class T> __device__ Pack<T, kSize> load(const Rows& rows, int k) const {
    const Rows::Operand& operand = rows.operands[k];
    const T* from = static_cast<const T*>(operand.data) + offset[k];
    if (operand.packed && whole) return *reinterpret_cast<const Pack<T, kSize>*>(from);
    Pack<T, kSize> pack{};
    for (int j = 0; j < kSize; ++j) {
      if (col + j >= 0 && col + j < rows.length) pack.of[j] = from[j * operand.step];
    }
    return pack;
  }

  template <class R> __device__ void store(const Rows& rows, Pack<R, kSize> pack) const {
    const Rows::Operand& operand = rows.operands[0];
    R* to = static_cast<R*>(operand.data) + offset[0];
    if (operand.packed && whole) {
      *reinterpret_cast<Pack<R, kSize>*>(to) = pack;
      return;
    }
    for (int j = 0; j < kSize; ++j) {
      if (col + j >= 0 && col + j < rows.length) to[j * operand.step] = pack.of[j];
    }
  }
};

// Functors with parameters are made from two numbers, the others from nothing.
template <class F> __device__ F make(double first, double second) {
  if constexpr (std::is_constructible_v<F, double, double>) {
    return F(first, second);
  } else {
    return F{};
  }
}

// The types of these kernels do not name F, R or T: what launches them is compiled once.
template <class F, class R, class T>
__global__ void unary_kernel(Rows rows, double first, double second) {
  using C = Compute<T>;
  constexpr int kSize = kPackOf<R, T>;
  const F f = make<F>(first, second);
  for (Index i = first_index(); i < rows.count * rows.packs; i += index_step()) {
    const Place<2, kSize> place(rows, i);
    const auto a = place.template load<T>(rows, 1);
    Pack<R, kSize> out;
    for (int j = 0; j < kSize; ++j) out.of[j] = static_cast<R>(f(static_cast<C>(a.of[j])));
    place.store(rows, out);
  }
}

template <class F, class R, class T>
__global__ void binary_kernel(Rows rows, double first, double second) {
  using C = Compute<T>;
  constexpr int kSize = kPackOf<R, T>;
  const F f = make<F>(first, second);
  for (Index i = first_index(); i < rows.count * rows.packs; i += index_step()) {
    const Place<3, kSize> place(rows, i);
    const auto a = place.template load<T>(rows, 1), b = place.template load<T>(rows, 2);
    Pack<R, kSize> out;
    for (int j = 0; j < kSize; ++j) {
      out.of[j] = static_cast<R>(f(static_cast<C>(a.of[j]), static_cast<C>(b.of[j])));
    }
    place.store(rows, out);
  }
}

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

template <class F, class T>
void run_unary(const Exec& exec, const Out& out, const In& a, double first, double second) {
  using R = Stored<T, std::invoke_result_t<F, Compute<T>>>;
  run_rows(exec, unary_kernel<F, R, T>, kPackOf<R, T>, {&out, &a}, first, second);
}

template <class F, class T>
void run_binary(
    const Exec& exec, const Out& out, const In& a, const In& b, double first, double second) {
  using R = Stored<T, std::invoke_result_t<F, Compute<T>, Compute<T>>>;
  run_rows(exec, binary_kernel<F, R, T>, kPackOf<R, T>, {&out, &a, &b}, first, second);
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
