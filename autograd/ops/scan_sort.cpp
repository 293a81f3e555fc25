// Running sums and products, and sorting.
#include "taper/autograd/ops/scan_sort.h"

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/shape.h"
#include "taper/autograd/ops/unary.h"

namespace taper {
namespace ops {
namespace {

// A 0-dim tensor scans and sorts as one of size 1.
Layout with_dim(const Layout& layout) {
  return layout.ndim == 0 ? unsqueeze_layout(layout, 0) : layout;
}

using ScanSlot = Kernel<void(const Exec&, Out, In, int)> Kernels::*;

void scan(Frame& f, ScanSlot slot, std::int64_t dim) {
  const Tensor& in = f.in(0);
  const int d = wrap_dim(dim, in.sizes());
  const Tensor x = cast(f, in, is_integral(in.dtype(), true) ? kInt64 : in.dtype());
  const Tensor& out = f.out(x.sizes(), x.dtype());
  if (x.numel() == 0) return;
  const Layout to = with_dim(out.layout()), from = with_dim(x.layout());
  Out y = out.as<Out>();
  In v = x.as<In>();
  y.layout = &to, v.layout = &from;
  (f.kernels().*slot)(f.exec(), y, v, d);
}

}  // namespace

void Cumsum::forward(Frame& f) {
  scan(f, &Kernels::cumsum, dim_);
}

Grads Cumsum::backward(const Reverse& r) const {
  return {r.grad().flip(dim_).cumsum(dim_).flip(dim_)};
}

void Cumprod::forward(Frame& f) {
  scan(f, &Kernels::cumprod, dim_);
  if (!f.needs(0)) return;
  f.save(f.in(0));
  f.save_out(0);
}

namespace {

// R_i = g_i + x_{i+1} R_{i+1} along dim, by doubling: after the step of length s,
//   R_i = sum of g_k x_{i+1} ... x_k over i <= k < i + s, and P_i = x_{i+1} ... x_{i+s};
// so it takes log2(n) steps over whole tensors, divides by nothing, and can be differentiated.
Tensor reverse_recurrence(const Tensor& g, const Tensor& x, std::int64_t dim) {
  const std::int64_t n = x.size(dim);
  Tensor sums = g;
  Tensor products = x.narrow(dim, 1, n - 1);  // of those i that have all their factors
  for (std::int64_t s = 1; s < n; s *= 2) {
    const std::int64_t rest = n - s;
    const Tensor grown = sums.narrow(dim, 0, rest) + products * sums.narrow(dim, s, rest);
    if (2 * s < n) {
      products = products.narrow(dim, 0, rest - s) * products.narrow(dim, s, rest - s);
    }
    sums = cat({grown, sums.narrow(dim, rest, s)}, dim);
  }
  return sums;
}

}  // namespace

Grads Cumprod::backward(const Reverse& r) const {
  const Tensor x = r.saved(0), y = r.saved(1);
  if (x.dim() == 0 || x.numel() == 0 || x.size(dim_) == 1) return {r.grad()};
  const Tensor before = y.narrow(dim_, 0, x.size(dim_) - 1);
  const Tensor all_before = cat({ones_like(x.narrow(dim_, 0, 1)), before}, dim_);
  return {all_before * reverse_recurrence(r.grad(), x, dim_)};
}

void Sort::forward(Frame& f) {
  const Tensor& x = f.in(0);
  dim_ = wrap_dim(dim_, x.sizes());
  const Tensor values = f.out(x.sizes(), x.dtype()), indices = f.out(x.sizes(), kInt64);
  if (f.needs(0)) f.save(indices);
  if (x.numel() == 0) return;
  const Layout to = with_dim(values.layout()), from = with_dim(x.layout());
  Out v = values.as<Out>(), i = indices.as<Out>();
  In in = x.as<In>();
  v.layout = &to, i.layout = &to, in.layout = &from;
  f.kernels().sort(f.exec(), v, i, in, static_cast<int>(dim_), descending_);
}

Grads Sort::backward(const Reverse& r) const {
  return {zeros_like(r.grad()).scatter(dim_, r.saved(0), r.grad())};
}

void TopK::forward(Frame& f) {
  const Tensor& x = f.in(0);
  dim_ = wrap_dim(dim_, x.sizes());
  for (const std::int64_t s : x.sizes()) sizes_.push_back(s);
  const std::int64_t n = x.dim() == 0 ? 1 : x.size(dim_);
  TAPER_CHECK(k_ >= 0 && k_ <= n, "k must lie in [0, ", n, "], the size of dim ", dim_, " of ",
              x.sizes(), "; got ", k_);
  const auto [values, indices] = sort(x, dim_, largest_);
  const auto first = [&](const Tensor& t) {
    return t.dim() == 0 ? t : t.narrow(dim_, 0, k_).clone(MemoryFormat::kContiguous);
  };
  f.out(first(values));
  const Tensor kept = first(indices);
  f.out(kept);
  if (f.needs(0)) f.save(kept);
}

Grads TopK::backward(const Reverse& r) const {
  const Tensor& g = r.grad();
  const Tensor none = zeros(sizes_, TensorOptions(g.dtype()).device(g.device()));
  return {none.scatter(dim_, r.saved(0), g)};
}

}  // namespace ops

namespace {

std::tuple<Tensor, Tensor> pair_of(Op&& op, const Tensor& x) {
  const Tensor* in[] = {&x};
  Tensors out = apply_n(std::move(op), ArrayRef<const Tensor*>(in, 1));
  return {out[0], out[1]};
}

}  // namespace

Tensor cumsum(const TensorArg& x, std::int64_t dim) {
  const Call call(x.loc);
  return apply(ops::Cumsum(dim), {&*x});
}

Tensor cumprod(const TensorArg& x, std::int64_t dim) {
  const Call call(x.loc);
  return apply(ops::Cumprod(dim), {&*x});
}

std::tuple<Tensor, Tensor> sort(const TensorArg& x, std::int64_t dim, bool descending) {
  const Call call(x.loc);
  return pair_of(ops::Sort(dim, descending), *x);
}

Tensor argsort(const TensorArg& x, std::int64_t dim, bool descending) {
  const Call call(x.loc);
  const NoGradGuard indices_have_no_gradient;
  return std::get<1>(sort(*x, dim, descending));
}

std::tuple<Tensor, Tensor> topk(
    const TensorArg& x, std::int64_t k, std::int64_t dim, bool largest, bool) {
  const Call call(x.loc);
  return pair_of(ops::TopK(k, dim, largest), *x);
}

Tensor Tensor::cumsum(std::int64_t dim, Loc loc) const {
  return taper::cumsum(TensorArg(*this, loc), dim);
}

Tensor Tensor::cumprod(std::int64_t dim, Loc loc) const {
  return taper::cumprod(TensorArg(*this, loc), dim);
}

std::tuple<Tensor, Tensor> Tensor::sort(std::int64_t dim, bool descending, Loc loc) const {
  return taper::sort(TensorArg(*this, loc), dim, descending);
}

Tensor Tensor::argsort(std::int64_t dim, bool descending, Loc loc) const {
  return taper::argsort(TensorArg(*this, loc), dim, descending);
}

std::tuple<Tensor, Tensor> Tensor::topk(
    std::int64_t k, std::int64_t dim, bool largest, bool sorted, Loc loc) const {
  return taper::topk(TensorArg(*this, loc), k, dim, largest, sorted);
}

}  // namespace taper
