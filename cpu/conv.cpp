// 2-d convolution and its gradients.
#include "taper/cpu/correlate.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace gemm {
namespace {

Tap* taps_of(const Exec& exec, const Window2d& window) {
  const Index count = window.kernel[0] * window.kernel[1];
  return static_cast<Tap*>(exec.scratch(static_cast<std::size_t>(count) * sizeof(Tap)));
}

template <class E>
void forward(const Exec& exec,
             const View& y,
             const View& x,
             const View& w,
             const View& bias,
             const Window2d& window) {
  const Layout &ly = *y.layout, &lx = *x.layout, &lw = *w.layout;
  Tap* taps = taps_of(exec, window);
  Index count = 0;
  for (Index i = 0; i < window.kernel[0]; ++i) {
    for (Index j = 0; j < window.kernel[1]; ++j) {
      taps[count++] = {i * window.dilation[0] - window.padding[0],
                       j * window.dilation[1] - window.padding[1],
                       i * lw.strides[2] + j * lw.strides[3]};
    }
  }
  const Index outputs = lw.sizes[0] / window.groups;
  const Correlation<E> c{ly.sizes[0],
                         window.groups,
                         outputs,
                         lw.sizes[1],
                         ly.sizes[2],
                         ly.sizes[3],
                         lx.sizes[2],
                         lx.sizes[3],
                         window.stride[0],
                         window.stride[1],
                         images_of<E>(y),
                         images_of<const E>(x),
                         taps,
                         count,
                         w.as<const E>(),
                         outputs * lw.strides[0],
                         lw.strides[0],
                         lw.strides[1],
                         bias.as<const E>(),
                         bias.defined() ? bias.layout->strides[0] : 0};
  Correlate<E>(exec, c).run();
}

// The taps that pixels of remainder `rest` meet, along one dim: (rest + padding - k dilation) must
// be a multiple of the stride. True when k is one of them.
bool meets(const Window2d& window, int dim, Index rest, Index k, Index& shift) {
  const Index distance = rest + window.padding[dim] - k * window.dilation[dim];
  shift = distance / window.stride[dim];
  return distance % window.stride[dim] == 0;
}

// The pixels of dx at (rest_h, rest_w) by the stride.
template <class E>
void input_gradient(const Exec& exec,
                    const View& dx,
                    const View& grad,
                    const View& w,
                    const Window2d& window,
                    Index rest_h,
                    Index rest_w) {
  const Layout &ld = *dx.layout, &lg = *grad.layout, &lw = *w.layout;
  Tap* taps = taps_of(exec, window);
  Index count = 0;
  for (Index i = 0; i < window.kernel[0]; ++i) {
    for (Index j = 0; j < window.kernel[1]; ++j) {
      Index y = 0, x = 0;
      if (!meets(window, 0, rest_h, i, y) || !meets(window, 1, rest_w, j, x)) continue;
      taps[count++] = {y, x, i * lw.strides[2] + j * lw.strides[3]};
    }
  }
  Images<E> out = images_of<E>(dx);
  out.data += rest_h * out.row + rest_w * out.col;
  out.row *= window.stride[0];
  out.col *= window.stride[1];
  const Index inputs = lw.sizes[0] / window.groups;
  const Correlation<E> c{ld.sizes[0],
                         window.groups,
                         lw.sizes[1],
                         inputs,
                         (ld.sizes[2] - rest_h + window.stride[0] - 1) / window.stride[0],
                         (ld.sizes[3] - rest_w + window.stride[1] - 1) / window.stride[1],
                         lg.sizes[2],
                         lg.sizes[3],
                         1,
                         1,
                         out,
                         images_of<const E>(grad),
                         taps,
                         count,
                         w.as<const E>(),
                         inputs * lw.strides[0],
                         lw.strides[1],
                         lw.strides[0],
                         nullptr,
                         0};
  Correlate<E>(exec, c).run();
}

// Note [Gradient of a weight]
// dw (O, taps C) is grad (O, pixels) times the pixels' neighbourhoods (pixels, taps C), where the
// pixels are those of all images, in order. Both are copied out for as many images as fit
// kCopyBytes; the product goes on from what the images before gave, so that each element of dw is
// one chain of fmas, however the images are cut.
constexpr Index kCopyBytes = Index{1} << 20;

template <class E> class WeightGradient {
 public:
  WeightGradient(
      const Exec& exec, const View& dw, const View& grad, const View& x, const Window2d& w)
      : exec_(exec),
        window_(w),
        dw_(images_of<E>(dw)),
        grad_(images_of<const E>(grad)),
        x_(images_of<const E>(x)),
        images_(grad.layout->sizes[0]),
        outputs_(dw.layout->sizes[0] / w.groups),
        inputs_(dw.layout->sizes[1]),
        out_h_(grad.layout->sizes[2]),
        out_w_(grad.layout->sizes[3]),
        src_h_(x.layout->sizes[2]),
        src_w_(x.layout->sizes[3]),
        columns_(w.kernel[0] * w.kernel[1] * inputs_) {
    const Index one = w.groups * columns_ * out_h_ * out_w_ * Index{sizeof(T)};
    chunk_ = one == 0 ? images_ : kCopyBytes / one;
    chunk_ = chunk_ < 1 ? 1 : chunk_ < images_ ? chunk_ : images_;
    const Index pixels = chunk_ * out_h_ * out_w_;
    sums_ = scratch(w.groups * outputs_ * columns_);
    grads_ = scratch(w.groups * outputs_ * pixels);
    around_ = scratch(w.groups * columns_ * pixels);
  }

  void run() {
    Index first = 0;
    do {
      const Index n = images_ - first < chunk_ ? images_ - first : chunk_;
      copy_grads(first, n);
      copy_around(first, n);
      multiply(n * out_h_ * out_w_, first > 0);
      first += n;
    } while (first < images_);
    save();
  }

 private:
  using T = Wide<E>;

  T* scratch(Index n) const {
    return static_cast<T*>(exec_.scratch(static_cast<std::size_t>(n) * sizeof(T)));
  }

  // grads_ (groups outputs, n pixels).
  void copy_grads(Index first, Index n) {
    const Index area = out_h_ * out_w_;
    parallel_for(window_.groups * outputs_ * n, grain_of(area), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const E* from = grad_.data + (first + i % n) * grad_.image + i / n * grad_.channel;
        T* to = grads_ + i * area;
        for (Index y = 0; y < out_h_; ++y, to += out_w_) {
          copy_row(to, from + y * grad_.row, grad_.col, out_w_);
        }
      }
    });
  }

  // around_ (groups, taps, inputs, n pixels).
  void copy_around(Index first, Index n) {
    const Index area = out_h_ * out_w_, taps = window_.kernel[0] * window_.kernel[1];
    parallel_for(window_.groups * columns_ * n, grain_of(area), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index column = i / n, channel = column / columns_ * inputs_ + column % inputs_;
        const E* from = x_.data + (first + i % n) * x_.image + channel * x_.channel;
        copy_shifted(around_ + i * area, from, column / inputs_ % taps);
      }
    });
  }

  // The plane as tap number `tap` sees it.
  void copy_shifted(T* to, const E* from, Index tap) const {
    const Index* step = window_.stride;
    const Index dy = tap / window_.kernel[1] * window_.dilation[0] - window_.padding[0];
    const Index dx = tap % window_.kernel[1] * window_.dilation[1] - window_.padding[1];
    Index low = dx >= 0 ? 0 : (-dx + step[1] - 1) / step[1];
    Index high = dx >= src_w_ ? 0 : (src_w_ - dx + step[1] - 1) / step[1];
    low = low < out_w_ ? low : out_w_;
    high = high < low ? low : high < out_w_ ? high : out_w_;
    for (Index i = 0; i < out_h_; ++i, to += out_w_) {
      const Index y = i * step[0] + dy;
      const bool inside = y >= 0 && y < src_h_;
      const Index begin = inside ? low : 0, end = inside ? high : 0;
      for (Index j = 0; j < begin; ++j) to[j] = T(0);
      if (begin < end) {
        const E* row = from + y * x_.row + (begin * step[1] + dx) * x_.col;
        copy_row(to + begin, row, step[1] * x_.col, end - begin);
      }
      for (Index j = end; j < out_w_; ++j) to[j] = T(0);
    }
  }

  static void copy_row(T* to, const E* from, Index step, Index n) {
    if (step == 1) {
      if constexpr (std::is_same_v<E, T>) {
        __builtin_memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
      } else {
        for (Index i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
      }
    } else {
      for (Index i = 0; i < n; ++i) to[i] = static_cast<T>(from[i * step]);
    }
  }

  // sums_ (groups, outputs, columns) = [sums_ or 0] + grads_ around_^T.
  void multiply(Index pixels, bool go_on) {
    const Index g = window_.groups;
    const Layout out = batch_of({g, outputs_, columns_}, {outputs_ * columns_, columns_, 1});
    const Layout a = batch_of({g, outputs_, pixels}, {outputs_ * pixels, pixels, 1});
    const Layout b = batch_of({g, pixels, columns_}, {columns_ * pixels, 1, pixels});
    const Exec exec(exec_.device, exec_.stream);
    matmul(exec, view<Out>(sums_, out), view<In>(grads_, a), view<In>(around_, b),
           go_on ? view<In>(sums_, out) : In{}, Activation::kNone);
  }

  static Layout batch_of(const Index (&sizes)[3], const Index (&strides)[3]) {
    Layout layout;
    layout.ndim = 3;
    for (int d = 0; d < 3; ++d) {
      layout.sizes[d] = sizes[d];
      layout.strides[d] = strides[d];
    }
    return layout;
  }

  template <class V> static V view(T* data, const Layout& layout) {
    V view;
    view.data = data;
    view.layout = &layout;
    view.dtype = dtype_of<T>();
    return view;
  }

  void save() const {
    const T* from = sums_;
    for (Index o = 0; o < window_.groups * outputs_; ++o) {
      for (Index i = 0; i < window_.kernel[0]; ++i) {
        for (Index j = 0; j < window_.kernel[1]; ++j) {
          E* to = dw_.data + o * dw_.image + i * dw_.row + j * dw_.col;
          for (Index c = 0; c < inputs_; ++c) to[c * dw_.channel] = static_cast<E>(*from++);
        }
      }
    }
  }

  const Exec& exec_;
  const Window2d& window_;
  Images<E> dw_;
  Images<const E> grad_, x_;
  Index images_, outputs_, inputs_, out_h_, out_w_, src_h_, src_w_, columns_, chunk_;
  T *sums_, *grads_, *around_;
};

}  // namespace
}  // namespace gemm

