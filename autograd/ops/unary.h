// Elementwise ops of one operand. A row is one op: name, kernels, what it keeps, derivative.
#pragma once
#include "taper/autograd/op.h"

namespace taper::ops {

// `t` as another dtype on the frame's device; t itself when it is so already. Not recorded.
Tensor cast(const Frame& f, const Tensor& t, DType dtype);

enum class Keep : std::uint8_t { kNothing, kInput, kOutput };

using UnarySlot = Kernels::Unary Kernels::*;
using BinarySlot = Kernels::Binary Kernels::*;

// What a row is unless it says otherwise; and derivative(grad, kept), in public functions.
struct UnaryRow {
  static constexpr bool kFloating = true;  // integers become floats
  static constexpr bool kTakesBool = true;
  static constexpr Keep kKeep = Keep::kInput;
  static constexpr BinarySlot kGradSlot = nullptr;  // (grad, kept) -> gradient, in one kernel
};

// Throws for a truth value where the op is of numbers, as LibTorch does.
void check_number(DType dtype);
void unary_forward(Frame& f, UnarySlot slot, bool floating, Keep keep);
Tensor fused_gradient(BinarySlot slot, const Tensor& grad, const Tensor& kept);

// In one kernel where nobody will differentiate it.
template <class Row> Tensor gradient(const Tensor& grad, const Tensor& kept) {
  if (Row::kGradSlot != nullptr && !GradMode::is_enabled())
    return fused_gradient(Row::kGradSlot, grad, kept);
  return Row::derivative(grad, kept);
}

template <class Row> class UnaryOp final : public OpOf<UnaryOp<Row>> {
 public:
  static constexpr const char* kName = Row::kName;

  bool elementwise() const override { return true; }

  void forward(Frame& f) override {
    if (!Row::kTakesBool) check_number(f.in(0).dtype());
    unary_forward(f, Row::kSlot, Row::kFloating, Row::kKeep);
  }

  Grads backward(const Reverse& r) const override {
    return {gradient<Row>(r.grad(), Row::kKeep == Keep::kNothing ? Tensor() : r.saved(0))};
  }
};

namespace rows {

// d(-x) = -dx
struct Neg : UnaryRow {
  static constexpr const char* kName = "neg";
  static constexpr UnarySlot kSlot = &Kernels::neg;
  static constexpr bool kFloating = false;
  static constexpr bool kTakesBool = false;
  static constexpr Keep kKeep = Keep::kNothing;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d|x| = sign(x) dx; 0 at 0
struct Abs : UnaryRow {
  static constexpr const char* kName = "abs";
  static constexpr UnarySlot kSlot = &Kernels::abs;
  static constexpr bool kFloating = false;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// constant almost everywhere
struct Sign : UnaryRow {
  static constexpr const char* kName = "sign";
  static constexpr UnarySlot kSlot = &Kernels::sign;
  static constexpr bool kFloating = false;
  static constexpr Keep kKeep = Keep::kNothing;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d(x^2) = 2 x dx
struct Square : UnaryRow {
  static constexpr const char* kName = "square";
  static constexpr UnarySlot kSlot = &Kernels::square;
  static constexpr bool kFloating = false;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = 1/x: dy = -y^2 dx
struct Reciprocal : UnaryRow {
  static constexpr const char* kName = "reciprocal";
  static constexpr UnarySlot kSlot = &Kernels::reciprocal;
  static constexpr Keep kKeep = Keep::kOutput;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = e^x: dy = y dx
struct Exp : UnaryRow {
  static constexpr const char* kName = "exp";
  static constexpr UnarySlot kSlot = &Kernels::exp;
  static constexpr Keep kKeep = Keep::kOutput;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = e^x - 1: dy = (y + 1) dx
struct Expm1 : UnaryRow {
  static constexpr const char* kName = "expm1";
  static constexpr UnarySlot kSlot = &Kernels::expm1;
  static constexpr Keep kKeep = Keep::kOutput;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d ln x = dx / x
struct Log : UnaryRow {
  static constexpr const char* kName = "log";
  static constexpr UnarySlot kSlot = &Kernels::log;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d ln(1 + x) = dx / (1 + x)
struct Log1p : UnaryRow {
  static constexpr const char* kName = "log1p";
  static constexpr UnarySlot kSlot = &Kernels::log1p;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = sqrt x: dy = dx / (2 y)
struct Sqrt : UnaryRow {
  static constexpr const char* kName = "sqrt";
  static constexpr UnarySlot kSlot = &Kernels::sqrt;
  static constexpr Keep kKeep = Keep::kOutput;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = x^-1/2: dy = -y^3 dx / 2
struct Rsqrt : UnaryRow {
  static constexpr const char* kName = "rsqrt";
  static constexpr UnarySlot kSlot = &Kernels::rsqrt;
  static constexpr Keep kKeep = Keep::kOutput;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d sin x = cos x dx
struct Sin : UnaryRow {
  static constexpr const char* kName = "sin";
  static constexpr UnarySlot kSlot = &Kernels::sin;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d cos x = -sin x dx
struct Cos : UnaryRow {
  static constexpr const char* kName = "cos";
  static constexpr UnarySlot kSlot = &Kernels::cos;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = tan x: dy = (1 + y^2) dx
struct Tan : UnaryRow {
  static constexpr const char* kName = "tan";
  static constexpr UnarySlot kSlot = &Kernels::tan;
  static constexpr Keep kKeep = Keep::kOutput;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d asin x = dx / sqrt(1 - x^2)
struct Asin : UnaryRow {
  static constexpr const char* kName = "asin";
  static constexpr UnarySlot kSlot = &Kernels::asin;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d acos x = -dx / sqrt(1 - x^2)
struct Acos : UnaryRow {
  static constexpr const char* kName = "acos";
  static constexpr UnarySlot kSlot = &Kernels::acos;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d atan x = dx / (1 + x^2)
struct Atan : UnaryRow {
  static constexpr const char* kName = "atan";
  static constexpr UnarySlot kSlot = &Kernels::atan;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d sinh x = cosh x dx
struct Sinh : UnaryRow {
  static constexpr const char* kName = "sinh";
  static constexpr UnarySlot kSlot = &Kernels::sinh;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d cosh x = sinh x dx
struct Cosh : UnaryRow {
  static constexpr const char* kName = "cosh";
  static constexpr UnarySlot kSlot = &Kernels::cosh;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = tanh x: dy = (1 - y^2) dx
struct Tanh : UnaryRow {
  static constexpr const char* kName = "tanh";
  static constexpr UnarySlot kSlot = &Kernels::tanh;
  static constexpr Keep kKeep = Keep::kOutput;
  static constexpr BinarySlot kGradSlot = &Kernels::tanh_grad;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d erf x = 2 / sqrt(pi) e^(-x^2) dx
struct Erf : UnaryRow {
  static constexpr const char* kName = "erf";
  static constexpr UnarySlot kSlot = &Kernels::erf;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// constant almost everywhere
struct Floor : UnaryRow {
  static constexpr const char* kName = "floor";
  static constexpr UnarySlot kSlot = &Kernels::floor;
  static constexpr bool kFloating = false;
  static constexpr bool kTakesBool = false;
  static constexpr Keep kKeep = Keep::kNothing;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// constant almost everywhere
struct Ceil : UnaryRow {
  static constexpr const char* kName = "ceil";
  static constexpr UnarySlot kSlot = &Kernels::ceil;
  static constexpr bool kFloating = false;
  static constexpr bool kTakesBool = false;
  static constexpr Keep kKeep = Keep::kNothing;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// constant almost everywhere
struct Round : UnaryRow {
  static constexpr const char* kName = "round";
  static constexpr UnarySlot kSlot = &Kernels::round;
  static constexpr bool kFloating = false;
  static constexpr bool kTakesBool = false;
  static constexpr Keep kKeep = Keep::kNothing;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// constant almost everywhere
struct Trunc : UnaryRow {
  static constexpr const char* kName = "trunc";
  static constexpr UnarySlot kSlot = &Kernels::trunc;
  static constexpr bool kFloating = false;
  static constexpr bool kTakesBool = false;
  static constexpr Keep kKeep = Keep::kNothing;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = 1 / (1 + e^-x): dy = y (1 - y) dx
struct Sigmoid : UnaryRow {
  static constexpr const char* kName = "sigmoid";
  static constexpr UnarySlot kSlot = &Kernels::sigmoid;
  static constexpr Keep kKeep = Keep::kOutput;
  static constexpr BinarySlot kGradSlot = &Kernels::sigmoid_grad;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = max(x, 0): dy = dx where y > 0
struct Relu : UnaryRow {
  static constexpr const char* kName = "relu";
  static constexpr UnarySlot kSlot = &Kernels::relu;
  static constexpr bool kFloating = false;
  static constexpr bool kTakesBool = false;
  static constexpr Keep kKeep = Keep::kOutput;
  static constexpr BinarySlot kGradSlot = &Kernels::relu_grad;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = x s, s = sigmoid x: dy = s (1 + x (1 - s)) dx
struct Silu : UnaryRow {
  static constexpr const char* kName = "silu";
  static constexpr UnarySlot kSlot = &Kernels::silu;
  static constexpr BinarySlot kGradSlot = &Kernels::silu_grad;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// y = x P(x), P the normal distribution, p its density: dy = (P + x p) dx
struct Gelu : UnaryRow {
  static constexpr const char* kName = "gelu";
  static constexpr UnarySlot kSlot = &Kernels::gelu;
  static constexpr BinarySlot kGradSlot = &Kernels::gelu_grad;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// Hendrycks and Gimpel 2016: y = x (1 + t) / 2, t = tanh(sqrt(2 / pi) (x + 0.044715 x^3))
struct GeluTanh : UnaryRow {
  static constexpr const char* kName = "gelu_tanh";
  static constexpr UnarySlot kSlot = &Kernels::gelu_tanh;
  static constexpr BinarySlot kGradSlot = &Kernels::gelu_tanh_grad;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

// d ln sigmoid x = sigmoid(-x) dx
struct LogSigmoid : UnaryRow {
  static constexpr const char* kName = "log_sigmoid";
  static constexpr UnarySlot kSlot = &Kernels::log_sigmoid;
  static constexpr BinarySlot kGradSlot = &Kernels::log_sigmoid_grad;
  static Tensor derivative(const Tensor& g, const Tensor& kept);
};

}  // namespace rows

using Neg = UnaryOp<rows::Neg>;
using Abs = UnaryOp<rows::Abs>;
using Sign = UnaryOp<rows::Sign>;
using Square = UnaryOp<rows::Square>;
using Reciprocal = UnaryOp<rows::Reciprocal>;
using Exp = UnaryOp<rows::Exp>;
using Expm1 = UnaryOp<rows::Expm1>;
using Log = UnaryOp<rows::Log>;
using Log1p = UnaryOp<rows::Log1p>;
using Sqrt = UnaryOp<rows::Sqrt>;
using Rsqrt = UnaryOp<rows::Rsqrt>;
using Sin = UnaryOp<rows::Sin>;
using Cos = UnaryOp<rows::Cos>;
using Tan = UnaryOp<rows::Tan>;
using Asin = UnaryOp<rows::Asin>;
using Acos = UnaryOp<rows::Acos>;
using Atan = UnaryOp<rows::Atan>;
using Sinh = UnaryOp<rows::Sinh>;
using Cosh = UnaryOp<rows::Cosh>;
using Tanh = UnaryOp<rows::Tanh>;
using Erf = UnaryOp<rows::Erf>;
using Floor = UnaryOp<rows::Floor>;
using Ceil = UnaryOp<rows::Ceil>;
using Round = UnaryOp<rows::Round>;
using Trunc = UnaryOp<rows::Trunc>;
using Sigmoid = UnaryOp<rows::Sigmoid>;
using Relu = UnaryOp<rows::Relu>;
using Silu = UnaryOp<rows::Silu>;
using Gelu = UnaryOp<rows::Gelu>;
using GeluTanh = UnaryOp<rows::GeluTanh>;
using LogSigmoid = UnaryOp<rows::LogSigmoid>;

// Two parameters and a fused derivative of x: leaky_relu, elu, softplus, clamp.
template <class Row> class Unary2Op final : public OpOf<Unary2Op<Row>> {
 public:
  static constexpr const char* kName = Row::kName;

  Unary2Op(double a, double b) : a_(a), b_(b) {}

  bool elementwise() const override { return true; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  double a_, b_;
};

namespace rows {

// y = x where x > 0, slope x elsewhere.
struct LeakyRelu {
  static constexpr const char* kName = "leaky_relu";
  static constexpr bool kFloating = true;
  static constexpr auto kSlot = &Kernels::leaky_relu;
  static constexpr auto kGradSlot = &Kernels::leaky_relu_grad;
  static Tensor derivative(const Tensor& g, const Tensor& x, double slope, double);
};

// y = x where x > 0, alpha (e^x - 1) elsewhere.
struct Elu {
  static constexpr const char* kName = "elu";
  static constexpr bool kFloating = true;
  static constexpr auto kSlot = &Kernels::elu;
  static constexpr auto kGradSlot = &Kernels::elu_grad;
  static Tensor derivative(const Tensor& g, const Tensor& x, double alpha, double);
};

// y = ln(1 + e^(beta x)) / beta; x itself where beta x > threshold.
struct Softplus {
  static constexpr const char* kName = "softplus";
  static constexpr bool kFloating = true;
  static constexpr auto kSlot = &Kernels::softplus;
  static constexpr auto kGradSlot = &Kernels::softplus_grad;
  static Tensor derivative(const Tensor& g, const Tensor& x, double beta, double threshold);
};

// y = min(max(x, low), high); the gradient passes on [low, high], both ends included.
struct Clamp {
  static constexpr const char* kName = "clamp";
  static constexpr bool kFloating = false;
  static constexpr auto kSlot = &Kernels::clamp;
  static constexpr auto kGradSlot = &Kernels::clamp_grad;
  static Tensor derivative(const Tensor& g, const Tensor& x, double low, double high);
};

}  // namespace rows

using LeakyRelu = Unary2Op<rows::LeakyRelu>;
using Elu = Unary2Op<rows::Elu>;
using Softplus = Unary2Op<rows::Softplus>;
using Clamp = Unary2Op<rows::Clamp>;
extern template class Unary2Op<rows::LeakyRelu>;
extern template class Unary2Op<rows::Elu>;
extern template class Unary2Op<rows::Softplus>;
extern template class Unary2Op<rows::Clamp>;

}  // namespace taper::ops
