// The public functions and methods of views and copies.
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"

namespace taper {
namespace {

Sizes owned(IntArrayRef sizes) {
  Sizes out;
  for (const std::int64_t s : sizes) out.push_back(s);
  return out;
}

// A view given by a rule on layouts: over x itself, and over a contiguous stand-in for gradients.
template <class Rule> Tensor window(const char* name, const Tensor& x, Rule rule) {
  ops::Window::Rule views, relative;
  views.push_back(rule(x.layout()));
  relative.push_back(rule(contiguous_layout(x.sizes())));
  return apply(ops::Window(name, std::move(views), std::move(relative)), {&x});
}

template <class Rule>
std::vector<Tensor> windows(const char* name, const Tensor& x, std::size_t count, Rule rule) {
  ops::Window::Rule views, relative;
  const Layout stand_in = contiguous_layout(x.sizes());
  for (std::size_t k = 0; k < count; ++k) {
    views.push_back(rule(x.layout(), k));
    relative.push_back(rule(stand_in, k));
  }
  const Tensor* in[] = {&x};
  Tensors out = apply_n(ops::Window(name, std::move(views), std::move(relative)),
                        ArrayRef<const Tensor*>(in, 1));
  return std::vector<Tensor>(out.begin(), out.end());
}

}  // namespace

Tensor Tensor::view(IntArrayRef sizes, Loc loc) const {
  const Call call(loc);
  return apply(ops::View(owned(sizes)), {this});
}

Tensor Tensor::view_as(const Tensor& other, Loc loc) const {
  return view(other.sizes(), loc);
}

Tensor Tensor::view(DType dtype, Loc loc) const {
  const Call call(loc);
  if (dtype == this->dtype()) return view(sizes());
  TAPER_CHECK(!requires_grad(), "view: the bits as ", dtype, " have no gradient; detach() first");
  const std::int64_t from = element_size(), to = taper::element_size(dtype);
  Layout out = layout();
  if (from != to) {
    TAPER_CHECK(dim() > 0 && stride(-1) == 1, "view: the last dim of ", layout(),
                " must have stride 1 to be read as ", dtype);
  }
  const int last = out.ndim - 1;
  for (int d = 0; d <= last && from != to; ++d) {
    if (d == last) continue;
    TAPER_CHECK(from > to || out.strides[d] * from % to == 0, "view: stride ", out.strides[d],
                " of ", layout(), " is no multiple of the size of ", dtype);
    out.strides[d] = out.strides[d] * from / to;
  }
  if (from != to) {
    TAPER_CHECK(out.sizes[last] * from % to == 0 && out.offset * from % to == 0,
                "view: the last dim of ", layout(), " does not hold a whole number of ", dtype);
    out.sizes[last] = out.sizes[last] * from / to;
    out.offset = out.offset * from / to;
  }
  return make_tensor(storage(), out, dtype);
}

Tensor reshape(const TensorArg& x, IntArrayRef sizes) {
  const Call call(x.loc);
  const Sizes wanted = infer_sizes(sizes, x->numel());
  if (view_layout(x->layout(), wanted)) return apply(ops::View(wanted, "reshape"), {&*x});
  const Tensor copy = x->contiguous();
  return apply(ops::View(wanted, "reshape"), {&copy});
}

Tensor Tensor::reshape(IntArrayRef sizes, Loc loc) const {
  return taper::reshape(TensorArg(*this, loc), sizes);
}

Tensor Tensor::reshape_as(const Tensor& other, Loc loc) const {
  return reshape(other.sizes(), loc);
}

Tensor flatten(const TensorArg& x, std::int64_t start_dim, std::int64_t end_dim) {
  const Call call(x.loc);
  const int n = static_cast<int>(x->dim());
  const int first = wrap_dim(start_dim, x->sizes()), last = wrap_dim(end_dim, x->sizes());
  TAPER_CHECK(first <= last, "flatten: start_dim ", start_dim, " lies after end_dim ", end_dim);
  if (n == 0) return x->reshape({1});
  if (first == last) return *x;
  Sizes sizes;
  for (int d = 0; d < n; ++d) {
    if (d <= first || d > last) sizes.push_back(x->size(d));
    else sizes[static_cast<std::size_t>(first)] *= x->size(d);
  }
  return x->reshape(sizes);
}

Tensor Tensor::flatten(std::int64_t start_dim, std::int64_t end_dim, Loc loc) const {
  return taper::flatten(TensorArg(*this, loc), start_dim, end_dim);
}

Tensor Tensor::unflatten(std::int64_t dim, IntArrayRef sizes, Loc loc) const {
  const Call call(loc);
  const int d = wrap_dim(dim, this->sizes());
  Sizes out;
  for (int i = 0; i < this->dim(); ++i) {
    if (i != d) out.push_back(size(i));
    else
      for (const std::int64_t s : infer_sizes(sizes, size(d))) out.push_back(s);
  }
  return view(out);
}

namespace {

Tensor permuted(const Tensor& x, Sizes dims, const char* name) {
  return apply(ops::Permute(std::move(dims), name), {&x});
}

Sizes identity(const Tensor& x) {
  Sizes dims;
  for (std::int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

}  // namespace

Tensor permute(const TensorArg& x, IntArrayRef dims) {
  const Call call(x.loc);
  return permuted(*x, owned(dims), "permute");
}

Tensor Tensor::permute(IntArrayRef dims, Loc loc) const {
  return taper::permute(TensorArg(*this, loc), dims);
}

Tensor transpose(const TensorArg& x, std::int64_t dim0, std::int64_t dim1) {
  const Call call(x.loc);
  const int n = static_cast<int>(x->dim());
  const auto a = static_cast<std::size_t>(wrap_dim(dim0, x->sizes()));
  const auto b = static_cast<std::size_t>(wrap_dim(dim1, x->sizes()));
  Sizes dims = identity(*x);
  if (n > 0) std::swap(dims[a], dims[b]);
  return permuted(*x, std::move(dims), "transpose");
}

Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1, Loc loc) const {
  return taper::transpose(TensorArg(*this, loc), dim0, dim1);
}

Tensor t(const TensorArg& x) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() <= 2, "t: takes a tensor of at most 2 dims, got ", x->sizes(),
              "; use transpose()");
  Sizes dims = identity(*x);
  if (dims.size() == 2) std::swap(dims[0], dims[1]);
  return permuted(*x, std::move(dims), "t");
}

