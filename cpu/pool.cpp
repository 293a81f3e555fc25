// 2-d pooling and its gradients; a plane of an image is one thread's work.
#include "taper/core/math_base.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

using Index = std::int64_t;

template <class E> using Wide = std::conditional_t<sizeof(E) == 2, float, E>;

// (N, C, H, W) in any strides, in elements.
template <class E> struct Images {
  E* data;
  Index image, channel, row, col;
};

template <class E> Images<E> images_of(const View& view) {
  const std::int64_t* s = view.layout->strides;
  return {view.as<E>(), s[0], s[1], s[2], s[3]};
}

// Places [begin, end) of the input, by `step`, that a window of the output covers in one dim.
struct Span {
  Index begin, end, step;

  Index size() const { return begin < end ? (end - begin + step - 1) / step : 0; }
};

Span span_of(const Window2d& window, int dim, Index i, Index length) {
  const Index step = window.dilation[dim];
  Index begin = i * window.stride[dim] - window.padding[dim];
  const Index end = begin + (window.kernel[dim] - 1) * step + 1;
  if (begin < 0) begin += (-begin + step - 1) / step * step;
  return {begin, end < length ? end : length, step};
}

// Calls plane(n, c) for each plane of `sizes`, which holds `work` elements' worth of work.
template <class Plane> void for_planes(const Layout& layout, Index work, const Plane& plane) {
  const Index channels = layout.sizes[1];
  parallel_for(layout.sizes[0] * channels, grain_of(work), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) plane(i / channels, i % channels);
  });
}

Index area_of(const Layout& layout) {
  return layout.sizes[2] * layout.sizes[3];
}

constexpr Index kRow = 256;  // outputs of one row that are made together

// Calls tap(first, last, from, step, place) for the places of the windows of outputs
// (i, [j, j + n)), in the order of each window: outputs j + [first, last) meet the elements at
// from, from + step, ..., of which the first is number `place` of the plane.
template <class E, class Tap>
TAPER_INLINE void for_taps(const Window2d& window,
                           const Layout& in,
                           Images<const E> plane,
                           Index i,
                           Index j,
                           Index n,
                           const Tap& tap) {
  const Index width = in.sizes[3], stride = window.stride[1];
  const Span rows = span_of(window, 0, i, in.sizes[2]);
  for (Index r = rows.begin; r < rows.end; r += rows.step) {
    for (Index b = 0; b < window.kernel[1]; ++b) {
      const Index x = j * stride - window.padding[1] + b * window.dilation[1];
      Index first = x >= 0 ? 0 : (-x + stride - 1) / stride;
      Index last = x >= width ? 0 : (width - x + stride - 1) / stride;
      last = last < n ? last : n;
      if (first >= last) continue;
      const Index at = x + first * stride;
      tap(first, last, plane.data + r * plane.row + at * plane.col, stride * plane.col,
          r * width + at);
    }
  }
}

// The largest of each window: the first of equals, or the first NaN. Padding is never it; where a
// window has nothing above -inf, the place is that of its first element.
template <class E> struct Largest {
  using T = Wide<E>;
  T top[kRow];
  Index place[kRow];

  void start(const Window2d& window, const Layout& in, Index i, Index j, Index n) {
    const Span rows = span_of(window, 0, i, in.sizes[2]);
    for (Index k = 0; k < n; ++k) {
      const Span cols = span_of(window, 1, j + k, in.sizes[3]);
      top[k] = -math::detail::kInf<T>;
      place[k] = rows.size() > 0 && cols.size() > 0 ? rows.begin * in.sizes[3] + cols.begin : 0;
    }
  }

  void take(Index first, Index last, const E* from, Index step, Index at, Index place_step) {
    for (Index k = first; k < last; ++k, at += place_step) {
      const T x = static_cast<T>(from[(k - first) * step]);
      const bool better = (x > top[k]) | ((x != x) & (top[k] == top[k]));
      top[k] = better ? x : top[k];
      place[k] = better ? at : place[k];
    }
  }
};

