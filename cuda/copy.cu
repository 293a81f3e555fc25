// Moves and converts elements between any two layouts, and makes constant and counting ones.
#include <cstring>

#include "taper/cuda/elementwise.cuh"
#include "taper/cuda/transfer.h"

// Note [Strided on the device]
// Elementwise kernels walk any strides. Some others know dense elements only: what is strided is
// brought to scratch, or taken from it, by the one kernel of copy_same(), compiled once for each
// element size.
namespace taper::cuda {
namespace {

// Elements of one type; the same bits whatever they mean.
void copy_same(const Exec& exec, const View& to, const View& from) {
  const Layout &there = *to.layout, &here = *from.layout;
  const std::int64_t size = element_size(to.dtype);
  const Index n = there.numel();
  if (n == 0) return;
  if (there.is_contiguous() && here.is_contiguous()) {
    const DeviceGuard guard(exec.device.index());
    TAPER_CUDA_CHECK(cudaMemcpyAsync(to.data, from.data, static_cast<size_t>(n * size),
                                     cudaMemcpyDeviceToDevice,
                                     stream_of(exec.device, exec.stream)));
    return;
  }
  visit_word(size, [&](auto type) {
    using Word = typename decltype(type)::type;
    run_rows(exec, unary_kernel<fn::Cast<Word>, Word, Word>, kPackOf<Word, Word>, {&to, &from}, 0,
             0);
  });
}

template <class Word> __global__ void fill_words(Word* to, Word value, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) to[i] = value;
}

template <class To, class T> __global__ void count_up(To* to, fn::Arange<T> f, Index n) {
  for (Index i = first_index(); i < n; i += index_step()) to[i] = fn::Cast<To>{}(f(i));
}

// Element i is start + i * step, computed in T, in row-major order.
template <class T> void arange_in(const Exec& exec, const Out& out, T start, T step) {
  const Index n = out.layout->numel();
  DenseOut to(exec, out);
  visit_dtype(out.dtype, [&](auto type) {
    using To = typename decltype(type)::type;
    launch_on(exec, blocks_for(n), kThreads, count_up<To, T>, static_cast<To*>(to.data()),
              fn::Arange<T>{start, step}, n);
  });
  to.finish();
}

// The bits of `value` as an element of `dtype`.
std::uint64_t bits_of(DType dtype, const Scalar& value) {
  std::uint64_t bits = 0;
  visit_dtype(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T element = value.is_floating_point() ? fn::Cast<T>{}(value.to_double())
                                                : fn::Cast<T>{}(value.to_int());
    std::memcpy(&bits, &element, sizeof(T));
  });
  return bits;
}

Layout dense_layout(const Layout& like) {
  return contiguous_layout(like.shape());
}

}  // namespace

void order_dims(Layout* const* layouts, int count) {
  const auto magnitude = [](Index x) { return x < 0 ? -x : x; };
  coalesce(layouts, count);
  const Layout& first = *layouts[0];
  for (int d = 1; d < first.ndim; ++d) {
    for (int k = d; k > 0; --k) {
      if (magnitude(first.strides[k - 1]) >= magnitude(first.strides[k])) break;
      for (int i = 0; i < count; ++i) {
        std::swap(layouts[i]->sizes[k - 1], layouts[i]->sizes[k]);
        std::swap(layouts[i]->strides[k - 1], layouts[i]->strides[k]);
      }
    }
  }
  coalesce(layouts, count);
}

const void* dense(const Exec& exec, const View& in) {
  if (in.layout->is_contiguous()) return in.data;
  const std::int64_t size = element_size(in.dtype);
  void* copied = exec.scratch(static_cast<size_t>(in.layout->numel() * size));
  const Layout layout = dense_layout(*in.layout);
  copy_same(exec, {copied, &layout, in.dtype}, in);
  return copied;
}

DenseOut::DenseOut(const Exec& exec, const View& out)
    : exec_(exec),
      out_(out),
      data_(out.layout->is_contiguous() ? out.data
                                        : exec.scratch(static_cast<size_t>(
                                              out.layout->numel() * element_size(out.dtype)))) {}

void DenseOut::finish() {
  if (data_ == out_.data) return;
  const Layout layout = dense_layout(*out_.layout);
  copy_same(exec_, out_, {data_, &layout, out_.dtype});
}

StandIn::StandIn(const Exec& exec, const View& of, DType dtype, bool filled)
    : exec_(exec), of_(of), view_(of) {
  if (!of.defined() || of.dtype == dtype) return;
  layout_ = dense_layout(*of.layout);
  const Index bytes = layout_.numel() * element_size(dtype);
  view_ = {exec.scratch(static_cast<size_t>(bytes)), &layout_, dtype};
  if (filled) copy(exec, Out{view_}, In{of});
}

void StandIn::finish() {
  if (view_.dtype != of_.dtype) copy(exec_, Out{of_}, In{view_});
}

void copy(const Exec& exec, Out out, In in) {
  const Index n = out.layout->numel();
  if (n == 0 || transfer(exec, out, in)) return;
  if (out.dtype == in.dtype) {
    copy_same(exec, out, in);
    return;
  }
  visit_dtype(out.dtype, [&](auto to_type) {
    visit_dtype(in.dtype, [&](auto from_type) {
      using To = typename decltype(to_type)::type;
      using From = typename decltype(from_type)::type;
      run_rows(exec, unary_kernel<fn::Cast<To>, To, From>, kPackOf<To, From>, {&out, &in}, 0, 0);
    });
  });
}

void fill(const Exec& exec, Out out, Scalar value) {
  const Index n = out.layout->numel();
  if (n == 0) return;
  const std::int64_t size = element_size(out.dtype);
  const bool strided = !out.layout->is_contiguous();
  // Strided: one element is made, and copied to all by stride 0.
  void* to = strided ? exec.scratch(static_cast<size_t>(size)) : out.data;
  visit_word(size, [&](auto type) {
    using Word = typename decltype(type)::type;
    const Word word = static_cast<Word>(bits_of(out.dtype, value));
    const Index count = strided ? 1 : n;
    launch_on(exec, blocks_for(count), kThreads, fill_words<Word>, static_cast<Word*>(to), word,
              count);
  });
  if (!strided) return;
  Layout one = *out.layout;
  for (int d = 0; d < one.ndim; ++d) one.strides[d] = 0;
  copy_same(exec, out, {to, &one, out.dtype});
}

void arange(const Exec& exec, Out out, Scalar start, Scalar step) {
  if (start.is_floating_point() || step.is_floating_point() || is_floating_point(out.dtype)) {
    arange_in(exec, out, start.to_double(), step.to_double());
  } else {
    arange_in(exec, out, start.to_int(), step.to_int());
  }
}

}  // namespace taper::cuda
