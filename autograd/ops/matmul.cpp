// Matrix products: how operands of any dims become the kernel's batches, and their derivatives.
#include "taper/autograd/ops/matmul.h"

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/unary.h"

namespace taper {
namespace ops {
namespace {

// One operand of a product: its elements, and a layout of two dims or more.
struct Matrices {
  Matrices(const Tensor& t, const Layout& seen) : view(t.as<In>()), layout(seen) {}

  In view;  // out too, until it is called with
  Layout layout;

  std::int64_t rows() const { return layout.sizes[layout.ndim - 2]; }

  std::int64_t cols() const { return layout.sizes[layout.ndim - 1]; }

  IntArrayRef batch() const { return {layout.sizes, static_cast<std::size_t>(layout.ndim - 2)}; }

  void stretch(IntArrayRef sizes) {
    if (batch() == sizes) return;
    Sizes whole;
    for (const std::int64_t s : sizes) whole.push_back(s);
    whole.push_back(rows());
    whole.push_back(cols());
    layout = expand_layout(layout, whole);
  }
};

// A vector on the left is a row, on the right a column.
Layout as_row(const Layout& layout) {
  return layout.ndim == 1 ? unsqueeze_layout(layout, 0) : layout;
}

Layout as_column(const Layout& layout) {
  return layout.ndim == 1 ? unsqueeze_layout(layout, 1) : layout;
}

// The last two dims behind one batch dim.
Layout batch_of(const Layout& layout, std::int64_t size, std::int64_t stride) {
  Layout out;
  out.ndim = 3;
  out.sizes[0] = size;
  out.strides[0] = stride;
  for (int d = 0; d < 2; ++d) {
    out.sizes[d + 1] = layout.sizes[layout.ndim - 2 + d];
    out.strides[d + 1] = layout.strides[layout.ndim - 2 + d];
  }
  return out;
}

template <class V> V operand(const In& view, const Layout* layout, std::int64_t offset) {
  V v;
  if (!view.defined()) return v;
  v.data = static_cast<std::byte*>(view.data) + offset * element_size(view.dtype);
  v.layout = layout;
  v.dtype = view.dtype;
  return v;
}

// Operands 0 to 3 are out, a, b and the bias, whose view may be undefined. Their dims in front are
// equal; those that lie as one in all become one, the longest is the kernel's batch, and we walk
// over what is left of them.
void multiply(const Frame& f, Matrices* operands, Activation activation) {
  constexpr int kCount = 4;
  Layout front[kCount];
  Layout* pointers[kCount];
  for (int i = 0; i < kCount; ++i) {
    front[i] = operands[i].layout;
    front[i].ndim -= 2;
    pointers[i] = &front[i];
  }
  coalesce(pointers, kCount);
  const int ndim = front[0].ndim;
  int longest = 0;
  std::int64_t calls = 1;
  for (int d = 0; d < ndim; ++d) {
    calls *= front[0].sizes[d];
    if (front[0].sizes[d] > front[0].sizes[longest]) longest = d;
  }
  const std::int64_t size = ndim == 0 ? 1 : front[0].sizes[longest];
  Layout batch[kCount];
  for (int i = 0; i < kCount; ++i) {
    batch[i] = batch_of(operands[i].layout, size, ndim == 0 ? 0 : front[i].strides[longest]);
  }
  for (std::int64_t call = 0; call < calls / size; ++call) {
    std::int64_t at[kCount] = {};
    std::int64_t rest = call;
    for (int d = ndim - 1; d >= 0; --d) {
      if (d == longest) continue;
      for (int i = 0; i < kCount; ++i) at[i] += rest % front[0].sizes[d] * front[i].strides[d];
      rest /= front[0].sizes[d];
    }
    f.kernels().matmul(f.exec(), operand<Out>(operands[0].view, &batch[0], at[0]),
                       operand<In>(operands[1].view, &batch[1], at[1]),
                       operand<In>(operands[2].view, &batch[2], at[2]),
                       operand<In>(operands[3].view, &batch[3], at[3]), activation);
  }
}

void check_product(const Tensor& a, const Tensor& b, std::int64_t columns, std::int64_t rows) {
  TAPER_CHECK(columns == rows, "the inner sizes differ: ", a.sizes(), " x ", b.sizes(), ", ",
              columns, " is not ", rows);
  TAPER_CHECK(a.dtype() == b.dtype(), "the operands must have one dtype, got ", a.dtype(), " and ",
              b.dtype(), "; convert one with to()");
}

// out = activation(a b + bias). `out` is new, of the product's sizes, with or without the dims that
// vectors lack; bias, when defined, expands to the product.
void multiply_into(const Frame& f,
                   const Tensor& out,
                   const Tensor& a,
                   const Tensor& b,
                   const Tensor& bias = {},
                   Activation activation = Activation::kNone) {
  Matrices left(a, as_row(a.layout())), right(b, as_column(b.layout()));
  if (out.numel() == 0) return;
  if (left.cols() == 0 && !bias.defined()) {  // 0, of which each activation is 0
    f.kernels().fill(f.exec(), out.as<Out>(), 0);
    return;
  }
  Sizes whole = broadcast_sizes(left.batch(), right.batch());
  left.stretch(whole);
  right.stretch(whole);
  whole.push_back(left.rows());
  whole.push_back(right.cols());
  const Layout result = contiguous_layout(whole);
  Layout start = result;
  if (bias.defined()) start = expand_layout(bias.layout(), whole);
  Matrices operands[] = {Matrices(out, result), left, right, Matrices(bias, start)};
  multiply(f, operands, activation);
}

// The same of (M, K) a and (K, N) b, where b's elements are seen through `seen`: the calls that are
// made most often, without the search for batches.
void multiply_matrices(Frame& f,
                       const Tensor& a,
                       const Tensor& b,
                       const Layout& seen,
                       const Tensor& bias = {},
                       Activation activation = Activation::kNone) {
  const Sizes sizes{a.size(0), seen.sizes[1]};
  const Tensor& y = f.out(sizes, a.dtype());
  const Layout to = batch_of(y.layout(), 1, 0), from = batch_of(a.layout(), 1, 0),
               by = batch_of(seen, 1, 0);
  f.kernels().matmul(f.exec(), operand<Out>(y.as<In>(), &to, 0), operand<In>(a.as<In>(), &from, 0),
                     operand<In>(b.as<In>(), &by, 0), bias.as<In>(), activation);
}

// Its sizes: those of the dims in front, M unless a is a vector, N unless b is.
Sizes product_sizes(const Tensor& a, const Tensor& b) {
  const auto front = [](const Tensor& t) {
    return IntArrayRef(t.sizes().data(), static_cast<std::size_t>(t.dim() < 2 ? 0 : t.dim() - 2));
  };
  Sizes sizes = broadcast_sizes(front(a), front(b));
  if (a.dim() > 1) sizes.push_back(a.size(-2));
  if (b.dim() > 1) sizes.push_back(b.size(-1));
  return sizes;
}

// What forward saved of its inputs `a` and `b`: each only if the other wanted a gradient.
struct Factors {
  Tensor a, b;