// Bytes: x once for each block of output channels, w and y once. Flops: 2 N O H' W' (C / groups) kH
// kW, and as many in each gradient.
void conv2d(const Exec& exec, Out y, In x, In w, In bias, const Window2d& window) {
  if (y.layout->numel() == 0) return;
  visit_floating(y.dtype, [&](auto type) {
    gemm::forward<typename decltype(type)::type>(exec, y, x, w, bias, window);
  });
}

void conv2d_grad_input(const Exec& exec, Out dx, In grad, In w, const Window2d& window) {
  if (dx.layout->numel() == 0) return;
  visit_floating(dx.dtype, [&](auto type) {
    for (std::int64_t i = 0; i < window.stride[0] && i < dx.layout->sizes[2]; ++i) {
      for (std::int64_t j = 0; j < window.stride[1] && j < dx.layout->sizes[3]; ++j) {
        gemm::input_gradient<typename decltype(type)::type>(exec, dx, grad, w, window, i, j);
      }
    }
  });
}

void conv2d_grad_weight(const Exec& exec, Out dw, In grad, In x, const Window2d& window) {
  if (dw.layout->numel() == 0) return;
  visit_floating(dw.dtype, [&](auto type) {
    gemm::WeightGradient<typename decltype(type)::type>(exec, dw, grad, x, window).run();
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
