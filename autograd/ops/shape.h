// Views and copies: everything that moves elements or looks at them in another order.
#pragma once
#include <vector>

#include "taper/autograd/op.h"
#include "taper/autograd/ops/create.h"

namespace taper {

Tensor reshape(const TensorArg& x, IntArrayRef sizes);
Tensor flatten(const TensorArg& x, std::int64_t start_dim = 0, std::int64_t end_dim = -1);
Tensor transpose(const TensorArg& x, std::int64_t dim0, std::int64_t dim1);
Tensor t(const TensorArg& x);
Tensor permute(const TensorArg& x, IntArrayRef dims);
Tensor movedim(const TensorArg& x, std::int64_t source, std::int64_t destination);
Tensor squeeze(const TensorArg& x);
Tensor squeeze(const TensorArg& x, std::int64_t dim);
Tensor unsqueeze(const TensorArg& x, std::int64_t dim);
Tensor broadcast_to(const TensorArg& x, IntArrayRef sizes);
Tensor narrow(const TensorArg& x, std::int64_t dim, std::int64_t start, std::int64_t length);
Tensor select(const TensorArg& x, std::int64_t dim, std::int64_t index);
Tensor diagonal(const TensorArg& x,
                std::int64_t offset = 0,
                std::int64_t dim1 = 0,
                std::int64_t dim2 = 1);
Tensor as_strided(const TensorArg& x,
                  IntArrayRef sizes,
                  IntArrayRef strides,
                  std::optional<std::int64_t> storage_offset = std::nullopt);
std::vector<Tensor> split(const TensorArg& x, std::int64_t size, std::int64_t dim = 0);
std::vector<Tensor> split(const TensorArg& x, IntArrayRef sizes, std::int64_t dim = 0);
std::vector<Tensor> split_with_sizes(const TensorArg& x, IntArrayRef sizes, std::int64_t dim = 0);
std::vector<Tensor> chunk(const TensorArg& x, std::int64_t chunks, std::int64_t dim = 0);
std::vector<Tensor> unbind(const TensorArg& x, std::int64_t dim = 0);

Tensor clone(const TensorArg& x, MemoryFormat format = MemoryFormat::kPreserve);
Tensor cat(const TensorList& tensors, std::int64_t dim = 0);
Tensor concat(const TensorList& tensors, std::int64_t dim = 0);  // cat
Tensor stack(const TensorList& tensors, std::int64_t dim = 0);
Tensor hstack(const TensorList& tensors);  // along dim 1; 1-d tensors end to end
Tensor vstack(const TensorList& tensors);  // along dim 0; (n) counts as (1, n)
Tensor repeat(const TensorArg& x, IntArrayRef repeats);
Tensor flip(const TensorArg& x, IntArrayRef dims);
Tensor roll(const TensorArg& x, IntArrayRef shifts, IntArrayRef dims = {});
Tensor tril(const TensorArg& x, std::int64_t diagonal = 0);
Tensor triu(const TensorArg& x, std::int64_t diagonal = 0);

// For in-place histories. `x` has the sizes of `base`; the result is the elements that `view`
// (a layout over the same storage as base) would show, had x base's layout.
Tensor strided_part(const Tensor& x, const Layout& base, const Layout& view);
std::unique_ptr<Op> strided_part_op(const Layout& base, const Layout& view);
// x with that part replaced.
Tensor replace_strided_part(const Tensor& x,
                            const Tensor& part,
                            const Layout& base,
                            const Layout& view);

namespace ops {

// The same elements in the same order under other sizes.
class View final : public OpOf<View> {
 public:
  static constexpr const char* kName = "view";

  explicit View(Sizes sizes, const char* name = kName) : sizes_(std::move(sizes)), name_(name) {}

  const char* name() const override { return name_; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Sizes sizes_, from_;
  const char* name_;
};

// The dims in another order: permute, transpose, t, movedim.
class Permute final : public OpOf<Permute> {
 public:
  static constexpr const char* kName = "permute";

  explicit Permute(Sizes dims, const char* name = kName) : dims_(std::move(dims)), name_(name) {}

