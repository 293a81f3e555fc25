// Elementwise ops of two and three operands: arithmetic, comparisons, logic, where.
#pragma once
#include "taper/autograd/ops/unary.h"
#include "taper/core/promote.h"

namespace taper::ops {

// The operands of an elementwise kernel: cast to one dtype, stretched to one shape.
class Operands {
 public:
  // Takes the frame's inputs from `first` on.
  Operands(const Frame& f, DType dtype, std::size_t first = 0);
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  IntArrayRef sizes() const { return sizes_; }

  // The dense layout of the result: the operands' own order of dims where one has all of them.
  Layout result_layout() const;

  In operator[](std::size_t i) const;

 private:
  static constexpr std::size_t kMost = 3;

  // Operands that are right as they are cost nothing: they are pointed to.
  SmallVector<const Tensor*, kMost> tensors_;
  SmallVector<const Layout*, kMost> layouts_;
  SmallVector<Tensor, kMost> casts_;
  SmallVector<Layout, kMost> stretched_;
  IntArrayRef sizes_;
  Sizes own_sizes_;
};

enum class Result : std::uint8_t { kPromoted, kFloating, kBool };

// A row says its name, slot and result, which operands' values its derivative reads, and
// gradients(r, a, b): unneeded operands may be undefined there.
struct BinaryRow {
  static constexpr Result kResult = Result::kPromoted;
  static constexpr bool kTakesBool = true;
  static constexpr bool kReadsForA[2] = {true, true};  // d out / d a reads a, b
  static constexpr bool kReadsForB[2] = {true, true};
};

void binary_forward(Frame& f, BinarySlot slot, Result result, const bool* for_a, const bool* for_b);

// What was saved, by operand; the undefined ones were not needed.
struct Kept {
  Tensor a, b;
};

Kept binary_kept(const Reverse& r, const bool* for_a, const bool* for_b);

template <class Row> class BinaryOp final : public OpOf<BinaryOp<Row>> {
 public:
  static constexpr const char* kName = Row::kName;

  bool elementwise() const override { return true; }

  bool differentiable() const override { return Row::kResult != Result::kBool; }

  void forward(Frame& f) override {
    if (!Row::kTakesBool) check_number(result_type(f.in(0), f.in(1)));
    binary_forward(f, Row::kSlot, Row::kResult, Row::kReadsForA, Row::kReadsForB);
  }

  Grads backward(const Reverse& r) const override {
    if constexpr (Row::kResult == Result::kBool) {
      return Grads(2);
    } else {
      const Kept k = binary_kept(r, Row::kReadsForA, Row::kReadsForB);
      return Row::gradients(r, k.a, k.b);
    }
  }
};

namespace rows {

// d(a + b) = da + db
struct Add : BinaryRow {
  static constexpr const char* kName = "add";
  static constexpr BinarySlot kSlot = &Kernels::add;
  static constexpr bool kReadsForA[2] = {false, false};
  static constexpr bool kReadsForB[2] = {false, false};
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// d(a - b) = da - db
struct Sub : BinaryRow {
  static constexpr const char* kName = "sub";
  static constexpr BinarySlot kSlot = &Kernels::sub;
  static constexpr bool kTakesBool = false;
  static constexpr bool kReadsForA[2] = {false, false};
  static constexpr bool kReadsForB[2] = {false, false};
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// d(a b) = b da + a db
struct Mul : BinaryRow {
  static constexpr const char* kName = "mul";
  static constexpr BinarySlot kSlot = &Kernels::mul;
  static constexpr bool kReadsForA[2] = {false, true};
  static constexpr bool kReadsForB[2] = {true, false};
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// d(a / b) = da / b - a db / b^2
struct Div : BinaryRow {
  static constexpr const char* kName = "div";
  static constexpr BinarySlot kSlot = &Kernels::div;
  static constexpr Result kResult = Result::kFloating;
  static constexpr bool kReadsForA[2] = {false, true};
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// constant almost everywhere
struct FloorDivide : BinaryRow {
  static constexpr const char* kName = "floor_divide";
  static constexpr BinarySlot kSlot = &Kernels::floor_divide;
  static constexpr bool kTakesBool = false;
  static constexpr bool kReadsForA[2] = {false, false};
  static constexpr bool kReadsForB[2] = {false, false};
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// d(a - b floor(a / b)) = da - floor(a / b) db
struct Remainder : BinaryRow {
  static constexpr const char* kName = "remainder";
  static constexpr BinarySlot kSlot = &Kernels::remainder;
  static constexpr bool kTakesBool = false;
  static constexpr bool kReadsForA[2] = {false, false};
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// d(a - b trunc(a / b)) = da - trunc(a / b) db
struct Fmod : BinaryRow {
  static constexpr const char* kName = "fmod";
  static constexpr BinarySlot kSlot = &Kernels::fmod;
  static constexpr bool kTakesBool = false;
  static constexpr bool kReadsForA[2] = {false, false};
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// d(a^b) = b a^(b-1) da + a^b ln a db; both 0 where the factor is 0
struct Pow : BinaryRow {
  static constexpr const char* kName = "pow";
  static constexpr BinarySlot kSlot = &Kernels::pow;
  static constexpr bool kTakesBool = false;
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// the larger one's; halves where they are equal
struct Maximum : BinaryRow {
  static constexpr const char* kName = "maximum";
  static constexpr BinarySlot kSlot = &Kernels::maximum;
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// the smaller one's; halves where they are equal
struct Minimum : BinaryRow {
  static constexpr const char* kName = "minimum";
  static constexpr BinarySlot kSlot = &Kernels::minimum;
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// d atan2(a, b) = (b da - a db) / (a^2 + b^2)
struct Atan2 : BinaryRow {
  static constexpr const char* kName = "atan2";
  static constexpr BinarySlot kSlot = &Kernels::atan2;
  static constexpr Result kResult = Result::kFloating;
  static Grads gradients(const Reverse& r, const Tensor& a, const Tensor& b);
};

// Comparisons and logic: the result is bool, without a gradient.
struct Eq : BinaryRow {
  static constexpr const char* kName = "eq";
  static constexpr BinarySlot kSlot = &Kernels::eq;
  static constexpr Result kResult = Result::kBool;
};

struct Ne : BinaryRow {
  static constexpr const char* kName = "ne";
  static constexpr BinarySlot kSlot = &Kernels::ne;
  static constexpr Result kResult = Result::kBool;
};

struct Lt : BinaryRow {
  static constexpr const char* kName = "lt";
  static constexpr BinarySlot kSlot = &Kernels::lt;
  static constexpr Result kResult = Result::kBool;
};

struct Le : BinaryRow {
  static constexpr const char* kName = "le";
  static constexpr BinarySlot kSlot = &Kernels::le;
  static constexpr Result kResult = Result::kBool;
};

struct Gt : BinaryRow {
  static constexpr const char* kName = "gt";
  static constexpr BinarySlot kSlot = &Kernels::gt;
  static constexpr Result kResult = Result::kBool;
};

struct Ge : BinaryRow {
  static constexpr const char* kName = "ge";
  static constexpr BinarySlot kSlot = &Kernels::ge;
  static constexpr Result kResult = Result::kBool;
};

struct LogicalAnd : BinaryRow {
  static constexpr const char* kName = "logical_and";
  static constexpr BinarySlot kSlot = &Kernels::logical_and;
  static constexpr Result kResult = Result::kBool;
};

struct LogicalOr : BinaryRow {
  static constexpr const char* kName = "logical_or";
  static constexpr BinarySlot kSlot = &Kernels::logical_or;
  static constexpr Result kResult = Result::kBool;
};

struct LogicalXor : BinaryRow {
  static constexpr const char* kName = "logical_xor";
  static constexpr BinarySlot kSlot = &Kernels::logical_xor;
  static constexpr Result kResult = Result::kBool;
};

}  // namespace rows

using Add = BinaryOp<rows::Add>;
using Sub = BinaryOp<rows::Sub>;
using Mul = BinaryOp<rows::Mul>;
using Div = BinaryOp<rows::Div>;
using FloorDivide = BinaryOp<rows::FloorDivide>;
using Remainder = BinaryOp<rows::Remainder>;
using Fmod = BinaryOp<rows::Fmod>;
using Pow = BinaryOp<rows::Pow>;
using Maximum = BinaryOp<rows::Maximum>;
using Minimum = BinaryOp<rows::Minimum>;
using Atan2 = BinaryOp<rows::Atan2>;
using Eq = BinaryOp<rows::Eq>;
using Ne = BinaryOp<rows::Ne>;
using Lt = BinaryOp<rows::Lt>;
using Le = BinaryOp<rows::Le>;
using Gt = BinaryOp<rows::Gt>;
using Ge = BinaryOp<rows::Ge>;
using LogicalAnd = BinaryOp<rows::LogicalAnd>;
using LogicalOr = BinaryOp<rows::LogicalOr>;
using LogicalXor = BinaryOp<rows::LogicalXor>;

// Logic on bits: integers and bool, without a gradient.
class Bitwise final : public OpOf<Bitwise> {
 public:
  static constexpr const char* kName = "bitwise";

