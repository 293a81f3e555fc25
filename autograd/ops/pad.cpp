// How padding runs in its four modes.
#include "taper/autograd/ops/pad.h"

#include <vector>

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/shape.h"

namespace taper::ops {

void Pad::forward(Frame& f) {
  const Tensor& x = f.in(0);
  Sizes sizes;
  for (const std::int64_t s : x.sizes()) sizes.push_back(s);
  Layout source = x.layout();
  for (std::size_t i = 0; i < pad_.size() / 2; ++i) {
    const std::size_t d = sizes.size() - 1 - i;
    const std::int64_t before = pad_[2 * i], after = pad_[2 * i + 1], size = sizes[d];
    sizes[d] = size + before + after;
    TAPER_CHECK(sizes[d] >= 0, "padding ", IntArrayRef(pad_), " crops more than x ", x.sizes(),
                " has in dim ", d);
    source = slice_layout(source, static_cast<std::int64_t>(d), before < 0 ? -before : 0,
                          size + (after < 0 ? after : 0), 1);
  }
  const Tensor& y = f.out(sizes, x.dtype());
  f.kernels().fill(f.exec(), y.as<Out>(), value_);
  Layout target = y.layout();
  for (std::size_t i = 0; i < pad_.size() / 2; ++i) {
    const auto d = static_cast<std::int64_t>(sizes.size() - 1 - i);
    const std::int64_t begin = pad_[2 * i] > 0 ? pad_[2 * i] : 0;
    target = slice_layout(target, d, begin, begin + source.sizes[d], 1);
  }
  if (source.numel() == 0) return;
  const Tensor to = make_tensor(y.storage(), target, y.dtype());
  const Tensor from = make_tensor(x.storage(), source, x.dtype());
  f.kernels().copy(f.exec(), to.as<Out>(), from.as<In>());
}

Grads Pad::backward(const Reverse& r) const {
  Sizes opposite;
  for (const std::int64_t p : pad_) opposite.push_back(-p);
  return {apply(Pad(std::move(opposite), 0), {&r.grad()})};
}

}  // namespace taper::ops

namespace taper {
namespace {

// Where element i of a padded dim comes from; i counts from the first element of x.
std::int64_t source_of(std::int64_t i, std::int64_t size, PadMode mode) {
  switch (mode) {
    case PadMode::kReflect: return i < 0 ? -i : i < size ? i : 2 * (size - 1) - i;
    case PadMode::kReplicate: return i < 0 ? 0 : i < size ? i : size - 1;
    default: return i < 0 ? i + size : i < size ? i : i - size;
  }
}

Tensor pad_by_index(
    const Tensor& x, std::int64_t dim, std::int64_t before, std::int64_t after, PadMode mode) {
  const std::int64_t size = x.size(dim);
  const std::int64_t room = mode == PadMode::kReflect    ? size - 1
                            : mode == PadMode::kCircular ? size
                                                         : (size > 0 ? INT64_MAX : 0);
  TAPER_CHECK(before <= room && after <= room && before + size + after >= 0, "pad: (", before, ", ",
              after, ") does not fit dim ", dim, " of x ", x.sizes(), " in this mode");
  std::vector<std::int64_t> from;
  for (std::int64_t i = -before; i < size + after; ++i) from.push_back(source_of(i, size, mode));
  return x.index_select(dim, tensor(from, TensorOptions(kInt64).device(x.device())));
}

}  // namespace

Tensor pad(const TensorArg& x, IntArrayRef pad, PadMode mode, double value) {
  const Call call(x.loc);
  TAPER_CHECK(pad.size() % 2 == 0 && static_cast<std::int64_t>(pad.size()) <= 2 * x->dim(),
              "pad: ", pad, " must hold (before, after) of at most the ", x->dim(), " dims of x ",
              x->sizes());
  if (mode == PadMode::kConstant) return constant_pad_nd(*x, pad, value);
  Sizes crop, amounts;  // what wraps around is what cropping leaves
  for (const std::int64_t p : pad) {
    const bool crops = p < 0 && mode == PadMode::kCircular;
    crop.push_back(crops ? p : 0);
    amounts.push_back(crops ? 0 : p);
  }
  Tensor out = mode == PadMode::kCircular ? constant_pad_nd(*x, crop) : *x;
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    const auto dim = x->dim() - 1 - static_cast<std::int64_t>(i);
    out = pad_by_index(out, dim, amounts[2 * i], amounts[2 * i + 1], mode);
  }
  return out.is_same(*x) ? x->clone() : out;
}

Tensor constant_pad_nd(const TensorArg& x, IntArrayRef pad, Scalar value) {
  const Call call(x.loc);
  TAPER_CHECK(pad.size() % 2 == 0 && static_cast<std::int64_t>(pad.size()) <= 2 * x->dim(),
              "pad: ", pad, " must hold (before, after) of at most the ", x->dim(), " dims of x ",
              x->sizes());
  Sizes amounts;
  for (const std::int64_t p : pad) amounts.push_back(p);
  return apply(ops::Pad(std::move(amounts), value), {&*x});
}

}  // namespace taper
