// The public functions and methods that copy elements.
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"

namespace taper {
namespace {

Tensor copied(const char* name, const Tensor& x, DType dtype, Device device, MemoryFormat format) {
  return apply(ops::Copy(name, dtype, device, format), {&x});
}

Tensor converted(
    const Tensor& x, DType dtype, Device device, bool copy, bool non_blocking = false) {
  if (!copy && x.dtype() == dtype && x.device() == device) return x;
  return apply(ops::Copy("to", dtype, device, MemoryFormat::kPreserve,
                         non_blocking ? ops::Copy::How::kNonBlocking : ops::Copy::How::kBlocking),
               {&x});
}

}  // namespace

Tensor clone(const TensorArg& x, MemoryFormat format) {
  const Call call(x.loc);
  return copied("clone", *x, x->dtype(), x->device(), format);
}

Tensor Tensor::clone(MemoryFormat format, Loc loc) const {
  return taper::clone(TensorArg(*this, loc), format);
}

Tensor Tensor::contiguous(MemoryFormat format, Loc loc) const {
  const Call call(loc);
  if (format == MemoryFormat::kPreserve || is_contiguous(format)) return *this;
  return copied("contiguous", *this, dtype(), device(), format);
}

Tensor Tensor::to(DType dtype,
                  bool /* on one device it makes no difference */,
                  bool copy,
                  Loc loc) const {
  const Call call(loc);
  return converted(*this, dtype, device(), copy);
}

Tensor Tensor::to(Device device, bool non_blocking, bool copy, Loc loc) const {
  const Call call(loc);
  return converted(*this, dtype(), device, copy, non_blocking);
}

Tensor Tensor::to(Device device, DType dtype, bool non_blocking, bool copy, Loc loc) const {
  const Call call(loc);
  return converted(*this, dtype, device, copy, non_blocking);
}

Tensor Tensor::to(const TensorOptions& options, Loc loc) const {
  const Call call(loc);
  return converted(*this, options.has_dtype() ? options.dtype() : dtype(),
                   options.has_device() ? options.device() : device(), false);
}

Tensor Tensor::to(MemoryFormat format, Loc loc) const {
  return contiguous(format, loc);
}

Tensor Tensor::to(const Tensor& other, bool non_blocking, bool copy, Loc loc) const {
  const Call call(loc);
  return converted(*this, other.dtype(), other.device(), copy, non_blocking);
}

Tensor Tensor::type_as(const Tensor& other, Loc loc) const {
  const Call call(loc);
  return converted(*this, other.dtype(), other.device(), false);
}

Tensor Tensor::pin_memory(Loc loc) const {
  const Call call(loc);
  if (is_pinned()) return *this;
  TAPER_CHECK(is_cpu(), "pin_memory: only memory of the host is pinned; the tensor lies on ",
              device());
  return apply(
      ops::Copy("pin_memory", dtype(), device(), MemoryFormat::kPreserve, ops::Copy::How::kPin),
      {this});
}

const Tensor& Tensor::copy_(const TensorArg& source, bool non_blocking) const {
  const Call call(source.loc);
  apply_inplace(ops::CopyInto(non_blocking), *this, {this, &*source});
  return *this;
}

Tensor& Tensor::operator=(const TensorArg& value) && {
  copy_(value);
  return *this;
}

const Tensor& Tensor::fill_(Scalar value, Loc loc) const {
  const Call call(loc);
  apply_inplace(ops::Fill(value), *this, {this});
  return *this;
}

const Tensor& Tensor::zero_(Loc loc) const {
  const Call call(loc);
  return fill_(0);
}

Tensor cat(const TensorList& tensors, std::int64_t dim) {
  const Call call(tensors.loc);
  TAPER_CHECK(!tensors.empty(), "cat: give at least one tensor");
  constexpr std::size_t kAtOnce = 64;  // an op's limit; longer lists are joined in two rounds
  std::vector<Tensor> joined;
  for (std::size_t at = 0; at < tensors.size(); at += kAtOnce) {
    SmallVector<const Tensor*, 8> group;
    for (std::size_t i = at; i < tensors.size() && i < at + kAtOnce; ++i) {
      group.push_back(&tensors[i]);
    }
    joined.push_back(apply(ops::Cat(dim), ArrayRef<const Tensor*>(group.data(), group.size())));
  }
  return joined.size() == 1 ? joined[0] : cat(joined, dim);
}

Tensor concat(const TensorList& tensors, std::int64_t dim) {
  const Call call(tensors.loc);
  return cat(tensors, dim);
}

Tensor hstack(const TensorList& tensors) {
  const Call call(tensors.loc);
  TAPER_CHECK(!tensors.empty(), "hstack: give at least one tensor");
  std::vector<Tensor> raised;
  for (const Tensor& t : tensors) raised.push_back(t.dim() == 0 ? t.unsqueeze(0) : t);
  return cat(raised, raised[0].dim() == 1 ? 0 : 1);
}

Tensor vstack(const TensorList& tensors) {
  const Call call(tensors.loc);
  TAPER_CHECK(!tensors.empty(), "vstack: give at least one tensor");
  std::vector<Tensor> raised;
  for (const Tensor& t : tensors) raised.push_back(t.dim() < 2 ? t.reshape({1, t.numel()}) : t);
  return cat(raised, 0);
}

Tensor stack(const TensorList& tensors, std::int64_t dim) {
  const Call call(tensors.loc);
  TAPER_CHECK(!tensors.empty(), "stack: give at least one tensor");
  std::vector<Tensor> raised;
  for (const Tensor& t : tensors) {
    TAPER_CHECK(t.sizes() == tensors[0].sizes(), "stack: the tensors have shapes ",
                tensors[0].sizes(), " and ", t.sizes(), "; they must be equal");
    raised.push_back(t.unsqueeze(dim));
  }
  return cat(raised, dim < 0 ? dim + raised[0].dim() : dim);
}

Tensor repeat(const TensorArg& x, IntArrayRef repeats) {
  const Call call(x.loc);
  const auto n = static_cast<std::int64_t>(repeats.size());
  TAPER_CHECK(n >= x->dim(), "repeat: ", repeats, " has fewer dims than ", x->sizes());
  // (r0, s0, r1, s1, ...), the r stretched, then each pair merged.
  Sizes apart, stretched, merged;
  for (std::int64_t d = 0; d < n; ++d) {
    const std::int64_t own = d - (n - x->dim());
    const std::int64_t size = own < 0 ? 1 : x->size(own);
    const std::int64_t times = repeats[static_cast<std::size_t>(d)];
    TAPER_CHECK(times >= 0, "repeat: ", repeats, " holds a negative number");
    merged.push_back(times * size);
    if (times == 1) {  // keeps within the limit of 8 dims where it can
      apart.push_back(size), stretched.push_back(size);
      continue;
    }
    apart.push_back(1), stretched.push_back(times);
    if (size == 1) continue;
    apart.push_back(size), stretched.push_back(size);
  }
  return x->reshape(apart).expand(stretched).clone(MemoryFormat::kContiguous).view(merged);
}

Tensor Tensor::repeat(IntArrayRef repeats, Loc loc) const {
  return taper::repeat(TensorArg(*this, loc), repeats);
}

Tensor flip(const TensorArg& x, IntArrayRef dims) {
  const Call call(x.loc);
  Sizes wrapped;
  unsigned seen = 0;
  for (const std::int64_t d : dims) {
    const int w = wrap_dim(d, x->sizes());
    TAPER_CHECK((seen >> w & 1U) == 0, "flip: dim ", d, " appears twice in ", dims);
    seen |= 1U << w;
    if (x->dim() > 0) wrapped.push_back(w);
  }
  return apply(ops::Flip(std::move(wrapped)), {&*x});
}

Tensor Tensor::flip(IntArrayRef dims, Loc loc) const {
  return taper::flip(TensorArg(*this, loc), dims);
}

Tensor roll(const TensorArg& x, IntArrayRef shifts, IntArrayRef dims) {
  const Call call(x.loc);
  if (dims.empty()) {
    TAPER_CHECK(shifts.size() == 1, "roll: without dims give one shift, got ", shifts);
    return roll(x->flatten(), shifts, 0).view(x->sizes());
  }
  TAPER_CHECK(shifts.size() == dims.size(), "roll: ", shifts, " and ", dims,
              " must have one number per dim");
  Tensor out = *x;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t n = out.size(dims[i]);
    const std::int64_t by = n == 0 ? 0 : ((shifts[i] % n) + n) % n;
    if (by == 0) continue;
    out = cat({out.narrow(dims[i], n - by, by), out.narrow(dims[i], 0, n - by)}, dims[i]);
  }
  return out.is_same(*x) ? x->clone() : out;
}

