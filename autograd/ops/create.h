// Functions that make tensors from nothing, from numbers, or from foreign memory.
#pragma once
#include <initializer_list>
#include <memory>

#include "taper/core/tensor.h"

namespace taper {

Tensor empty(IntArrayRef sizes, TensorOptions options = {}, Loc loc = Loc::current());
Tensor empty_strided(IntArrayRef sizes,
                     IntArrayRef strides,
                     TensorOptions options = {},
                     Loc loc = Loc::current());
Tensor zeros(IntArrayRef sizes, TensorOptions options = {}, Loc loc = Loc::current());
Tensor ones(IntArrayRef sizes, TensorOptions options = {}, Loc loc = Loc::current());
// The dtype follows the number when no option says otherwise: full({2}, 1) is i64.
Tensor full(IntArrayRef sizes, Scalar value, TensorOptions options = {}, Loc loc = Loc::current());
Tensor scalar_tensor(Scalar value, TensorOptions options = {}, Loc loc = Loc::current());
Tensor eye(std::int64_t n, TensorOptions options = {}, Loc loc = Loc::current());
Tensor eye(std::int64_t rows,
           std::int64_t columns,
           TensorOptions options = {},
           Loc loc = Loc::current());
// start, start + step, ... below (for a negative step above) end. An integer dtype truncates all
// three first.
Tensor arange(Scalar end, TensorOptions options = {}, Loc loc = Loc::current());
Tensor arange(Scalar start, Scalar end, TensorOptions options = {}, Loc loc = Loc::current());
Tensor arange(
    Scalar start, Scalar end, Scalar step, TensorOptions options = {}, Loc loc = Loc::current());
// `steps` numbers from start to end, both included.
Tensor linspace(Scalar start,
                Scalar end,
                std::int64_t steps,
                TensorOptions options = {},
                Loc loc = Loc::current());

Tensor empty_like(const TensorArg& t, TensorOptions options = {});
Tensor zeros_like(const TensorArg& t, TensorOptions options = {});
Tensor ones_like(const TensorArg& t, TensorOptions options = {});
Tensor full_like(const TensorArg& t, Scalar value, TensorOptions options = {});

// tensor(1.5f), tensor({1, 2, 3}), tensor({{1., 2.}, {3., 4.}}), tensor(vector). The dtype is that
// of the C++ numbers (double and float: the default dtype, as in LibTorch) unless options say.
class NestedNumbers {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> NestedNumbers(T x)  // NOLINT(google-explicit-constructor)
      : values_{Scalar(x)}, dtype_(number_dtype<T>()) {}

  NestedNumbers(std::initializer_list<NestedNumbers> list);  // throws when the rows differ

  template <class T>
  requires std::is_arithmetic_v<T> NestedNumbers(
      const std::vector<T>& list)  // NOLINT(google-explicit-constructor)
      : values_(list.begin(), list.end()), dtype_(number_dtype<T>()) {
    sizes_.push_back(static_cast<std::int64_t>(list.size()));
  }

  const std::vector<Scalar>& values() const { return values_; }

  IntArrayRef sizes() const { return sizes_; }

  DType dtype() const { return dtype_.value_or(get_default_dtype()); }

 private:
  // An integer literal is i64, as in LibTorch; bool stays; floats take the default dtype.
  template <class T> static std::optional<DType> number_dtype() {
    if constexpr (std::is_same_v<T, bool>) return kBool;
    else if constexpr (std::is_integral_v<T>) return kInt64;
    else return std::nullopt;
  }

  std::vector<Scalar> values_;
  Sizes sizes_;
  std::optional<DType> dtype_;
};

Tensor tensor(const NestedNumbers& numbers, TensorOptions options = {}, Loc loc = Loc::current());

// A tensor over the caller's memory, which must outlive it; nothing is copied or freed.
Tensor from_blob(void* data,
                 IntArrayRef sizes,
                 TensorOptions options = {},
                 Loc loc = Loc::current());
// The same with strides, and with something to keep the memory alive.
Tensor from_blob(void* data,
                 IntArrayRef sizes,
                 IntArrayRef strides,
                 std::shared_ptr<void> owner,
                 TensorOptions options = {},
                 Loc loc = Loc::current());

}  // namespace taper
