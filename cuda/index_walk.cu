// Putting together the walk of an indexed move from the layouts of its operands.
#include "taper/cuda/index_walk.cuh"

namespace taper::cuda {
namespace {

void set_side(Side& side, const Layout& plain, const Layout& indexed) {
  side.ndim = plain.ndim;
  side.count = plain.numel();
  for (int d = 0; d < plain.ndim; ++d) {
    side.sizes[d] = plain.sizes[d];
    side.plain[d] = plain.strides[d];
    side.indexed[d] = indexed.strides[d];
  }
}

}  // namespace

IndexWalk::IndexWalk(const Layout& sizes) {
  for (Layout& layout : layouts_) {
    layout.ndim = sizes.ndim;
    for (int d = 0; d < sizes.ndim; ++d) layout.sizes[d] = sizes.sizes[d];
  }
}

// The dims of `view` are those from `first_dim` on.
void IndexWalk::add_strides(int k, const View& view, int first_dim) {
  Layout& layout = layouts_[k];
  for (int d = 0; d < view.layout->ndim && first_dim + d < layout.ndim; ++d) {
    layout.strides[first_dim + d] = view.layout->strides[d];
  }
}

void IndexWalk::add_index(
    const View& index, const View& indexed, int dim, bool wraps, int first_dim) {
  const Layout& layout = *indexed.layout;
  const int k = rows_.indices++;
  rows_.index[k] = index.as<const Index>();
  rows_.extents[k] = layout.ndim == 0 ? 1 : layout.sizes[dim];
  rows_.steps[k] = layout.ndim == 0 ? 0 : layout.strides[dim];
  ranges_[k] = {index, dim, rows_.extents[k], wraps};
  add_strides(kFirstIndex + k, index, first_dim);
}

IndexWalk IndexWalk::along(
    const View& plain, const View& indexed, const View& index, int dim, bool one_for_each) {
  IndexWalk walk(one_for_each ? *index.layout : *plain.layout);
  const Layout& sizes = walk.layouts_[kPlain];
  walk.add_strides(kPlain, plain, 0);
  walk.add_strides(kIndexed, indexed, 0);
  walk.add_index(index, indexed, dim, false, one_for_each ? 0 : dim);
  walk.rows_.targets[0] = 1;
  for (int d = sizes.ndim - 1; d >= 0; --d) {
    walk.is_row_[d] = one_for_each || d == dim;
    if (!walk.is_row_[d]) continue;
    if (d == dim) walk.rows_.targets[0] = walk.target_count_;
    else walk.layouts_[kTarget].strides[d] = walk.target_count_;
    walk.target_count_ *= d == dim ? walk.rows_.extents[0] : sizes.sizes[d];
  }
  if (sizes.ndim > 0) walk.layouts_[kIndexed].strides[dim] = 0;
  return walk;
}

IndexWalk IndexWalk::together(const View& plain, const View& indexed, InList indices) {
  IndexWalk walk(*plain.layout);
  const int together = static_cast<int>(indices.size());
  const int rest = indexed.layout->ndim - together, rows = plain.layout->ndim - rest;
  walk.add_strides(kPlain, plain, 0);
  for (int d = 0; d < rest; ++d) {
    walk.layouts_[kIndexed].strides[rows + d] = indexed.layout->strides[together + d];
  }
  for (const In& index : indices) walk.add_index(index, indexed, walk.rows_.indices, true, 0);
  for (int d = 0; d < rows; ++d) walk.is_row_[d] = true;
  for (int k = together - 1; k >= 0; --k) {
    walk.rows_.targets[k] = walk.target_count_;
    walk.target_count_ *= walk.rows_.extents[k];
  }
  return walk;
}

// The dims for which takes(d).
template <class Takes>
void IndexWalk::take_dims(Layout (&taken)[kMostWalked], const Takes& takes) const {
  for (int k = 0; k < kMostWalked; ++k) {
    for (int d = 0; d < layouts_[k].ndim; ++d) {
      if (!takes(d)) continue;
      taken[k].sizes[taken[k].ndim] = layouts_[k].sizes[d];
      taken[k].strides[taken[k].ndim++] = layouts_[k].strides[d];
    }
  }
}

Rows IndexWalk::rows_over(const Layout (&taken)[kMostWalked]) const {
  Rows rows = rows_;
  set_side(rows, taken[kPlain], taken[kIndexed]);
  for (int d = 0; d < rows.ndim; ++d) {
    rows.target[d] = taken[kTarget].strides[d];
    for (int k = 0; k < rows.indices; ++k) {
      rows.index_strides[k][d] = taken[kFirstIndex + k].strides[d];
    }
  }
  return rows;
}

Rows IndexWalk::all() const {
  Layout taken[kMostWalked];
  take_dims(taken, [](int) { return true; });
  Layout* pointers[kMostWalked];
  for (int k = 0; k < kMostWalked; ++k) pointers[k] = &taken[k];
  order_dims(pointers, kMostWalked);
  return rows_over(taken);
}

Rows IndexWalk::rows() const {
  Layout taken[kMostWalked];
  take_dims(taken, [&](int d) { return is_row_[d]; });
  Layout* pointers[kMostWalked];
  for (int k = 0; k < kMostWalked; ++k) pointers[k] = &taken[k];
  coalesce(pointers, kMostWalked);
  return rows_over(taken);
}

Side IndexWalk::columns() const {
  Layout taken[kMostWalked];
  take_dims(taken, [&](int d) { return !is_row_[d]; });
  Layout* const pointers[] = {&taken[kPlain], &taken[kIndexed]};
  order_dims(pointers, 2);
  Side columns;
  set_side(columns, taken[kPlain], taken[kIndexed]);
  return columns;
}

}  // namespace taper::cuda