template <class E>
void max_forward(const View& y, const View& indices, const View& x, const Window2d& window) {
  const Images<E> out = images_of<E>(y);
  const Images<const E> in = images_of<const E>(x);
  const Layout &ly = *y.layout, &lx = *x.layout;
  const Images<Index> places = indices.defined() ? images_of<Index>(indices) : Images<Index>{};
  const Index work = area_of(ly) * window.kernel[0] * window.kernel[1];
  for_planes(ly, work, [&](Index n, Index c) {
    Images<const E> plane = in;
    plane.data += n * in.image + c * in.channel;
    Largest<E> best;
    for (Index i = 0; i < ly.sizes[2]; ++i) {
      for (Index j = 0; j < ly.sizes[3]; j += kRow) {
        const Index count = ly.sizes[3] - j < kRow ? ly.sizes[3] - j : kRow;
        best.start(window, lx, i, j, count);
        for_taps<E>(window, lx, plane, i, j, count,
                    [&](Index first, Index last, const E* from, Index step, Index at) {
                      best.take(first, last, from, step, at, window.stride[1]);
                    });
        E* to = out.data + n * out.image + c * out.channel + i * out.row + j * out.col;
        for (Index k = 0; k < count; ++k) to[k * out.col] = static_cast<E>(best.top[k]);
        if (places.data == nullptr) continue;
        Index* place =
            places.data + n * places.image + c * places.channel + i * places.row + j * places.col;
        for (Index k = 0; k < count; ++k) place[k * places.col] = best.place[k];
      }
    }
  });
}

// A plane of dx is summed in the order of grad, in f32 for 16-bit types.
template <class E, class Add>
void scatter_planes(
    const Exec& exec, const View& dx, const Layout& grad, Index work, const Add& add) {
  using T = Wide<E>;
  const Images<E> out = images_of<E>(dx);
  const Layout& layout = *dx.layout;
  const Index height = layout.sizes[2], width = layout.sizes[3];
  T* sums = nullptr;
  if (sizeof(E) == 2) {
    const Index bytes = layout.numel() * Index{sizeof(T)};
    sums = static_cast<T*>(exec.scratch(static_cast<std::size_t>(bytes)));
  }
  for_planes(grad, work + 2 * height * width, [&](Index n, Index c) {
    E* plane = out.data + n * out.image + c * out.channel;
    T* sum = sums + (n * layout.sizes[1] + c) * height * width;
    Index row = width, col = 1;
    if constexpr (std::is_same_v<E, T>) {
      sum = plane;
      row = out.row;
      col = out.col;
    }
    for (Index i = 0; i < height; ++i) {
      for (Index j = 0; j < width; ++j) sum[i * row + j * col] = T(0);
    }
    add(n, c, sum, row, col);
    if constexpr (!std::is_same_v<E, T>) {
      for (Index i = 0; i < height; ++i) {
        for (Index j = 0; j < width; ++j) {
          plane[i * out.row + j * out.col] = static_cast<E>(sum[i * width + j]);
        }
      }
    }
  });
}

template <class E>
void max_backward(const Exec& exec, const View& dx, const View& grad, const View& indices) {
  using T = Wide<E>;
  const Images<const E> from = images_of<const E>(grad);
  const Images<const Index> place = images_of<const Index>(indices);
  const Layout& layout = *grad.layout;
  const Index width = dx.layout->sizes[3];
  const auto add = [&](Index n, Index c, T* sum, Index row, Index col) {
    for (Index i = 0; i < layout.sizes[2]; ++i) {
      const E* g = from.data + n * from.image + c * from.channel + i * from.row;
      const Index* p = place.data + n * place.image + c * place.channel + i * place.row;
      for (Index j = 0; j < layout.sizes[3]; ++j) {
        const Index at = p[j * place.col];
        sum[at / width * row + at % width * col] += static_cast<T>(g[j * from.col]);
      }
    }
  };
  scatter_planes<E>(exec, dx, layout, 4 * area_of(layout), add);
}

// What the sum of a window is divided by. Padding counts where include_pad says so, but only as far
// as it was asked for: a window of ceil_mode that hangs over its end counts less.
template <class T>
T divisor(const Window2d& window, Index i, Index j, Index height, Index width, Span y, Span x) {
  if (window.divisor_override != 0) return static_cast<T>(window.divisor_override);
  if (!window.count_include_pad) return static_cast<T>(y.size() * x.size());
  Index count = 1;
  const Index at[2] = {i, j}, length[2] = {height, width};
  for (int d = 0; d < 2; ++d) {
    const Index begin = at[d] * window.stride[d] - window.padding[d];
    const Index end = begin + window.kernel[d], most = length[d] + window.padding[d];
    count *= (end < most ? end : most) - begin;
  }
  return static_cast<T>(count);
}

