// Matrix products: the op classes and the public functions.
#pragma once
#include <string>

#include "taper/autograd/op.h"

namespace taper {

// The dtypes of the operands must be equal. Sums run in the order of K; f16 and bf16 sum in f32.
//
// 1-d and 1-d: a number. 2-d and 2-d: (M, K) (K, N) -> (M, N). 1-d beside more dims stands for a
// row (left) or a column (right), whose dim the result lacks. More dims: (..., M, K) (..., K, N),
// where the dims in front broadcast.
Tensor matmul(const TensorArg& a, const TensorArg& b);
Tensor mm(const TensorArg& a, const TensorArg& b);     // (M, K) (K, N) -> (M, N)
Tensor bmm(const TensorArg& a, const TensorArg& b);    // (B, M, K) (B, K, N) -> (B, M, N)
Tensor mv(const TensorArg& a, const TensorArg& vec);   // (M, K) (K) -> (M)
Tensor dot(const TensorArg& a, const TensorArg& b);    // (K) (K) -> ()
Tensor outer(const TensorArg& a, const TensorArg& b);  // (M) (N) -> (M, N)

// beta * x + alpha * (a b); x broadcasts to the product, and is not read when beta is 0.
Tensor addmm(
    const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar beta = 1, Scalar alpha = 1);
Tensor baddbmm(
    const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar beta = 1, Scalar alpha = 1);

// x (..., I), weight (O, I) or (I), bias (O), () or undefined -> (..., O): x weight^T + bias, and
// relu or gelu of it, to the bits of the two ops, by the kernel that multiplies. A gelu that is
// recorded is the two ops: its derivative needs what comes before it.
Tensor linear(const TensorArg& x,
              const TensorArg& weight,
              const TensorArg& bias = Tensor(),
              Activation activation = Activation::kNone);

// Sums of products named by dims: einsum("bik,bkj->bij", {a, b}). A letter that the result lacks
// is summed over; one that an operand has twice takes its diagonal; "..." stands for dims in front
// that broadcast. Without "->" the result has the letters that occur once, in alphabetical order.
Tensor einsum(const std::string& equation, const TensorList& operands);

namespace ops {

// The product of the last two dims, as matmul, mm, bmm, mv and dot.
// d(A B) = dA B + A dB: dL/dA = G B^T, dL/dB = A^T G.
class Matmul final : public OpOf<Matmul> {
 public:
  static constexpr const char* kName = "matmul";

  explicit Matmul(const char* name = kName) : name_(name) {}

  const char* name() const override { return name_; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  const char* name_;
  std::int32_t dims_a_ = 0, dims_b_ = 0;
};

// (x, a, b) -> beta x + alpha (a b), as addmm and baddbmm.
class AddMatmul final : public OpOf<AddMatmul> {
 public:
  static constexpr const char* kName = "addmm";

  AddMatmul(const char* name, Scalar beta, Scalar alpha)
      : name_(name), beta_(beta), alpha_(alpha) {}

  const char* name() const override { return name_; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  const char* name_;
  Scalar beta_, alpha_;
};

// (x, weight[, bias]) -> y = x weight^T + bias, or relu of it: G is then that of relu, by y.
// dL/dx = G W, dL/dW = G^T x with the dims in front merged, dL/dbias = G summed over them.
class Linear final : public OpOf<Linear> {
 public:
  static constexpr const char* kName = "linear";

  explicit Linear(Activation activation = Activation::kNone) : activation_(activation) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Activation activation_;  // a gelu is not recorded
};

}  // namespace ops
}  // namespace taper
