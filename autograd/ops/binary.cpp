// Elementwise ops of two and three operands: how they run, their derivatives, their functions.
#include "taper/autograd/ops/binary.h"

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/core/promote.h"

namespace taper::ops {

Operands::Operands(const Frame& f, DType dtype, std::size_t first) {
  TAPER_ASSERT(f.size() - first <= kMost);  // the lists below must not move
  for (std::size_t i = first; i < f.size(); ++i) {
    const Tensor& t = f.in(i);
    const bool fits = t.dtype() == dtype && t.device() == f.device();
    tensors_.push_back(fits ? &t : &casts_.emplace_back(cast(f, t, dtype)));
    if (i == first) {
      sizes_ = t.sizes();
    } else if (!(t.sizes() == sizes_)) {
      own_sizes_ = broadcast_sizes(sizes_, t.sizes());
      sizes_ = own_sizes_;
    }
  }
  for (const Tensor* t : tensors_) {
    const bool fits = t->sizes() == sizes_;
    layouts_.push_back(fits ? &t->layout()
                            : &stretched_.emplace_back(expand_layout(t->layout(), sizes_)));
  }
}

Layout Operands::result_layout() const {
  for (const Tensor* t : tensors_) {
    if (t->sizes() == sizes_) return dense_like(t->layout());
  }
  return contiguous_layout(sizes_);
}

In Operands::operator[](std::size_t i) const {
  In view;
  view.data = tensors_[i]->data_ptr();
  view.layout = layouts_[i];
  view.dtype = tensors_[i]->dtype();
  return view;
}

namespace {

DType operand_dtype(const Frame& f, Result result) {
  const DType promoted = result_type(f.in(0), f.in(1));
  return result == Result::kFloating ? floating_type(promoted) : promoted;
}

bool wanted(const Frame& f, std::size_t i, const bool* for_a, const bool* for_b) {
  return (f.needs(0) && for_a[i]) || (f.needs(1) && for_b[i]);
}

}  // namespace

void binary_forward(
    Frame& f, BinarySlot slot, Result result, const bool* for_a, const bool* for_b) {
  const DType dtype = operand_dtype(f, result);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (wanted(f, i, for_a, for_b)) f.save(f.in(i));
  }
  const Operands x(f, dtype);
  const Tensor& out = f.out(x.result_layout(), result == Result::kBool ? kBool : dtype);
  (f.kernels().*slot)(f.exec(), out.as<Out>(), x[0], x[1]);
}

Kept binary_kept(const Reverse& r, const bool* for_a, const bool* for_b) {
  // Which operands were saved follows from which inputs have an edge, as it did in forward.
  const auto& inputs = r.entry().inputs;
  Kept kept;
  std::size_t k = 0;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (!((inputs[0] && for_a[i]) || (inputs[1] && for_b[i]))) continue;
    const bool read = (r.needs(0) && for_a[i]) || (r.needs(1) && for_b[i]);
    if (read) (i == 0 ? kept.a : kept.b) = r.saved(k);
    ++k;
  }
  return kept;
}

namespace rows {
namespace {

// The operand that wins takes the gradient; halves where both are equal (LibTorch's choice).
Grads winner(const Reverse& r, const Tensor& a_wins, const Tensor& b_wins) {
  const Tensor half = r.grad() * 0.5;
  const Tensor tie = logical_not(logical_or(a_wins, b_wins));
  Grads out(2);
  if (r.needs(0)) out[0] = where(tie, half, where(a_wins, r.grad(), 0));
  if (r.needs(1)) out[1] = where(tie, half, where(b_wins, r.grad(), 0));
  return out;
}

}  // namespace

Grads Add::gradients(const Reverse& r, const Tensor&, const Tensor&) {
  return {r.grad(), r.grad()};
}

Grads Sub::gradients(const Reverse& r, const Tensor&, const Tensor&) {
  return {r.grad(), r.needs(1) ? -r.grad() : Tensor()};
}

Grads Mul::gradients(const Reverse& r, const Tensor& a, const Tensor& b) {
  return {r.needs(0) ? r.grad() * b : Tensor(), r.needs(1) ? r.grad() * a : Tensor()};
}

Grads Div::gradients(const Reverse& r, const Tensor& a, const Tensor& b) {
  Grads out(2);
  if (r.needs(0)) out[0] = r.grad() / b;
  if (r.needs(1)) out[1] = -r.grad() * (a / b / b);
  return out;
}

Grads FloorDivide::gradients(const Reverse& r, const Tensor&, const Tensor&) {
  const Tensor zero = zeros_like(r.grad());
  return {zero, zero};
}

Grads Remainder::gradients(const Reverse& r, const Tensor& a, const Tensor& b) {
  return {r.grad(), r.needs(1) ? -r.grad() * floor(a / b) : Tensor()};
}

Grads Fmod::gradients(const Reverse& r, const Tensor& a, const Tensor& b) {
  return {r.grad(), r.needs(1) ? -r.grad() * trunc(a / b) : Tensor()};
}

Grads Pow::gradients(const Reverse& r, const Tensor& a, const Tensor& b) {
  Grads out(2);
  if (r.needs(0)) out[0] = where(b == 0, 0, r.grad() * b * pow(a, b - 1));
  if (r.needs(1)) {
    const Tensor flat = logical_and(a == 0, b >= 0);
    out[1] = where(flat, 0, r.grad() * pow(a, b) * log(where(flat, 1, a)));
  }
  return out;
}

Grads Maximum::gradients(const Reverse& r, const Tensor& a, const Tensor& b) {
  return winner(r, a > b, a < b);
}

Grads Minimum::gradients(const Reverse& r, const Tensor& a, const Tensor& b) {
  return winner(r, a<b, a> b);
}

Grads Atan2::gradients(const Reverse& r, const Tensor& a, const Tensor& b) {
  const Tensor scaled = r.grad() / (square(a) + square(b));
  return {r.needs(0) ? scaled * b : Tensor(), r.needs(1) ? scaled * -a : Tensor()};
}

}  // namespace rows