  Bitwise(const char* name, BinarySlot slot) : name_(name), slot_(slot) {}

  const char* name() const override { return name_; }

  bool elementwise() const override { return true; }

  bool differentiable() const override { return false; }

  void forward(Frame& f) override;

  Grads backward(const Reverse&) const override { return Grads(2); }

 private:
  const char* name_;
  BinarySlot slot_;
};

// logical_not and bitwise_not.
class Not final : public OpOf<Not> {
 public:
  static constexpr const char* kName = "not";

  explicit Not(bool bits) : bits_(bits) {}

  const char* name() const override { return bits_ ? "bitwise_not" : "logical_not"; }

  bool elementwise() const override { return true; }

  bool differentiable() const override { return false; }

  void forward(Frame& f) override;

  Grads backward(const Reverse&) const override { return Grads(1); }

 private:
  bool bits_;
};

// out = a where the condition holds, b elsewhere; each gets the gradient where it was taken.
class Where final : public OpOf<Where> {
 public:
  static constexpr const char* kName = "where";

  bool elementwise() const override { return true; }

  void forward(Frame& f) override;  // (condition, a, b)
  Grads backward(const Reverse& r) const override;
};

// masked_fill(x, mask, value): the in-place form of where.
class MaskedFill final : public OpOf<MaskedFill> {
 public:
  static constexpr const char* kName = "masked_fill";

  bool elementwise() const override { return true; }

  void forward(Frame& f) override;  // (x, mask, value)
  Grads backward(const Reverse& r) const override;
};

}  // namespace taper::ops