  Factors(const Reverse& r, std::size_t input_a, std::size_t input_b) {
    const auto& inputs = r.entry().inputs;
    std::size_t k = 0;
    if (inputs[input_b]) {
      if (r.needs(input_b)) a = r.saved(k);
      ++k;
    }
    if (inputs[input_a] && r.needs(input_a)) b = r.saved(k);
  }
};

void save_factors(Frame& f, std::size_t a, std::size_t b) {
  if (f.needs(b)) f.save(f.in(a));
  if (f.needs(a)) f.save(f.in(b));
}

}  // namespace

void Matmul::forward(Frame& f) {
  const Tensor &a = f.in(0), &b = f.in(1);
  TAPER_CHECK(a.dim() > 0 && b.dim() > 0, "takes vectors and matrices, got ", a.sizes(), " and ",
              b.sizes(), "; multiply by a number with mul");
  check_product(a, b, a.size(-1), b.size(b.dim() == 1 ? 0 : -2));
  save_factors(f, 0, 1);
  dims_a_ = static_cast<std::int32_t>(a.dim());
  dims_b_ = static_cast<std::int32_t>(b.dim());
  if (a.dim() == 2 && b.dim() == 2 && a.numel() != 0 && b.numel() != 0) {
    multiply_matrices(f, a, b, b.layout());
    return;
  }
  multiply_into(f, f.out(product_sizes(a, b), a.dtype()), a, b);
}

Grads Matmul::backward(const Reverse& r) const {
  const Factors kept(r, 0, 1);
  Grads out(2);
  if (dims_a_ == 1 && dims_b_ == 1) {
    if (r.needs(0)) out[0] = r.grad() * kept.b;
    if (r.needs(1)) out[1] = r.grad() * kept.a;
    return out;
  }
  Tensor g = r.grad();
  if (dims_b_ == 1) g = g.unsqueeze(-1);
  if (dims_a_ == 1) g = g.unsqueeze(-2);
  if (r.needs(0)) {
    const Tensor b = dims_b_ == 1 ? kept.b.unsqueeze(-1) : kept.b;
    const Tensor da = matmul(g, b.mT());
    out[0] = dims_a_ == 1 ? da.squeeze(-2) : da;
  }
  if (r.needs(1)) {
    const Tensor a = dims_a_ == 1 ? kept.a.unsqueeze(-2) : kept.a;
    // One matrix for all of the batch: merging it with the rows sums over it in the product.
    const bool merges = dims_b_ <= 2 && dims_a_ > 2;
    const Tensor db = merges ? matmul(a.flatten(0, -2).t(), g.flatten(0, -2)) : matmul(a.mT(), g);
    out[1] = dims_b_ == 1 ? db.squeeze(-1) : db;
  }
  return out;
}

void AddMatmul::forward(Frame& f) {
  const Tensor &x = f.in(0), &a = f.in(1), &b = f.in(2);
  check_product(a, b, a.size(-1), b.size(-2));
  TAPER_CHECK(x.dtype() == a.dtype(), "the operands must have one dtype, got ", x.dtype(), " and ",
              a.dtype(), "; convert one with to()");
  if (is_integral(x.dtype(), true)) {  // as LibTorch does: 0.5 is 0 here
    beta_ = beta_.to_int();
    alpha_ = alpha_.to_int();
  }
  save_factors(f, 1, 2);
  const Sizes sizes = product_sizes(a, b);
  expand_layout(x.layout(), sizes);
  if (beta_.to_double() == 1 && alpha_.to_double() == 1) {
    multiply_into(f, f.out(sizes, x.dtype()), a, b, x);
    return;
  }
  const Tensor product = matmul(a, b) * alpha_;
  f.out(beta_.to_double() == 0 ? product : product + x * beta_);
}

// d(beta x + alpha A B) = beta dx + alpha (dA B + A dB)
Grads AddMatmul::backward(const Reverse& r) const {
  const Factors kept(r, 1, 2);
  const auto scaled = [&](const Scalar& by) {
    return by.to_double() == 1 ? r.grad() : r.grad() * by;
  };
  Grads out(3);
  if (r.needs(0)) out[0] = scaled(beta_);
  if (r.needs(1)) out[1] = matmul(scaled(alpha_), kept.b.mT());
  if (r.needs(2)) out[2] = matmul(kept.a.mT(), scaled(alpha_));
  return out;
}

void Linear::forward(Frame& f) {
  const Tensor &x = f.in(0), &w = f.in(1);
  TAPER_CHECK(x.dim() > 0 && w.dim() == 2 && x.size(-1) == w.size(1), "x ", x.sizes(),
              " and weight ", w.sizes(), " do not fit; they must be (..., I) and (O, I)");
  check_product(x, w, x.size(-1), w.size(1));
  TAPER_CHECK(activation_ == Activation::kNone || x.is_floating_point(),
              "an activation needs a floating-point dtype, got ", x.dtype());
  save_factors(f, 0, 1);
  if (activation_ == Activation::kRelu) f.save_out(0);
  const Tensor bias = f.size() > 2 ? f.in(2) : Tensor();
  if (bias.defined()) {
    TAPER_CHECK(bias.dtype() == x.dtype() && bias.numel() == (bias.dim() == 0 ? 1 : w.size(0)) &&
                    bias.dim() <= 1,
                "bias ", bias.dtype(), " ", bias.sizes(), " does not fit ", x.dtype(), " weight ",
                w.sizes());
  }
  const Layout turned = transpose_layout(w.layout(), 0, 1);
  if (x.dim() == 2 && x.numel() != 0 && w.numel() != 0) {
    multiply_matrices(f, x, w, turned, bias, activation_);
    return;
  }
  Sizes sizes;
  for (std::int64_t d = 0; d + 1 < x.dim(); ++d) sizes.push_back(x.size(d));
  sizes.push_back(w.size(0));
  multiply_into(f, f.out(sizes, x.dtype()), x, make_tensor(w.storage(), turned, w.dtype()), bias,
                activation_);
}

Grads Linear::backward(const Reverse& r) const {
  const Factors kept(r, 0, 1);
  Tensor g = r.grad();
  if (activation_ == Activation::kRelu) g = gradient<rows::Relu>(g, r.saved(r.saved_count() - 1));
  Grads out(r.entry().inputs.size());
  if (r.needs(0)) out[0] = matmul(g, kept.b);
  if (r.needs(1)) {
    const Tensor rows = g.dim() == 1 ? g.unsqueeze(0) : g.flatten(0, -2);
    const Tensor x = g.dim() == 1 ? kept.a.unsqueeze(0) : kept.a.flatten(0, -2);
    out[1] = matmul(rows.t(), x);
  }
  if (out.size() > 2) out[2] = g;
  return out;
}

}  // namespace ops

namespace {

Tensor activated(const Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return relu(x);
    case Activation::kGelu: return gelu(x);
    case Activation::kGeluTanh: return gelu(x, "tanh");
  }
  TAPER_ASSERT(false);
}

void check_dims(const char* name, const Tensor& a, const Tensor& b, int dims_a, int dims_b) {
  TAPER_CHECK(a.dim() == dims_a && b.dim() == dims_b, name, ": takes tensors of ", dims_a, " and ",
              dims_b, " dims, got ", a.sizes(), " and ", b.sizes());
}

}  // namespace

