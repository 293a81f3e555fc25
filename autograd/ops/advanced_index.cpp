// Indexing by several tensors at once: how they broadcast, kernels and derivatives.
#include "taper/autograd/ops/advanced_index.h"

#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/gather_scatter.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/unary.h"

namespace taper {
namespace ops {
namespace {

// The frame's inputs from `first` on, as the kernel wants them: i64, with the result's sizes.
class Together {
 public:
  Together(const Frame& f, const Tensor& x, std::size_t first) {
    for (std::size_t i = first; i < f.size(); ++i) tensors_.push_back(as_index(f, f.in(i)));
    const auto count = static_cast<std::int64_t>(tensors_.size());
    TAPER_CHECK(count <= x.dim(), count, " index tensors are too many for a tensor of shape ",
                x.sizes());
    for (const Tensor& t : tensors_) common_ = broadcast_sizes(common_, t.sizes());
    sizes_ = common_;
    for (std::int64_t d = count; d < x.dim(); ++d) sizes_.push_back(x.size(d));
    for (const Tensor& t : tensors_) layouts_.push_back(over_rest(t.layout()));
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      In view = tensors_[i].as<In>();
      view.layout = &layouts_[i];
      views_.push_back(view);
    }
  }

  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  IntArrayRef sizes() const { return sizes_; }

  InList views() const { return {views_.data(), views_.size()}; }

  void save(Frame& f) const {
    for (const Tensor& t : tensors_) f.save(t);
  }

 private:
  // Stretched to the common sizes, with stride 0 over the rest of x's dims.
  Layout over_rest(const Layout& index) const {
    contiguous_layout(sizes_);  // throws when there are too many dims
    Layout out = expand_layout(index, common_);
    for (std::size_t d = common_.size(); d < sizes_.size(); ++d) out.sizes[out.ndim++] = sizes_[d];
    return out;
  }

  SmallVector<Tensor, 4> tensors_;
  SmallVector<Layout, 4> layouts_;
  SmallVector<In, 4> views_;
  Sizes common_, sizes_;
};

// x and indices, or x, values and indices, as inputs of another op.
using Inputs = SmallVector<const Tensor*, 8>;

struct SavedIndices {
  SmallVector<Tensor, 4> tensors;

  explicit SavedIndices(const Reverse& r) {
    for (std::size_t k = 0; k < r.saved_count(); ++k) tensors.push_back(r.saved(k));
  }

  void add_to(Inputs& inputs) const {
    for (const Tensor& t : tensors) inputs.push_back(&t);
  }
};

Tensor apply_to(Op&& op, const Inputs& inputs) {
  return apply(std::move(op), ArrayRef<const Tensor*>(inputs.data(), inputs.size()));
}

}  // namespace

void Index::forward(Frame& f) {
  const Tensor& x = f.in(0);
  const Together indices(f, x, 1);
  if (f.needs(0)) indices.save(f);
  for (const std::int64_t s : x.sizes()) sizes_.push_back(s);
  const Tensor& out = f.out(indices.sizes(), x.dtype());
  if (out.numel() != 0) f.kernels().index(f.exec(), out.as<Out>(), x.as<In>(), indices.views());
}

Grads Index::backward(const Reverse& r) const {
  const SavedIndices indices(r);
  const Tensor none = zeros(sizes_, TensorOptions(r.grad().dtype()).device(r.grad().device()));
  Inputs inputs{&none, &r.grad()};
  indices.add_to(inputs);
  Grads out(r.entry().inputs.size());
  out[0] = apply_to(IndexPut(true), inputs);
  return out;
}

void IndexPut::forward(Frame& f) {
  const Tensor& x = f.in(0);
  const Together indices(f, x, 2);
  indices.save(f);
  const Tensor values = cast(f, f.in(1), x.dtype());
  const Layout stretched = expand_layout(values.layout(), indices.sizes());
  const Tensor& out = f.out(x.sizes(), x.dtype());
  if (!out.is_same(x)) f.kernels().copy(f.exec(), out.as<Out>(), x.as<In>());
  if (stretched.numel() == 0) return;
  In src = values.as<In>();
  src.layout = &stretched;
  f.kernels().index_put(f.exec(), out.as<InOut>(), src, indices.views(), accumulate_);
}

// d out = dx where nothing was written (everywhere, when values were added), dvalues elsewhere.
Grads IndexPut::backward(const Reverse& r) const {
  const SavedIndices indices(r);
  Grads out(r.entry().inputs.size());
  if (r.needs(0) && accumulate_) out[0] = r.grad();
  if (r.needs(0) && !accumulate_) {
    const Tensor none = zeros({}, TensorOptions(r.grad().dtype()).device(r.grad().device()));
    Inputs inputs{&r.grad(), &none};
    indices.add_to(inputs);
    out[0] = apply_to(IndexPut(false), inputs);
  }
  if (r.needs(1)) {
    Inputs inputs{&r.grad()};
    indices.add_to(inputs);
    out[1] = apply_to(Index(), inputs);
  }
  return out;
}

void Nonzero::forward(Frame& f) {
  const Tensor& x = f.in(0);
  TAPER_CHECK(!x.is_meta(), "how many elements are not zero cannot be said of a meta tensor");
  const Tensor count = make_tensor(Layout(), kInt64, f.device());
  f.kernels().count_nonzero(f.exec(), count.as<Out>(), x.as<In>());
  const Sizes sizes{count.item<std::int64_t>(), x.dim()};
  const Tensor& rows = f.out(sizes, kInt64);
  if (rows.numel() != 0) f.kernels().nonzero(f.exec(), rows.as<Out>(), x.as<In>());
}

}  // namespace ops

Tensor nonzero(const TensorArg& x) {
  const Call call(x.loc);
  return apply(ops::Nonzero(), {&*x});
}

Tensor Tensor::nonzero(Loc loc) const {
  return taper::nonzero(TensorArg(*this, loc));
}

}  // namespace taper
