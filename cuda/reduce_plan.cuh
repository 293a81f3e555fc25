// Which elements a reduction takes together, and where its results go.
#pragma once

#include "taper/cuda/lanes.cuh"

namespace taper::cuda {

// Which elements each output takes: `kept` finds its first one, `reduced` the others from there.
struct ReducePlan {
  Index outputs = 1, length = 1;
  Dims kept, reduced;

  bool lies_densely() const { return reduced.ndim <= 1 && reduced.strides[0] == 1; }
};

// A reduction over the dims along which the outputs have stride 0: the plan of the kernels, and the
// outputs over the dims that are kept, in the order in which the kernels make them.
struct Reduction {
  Reduction(const View& in, const View* const* views, int count);

  ReducePlan plan;
  Layout outs[2];
};

[[noreturn]] void fail_empty_reduction();

// Where results of type T are made: in place if the output lies so, or else in scratch, from where
// store() copies and converts them.
template <class T> class ReduceResults {
 public:
  ReduceResults(const Exec& exec, const Layout& layout, const View& out, Index count)
      : exec_(exec), layout_(layout), out_(out), type_(dtype_of<T>()) {
    apart_ = out.dtype != type_ || !layout.is_contiguous();
    data_ = apart_ ? exec.scratch(static_cast<size_t>(count) * sizeof(T)) : out.data;
  }

  template <class As = T> As* data() const { return static_cast<As*>(data_); }

  void store() const {
    if (!apart_) return;
    const Layout dense = contiguous_layout(layout_.shape());
    copy(exec_, Out{{out_.data, &layout_, out_.dtype}}, In{{data_, &dense, type_}});
  }

 private:
  const Exec& exec_;
  const Layout& layout_;
  const View& out_;
  DType type_;
  bool apart_;
  void* data_;
};

}  // namespace taper::cuda
