// x.index({...}): what each index means, which part is a view, and where the indexed dims go.
#include "taper/autograd/ops/index.h"

#include <cstring>

#include "taper/autograd/ops/advanced_index.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"

namespace taper {

TensorIndex::TensorIndex(const char* dots, Loc at) : kind(Kind::kEllipsis) {
  const Call call(at);
  TAPER_CHECK(dots != nullptr && std::strcmp(dots, "...") == 0,
              "index: the only text among indices is \"...\"");
}

namespace {

using indexing::Slice;
using Kind = TensorIndex::Kind;
using Places = SmallVector<Tensor, kMaxDims>;

bool is_mask(const Tensor& t) {
  return t.dtype() == kBool || t.dtype() == kUInt8;
}

// How many dims of x the index stands for.
std::int64_t dims_of(const TensorIndex& index) {
  if (index.kind == Kind::kTensor) return is_mask(index.tensor) ? index.tensor.dim() : 1;
  return index.kind == Kind::kInteger || index.kind == Kind::kSlice ? 1 : 0;
}

// Note [Indexing]
// Numbers, slices and None make a view. Tensors then index that view together (they broadcast);
// a bool tensor stands for the indices of what is true in it, one tensor for each of its dims.
// The dims that they make together stand where the first of them stood when they were neighbours,
// and in front of all others when they were not. A number is no tensor here, nor is a 0-dim
// integer tensor: x.index({0, Slice(), t}) is x[0].index({Slice(), t}), as in LibTorch, where
// numpy would count the 0 among them.
class Indexed {
 public:
  Indexed(const Tensor& x, ArrayRef<TensorIndex> indices) : x_(x), view_(x) {
    std::int64_t named = 0;
    int ellipses = 0;
    for (const TensorIndex& i : indices) {
      named += dims_of(i);
      ellipses += i.kind == Kind::kEllipsis ? 1 : 0;
    }
    TAPER_CHECK(named <= x.dim(), "index: ", named, " indices are too many for a tensor of shape ",
                x.sizes());
    TAPER_CHECK(ellipses <= 1, "index: \"...\" may stand only once");
    skipped_ = x.dim() - named;
    for (const TensorIndex& i : indices) take(i);
  }

  bool by_tensors() const { return !places_.empty(); }

  // The part that numbers, slices and None chose; never x itself.
  Tensor view() const { return view_.is_same(x_) ? view_.expand(view_.sizes()) : view_; }

  Tensor read() const {
    if (!by_tensors()) return view();
    const Tensor x = indexed_first();
    SmallVector<const Tensor*, 8> inputs{&x};
    for (const Tensor& t : tensors_) inputs.push_back(&t);
    try {
      return from_first(apply(ops::Index(), ArrayRef<const Tensor*>(inputs.data(), inputs.size())));
    } catch (const Error&) {
      check_range("index");
      throw;
    }
  }

  void write(const Tensor& value) const {
    if (!by_tensors()) {
      view().copy_(without_leading_ones(value, view_.dim()));
      return;
    }
    const Tensor x = indexed_first();
    const Tensor values = to_first(without_leading_ones(value, result_dims()));
    SmallVector<const Tensor*, 8> inputs{&x, &values};
    for (const Tensor& t : tensors_) inputs.push_back(&t);
    try {
      apply_inplace(ops::IndexPut(false), x, ArrayRef<const Tensor*>(inputs.data(), inputs.size()));
    } catch (const Error&) {
      check_range("index_put");
      throw;
    }
  }

 private:
  // A kernel counts the dims of what it is given; the user, those of x. So what it refused is
  // looked at again.
  void check_range(const char* op) const {
    for (std::size_t k = 0; k < tensors_.size(); ++k) {
      const Tensor& t = tensors_[k];
      if (t.is_meta() || t.numel() == 0 || !is_integral(t.dtype())) continue;
      const std::int64_t n = view_.size(places_[k]);
      const auto low = t.min().item<std::int64_t>(), high = t.max().item<std::int64_t>();
      TAPER_CHECK(low >= -n && high < n, op, ": index ", low < -n ? low : high,
                  " is out of range for dim ", x_dims_[k], " of size ", n, " of ", x_.sizes());
    }
  }

