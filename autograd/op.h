// What an operation is: one class that knows its shape and dtype rule, its kernel, its derivative,
// and what the derivative needs; and apply(), the one function through which ops run.
#pragma once
#include "taper/autograd/grad_mode.h"
#include "taper/autograd/tape.h"
#include "taper/core/kernels.h"

namespace taper {

using Tensors = SmallVector<Tensor, 2>;
using Grads = SmallVector<Tensor, 3>;  // one per input; undefined means zero, or not needed

// One application of an op: its inputs, the outputs it makes, what it saves for backward.
// While forward runs nothing is recorded, so a forward may call public functions.
class Frame {
 public:
  Frame(ArrayRef<const Tensor*> inputs, const Tensor* target, bool recording, Device device);

  std::size_t size() const { return inputs_.size(); }

  const Tensor& in(std::size_t i) const { return *inputs_[i]; }

  // Whether backward will want the gradient of input i. Decides what is worth saving.
  bool needs(std::size_t i) const { return recording_ && (needs_ >> i & 1U) != 0; }

  Device device() const { return exec_.device; }

  const Exec& exec() const { return exec_; }

  const Kernels& kernels() const { return kernels_for(exec_.device); }

  // The next output, uninitialised; in an in-place op the tensor that is written.
  const Tensor& out(IntArrayRef sizes, DType dtype);
  const Tensor& out(const Layout& dense, DType dtype);
  // The next output is a view of input 0.
  void view(const Layout& layout);
  void view(const Layout& layout, DType dtype);
  // The next output is a tensor that forward made by other means.
  void out(Tensor made) { outputs_.push_back(std::move(made)); }

  // Keeps a tensor for backward, where it is saved(k), k counting the calls. No copy.
  void save(const Tensor& t);
  void save_out(std::size_t output);

 private:
  friend class Recorder;

  ArrayRef<const Tensor*> inputs_;
  const Tensor* target_;     // in-place: what is written
  Tensor cast_into_target_;  // in-place with another dtype: written first, then cast
  bool recording_;
  std::uint64_t needs_ = 0;
  Exec exec_;
  Tensors outputs_;
  SmallVector<SavedTensor, 1> saved_;
};

// One entry being run backwards, as a derivative rule sees it.
class Reverse {
 public:
  // `part_of` is set when the entry's op wrote only a view of the entry's output: the layouts of
  // the whole and of the view (Note [Views and writes]).
  struct PartOf {
    Layout base, view;
  };

  Reverse(const Entry& entry,
          ArrayRef<Tensor> grads,
          std::uint64_t needs,
          const PartOf* part_of = nullptr)
      : entry_(entry), grads_(grads), needs_(needs), part_of_(part_of) {}

  // The gradient of output i; undefined when nothing reached that output.
  const Tensor& grad(std::size_t i = 0) const { return grads_[i]; }

  // The same, zeros instead of undefined.
  Tensor grad_or_zeros(std::size_t i) const;

  bool needs(std::size_t i) const { return (needs_ >> i & 1U) != 0; }

  // What forward saved, with its history when a graph is being created. Throws when somebody has
  // written to it since, naming both ops and both lines.
  Tensor saved(std::size_t k) const;

  std::size_t saved_count() const { return entry_.saved.size(); }

  const Entry& entry() const { return entry_; }

 private:
  const Entry& entry_;
  ArrayRef<Tensor> grads_;
  std::uint64_t needs_;
  const PartOf* part_of_;
};

class Op {
 public:
  virtual ~Op() = default;
  virtual const char* name() const = 0;
  // Checks the inputs, makes the outputs, calls kernels, saves. Throws taper::Error.
  virtual void forward(Frame& f) = 0;
  // The gradients of the inputs, in public tensor functions so that they can be differentiated.
  // Pure: the same entry and gradients give the same result. A gradient may still have the
  // broadcast shape, or another floating dtype: the tape sums and casts it to the input's.
  virtual Grads backward(const Reverse& r) const = 0;

  virtual bool differentiable() const { return true; }

  // May `out` be one of the inputs, element for element?
  virtual bool elementwise() const { return false; }

  // Where it runs: where its inputs lie, which must be one device; 0-dim host tensors go along with
  // any.
  virtual Device device(ArrayRef<const Tensor*> inputs) const;

  virtual bool deterministic(Device) const { return true; }

  // Whether an output that shares an input's memory is a mere view of it, whose gradient is the
  // same part of the input's; a user's function may mean anything.
  virtual bool plain_views() const { return true; }

  // Moves itself to the heap; called when the op is recorded.
  virtual std::unique_ptr<Op> to_heap() = 0;
};

// Gives an op its name and its way to the heap: class Mul final : public OpOf<Mul>.
template <class Derived> class OpOf : public Op {
 public:
  const char* name() const override { return Derived::kName; }

  std::unique_ptr<Op> to_heap() override {
    // Not make_unique: a unique_ptr of each op's own type makes reading taper.h 1.4 s, not 1.2.
    return std::unique_ptr<Op>(new Derived(std::move(static_cast<Derived&>(*this))));
  }
};

// Runs the op, and records it when an input requires grad and the thread records.
Tensor apply(Op&& op, ArrayRef<const Tensor*> inputs);
Tensors apply_n(Op&& op, ArrayRef<const Tensor*> inputs);  // several outputs

// The same, writing into `self`, which is also inputs[0].
void apply_inplace(Op&& op, const Tensor& self, ArrayRef<const Tensor*> inputs);

inline Tensor apply(Op&& op, std::initializer_list<const Tensor*> inputs) {
  return apply(std::move(op), ArrayRef<const Tensor*>(inputs.begin(), inputs.size()));
}

inline void apply_inplace(Op&& op,
                          const Tensor& self,
                          std::initializer_list<const Tensor*> inputs) {
  apply_inplace(std::move(op), self, ArrayRef<const Tensor*>(inputs.begin(), inputs.size()));
}

// Sum of `grad` over the dims along which `sizes` was stretched; grad itself when none were.
Tensor sum_to(const Tensor& grad, IntArrayRef sizes);

}  // namespace taper
