// gradcheck and gradgradcheck: analytic derivatives against central differences, in f64.
#pragma once
#include <memory>
#include <vector>

#include "taper/autograd/backward.h"

namespace taper {

struct GradcheckOptions {
  double eps = 1e-6;   // step of the central difference
  double atol = 1e-5;  // |numeric - analytic| <= atol + rtol |numeric|
  double rtol = 1e-3;
  double nondet_tol = 0;  // two backward passes may differ by this much
  bool raise = true;      // throw on failure; else return false
};

// A function of several tensors, type-erased.
class TensorFunction {
 public:
  virtual ~TensorFunction() = default;
  virtual std::vector<Tensor> call(const std::vector<Tensor>& inputs) const = 0;
};

template <class F> class TensorFunctionOf final : public TensorFunction {
 public:
  explicit TensorFunctionOf(F f) : f_(std::move(f)) {}

  std::vector<Tensor> call(const std::vector<Tensor>& inputs) const override {
    using Result = decltype(f_(inputs));
    if constexpr (std::is_convertible_v<Result, Tensor>) return {f_(inputs)};
    else return f_(inputs);
  }

 private:
  F f_;
};

bool gradcheck(const TensorFunction& f,
               const std::vector<Tensor>& inputs,
               GradcheckOptions options,
               Loc loc);
bool gradgradcheck(const TensorFunction& f,
                   const std::vector<Tensor>& inputs,
                   GradcheckOptions options,
                   Loc loc);

// Checks f, a callable from std::vector<Tensor> to a Tensor or a vector of them, at `inputs`: the
// f64 ones that require grad are varied, element by element. Inputs must not overlap in memory.
// On failure throws an Error that names input, output, element and both values.
template <class F>
bool gradcheck(F f,
               const std::vector<Tensor>& inputs,
               GradcheckOptions options = {},
               Loc loc = Loc::current()) {
  return gradcheck(static_cast<const TensorFunction&>(TensorFunctionOf<F>(std::move(f))), inputs,
                   options, loc);
}

// The same for the gradients of f: second derivatives, with fixed pseudo-random cotangents.
template <class F>
bool gradgradcheck(F f,
                   const std::vector<Tensor>& inputs,
                   GradcheckOptions options = {},
                   Loc loc = Loc::current()) {
  return gradgradcheck(static_cast<const TensorFunction&>(TensorFunctionOf<F>(std::move(f))),
                       inputs, options, loc);
}

}  // namespace taper