  void take(const TensorIndex& index) {
    switch (index.kind) {
      case Kind::kInteger: return take_integer(index.integer);
      case Kind::kFlag: return take_bool(index.integer != 0);
      case Kind::kSlice: return take_slice(index.slice);
      case Kind::kNewDim: view_ = view_.unsqueeze(dim_++); return;
      case Kind::kEllipsis:
        dim_ += skipped_;
        x_dim_ += skipped_;
        return;
      case Kind::kTensor: return take_tensor(index.tensor);
    }
  }

  void take_integer(std::int64_t i) {
    TAPER_CHECK(i >= -view_.size(dim_) && i < view_.size(dim_), "index: index ", i,
                " is out of range for dim ", x_dim_, " of size ", view_.size(dim_), " of ",
                x_.sizes());
    view_ = view_.select(dim_, i);
    ++x_dim_;
  }

  void take_slice(const Slice& s) {
    if (s.start || s.stop || s.step != 1) view_ = view_.slice(dim_, s.start, s.stop, s.step);
    ++dim_;
    ++x_dim_;
  }

  // A new dim, of which all or nothing is taken.
  void take_bool(bool all) {
    view_ = view_.unsqueeze(dim_);
    add_place(zeros({all ? 1 : 0}, TensorOptions(kInt64).device(view_.device())), x_dim_);
  }

  void take_tensor(const Tensor& t) {
    if (is_mask(t)) {
      take_mask(t);
      return;
    }
    TAPER_CHECK(is_integral(t.dtype()), "index: an index tensor must hold integers or bools, got ",
                t.dtype());
    if (t.dim() == 0 && !t.is_meta()) take_integer(t.item<std::int64_t>());
    else add_place(t, x_dim_++);
  }

  void take_mask(const Tensor& mask) {
    if (mask.dim() == 0) {
      view_ = view_.unsqueeze(dim_);
      add_place(nonzero(mask.unsqueeze(0)).select(1, 0), x_dim_);
      return;
    }
    for (std::int64_t d = 0; d < mask.dim(); ++d) {
      TAPER_CHECK(mask.size(d) == view_.size(dim_ + d), "index: a mask of shape ", mask.sizes(),
                  " does not fit the dims from ", x_dim_, " on of ", x_.sizes());
    }
    const Tensor rows = nonzero(mask);
    for (std::int64_t d = 0; d < mask.dim(); ++d) add_place(rows.select(1, d), x_dim_++);
  }

  void add_place(const Tensor& index, std::int64_t x_dim) {
    const bool here = index.device() == view_.device() || index.is_meta();
    TAPER_CHECK(here || index.is_cpu(), "index: the tensor ", x_.sizes(), " lies on ", x_.device(),
                " and an index ", index.sizes(), " on ", index.device(),
                "; move one with to(device)");
    tensors_.push_back(here ? index : index.to(view_.device()));
    places_.push_back(dim_++);
    x_dims_.push_back(x_dim);
  }

  bool adjacent() const {
    return places_[places_.size() - 1] - places_[0] + 1 ==
           static_cast<std::int64_t>(places_.size());
  }

  // Dims of the view that stand before the indexed ones in the result.
  std::int64_t before() const { return adjacent() ? places_[0] : 0; }

  std::int64_t common_dims() const {
    std::int64_t n = 0;
    for (const Tensor& t : tensors_) n = t.dim() > n ? t.dim() : n;
    return n;
  }

  std::int64_t result_dims() const {
    return common_dims() + view_.dim() - static_cast<std::int64_t>(places_.size());
  }

  // The view with the indexed dims in front; x itself when they are there already.
  Tensor indexed_first() const {
    if (adjacent() && places_[0] == 0) return view_;
    Sizes order = places_;
    std::size_t next = 0;
    for (std::int64_t d = 0; d < view_.dim(); ++d) {
      if (next < places_.size() && places_[next] == d) ++next;
      else order.push_back(d);
    }
    return view_.permute(order);
  }

