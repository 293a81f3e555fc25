// 2-d pooling and its gradients: a thread for each element that is written.
#include "taper/core/math_base.h"
#include "taper/cuda/device.cuh"

// Note [Pooling backwards, by gathering]
// The CPU adds each element of grad to the places of its window, in order. Here an element of dx
// adds up the windows that it is in, in the same order, so the bits are the same and nothing is
// atomic. For averages the windows are known; for maxima the recorded places say which rows and
// columns of grad point to a row or column of dx, and only those are searched.
namespace taper::cuda {
namespace {

// (N, C, H, W) in any strides, in elements.
template <class E> struct Images {
  E* data;
  Index image, channel, row, col;

  __device__ E* plane(Index n, Index c) const { return data + n * image + c * channel; }
};

template <class E> Images<E> images_of(const View& view) {
  if (!view.defined()) return {};
  const std::int64_t* s = view.layout->strides;
  return {view.as<E>(), s[0], s[1], s[2], s[3]};
}

// The sizes of what a kernel writes, and the order in which threads take it: neighbours of memory
// are neighbours of threads.
struct Grid {
  Index images, channels, height, width;
  bool channels_together;

  explicit Grid(const Layout& out)
      : images(out.sizes[0]),
        channels(out.sizes[1]),
        height(out.sizes[2]),
        width(out.sizes[3]),
        channels_together(out.strides[1] == 1 && channels > 1) {}

  TAPER_HD Index numel() const { return images * channels * height * width; }
};

// Which element a thread has: (n, c, i, j).
struct At {
  Index n, c, i, j;

  __device__ At(const Grid& grid, Index at) {
    if (grid.channels_together) {
      c = at % grid.channels;
      at /= grid.channels;
    }
    j = at % grid.width;
    at /= grid.width;
    i = at % grid.height;
    at /= grid.height;
    if (!grid.channels_together) {
      c = at % grid.channels;
      at /= grid.channels;
    }
    n = at;
  }
};

// Places [begin, end) of the input, by `step`, that a window of the output covers in one dim.
struct Span {
  Index begin, end, step;

  __device__ Span(const Window2d& window, int dim, Index i, Index length)
      : begin(i * window.stride[dim] - window.padding[dim]), step(window.dilation[dim]) {
    end = begin + (window.kernel[dim] - 1) * step + 1;
    if (begin < 0) begin += (-begin + step - 1) / step * step;
    if (end > length) end = length;
  }

