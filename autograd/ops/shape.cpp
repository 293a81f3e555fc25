// The classes of views and copies, and how their gradients flow.
#include "taper/autograd/ops/shape.h"

#include "taper/autograd/ops/binary.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/index.h"
#include "taper/core/promote.h"

namespace taper {
namespace ops {
namespace {

Sizes owned(IntArrayRef sizes) {
  Sizes out;
  for (const std::int64_t s : sizes) out.push_back(s);
  return out;
}

void raw_copy(const Frame& f, const Tensor& out, const Tensor& in) {
  const Layout stretched = expand_layout(in.layout(), out.sizes());
  In view = in.as<In>();
  view.layout = &stretched;
  f.kernels().copy(f.exec(), out.as<Out>(), view);
}

Tensor alias(const Tensor& t, const Layout& layout) {
  return make_tensor(t.storage(), layout, t.dtype());
}

// A buffer that spans all that `base` and `view` reach, and the two layouts moved into it.
struct Canvas {
  Layout base, view;
  Tensor buffer;

  Canvas(const Layout& base_in, const Layout& view_in, DType dtype, Device device)
      : base(base_in), view(view_in) {
    const Extent a = extent(base), b = extent(view);
    const std::int64_t begin = a.begin < b.begin || b.end == 0 ? a.begin : b.begin;
    const std::int64_t end = a.end > b.end ? a.end : b.end;
    base.offset -= begin;
    view.offset -= begin;
    buffer = zeros({end > begin ? end - begin : 0}, TensorOptions(dtype).device(device));
  }
};

// Adds `part` at the places of `view` in the buffer, also where they meet.
void add_at(const Canvas& c, const Layout& view, const Tensor& part) {
  const Tensor target = alias(c.buffer, view);
  if (!may_overlap_itself(view)) {
    target.add_(part);
    return;
  }
  const Tensor places = alias(arange(c.buffer.numel(), c.buffer.device()), view);
  c.buffer.index_add_(0, places.reshape({-1}), part.reshape({-1}));
}

}  // namespace

void View::forward(Frame& f) {
  from_ = owned(f.in(0).sizes());
  const Sizes wanted = infer_sizes(sizes_, f.in(0).numel());
  const std::optional<Layout> layout = view_layout(f.in(0).layout(), wanted);
  TAPER_CHECK(layout, "elements of ", f.in(0).layout(), " do not lie so that ", IntArrayRef(wanted),
              " could show them without a copy; use reshape()");
  f.view(*layout);
}

Grads View::backward(const Reverse& r) const {
  return {r.grad().reshape(from_)};
}

void Permute::forward(Frame& f) {
  f.view(permute_layout(f.in(0).layout(), dims_));
}

Grads Permute::backward(const Reverse& r) const {
  Sizes inverse(dims_.size());
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    const auto to = static_cast<std::size_t>(wrap_dim(dims_[d], r.grad().sizes()));
    inverse[to] = static_cast<std::int64_t>(d);
  }
  return {r.grad().permute(inverse)};
}

void Expand::forward(Frame& f) {
  f.view(expand_layout(f.in(0).layout(), sizes_));
}

void Window::forward(Frame& f) {
  base_ = contiguous_layout(f.in(0).sizes());
  for (const Layout& v : views_) f.view(v);
}

Grads Window::backward(const Reverse& r) const {
  Tensor total;
  for (std::size_t k = 0; k < relative_.size(); ++k) {
    if (!r.grad(k).defined()) continue;
    const Tensor part = apply(Embed(base_, relative_[k]), {&r.grad(k)});
    total = total.defined() ? total + part : part;
  }
  return {total};
}

void StridedPart::forward(Frame& f) {
  const Tensor& x = f.in(0);
  if (x.layout().shape() == base_.shape() && x.layout().steps() == base_.steps()) {
    Layout view = view_;
    view.offset += x.storage_offset() - base_.offset;
    const Extent e = extent(view);
    const auto limit = static_cast<std::int64_t>(x.storage()->nbytes()) / x.element_size();
    if (e.begin >= 0 && (e.end <= limit || x.is_meta())) {
      f.view(view);
      return;
    }
  }
  const Canvas c(base_, view_, x.dtype(), x.device());
  raw_copy(f, alias(c.buffer, c.base), x);
  f.out(alias(c.buffer, c.view));
}

Grads StridedPart::backward(const Reverse& r) const {
  return {apply(Embed(base_, view_), {&r.grad()})};
}

void Embed::forward(Frame& f) {
  const Tensor& part = f.in(0);
  const Canvas c(base_, view_, part.dtype(), part.device());
  add_at(c, c.view, part);
  if (!may_overlap_itself(c.base)) {
    f.out(alias(c.buffer, c.base));
    return;
  }
  const Canvas counts(base_, view_, part.dtype(), part.device());
  add_at(counts, counts.base,
         ones(base_.shape(), TensorOptions(part.dtype()).device(part.device())));
  f.out(alias(c.buffer, c.base) / alias(counts.buffer, counts.base));
}

Grads Embed::backward(const Reverse& r) const {
  Tensor g = r.grad();
  if (may_overlap_itself(base_)) {
    const Canvas counts(base_, view_, g.dtype(), g.device());
    add_at(counts, counts.base, ones(base_.shape(), TensorOptions(g.dtype()).device(g.device())));
    // The buffer takes the sum over base elements that share a place, each divided by their count:
    const Canvas sums(base_, view_, g.dtype(), g.device());
    add_at(sums, sums.base, g / alias(counts.buffer, counts.base));
    return {alias(sums.buffer, sums.view).clone()};
  }
  return {apply(StridedPart(base_, view_), {&g})};
}

void ReplacePart::forward(Frame& f) {
  const Canvas c(base_, view_, f.in(0).dtype(), f.in(0).device());
  raw_copy(f, alias(c.buffer, c.base), f.in(0));
  raw_copy(f, alias(c.buffer, c.view), f.in(1));
  f.out(alias(c.buffer, c.base));
}

Grads ReplacePart::backward(const Reverse& r) const {
  const Tensor part = strided_part(r.grad(), base_, view_);
  const Tensor none = zeros_like(part);
  return {replace_strided_part(r.grad(), none, base_, view_), part};
}

namespace {

// Whichever side is no host runs a copy: its column knows how to reach the host's memory.
Device device_of_copy(Device to, Device from) {
  if (to.is_meta() || from.is_meta()) return kMeta;
  return to.is_cpu() ? from : to;
}

// `from` are elements of `source`.
void copy_across(
    Device on, const Tensor& to, const In& from, const Tensor& source, bool non_blocking) {
  Exec exec(on);
  exec.non_blocking = non_blocking;
  kernels_for(on).copy(exec, to.as<Out>(), from);
  if (!non_blocking || !on.is_cuda()) return;
  const Stream stream(on, exec.stream);
  source.storage()->record_stream(stream);
  to.storage()->record_stream(stream);
}

}  // namespace

void Copy::forward(Frame& f) {
  const Tensor& x = f.in(0);
  const Layout layout = format_ == MemoryFormat::kPreserve ? dense_like(x.layout())
                                                           : contiguous_layout(x.sizes(), format_);
  // What need not have arrived on return must arrive in memory that the device can write by itself.
  const bool pinned =
      how_ == How::kPin || (how_ == How::kNonBlocking && x.device().is_cuda() && device_.is_cpu());
  const Tensor out = pinned ? make_pinned(layout, dtype_) : make_tensor(layout, dtype_, device_);
  const Device on = device_of_copy(device_, x.device());
  copy_across(on, out, x.as<In>(), x, how_ == How::kNonBlocking);
  f.out(out);
}

Device CopyInto::device(ArrayRef<const Tensor*> inputs) const {
  return device_of_copy(inputs[0]->device(), inputs[1]->device());
}

void CopyInto::forward(Frame& f) {
  const Tensor& self = f.in(0);
  const Tensor& out = f.out(self.layout(), self.dtype());
  Tensor source = f.in(1);
  if (source.sizes() != out.sizes()) source = source.to(f.device(), non_blocking_);  // then stretch
  const Layout stretched = expand_layout(source.layout(), out.sizes());
  In from = source.as<In>();
  from.layout = &stretched;
  copy_across(f.device(), out, from, source, non_blocking_);
}

void Fill::forward(Frame& f) {
  const Tensor& self = f.in(0);
  f.kernels().fill(f.exec(), f.out(self.layout(), self.dtype()).as<Out>(), value_);
}

namespace {

// LibTorch lets 1-d tensors without elements take part in any cat.
bool is_nothing(const Tensor& t) {
  return t.dim() == 1 && t.size(0) == 0;
}

DType common_dtype(const Frame& f) {
  DType dtype = f.in(0).dtype();
  for (std::size_t i = 1; i < f.size(); ++i) dtype = promote_types(dtype, f.in(i).dtype());
  return dtype;
}

// channels_last when all inputs lie so and one of them lies in no other order, as in LibTorch.
MemoryFormat common_format(const Frame& f) {
  bool only_last = false;
  for (std::size_t i = 0; i < f.size(); ++i) {
    const Tensor& t = f.in(i);
    if (is_nothing(t)) continue;
    if (!is_channels_last(t.layout())) return MemoryFormat::kContiguous;
    only_last = only_last || !t.is_contiguous();
  }
  return only_last ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous;
}

}  // namespace

void Cat::forward(Frame& f) {
  const Tensor* first = &f.in(0);
  for (std::size_t i = 1; i < f.size() && is_nothing(*first); ++i) first = &f.in(i);
  dim_ = wrap_dim(dim_, first->sizes());
  TAPER_CHECK(first->dim() > 0, "0-dim tensors cannot be joined; stack() makes a new dim");
  Sizes sizes = owned(first->sizes());
  std::int64_t length = 0;
  for (std::size_t i = 0; i < f.size(); ++i) {
    const Tensor& t = f.in(i);
    lengths_.push_back(is_nothing(t) ? 0 : t.size(dim_));
    length += lengths_.back();
    if (is_nothing(t)) continue;
    bool fits = t.dim() == first->dim();
    for (std::int64_t d = 0; fits && d < t.dim(); ++d) {
      fits = d == dim_ || t.size(d) == first->size(d);
    }
    TAPER_CHECK(fits, "tensor ", i, " has shape ", t.sizes(), ", which does not fit ",
                first->sizes(), " outside dim ", dim_);
  }
  sizes[static_cast<std::size_t>(dim_)] = length;
  const Tensor& out = f.out(contiguous_layout(sizes, common_format(f)), common_dtype(f));
  std::int64_t at = 0;
  for (std::size_t i = 0; i < f.size(); ++i) {
    if (lengths_[i] == 0) continue;
    raw_copy(f, alias(out, slice_layout(out.layout(), dim_, at, at + lengths_[i], 1)), f.in(i));
    at += lengths_[i];
  }
}

Grads Cat::backward(const Reverse& r) const {
  Grads out(lengths_.size());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    if (r.needs(i) && lengths_[i] > 0) out[i] = r.grad().narrow(dim_, at, lengths_[i]);
    at += lengths_[i];
  }
  return out;
}

void Flip::forward(Frame& f) {
  const Tensor& x = f.in(0);
  Layout backwards = x.layout();
  for (const std::int64_t d : dims_) {
    const Layout before = backwards;
    backwards = slice_layout(backwards, d, std::nullopt, std::nullopt, -1);
    if (before.numel() == 0) backwards = before;
  }
  const Tensor& out = f.out(dense_like(x.layout()), x.dtype());
  f.kernels().copy(f.exec(), out.as<Out>(), alias(x, backwards).as<In>());
}

Grads Flip::backward(const Reverse& r) const {
  return {r.grad().flip(dims_)};
}

}  // namespace ops

Tensor strided_part(const Tensor& x, const Layout& base, const Layout& view) {
  return apply(ops::StridedPart(base, view), {&x});
}

std::unique_ptr<Op> strided_part_op(const Layout& base, const Layout& view) {
  return std::make_unique<ops::StridedPart>(base, view);
}

Tensor replace_strided_part(const Tensor& x,
                            const Tensor& part,
                            const Layout& base,
                            const Layout& view) {
  return apply(ops::ReplacePart(base, view), {&x, &part});
}

}  // namespace taper
