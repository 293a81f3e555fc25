// Elements chosen along one dim by an index tensor: checks, kernels and derivatives.
#include "taper/autograd/ops/gather_scatter.h"

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/unary.h"

namespace taper::ops {
namespace {

// A 0-dim tensor is indexed as one of size 1.
Layout with_dim(const Layout& layout) {
  return layout.ndim == 0 ? unsqueeze_layout(layout, 0) : layout;
}

// The part of `layout` that an index of these sizes reaches: all of dim, as much of the others.
Layout reached(const Layout& layout, const Layout& index, int dim) {
  Layout out = with_dim(layout);
  for (int d = 0; d < out.ndim; ++d) {
    if (d != dim) out.sizes[d] = index.sizes[d];
  }
  return out;
}

template <class V> V operand(const Tensor& t, const Layout& layout) {
  V v = t.as<V>();
  v.layout = &layout;
  return v;
}

// out = x, unless the op writes x in place; then `out` is x.
void start_from(const Frame& f, const Tensor& out, const Tensor& x) {
  if (!out.is_same(x)) f.kernels().copy(f.exec(), out.as<Out>(), x.as<In>());
}

void check_same_dtype(const Tensor& x, const Tensor& src) {
  TAPER_CHECK(x.dtype() == src.dtype(), "x and src must have one dtype, got ", x.dtype(), " and ",
              src.dtype(), "; convert one with to()");
}

std::int64_t dims_of(const Tensor& t) {
  return t.dim() == 0 ? 1 : t.dim();
}

std::int64_t length_of(const Tensor& t, std::int64_t dim) {
  return t.dim() == 0 ? 1 : t.size(dim);
}

Sizes owned(IntArrayRef sizes) {
  Sizes out;
  for (const std::int64_t s : sizes) out.push_back(s);
  return out;
}

Tensor zeros_for(const Tensor& g, IntArrayRef sizes) {
  return zeros(sizes, TensorOptions(g.dtype()).device(g.device()));
}

}  // namespace

Tensor as_index(const Frame& f, const Tensor& index) {
  TAPER_CHECK(index.dtype() == kInt64 || index.dtype() == kInt32,
              "the index must be i64 or i32, got ", index.dtype());
  return cast(f, index, kInt64);
}

namespace {

// gather and scatter want i64, as in LibTorch; of an empty index nothing is read.
void check_index_fits(const Tensor& x, const Tensor& index, std::int64_t dim) {
  if (index.numel() == 0) return;
  TAPER_CHECK(index.dtype() == kInt64, "the index must be i64, got ", index.dtype());
  bool fits = dims_of(x) == dims_of(index);
  for (std::int64_t d = 0; fits && d < x.dim() && index.dim() > 0; ++d) {
    fits = d == dim || index.size(d) <= x.size(d);
  }
  TAPER_CHECK(fits, "an index of shape ", index.sizes(), " does not fit into ", x.sizes(),
              " outside dim ", dim, "; it needs as many dims, and sizes that are no larger");
}

}  // namespace

void Gather::forward(Frame& f) {
  const Tensor &x = f.in(0), &index = f.in(1);
  dim_ = wrap_dim(dim_, x.sizes());
  check_index_fits(x, index, dim_);
  const Tensor at = cast(f, index, kInt64);
  if (f.needs(0)) f.save(at);
  sizes_ = owned(x.sizes());
  const Tensor& out = f.out(index.sizes(), x.dtype());
  if (index.numel() == 0) return;
  const auto dim = static_cast<int>(dim_);
  const Layout to = with_dim(out.layout()), by = with_dim(at.layout());
  const Layout from = reached(x.layout(), by, dim);
  f.kernels().gather(f.exec(), operand<Out>(out, to), operand<In>(x, from), operand<In>(at, by),
                     dim);
}

Grads Gather::backward(const Reverse& r) const {
  const Tensor none = zeros_for(r.grad(), sizes_), index = r.saved(0);
  return {apply(Scatter(dim_, true), {&none, &index, &r.grad()}), Tensor()};
}

void Scatter::forward(Frame& f) {
  const Tensor &x = f.in(0), &index = f.in(1), &src = f.in(2);
  dim_ = wrap_dim(dim_, x.sizes());
  check_same_dtype(x, src);
  check_index_fits(x, index, dim_);
  const Tensor at = cast(f, index, kInt64);
  f.save(at);
  const Tensor& out = f.out(x.sizes(), x.dtype());
  start_from(f, out, x);
  if (index.numel() == 0) return;
  const auto dim = static_cast<int>(dim_);
  const Layout by = with_dim(at.layout()), from = with_dim(src.layout());
  const Layout to = reached(out.layout(), by, dim);
  const auto& slot = adds_ ? f.kernels().scatter_add : f.kernels().scatter;
  slot(f.exec(), operand<InOut>(out, to), operand<In>(at, by), operand<In>(src, from), dim);
}

Grads Scatter::backward(const Reverse& r) const {
  Grads out(3);
  const Tensor index = r.saved(0);
  if (r.needs(0) && adds_) out[0] = r.grad();
  if (r.needs(0) && !adds_) {
    const Tensor none = zeros_for(r.grad(), {}).expand(index.sizes());
    out[0] = apply(Scatter(dim_, false), {&r.grad(), &index, &none});
  }
  if (r.needs(2)) out[2] = apply(Gather(dim_), {&r.grad(), &index});
  return out;
}

void IndexSelect::forward(Frame& f) {
  const Tensor &x = f.in(0), &index = f.in(1);
  dim_ = wrap_dim(dim_, x.sizes());
  TAPER_CHECK(index.dim() <= 1, "the index must have one dim, got ", index.sizes());
  TAPER_CHECK(x.dim() > 0 || index.numel() == 1,
              "of a 0-dim tensor exactly one element can be selected, got ", index.numel());
  const Tensor at = as_index(f, index);
  if (f.needs(0)) f.save(at);
  sizes_ = owned(x.sizes());
  Sizes sizes = sizes_;
  if (x.dim() > 0) sizes[static_cast<std::size_t>(dim_)] = index.numel();
  const Tensor& out = f.out(sizes, x.dtype());
  if (out.numel() == 0) return;
  const Layout to = with_dim(out.layout()), from = with_dim(x.layout()), by = with_dim(at.layout());
  f.kernels().index_select(f.exec(), operand<Out>(out, to), operand<In>(x, from),
                           operand<In>(at, by), static_cast<int>(dim_));
}

Grads IndexSelect::backward(const Reverse& r) const {
  const Tensor none = zeros_for(r.grad(), sizes_), index = r.saved(0);
  return {apply(IndexAdd(dim_), {&none, &index, &r.grad()}), Tensor()};
}

void IndexAdd::forward(Frame& f) {
  const Tensor &x = f.in(0), &index = f.in(1), &src = f.in(2);
  dim_ = wrap_dim(dim_, x.sizes());
  check_same_dtype(x, src);
  bool fits =
      dims_of(x) == dims_of(src) && index.dim() <= 1 && length_of(src, dim_) == index.numel();
  for (std::int64_t d = 0; fits && d < x.dim() && src.dim() > 0; ++d) {
    fits = d == dim_ || x.size(d) == src.size(d);
  }
  TAPER_CHECK(fits, "index ", index.sizes(), " and src ", src.sizes(), " do not fit x ", x.sizes(),
              " at dim ", dim_, "; src needs x's sizes there, and one slice for each index");
  const Tensor at = as_index(f, index);
  if (f.needs(2)) f.save(at);
  const Tensor& out = f.out(x.sizes(), x.dtype());
  start_from(f, out, x);
  if (src.numel() == 0) return;
  const Layout to = with_dim(out.layout()), by = with_dim(at.layout());
  const Layout from = with_dim(src.layout());
  f.kernels().index_add(f.exec(), operand<InOut>(out, to), operand<In>(at, by),
                        operand<In>(src, from), static_cast<int>(dim_));
}

Grads IndexAdd::backward(const Reverse& r) const {
  Grads out(3);
  if (r.needs(0)) out[0] = r.grad();
  if (r.needs(2)) {
    const Tensor index = r.saved(0);
    out[2] = apply(IndexSelect(dim_), {&r.grad(), &index});
  }
  return out;
}

void Embedding::forward(Frame& f) {
  const Tensor &weight = f.in(0), &index = f.in(1);
  TAPER_CHECK(weight.dim() == 2, "the weight must be (V, D), got ", weight.sizes());
  TAPER_CHECK(padding_ < weight.size(0), "padding_idx ", padding_, " is out of range for ",
              weight.size(0), " rows");
  const Tensor at = as_index(f, index).flatten();
  if (f.needs(0)) f.save(at);
  sizes_ = owned(weight.sizes());
  Sizes sizes = owned(index.sizes());
  sizes.push_back(weight.size(1));
  const Tensor& out = f.out(sizes, weight.dtype());
  if (out.numel() == 0) return;
  const Layout to = contiguous_layout({index.numel(), weight.size(1)});
  f.kernels().index_select(f.exec(), operand<Out>(out, to), weight.as<In>(), at.as<In>(), 0);
}

Grads Embedding::backward(const Reverse& r) const {
  const Tensor index = r.saved(0);
  Tensor rows = r.grad().reshape({index.numel(), sizes_[1]});
  if (padding_ >= 0) rows = where((index == padding_).unsqueeze(1), 0, rows);
  const Tensor none = zeros_for(rows, sizes_);
  return {apply(IndexAdd(0), {&none, &index, &rows}), Tensor()};
}

}  // namespace taper::ops