Tensor matmul(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  return apply(ops::Matmul(), {&*a, &*b});
}

Tensor mm(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  check_dims("mm", *a, *b, 2, 2);
  return apply(ops::Matmul("mm"), {&*a, &*b});
}

Tensor bmm(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  check_dims("bmm", *a, *b, 3, 3);
  TAPER_CHECK(a->size(0) == b->size(0), "bmm: the batches differ: ", a->sizes(), " and ",
              b->sizes());
  return apply(ops::Matmul("bmm"), {&*a, &*b});
}

Tensor mv(const TensorArg& a, const TensorArg& vec) {
  const Call call(a.loc);
  check_dims("mv", *a, *vec, 2, 1);
  return apply(ops::Matmul("mv"), {&*a, &*vec});
}

Tensor dot(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  check_dims("dot", *a, *b, 1, 1);
  return apply(ops::Matmul("dot"), {&*a, &*b});
}

Tensor outer(const TensorArg& a, const TensorArg& b) {
  const Call call(a.loc);
  check_dims("outer", *a, *b, 1, 1);
  return a->unsqueeze(1) * *b;
}

Tensor addmm(
    const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar beta, Scalar alpha) {
  const Call call(x.loc);
  check_dims("addmm", *a, *b, 2, 2);
  return apply(ops::AddMatmul("addmm", beta, alpha), {&*x, &*a, &*b});
}