  const char* name() const override { return name_; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Sizes dims_;
  const char* name_;
};

// Dims of size 1 stretched; the tape sums the gradient back.
class Expand final : public OpOf<Expand> {
 public:
  static constexpr const char* kName = "expand";

  explicit Expand(Sizes sizes) : sizes_(std::move(sizes)) {}

  void forward(Frame& f) override;

  Grads backward(const Reverse& r) const override { return {r.grad()}; }

 private:
  Sizes sizes_;
};

// Some of the elements: select, slice, diagonal, unfold, and split and its kin (several outputs).
// Given as layouts over a contiguous tensor of the input's sizes.
class Window final : public OpOf<Window> {
 public:
  static constexpr const char* kName = "slice";
  using Rule = SmallVector<Layout, 1>;

  // `views`: layouts of the outputs over the input; `relative`: over a contiguous stand-in.
  Window(const char* name, Rule views, Rule relative)
      : name_(name), views_(std::move(views)), relative_(std::move(relative)) {}

  const char* name() const override { return name_; }

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  const char* name_;
  Rule views_, relative_;
  Layout base_;  // the contiguous stand-in
};

// See strided_part: also as_strided, which looks at storage and not at the input's order.
class StridedPart final : public OpOf<StridedPart> {
 public:
  static constexpr const char* kName = "as_strided";

  StridedPart(const Layout& base, const Layout& view) : base_(base), view_(view) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Layout base_, view_;
};

// The transpose of StridedPart: zeros of base's sizes, with the gradient added at the view's
// places; where base's own elements share a place, each takes an equal part.
class Embed final : public OpOf<Embed> {
 public:
  static constexpr const char* kName = "embed";

  Embed(const Layout& base, const Layout& view) : base_(base), view_(view) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Layout base_, view_;
};

// (x, part) -> x with the part replaced.
class ReplacePart final : public OpOf<ReplacePart> {
 public:
  static constexpr const char* kName = "replace_part";

  ReplacePart(const Layout& base, const Layout& view) : base_(base), view_(view) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Layout base_, view_;
};

// A copy: another dtype, device or order in memory.
class Copy final : public OpOf<Copy> {
 public:
  static constexpr const char* kName = "copy";

  // kNonBlocking: between a device and pinned memory the copy need not be done on return. kPin:
  // into pinned memory of the host.
  enum class How : std::uint8_t { kBlocking, kNonBlocking, kPin };

  Copy(const char* name, DType dtype, Device device, MemoryFormat format, How how = How::kBlocking)
      : name_(name), dtype_(dtype), device_(device), format_(format), how_(how) {}

  const char* name() const override { return name_; }

  void forward(Frame& f) override;

  Grads backward(const Reverse& r) const override { return {r.grad()}; }

 private:
  const char* name_;
  DType dtype_;
  Device device_;
  MemoryFormat format_;
  How how_;
};

// (self, source), on any devices. non_blocking as in Copy.
class CopyInto final : public OpOf<CopyInto> {
 public:
  static constexpr const char* kName = "copy_";

  explicit CopyInto(bool non_blocking = false) : non_blocking_(non_blocking) {}

  bool elementwise() const override { return true; }

  Device device(ArrayRef<const Tensor*> inputs) const override;

  void forward(Frame& f) override;

  Grads backward(const Reverse& r) const override { return {Tensor(), r.grad()}; }

 private:
  bool non_blocking_;
};

// fill_ and zero_: self forgets what it was.
class Fill final : public OpOf<Fill> {
 public:
  static constexpr const char* kName = "fill_";

  explicit Fill(Scalar value) : value_(value) {}

  bool elementwise() const override { return true; }

  void forward(Frame& f) override;

  Grads backward(const Reverse&) const override { return Grads(1); }

 private:
  Scalar value_;
};

class Cat final : public OpOf<Cat> {
 public:
  static constexpr const char* kName = "cat";

  explicit Cat(std::int64_t dim) : dim_(dim) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  std::int64_t dim_;
  Sizes lengths_;  // along dim; 0 for the 1-d empty tensors that LibTorch lets through
};

class Flip final : public OpOf<Flip> {
 public:
  static constexpr const char* kName = "flip";

  explicit Flip(Sizes dims) : dims_(std::move(dims)) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  Sizes dims_;
};

}  // namespace ops
}  // namespace taper