Tensor Tensor::t(Loc loc) const {
  return taper::t(TensorArg(*this, loc));
}

Tensor movedim(const TensorArg& x, std::int64_t source, std::int64_t destination) {
  const Call call(x.loc);
  const int n = static_cast<int>(x->dim());
  const int from = wrap_dim(source, x->sizes()), to = wrap_dim(destination, x->sizes());
  Sizes dims;
  for (int d = 0, next = 0; d < n; ++d) {
    if (next == from) ++next;
    dims.push_back(d == to ? from : next++);
  }
  return permuted(*x, std::move(dims), "movedim");
}

Tensor Tensor::movedim(std::int64_t source, std::int64_t destination, Loc loc) const {
  return taper::movedim(TensorArg(*this, loc), source, destination);
}

Tensor squeeze(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::View(owned(squeeze_layout(x->layout(), std::nullopt).shape()), "squeeze"),
               {&*x});
}

Tensor squeeze(const TensorArg& x, std::int64_t dim) {
  const Call call(x.loc);
  return apply(ops::View(owned(squeeze_layout(x->layout(), dim).shape()), "squeeze"), {&*x});
}

Tensor Tensor::squeeze(Loc loc) const {
  return taper::squeeze(TensorArg(*this, loc));
}

Tensor Tensor::squeeze(std::int64_t dim, Loc loc) const {
  return taper::squeeze(TensorArg(*this, loc), dim);
}

