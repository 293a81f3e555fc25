// The largest and the smallest, and whether any or all: the op classes. Functions: reduce.h.
#pragma once
#include "taper/autograd/ops/reduce.h"

namespace taper::ops {

enum class Which : std::uint8_t { kLargest, kSmallest };

// amax, amin, and max and min of all elements. Those that reach the extreme share the gradient
// evenly; NaN counts as the extreme.
class Extreme final : public OpOf<Extreme> {
 public:
  static constexpr const char* kName = "amax";

  Extreme(const char* name, Which which, Dims dims) : name_(name), which_(which), dims_(dims) {}

  const char* name() const override { return name_; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  const char* name_;
  Which which_;
  Dims dims_;
};

// max and min along a dim: (values, indices). The element at the index takes all the gradient.
class ExtremeAlong final : public OpOf<ExtremeAlong> {
 public:
  static constexpr const char* kName = "max";

  ExtremeAlong(Which which, std::int64_t dim, bool keepdim)
      : which_(which), dim_(dim), keepdim_(keepdim) {}

  const char* name() const override { return which_ == Which::kLargest ? "max" : "min"; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Which which_;
  std::int64_t dim_;
  bool keepdim_;
  Sizes sizes_;  // of the input
};

// argmax and argmin, along a dim or over all elements in row-major order; the first of equals.
class ArgExtreme final : public OpOf<ArgExtreme> {
 public:
  static constexpr const char* kName = "argmax";

  ArgExtreme(Which which, std::optional<std::int64_t> dim, bool keepdim)
      : which_(which), dim_(dim), keepdim_(keepdim) {}

  const char* name() const override { return which_ == Which::kLargest ? "argmax" : "argmin"; }

  bool differentiable() const override { return false; }

  void forward(Frame& f) override;

  Grads backward(const Reverse&) const override { return Grads(1); }

 private:
  Which which_;
  std::optional<std::int64_t> dim_;
  bool keepdim_;
};

// any and all; u8 stays u8, as in LibTorch.
class AnyAll final : public OpOf<AnyAll> {
 public:
  static constexpr const char* kName = "any";

  AnyAll(bool all, Dims dims) : all_(all), dims_(dims) {}

  const char* name() const override { return all_ ? "all" : "any"; }

  bool differentiable() const override { return false; }

  void forward(Frame& f) override;

  Grads backward(const Reverse&) const override { return Grads(1); }

 private:
  bool all_;
  Dims dims_;
};

}  // namespace taper::ops