  // Moves the common dims of a result from the front to where they belong.
  Tensor from_first(const Tensor& t) const {
    if (before() == 0) return t;
    const std::int64_t common = common_dims();
    Sizes order;
    for (std::int64_t d = 0; d < t.dim(); ++d) {
      order.push_back(d < before() ? common + d : d < before() + common ? d - before() : d);
    }
    return t.permute(order);
  }

  // The reverse, of values that may lack dims in front.
  Tensor to_first(const Tensor& t) const {
    if (before() == 0) return t;
    Tensor whole = t;
    while (whole.dim() < result_dims()) whole = whole.unsqueeze(0);
    const std::int64_t common = common_dims();
    Sizes order;
    for (std::int64_t d = 0; d < whole.dim(); ++d) {
      order.push_back(d < common ? before() + d : d < before() + common ? d - common : d);
    }
    return whole.permute(order);
  }

  static Tensor without_leading_ones(const Tensor& value, std::int64_t dims) {
    Tensor v = value;
    while (v.dim() > dims && v.size(0) == 1) v = v.squeeze(0);
    return v;
  }

  const Tensor& x_;
  Tensor view_;
  std::int64_t dim_ = 0;      // of the view, where the next index goes
  std::int64_t x_dim_ = 0;    // of x, the same
  std::int64_t skipped_ = 0;  // dims that "..." stands for
  Places tensors_;
  Sizes places_;  // the dim of the view that each tensor indexes
  Sizes x_dims_;  // and that of x
};

}  // namespace

Tensor Tensor::index(ArrayRef<TensorIndex> indices, Loc loc) const {
  const Call call(loc);
  return Indexed(*this, indices).read();
}

Tensor Tensor::index_put(ArrayRef<TensorIndex> indices, const TensorArg& value) const {
  const Call call(value.loc);
  return clone().index_put_(indices, *value);
}

const Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const TensorArg& value) const {
  const Call call(value.loc);
  const bool follows = value->is_cpu() && value->dim() == 0;  // as everywhere
  TAPER_CHECK(value->device() == device() || follows, "index_put_: the tensor ", sizes(),
              " lies on ", device(), " and the values ", value->sizes(), " on ", value->device(),
              "; move one with to(device)");
  Indexed(*this, indices).write(follows ? value->to(device()) : *value);
  return *this;
}

Tensor Tensor::operator[](const IndexArg& index) const {
  const Call call(index.loc);
  return Indexed(*this, index.index).read();
}

Tensor index_put(const TensorArg& x,
                 const std::vector<Tensor>& indices,
                 const TensorArg& values,
                 bool accumulate) {
  const Call call(x.loc);
  SmallVector<Tensor, 4> places;
  for (const Tensor& t : indices) {
    if (!is_mask(t)) {
      places.push_back(t);
      continue;
    }
    const auto first = static_cast<std::int64_t>(places.size());
    for (std::int64_t d = 0; d < t.dim(); ++d) {
      TAPER_CHECK(first + d < x->dim() && t.size(d) == x->size(first + d),
                  "index_put: a mask of shape ", t.sizes(), " does not fit the dims from ", first,
                  " on of ", x->sizes());
    }
    const Tensor rows = nonzero(t);
    for (std::int64_t d = 0; d < t.dim(); ++d) places.push_back(rows.select(1, d));
  }
  SmallVector<const Tensor*, 8> inputs{&*x, &*values};
  for (const Tensor& t : places) inputs.push_back(&t);
  return apply(ops::IndexPut(accumulate), ArrayRef<const Tensor*>(inputs.data(), inputs.size()));
}

Tensor masked_select(const TensorArg& x, const TensorArg& mask) {
  const Call call(x.loc);
  TAPER_CHECK(is_mask(*mask), "masked_select: the mask must be bool, got ", mask->dtype());
  TAPER_CHECK(mask->device() == x->device(), "masked_select: the tensor ", x->sizes(), " lies on ",
              x->device(), " and the mask ", mask->sizes(), " on ", mask->device(),
              "; move one with to(device)");
  const Sizes sizes = broadcast_sizes(x->sizes(), mask->sizes());
  return x->expand(sizes).index({mask->expand(sizes)});
}

Tensor Tensor::masked_select(const Tensor& mask, Loc loc) const {
  return taper::masked_select(TensorArg(*this, loc), mask);
}

}  // namespace taper