Tensor unsqueeze(const TensorArg& x, std::int64_t dim) {
  const Call call(x.loc);
  return window("unsqueeze", *x, [&](const Layout& l) { return unsqueeze_layout(l, dim); });
}

Tensor Tensor::unsqueeze(std::int64_t dim, Loc loc) const {
  return taper::unsqueeze(TensorArg(*this, loc), dim);
}

Tensor broadcast_to(const TensorArg& x, IntArrayRef sizes) {
  const Call call(x.loc);
  return apply(ops::Expand(owned(sizes)), {&*x});
}

Tensor Tensor::expand(IntArrayRef sizes, Loc loc) const {
  const Call call(loc);
  return apply(ops::Expand(owned(sizes)), {this});
}

Tensor Tensor::expand_as(const Tensor& other, Loc loc) const {
  return expand(other.sizes(), loc);
}

Tensor narrow(const TensorArg& x, std::int64_t dim, std::int64_t start, std::int64_t length) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() > 0, "narrow: a 0-dim tensor has nothing to narrow");
  const std::int64_t n = x->size(dim);
  TAPER_CHECK(start >= -n && start <= n, "narrow: start ", start, " is out of range for dim ", dim,
              " of ", x->sizes());
  const std::int64_t from = start < 0 ? start + n : start;
  TAPER_CHECK(length >= 0 && from <= n - length, "narrow: ", length, " elements from ", from,
              " exceed dim ", dim, " of ", x->sizes());
  return window("narrow", *x,
                [&](const Layout& l) { return slice_layout(l, dim, from, from + length, 1); });
}

Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length, Loc loc) const {
  return taper::narrow(TensorArg(*this, loc), dim, start, length);
}

Tensor select(const TensorArg& x, std::int64_t dim, std::int64_t index) {
  const Call call(x.loc);
  return window("select", *x, [&](const Layout& l) { return select_layout(l, dim, index); });
}

Tensor Tensor::select(std::int64_t dim, std::int64_t index, Loc loc) const {
  return taper::select(TensorArg(*this, loc), dim, index);
}

Tensor Tensor::slice(std::int64_t dim,
                     std::optional<std::int64_t> start,
                     std::optional<std::int64_t> end,
                     std::int64_t step,
                     Loc loc) const {
  const Call call(loc);
  return window("slice", *this,
                [&](const Layout& l) { return slice_layout(l, dim, start, end, step); });
}

Tensor diagonal(const TensorArg& x, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  const Call call(x.loc);
  return window("diagonal", *x,
                [&](const Layout& l) { return diagonal_layout(l, offset, dim1, dim2); });
}

Tensor Tensor::diagonal(std::int64_t offset, std::int64_t dim1, std::int64_t dim2, Loc loc) const {
  return taper::diagonal(TensorArg(*this, loc), offset, dim1, dim2);
}

Tensor Tensor::unfold(std::int64_t dim, std::int64_t size, std::int64_t step, Loc loc) const {
  const Call call(loc);
  return window("unfold", *this,
                [&](const Layout& l) { return unfold_layout(l, dim, size, step); });
}

Tensor as_strided(const TensorArg& x,
                  IntArrayRef sizes,
                  IntArrayRef strides,
                  std::optional<std::int64_t> storage_offset) {
  const Call call(x.loc);
  TAPER_CHECK(sizes.size() == strides.size(), "as_strided: ", sizes, " has ", sizes.size(),
              " dims but ", strides, " has ", strides.size());
  Layout view = contiguous_layout(sizes);
  view.offset = storage_offset.value_or(x->storage_offset());
  TAPER_CHECK(view.offset >= 0, "as_strided: the offset must not be negative, got ", view.offset);
  for (std::size_t d = 0; d < strides.size(); ++d) {
    TAPER_CHECK(strides[d] >= 0, "as_strided: strides must not be negative, got ", strides);
    view.strides[d] = strides[d];
  }
  const auto limit = static_cast<std::int64_t>(x->storage()->nbytes()) / x->element_size();
  TAPER_CHECK(extent(view).end <= limit, "as_strided: ", view, " reaches element ",
              extent(view).end - 1, " of a storage of ", limit, " elements");
  return strided_part(*x, x->layout(), view);
}