  __device__ Index size() const { return begin < end ? (end - begin + step - 1) / step : 0; }
};

// The largest of each window: the first of equals, or the first NaN. Padding is never it; where a
// window has nothing above -inf, the place is that of its first element.
template <class E>
__global__ void max_windows(Images<E> y,
                            Images<Index> indices,
                            Images<const E> x,
                            Grid grid,
                            Index height,
                            Index width,
                            Window2d window) {
  using T = Compute<E>;
  for (Index k = first_index(); k < grid.numel(); k += index_step()) {
    const At at(grid, k);
    const Span rows(window, 0, at.i, height), cols(window, 1, at.j, width);
    const E* plane = x.plane(at.n, at.c);
    T top = -math::detail::kInf<T>;
    Index place = rows.size() > 0 && cols.size() > 0 ? rows.begin * width + cols.begin : 0;
    for (Index r = rows.begin; r < rows.end; r += rows.step) {
      for (Index s = cols.begin; s < cols.end; s += cols.step) {
        const T value = static_cast<T>(plane[r * x.row + s * x.col]);
        const bool better = value > top || (value != value && top == top);
        top = better ? value : top;
        place = better ? r * width + s : place;
      }
    }
    y.plane(at.n, at.c)[at.i * y.row + at.j * y.col] = static_cast<E>(top);
    if (indices.data == nullptr) continue;
    indices.plane(at.n, at.c)[at.i * indices.row + at.j * indices.col] = place;
  }
}

// For each row (or column) of dx: the first row (or column) of grad that points to it, and the
// number of the last one plus 1. No thread waits: an old value makes one more atomic at most.
struct Ranges {
  unsigned *first_row, *last_row, *first_col, *last_col;
};

__device__ inline void widen(unsigned* first, unsigned* last, Index place, Index from) {
  const auto i = static_cast<unsigned>(from);
  if (i < first[place]) atomicMin(first + place, i);
  if (i + 1 > last[place]) atomicMax(last + place, i + 1);
}

__global__ void find_ranges(Images<const Index> indices, Grid grid, Index width, Ranges ranges) {
  for (Index k = first_index(); k < grid.numel(); k += index_step()) {
    const At at(grid, k);
    const Index place = indices.plane(at.n, at.c)[at.i * indices.row + at.j * indices.col];
    widen(ranges.first_row, ranges.last_row, place / width, at.i);
    widen(ranges.first_col, ranges.last_col, place % width, at.j);
  }
}

template <class E>
__global__ void max_gradients(
    Images<E> dx, Images<const E> grad, Images<const Index> indices, Grid grid, Ranges ranges) {
  using T = Compute<E>;
  for (Index k = first_index(); k < grid.numel(); k += index_step()) {
    const At at(grid, k);
    const E* g = grad.plane(at.n, at.c);
    const Index *of = indices.plane(at.n, at.c), place = at.i * grid.width + at.j;
    T sum = T(0);
    for (Index r = ranges.first_row[at.i]; r < ranges.last_row[at.i]; ++r) {
      for (Index s = ranges.first_col[at.j]; s < ranges.last_col[at.j]; ++s) {
        if (of[r * indices.row + s * indices.col] != place) continue;
        sum += static_cast<T>(g[r * grad.row + s * grad.col]);
      }
    }
    dx.plane(at.n, at.c)[at.i * dx.row + at.j * dx.col] = static_cast<E>(sum);
  }
}

// What the sum of a window is divided by. Padding counts where include_pad says so, but only as far
// as it was asked for: a window of ceil_mode that hangs over its end counts less.
template <class T>
__device__ T divisor(const Window2d& window, Index i, Index j, Index height, Index width) {
  if (window.divisor_override != 0) return static_cast<T>(window.divisor_override);
  const Index at[2] = {i, j}, length[2] = {height, width};
  Index count = 1;
  for (int d = 0; d < 2; ++d) {
    if (!window.count_include_pad) {
      count *= Span(window, d, at[d], length[d]).size();
      continue;
    }
    const Index begin = at[d] * window.stride[d] - window.padding[d];
    const Index end = begin + window.kernel[d], most = length[d] + window.padding[d];
    count *= (end < most ? end : most) - begin;
  }
  return static_cast<T>(count);
}

template <class E>
__global__ void average_windows(
    Images<E> y, Images<const E> x, Grid grid, Index height, Index width, Window2d window) {
  using T = Compute<E>;
  for (Index k = first_index(); k < grid.numel(); k += index_step()) {
    const At at(grid, k);
    const Span rows(window, 0, at.i, height), cols(window, 1, at.j, width);
    const E* plane = x.plane(at.n, at.c);
    T sum = T(0);
    for (Index r = rows.begin; r < rows.end; r += rows.step) {
      for (Index s = cols.begin; s < cols.end; s += cols.step) {
        sum += static_cast<T>(plane[r * x.row + s * x.col]);
      }
    }
    const T by = divisor<T>(window, at.i, at.j, height, width);
    y.plane(at.n, at.c)[at.i * y.row + at.j * y.col] = static_cast<E>(sum / by);
  }
}

// Windows [begin, end) of one dim that can hold a place.
struct Windows {
  Index begin, end;