template <class E> void avg_forward(const View& y, const View& x, const Window2d& window) {
  using T = Wide<E>;
  const Images<E> out = images_of<E>(y);
  const Images<const E> in = images_of<const E>(x);
  const Layout &ly = *y.layout, &lx = *x.layout;
  const Index work = area_of(ly) * window.kernel[0] * window.kernel[1];
  for_planes(ly, work, [&](Index n, Index c) {
    Images<const E> plane = in;
    plane.data += n * in.image + c * in.channel;
    T sums[kRow];
    for (Index i = 0; i < ly.sizes[2]; ++i) {
      const Span rows = span_of(window, 0, i, lx.sizes[2]);
      for (Index j = 0; j < ly.sizes[3]; j += kRow) {
        const Index count = ly.sizes[3] - j < kRow ? ly.sizes[3] - j : kRow;
        for (Index k = 0; k < count; ++k) sums[k] = T(0);
        for_taps<E>(window, lx, plane, i, j, count,
                    [&](Index first, Index last, const E* from, Index step, Index) {
                      for (Index k = first; k < last; ++k) {
                        sums[k] += static_cast<T>(from[(k - first) * step]);
                      }
                    });
        E* to = out.data + n * out.image + c * out.channel + i * out.row + j * out.col;
        for (Index k = 0; k < count; ++k) {
          const Span cols = span_of(window, 1, j + k, lx.sizes[3]);
          const T by = divisor<T>(window, i, j + k, lx.sizes[2], lx.sizes[3], rows, cols);
          to[k * out.col] = static_cast<E>(sums[k] / by);
        }
      }
    }
  });
}

template <class E>
void avg_backward(const Exec& exec, const View& dx, const View& grad, const Window2d& window) {
  using T = Wide<E>;
  const Images<const E> from = images_of<const E>(grad);
  const Layout &lg = *grad.layout, &ld = *dx.layout;
  const auto add = [&](Index n, Index c, T* sum, Index row, Index col) {
    const E* plane = from.data + n * from.image + c * from.channel;
    for (Index i = 0; i < lg.sizes[2]; ++i) {
      const Span rows = span_of(window, 0, i, ld.sizes[2]);
      for (Index j = 0; j < lg.sizes[3]; ++j) {
        const Span cols = span_of(window, 1, j, ld.sizes[3]);
        const T share = static_cast<T>(plane[i * from.row + j * from.col]) /
                        divisor<T>(window, i, j, ld.sizes[2], ld.sizes[3], rows, cols);
        for (Index r = rows.begin; r < rows.end; r += rows.step) {
          for (Index s = cols.begin; s < cols.end; s += cols.step) sum[r * row + s * col] += share;
        }
      }
    }
  };
  scatter_planes<E>(exec, dx, lg, area_of(lg) * window.kernel[0] * window.kernel[1], add);
}

}  // namespace

// Bytes: x once, y and indices once. One comparison, or addition, for each place of a window.
void max_pool2d(const Exec&, Out y, Out indices, In x, const Window2d& window) {
  if (y.layout->numel() == 0) return;
  visit_floating(y.dtype, [&](auto type) {
    max_forward<typename decltype(type)::type>(y, indices, x, window);
  });
}

void max_pool2d_grad(const Exec& exec, Out dx, In grad, In indices) {
  if (dx.layout->numel() == 0) return;
  visit_floating(dx.dtype, [&](auto type) {
    max_backward<typename decltype(type)::type>(exec, dx, grad, indices);
  });
}

void avg_pool2d(const Exec&, Out y, In x, const Window2d& window) {
  if (y.layout->numel() == 0) return;
  visit_floating(y.dtype,
                 [&](auto type) { avg_forward<typename decltype(type)::type>(y, x, window); });
}

void avg_pool2d_grad(const Exec& exec, Out dx, In grad, const Window2d& window) {
  if (dx.layout->numel() == 0) return;
  visit_floating(dx.dtype, [&](auto type) {
    avg_backward<typename decltype(type)::type>(exec, dx, grad, window);
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