Tensor Tensor::as_strided(IntArrayRef sizes,
                          IntArrayRef strides,
                          std::optional<std::int64_t> storage_offset,
                          Loc loc) const {
  return taper::as_strided(TensorArg(*this, loc), sizes, strides, storage_offset);
}

namespace {

std::vector<Tensor> split_into(const Tensor& x, const std::vector<std::int64_t>& sizes, int dim) {
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t s : sizes) starts.push_back(starts.back() + s);
  return windows("split", x, sizes.size(), [&](const Layout& l, std::size_t k) {
    return slice_layout(l, dim, starts[k], starts[k + 1], 1);
  });
}

}  // namespace

std::vector<Tensor> split(const TensorArg& x, std::int64_t size, std::int64_t dim) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() > 0, "split: a 0-dim tensor cannot be split");
  const int d = wrap_dim(dim, x->sizes());
  const std::int64_t n = x->size(d);
  TAPER_CHECK(size > 0 || (size == 0 && n == 0), "split: the size must be positive, got ", size);
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < n; at += size) sizes.push_back(n - at < size ? n - at : size);
  if (sizes.empty()) sizes.push_back(0);
  return split_into(*x, sizes, d);
}

std::vector<Tensor> split(const TensorArg& x, IntArrayRef sizes, std::int64_t dim) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() > 0, "split: a 0-dim tensor cannot be split");
  const int d = wrap_dim(dim, x->sizes());
  std::int64_t total = 0;
  for (const std::int64_t s : sizes) {
    TAPER_CHECK(s >= 0, "split: sizes ", sizes, " hold a negative number");
    total += s;
  }
  TAPER_CHECK(total == x->size(d), "split: sizes ", sizes, " add up to ", total, ", dim ", d,
              " has ", x->size(d));
  return split_into(*x, sizes.vec(), d);
}

std::vector<Tensor> split_with_sizes(const TensorArg& x, IntArrayRef sizes, std::int64_t dim) {
  return split(TensorArg(*x, x.loc), sizes, dim);
}

std::vector<Tensor> chunk(const TensorArg& x, std::int64_t chunks, std::int64_t dim) {
  const Call call(x.loc);
  TAPER_CHECK(chunks > 0, "chunk: the number of chunks must be positive, got ", chunks);
  TAPER_CHECK(x->dim() > 0, "chunk: a 0-dim tensor cannot be cut");
  const std::int64_t n = x->size(dim);
  const std::int64_t size = (n + chunks - 1) / chunks;
  if (size == 0) {
    return split(*x, std::vector<std::int64_t>(static_cast<std::size_t>(chunks), 0), dim);
  }
  return split(*x, size, dim);
}

std::vector<Tensor> unbind(const TensorArg& x, std::int64_t dim) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() > 0, "unbind: a 0-dim tensor has no dim to remove");
  const auto count = static_cast<std::size_t>(x->size(dim));
  if (count == 0) return {};
  return windows("unbind", *x, count, [&](const Layout& l, std::size_t k) {
    return select_layout(l, dim, static_cast<std::int64_t>(k));
  });
}

std::vector<Tensor> Tensor::split(std::int64_t size, std::int64_t dim, Loc loc) const {
  return taper::split(TensorArg(*this, loc), size, dim);
}

std::vector<Tensor> Tensor::split(IntArrayRef sizes, std::int64_t dim, Loc loc) const {
  return taper::split(TensorArg(*this, loc), sizes, dim);
}

std::vector<Tensor> Tensor::chunk(std::int64_t chunks, std::int64_t dim, Loc loc) const {
  return taper::chunk(TensorArg(*this, loc), chunks, dim);
}

std::vector<Tensor> Tensor::unbind(std::int64_t dim, Loc loc) const {
  return taper::unbind(TensorArg(*this, loc), dim);
}

}  // namespace taper
