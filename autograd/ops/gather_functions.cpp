// The public functions and methods that choose elements along one dim by an index tensor.
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/gather_scatter.h"
#include "taper/autograd/ops/index.h"
#include "taper/autograd/ops/shape.h"

namespace taper {
namespace {

// What scatter reads: a number stands for as many as the index has; of a larger src, the part that
// the index covers.
Tensor source_for(const Tensor& x, const Tensor& index, const Tensor& src) {
  if (src.impl().wrapped_number) return src.to(x.device(), x.dtype()).expand(index.sizes());
  Tensor part = src;
  bool fits = src.dim() == index.dim();
  for (std::int64_t d = 0; fits && d < src.dim(); ++d) {
    fits = index.size(d) <= src.size(d);
    if (fits && index.size(d) < src.size(d)) part = part.narrow(d, 0, index.size(d));
  }
  TAPER_CHECK(fits, "scatter: src ", src.sizes(), " is smaller than the index ", index.sizes());
  return part;
}

Tensor scattered(
    bool adds, const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& src) {
  const Tensor part = source_for(x, index, src);
  return apply(ops::Scatter(dim, adds), {&x, &index, &part});
}

void scatter_into(
    bool adds, const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& src) {
  const Tensor part = source_for(x, index, src);
  apply_inplace(ops::Scatter(dim, adds), x, {&x, &index, &part});
}

}  // namespace

Tensor gather(const TensorArg& x, std::int64_t dim, const TensorArg& index) {
  const Call call(x.loc);
  return apply(ops::Gather(dim), {&*x, &*index});
}

Tensor scatter(const TensorArg& x, std::int64_t dim, const TensorArg& index, const TensorArg& src) {
  const Call call(x.loc);
  return scattered(false, *x, dim, *index, *src);
}

Tensor scatter_add(const TensorArg& x,
                   std::int64_t dim,
                   const TensorArg& index,
                   const TensorArg& src) {
  const Call call(x.loc);
  return scattered(true, *x, dim, *index, *src);
}

Tensor index_select(const TensorArg& x, std::int64_t dim, const TensorArg& index) {
  const Call call(x.loc);
  return apply(ops::IndexSelect(dim), {&*x, &*index});
}

Tensor index_add(const TensorArg& x,
                 std::int64_t dim,
                 const TensorArg& index,
                 const TensorArg& src) {
  const Call call(x.loc);
  return apply(ops::IndexAdd(dim), {&*x, &*index, &*src});
}

Tensor index_fill(const TensorArg& x, std::int64_t dim, const TensorArg& index, Scalar value) {
  const Call call(x.loc);
  TAPER_CHECK(index->dim() <= 1, "index_fill: the index must have one dim, got ", index->sizes());
  if (x->dim() == 0) return scatter(*x, dim, index->reshape({}), value);
  const int d = wrap_dim(dim, x->sizes());
  Sizes along, whole;
  for (int i = 0; i < x->dim(); ++i) {
    along.push_back(i == d ? index->numel() : 1);
    whole.push_back(i == d ? index->numel() : x->size(i));
  }
  return scatter(*x, d, index->reshape(along).expand(whole), value);
}

Tensor take_along_dim(const TensorArg& x, const TensorArg& index, std::int64_t dim) {
  const Call call(x.loc);
  TAPER_CHECK(x->dim() == index->dim(), "take_along_dim: x ", x->sizes(), " and index ",
              index->sizes(), " must have as many dims");
  if (x->dim() == 0) return gather(*x, dim, *index);
  const auto d = static_cast<std::size_t>(wrap_dim(dim, x->sizes()));
  Sizes from, by;
  for (const std::int64_t s : x->sizes()) from.push_back(s);
  for (const std::int64_t s : index->sizes()) by.push_back(s);
  const std::int64_t length = from[d], count = by[d];
  from[d] = by[d] = 1;
  Sizes common = broadcast_sizes(from, by);
  common[d] = length;
  const Tensor wide = x->expand(common);
  common[d] = count;
  return gather(wide, static_cast<std::int64_t>(d), index->expand(common));
}

Tensor embedding(const TensorArg& weight, const TensorArg& index, std::int64_t padding_idx) {
  const Call call(weight.loc);
  return apply(ops::Embedding(padding_idx), {&*weight, &*index});
}

Tensor one_hot(const TensorArg& index, std::int64_t classes) {
  const Call call(index.loc);
  TAPER_CHECK(index->dtype() == kInt64, "one_hot: the index must be i64, got ", index->dtype());
  if (classes < 0) {
    TAPER_CHECK(index->numel() > 0 && !index->is_meta(),
                "one_hot: give the number of classes; it cannot be read off ", index->sizes(),
                " on ", index->device());
    classes = index->max().item<std::int64_t>() + 1;
  }
  Sizes sizes;
  for (const std::int64_t s : index->sizes()) sizes.push_back(s);
  sizes.push_back(classes);
  const Tensor none = zeros(sizes, TensorOptions(kInt64).device(index->device()));
  return index->numel() == 0 ? none : none.scatter_(-1, index->unsqueeze(-1), 1);
}

Tensor Tensor::gather(std::int64_t dim, const Tensor& index, Loc loc) const {
  return taper::gather(TensorArg(*this, loc), dim, index);
}

Tensor Tensor::scatter(std::int64_t dim, const Tensor& index, const TensorArg& src) const {
  const Call call(src.loc);
  return scattered(false, *this, dim, index, *src);
}

Tensor Tensor::scatter_add(std::int64_t dim, const Tensor& index, const TensorArg& src) const {
  const Call call(src.loc);
  return scattered(true, *this, dim, index, *src);
}

const Tensor& Tensor::scatter_(std::int64_t dim, const Tensor& index, const TensorArg& src) const {
  const Call call(src.loc);
  scatter_into(false, *this, dim, index, *src);
  return *this;
}

const Tensor& Tensor::scatter_add_(std::int64_t dim,
                                   const Tensor& index,
                                   const TensorArg& src) const {
  const Call call(src.loc);
  scatter_into(true, *this, dim, index, *src);
  return *this;
}

Tensor Tensor::index_select(std::int64_t dim, const Tensor& index, Loc loc) const {
  return taper::index_select(TensorArg(*this, loc), dim, index);
}

Tensor Tensor::index_add(std::int64_t dim, const Tensor& index, const TensorArg& src) const {
  const Call call(src.loc);
  return apply(ops::IndexAdd(dim), {this, &index, &*src});
}

const Tensor& Tensor::index_add_(std::int64_t dim,
                                 const Tensor& index,
                                 const TensorArg& src) const {
  const Call call(src.loc);
  apply_inplace(ops::IndexAdd(dim), *this, {this, &index, &*src});
  return *this;
}

Tensor Tensor::index_fill(std::int64_t dim, const Tensor& index, Scalar value, Loc loc) const {
  return taper::index_fill(TensorArg(*this, loc), dim, index, value);
}

Tensor Tensor::take_along_dim(const Tensor& index, std::int64_t dim, Loc loc) const {
  return taper::take_along_dim(TensorArg(*this, loc), index, dim);
}

}  // namespace taper