Tensor Tensor::roll(IntArrayRef shifts, IntArrayRef dims, Loc loc) const {
  return taper::roll(TensorArg(*this, loc), shifts, dims);
}

namespace {

// True where column - row <= diagonal, over the last two dims of x.
Tensor lower_mask(const Tensor& x, std::int64_t diagonal) {
  TAPER_CHECK(x.dim() >= 2, "tril and triu need at least 2 dims, got ", x.sizes());
  const TensorOptions options = TensorOptions(kInt64).device(x.device());
  const Tensor rows = arange(x.size(-2), options).unsqueeze(1),
               columns = arange(x.size(-1), options);
  return columns - rows <= diagonal;
}

}  // namespace

Tensor tril(const TensorArg& x, std::int64_t diagonal) {
  const Call call(x.loc);
  return masked_fill(*x, logical_not(lower_mask(*x, diagonal)), 0);
}

Tensor triu(const TensorArg& x, std::int64_t diagonal) {
  const Call call(x.loc);
  return masked_fill(*x, lower_mask(*x, diagonal - 1), 0);
}

Tensor Tensor::tril(std::int64_t diagonal, Loc loc) const {
  return taper::tril(TensorArg(*this, loc), diagonal);
}

Tensor Tensor::triu(std::int64_t diagonal, Loc loc) const {
  return taper::triu(TensorArg(*this, loc), diagonal);
}

}  // namespace taper