Tensor baddbmm(
    const TensorArg& x, const TensorArg& a, const TensorArg& b, Scalar beta, Scalar alpha) {
  const Call call(x.loc);
  check_dims("baddbmm", *a, *b, 3, 3);
  TAPER_CHECK(a->size(0) == b->size(0), "baddbmm: the batches differ: ", a->sizes(), " and ",
              b->sizes());
  return apply(ops::AddMatmul("baddbmm", beta, alpha), {&*x, &*a, &*b});
}

Tensor linear(const TensorArg& x,
              const TensorArg& weight,
              const TensorArg& bias,
              Activation activation) {
  const Call call(x.loc);
  if (weight->dim() == 1) {
    const Tensor y = matmul(*x, *weight);
    return activated(bias->defined() ? y + *bias : y, activation);
  }
  const bool recorded = GradMode::is_enabled() && (x->requires_grad() || weight->requires_grad() ||
                                                   (bias->defined() && bias->requires_grad()));
  const bool keeps_product =
      recorded && (activation == Activation::kGelu || activation == Activation::kGeluTanh);
  ops::Linear op(keeps_product ? Activation::kNone : activation);
  const Tensor y = bias->defined() ? apply(std::move(op), {&*x, &*weight, &*bias})
                                   : apply(std::move(op), {&*x, &*weight});
  return keeps_product ? activated(y, activation) : y;
}

Tensor Tensor::matmul(const TensorArg& other) const {
  return taper::matmul(TensorArg(*this, other.loc), *other);
}

Tensor Tensor::mm(const TensorArg& other) const {
  return taper::mm(TensorArg(*this, other.loc), *other);
}

Tensor Tensor::bmm(const TensorArg& other) const {
  return taper::bmm(TensorArg(*this, other.loc), *other);
}

Tensor Tensor::mv(const TensorArg& vec) const {
  return taper::mv(TensorArg(*this, vec.loc), *vec);
}

Tensor Tensor::dot(const TensorArg& other) const {
  return taper::dot(TensorArg(*this, other.loc), *other);
}

Tensor Tensor::outer(const TensorArg& other) const {
  return taper::outer(TensorArg(*this, other.loc), *other);
}

Tensor Tensor::addmm(const TensorArg& a, const TensorArg& b, Scalar beta, Scalar alpha) const {
  return taper::addmm(TensorArg(*this, a.loc), *a, *b, beta, alpha);
}

Tensor Tensor::baddbmm(const TensorArg& a, const TensorArg& b, Scalar beta, Scalar alpha) const {
  return taper::baddbmm(TensorArg(*this, a.loc), *a, *b, beta, alpha);
}

}  // namespace taper
