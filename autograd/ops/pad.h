// Padding of the last dims, and its transpose, cropping.
#pragma once
#include "taper/autograd/op.h"

namespace taper {

enum class PadMode : std::uint8_t { kConstant, kReflect, kReplicate, kCircular };

inline constexpr PadMode kConstant = PadMode::kConstant;
inline constexpr PadMode kReflect = PadMode::kReflect;
inline constexpr PadMode kReplicate = PadMode::kReplicate;
inline constexpr PadMode kCircular = PadMode::kCircular;

// pad = (before, after) of the last dim, then of the dim before it, and so on. A negative number
// crops (kConstant). kReflect does not repeat the edge; it and kCircular need room inside x.
Tensor pad(const TensorArg& x,
           IntArrayRef pad,
           PadMode mode = PadMode::kConstant,
           double value = 0);
Tensor constant_pad_nd(const TensorArg& x, IntArrayRef pad, Scalar value = 0);

namespace ops {

// x with `value` around it. Linear but for the value: dy is dx with zeros around it.
class Pad final : public OpOf<Pad> {
 public:
  static constexpr const char* kName = "pad";

  Pad(Sizes pad, Scalar value) : pad_(std::move(pad)), value_(value) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Sizes pad_;  // as pad()'s
  Scalar value_;
};

}  // namespace ops
}  // namespace taper