void Bitwise::forward(Frame& f) {
  const DType dtype = result_type(f.in(0), f.in(1));
  TAPER_CHECK(is_integral(dtype, true), "needs integers or bools, got ", f.in(0).dtype(), " and ",
              f.in(1).dtype());
  const Operands x(f, dtype);
  const Tensor& out = f.out(x.result_layout(), dtype);
  (f.kernels().*slot_)(f.exec(), out.as<Out>(), x[0], x[1]);
}

void Not::forward(Frame& f) {
  const Tensor& x = f.in(0);
  TAPER_CHECK(!bits_ || is_integral(x.dtype(), true), "needs integers or bools, got ", x.dtype());
  const Tensor& out = f.out(dense_like(x.layout()), bits_ ? x.dtype() : kBool);
  const Kernels::Unary& slot = bits_ ? f.kernels().bitwise_not : f.kernels().logical_not;
  slot(f.exec(), out.as<Out>(), x.as<In>());
}

namespace {

void check_condition(const Tensor& condition) {
  TAPER_CHECK(condition.dtype() == kBool || condition.dtype() == kUInt8,
              "the condition must be bool, got ", condition.dtype());
}

}  // namespace

void Where::forward(Frame& f) {
  check_condition(f.in(0));
  if (f.needs(1) || f.needs(2)) f.save(f.in(0));
  const DType dtype = result_type(f.in(1), f.in(2));
  const Tensor condition = cast(f, f.in(0), kBool);
  const Operands x(f, dtype, 1);
  const Sizes sizes = broadcast_sizes(x.sizes(), condition.sizes());
  const bool same = IntArrayRef(sizes) == x.sizes();
  const Tensor& out = f.out(same ? x.result_layout() : contiguous_layout(sizes), dtype);
  const Layout lc = expand_layout(condition.layout(), sizes);
  In c = condition.as<In>(), a = x[0], b = x[1];
  const Layout la = expand_layout(*a.layout, sizes), lb = expand_layout(*b.layout, sizes);
  c.layout = &lc, a.layout = &la, b.layout = &lb;
  f.kernels().where(f.exec(), out.as<Out>(), c, a, b);
}

Grads Where::backward(const Reverse& r) const {
  const Tensor condition = r.saved(0);
  Grads out(3);
  if (r.needs(1)) out[1] = where(condition, r.grad(), 0);
  if (r.needs(2)) out[2] = where(condition, 0, r.grad());
  return out;
}

void MaskedFill::forward(Frame& f) {
  const Tensor& x = f.in(0);
  check_condition(f.in(1));
  TAPER_CHECK(f.in(2).dim() == 0, "the value must be a number or a 0-dim tensor, got ",
              f.in(2).sizes());
  if (f.needs(0) || f.needs(2)) f.save(f.in(1));
  const Sizes sizes = broadcast_sizes(x.sizes(), f.in(1).sizes());
  const Tensor mask = cast(f, f.in(1), kBool), value = cast(f, f.in(2), x.dtype());
  const bool same = IntArrayRef(sizes) == x.sizes();
  const Tensor& out = f.out(same ? dense_like(x.layout()) : contiguous_layout(sizes), x.dtype());
  const Layout lm = expand_layout(mask.layout(), sizes), lv = expand_layout(value.layout(), sizes);
  const Layout lx = expand_layout(x.layout(), sizes);
  In m = mask.as<In>(), v = value.as<In>(), in = x.as<In>();
  m.layout = &lm, v.layout = &lv, in.layout = &lx;
  f.kernels().where(f.exec(), out.as<Out>(), m, v, in);
}

Grads MaskedFill::backward(const Reverse& r) const {
  const Tensor mask = r.saved(0);
  Grads out(3);
  if (r.needs(0)) out[0] = where(mask, 0, r.grad());
  if (r.needs(2)) out[2] = where(mask, r.grad(), 0).sum();
  return out;
}

}  // namespace taper::ops
