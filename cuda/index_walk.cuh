// Which elements an indexed move walks over, and what its indices mean.
#pragma once

#include "taper/cuda/device.cuh"
#include "taper/cuda/index_check.cuh"

namespace taper::cuda {

// Some dims of the walk; strides in elements.
struct Side {
  int ndim = 0;
  Index count = 1;
  Index sizes[kMaxDims] = {}, plain[kMaxDims] = {}, indexed[kMaxDims] = {};
};

// What has an index of its own, for each index tensor: where its indices lie, and what one step of
// an index means in the indexed side and in the number of the target. Targets are all places that
// rows may lead to, in some order, counted from 0.
struct Rows : Side {
  Index target[kMaxDims] = {};
  int indices = 0;
  const Index* index[kMaxDims] = {};
  Index index_strides[kMaxDims][kMaxDims] = {};  // of each dim, for each index tensor
  Index steps[kMaxDims] = {}, targets[kMaxDims] = {};
  Index extents[kMaxDims] = {};  // what a negative index wraps around
};

// The walk over all dims, before they are told apart.
class IndexWalk {
 public:
  // For gather and scatter, where `index` has an element for each of the plain side; and, with a
  // 1-d index, for index_select and index_add, where the plain side has the sizes.
  static IndexWalk along(
      const View& plain, const View& indexed, const View& index, int dim, bool one_for_each);

  // For index and index_put: the first indices.size() dims of the indexed side are indexed
  // together, its others are the last dims of the plain side.
  static IndexWalk together(const View& plain, const View& indexed, InList indices);

  // Throws if an index is out of range.
  void check(const Exec& exec) const {
    check_indices(exec, {ranges_, static_cast<size_t>(rows_.indices)});
  }

  Index numel() const { return layouts_[kPlain].numel(); }

  Index target_count() const { return target_count_; }

  Rows all() const;      // of all dims, in any order
  Rows rows() const;     // of those along which the index changes, in row-major order
  Side columns() const;  // of the others, in any order

 private:
  static constexpr int kPlain = 0, kIndexed = 1, kTarget = 2, kFirstIndex = 3;
  static constexpr int kMostWalked = kFirstIndex + kMaxDims;

  explicit IndexWalk(const Layout& sizes);
  void add_strides(int k, const View& view, int first_dim);
  void add_index(const View& index, const View& indexed, int dim, bool wraps, int first_dim);
  template <class Takes> void take_dims(Layout (&taken)[kMostWalked], const Takes& takes) const;
  Rows rows_over(const Layout (&taken)[kMostWalked]) const;

  Layout layouts_[kMostWalked];  // the strides of all that is walked, for equal sizes
  bool is_row_[kMaxDims] = {};
  Rows rows_;  // what its indices need
  Index target_count_ = 1;
  IndexRange ranges_[kMaxDims];
};

}  // namespace taper::cuda
