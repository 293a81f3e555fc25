// Indexing by several tensors at once, and finding what is not zero: the op classes.
#pragma once
#include "taper/autograd/ops/gather_scatter.h"

namespace taper::ops {

// out[i..., r...] = x[index0[i...], index1[i...], ..., r...]: the first dims of x are indexed
// together by tensors that broadcast, the rest stays. -1 means the last.
class Index final : public OpOf<Index> {
 public:
  static constexpr const char* kName = "index";

  void forward(Frame& f) override;  // (x, index0, index1, ...)
  Grads backward(const Reverse& r) const override;

 private:
  Sizes sizes_;  // of x
};

// x with values written, or added, at those places. values broadcasts to what Index would give.
class IndexPut final : public OpOf<IndexPut> {
 public:
  static constexpr const char* kName = "index_put";

  explicit IndexPut(bool accumulate) : accumulate_(accumulate) {}

  bool deterministic(Device device) const override { return !accumulate_ || adds_in_order(device); }

  void forward(Frame& f) override;  // (x, values, index0, index1, ...)
  Grads backward(const Reverse& r) const override;

 private:
  bool accumulate_;
};

// (count, ndim): where x is not zero, in row-major order. Waits for the device to count.
class Nonzero final : public OpOf<Nonzero> {
 public:
  static constexpr const char* kName = "nonzero";

  bool differentiable() const override { return false; }

  void forward(Frame& f) override;

  Grads backward(const Reverse&) const override { return Grads(1); }
};

}  // namespace taper::ops
