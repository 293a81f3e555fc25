// Elements chosen along one dim by an index tensor: the op classes. The functions are in index.h.
#pragma once
#include "taper/autograd/op.h"

namespace taper::ops {

// The indices as kernels want them: i64. Kernels look at their range.
Tensor as_index(const Frame& f, const Tensor& index);

// Whether sums at one place come in one order, see allow_atomic_adds().
inline bool adds_in_order(Device device) {
  return !device.is_cuda() || !atomic_adds_allowed();
}

// out[i][j] = x[index[i][j]][j], for dim 0.
class Gather final : public OpOf<Gather> {
 public:
  static constexpr const char* kName = "gather";

  explicit Gather(std::int64_t dim) : dim_(dim) {}

  void forward(Frame& f) override;  // (x, index)
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t dim_;
  Sizes sizes_;  // of x
};

// x with out[index[i][j]][j] = src[i][j], or += src[i][j], for dim 0. src has index's sizes.
class Scatter final : public OpOf<Scatter> {
 public:
  static constexpr const char* kName = "scatter";

  Scatter(std::int64_t dim, bool adds) : dim_(dim), adds_(adds) {}

  const char* name() const override { return adds_ ? "scatter_add" : kName; }

  bool deterministic(Device device) const override { return !adds_ || adds_in_order(device); }

  void forward(Frame& f) override;  // (x, index, src)
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t dim_;
  bool adds_;
};

// Whole slices: out[i] = x[index[i]], for dim 0. The index has one dim, or none.
class IndexSelect final : public OpOf<IndexSelect> {
 public:
  static constexpr const char* kName = "index_select";

  explicit IndexSelect(std::int64_t dim) : dim_(dim) {}

  void forward(Frame& f) override;  // (x, index)
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t dim_;
  Sizes sizes_;  // of x
};

// x with out[index[i]] += src[i], for dim 0.
class IndexAdd final : public OpOf<IndexAdd> {
 public:
  static constexpr const char* kName = "index_add";

  explicit IndexAdd(std::int64_t dim) : dim_(dim) {}

  bool deterministic(Device device) const override { return adds_in_order(device); }

  void forward(Frame& f) override;  // (x, index, src)
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t dim_;
};

// Rows of weight (V, D) by an index of any dims (...): (..., D). Each row takes the sum of the
// gradients of its copies; row `padding`, if it is not negative, takes none.
class Embedding final : public OpOf<Embedding> {
 public:
  static constexpr const char* kName = "embedding";

  explicit Embedding(std::int64_t padding) : padding_(padding) {}

  void forward(Frame& f) override;  // (weight, index)
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t padding_;
  Sizes sizes_;  // of weight
};

}  // namespace taper::ops