  __device__ Windows(const Window2d& window, int dim, Index place, Index count) {
    const Index padded = place + window.padding[dim], step = window.stride[dim];
    const Index reach = (window.kernel[dim] - 1) * window.dilation[dim];
    begin = padded > reach ? (padded - reach + step - 1) / step : 0;
    end = padded / step + 1 < count ? padded / step + 1 : count;
  }
};

__device__ inline bool holds(const Window2d& window, int dim, Index i, Index place) {
  return (place + window.padding[dim] - i * window.stride[dim]) % window.dilation[dim] == 0;
}

template <class E>
__global__ void average_gradients(Images<E> dx,
                                  Images<const E> grad,
                                  Grid grid,
                                  Index grad_height,
                                  Index grad_width,
                                  Window2d window) {
  using T = Compute<E>;
  for (Index k = first_index(); k < grid.numel(); k += index_step()) {
    const At at(grid, k);
    const Windows rows(window, 0, at.i, grad_height), cols(window, 1, at.j, grad_width);
    const E* plane = grad.plane(at.n, at.c);
    T sum = T(0);
    for (Index r = rows.begin; r < rows.end; ++r) {
      if (!holds(window, 0, r, at.i)) continue;
      for (Index s = cols.begin; s < cols.end; ++s) {
        if (!holds(window, 1, s, at.j)) continue;
        const T g = static_cast<T>(plane[r * grad.row + s * grad.col]);
        sum += g / divisor<T>(window, r, s, grid.height, grid.width);
      }
    }
    dx.plane(at.n, at.c)[at.i * dx.row + at.j * dx.col] = static_cast<E>(sum);
  }
}

Ranges ranges_of(const Exec& exec, Index height, Index width) {
  const size_t rows = static_cast<size_t>(height), all = rows + static_cast<size_t>(width);
  auto* first = static_cast<unsigned*>(exec.scratch(2 * all * sizeof(unsigned)));
  unsigned* last = first + all;
  const DeviceGuard guard(exec.device.index());
  const cudaStream_t stream = stream_of(exec.device, exec.stream);
  TAPER_CUDA_CHECK(cudaMemsetAsync(first, 0xff, all * sizeof(unsigned), stream));
  TAPER_CUDA_CHECK(cudaMemsetAsync(last, 0, all * sizeof(unsigned), stream));
  return {first, last, first + rows, last + rows};
}

}  // namespace

// Bytes: x once, y and indices once. One comparison, or addition, for each place of a window.
void max_pool2d(const Exec& exec, Out y, Out indices, In x, const Window2d& window) {
  const Grid grid(*y.layout);
  visit_floating(y.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_on(exec, blocks_for(grid.numel()), kThreads, max_windows<E>, images_of<E>(y),
              images_of<Index>(indices), images_of<const E>(x), grid, x.layout->sizes[2],
              x.layout->sizes[3], window);
  });
}

// Bytes: indices about twice, grad and dx once.
void max_pool2d_grad(const Exec& exec, Out dx, In grad, In indices) {
  const Grid grid(*dx.layout), from(*grad.layout);
  if (grid.numel() == 0) return;
  const Ranges ranges = ranges_of(exec, grid.height, grid.width);
  const Images<const Index> places = images_of<const Index>(indices);
  launch_on(exec, blocks_for(from.numel()), kThreads, find_ranges, places, from, grid.width,
            ranges);
  visit_floating(dx.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_on(exec, blocks_for(grid.numel()), kThreads, max_gradients<E>, images_of<E>(dx),
              images_of<const E>(grad), places, grid, ranges);
  });
}

void avg_pool2d(const Exec& exec, Out y, In x, const Window2d& window) {
  const Grid grid(*y.layout);
  visit_floating(y.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_on(exec, blocks_for(grid.numel()), kThreads, average_windows<E>, images_of<E>(y),
              images_of<const E>(x), grid, x.layout->sizes[2], x.layout->sizes[3], window);
  });
}

void avg_pool2d_grad(const Exec& exec, Out dx, In grad, const Window2d& window) {
  const Grid grid(*dx.layout);
  visit_floating(dx.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    launch_on(exec, blocks_for(grid.numel()), kThreads, average_gradients<E>, images_of<E>(dx),
              images_of<const E>(grad), grid, grad.layout->sizes[2], grad.layout->sizes[3], window);
  });
}

}  // namespace taper::cuda
