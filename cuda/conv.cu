// 2-d convolution and its gradients, as products of matrices whose tiles are gathered from images.
#include "taper/core/math_base.h"
#include "taper/cuda/gather.cuh"

// Note [Convolution on the device]
// The meaning, and so the bits, are those of cpu/correlate.h and cpu/conv.cpp: an output is one
// chain of fmas over the places of its window, and in each over the input channels; an element of
// dw is one chain over the pixels of all images. Each is a product left (m, k) right (k, n) for
// every group, of which at least one side is gathered from images:
//   y:  left weights (channel, place), right x (place, pixel); starts as the bias
//   dx: the same with grad for x, once for each remainder of a pixel by the stride
//   dw: left grad (channel, pixel), right x (pixel, place)
// where a place is one of the window and an input channel. A thread fetches its elements of the
// next tiles while the block multiplies these. Nothing is split along k, as that would change the
// bits: where the result is small and k long, as in dw, the tiles are small, for there to be
// enough.
namespace taper::cuda {
namespace {

constexpr unsigned kSide = 16;  // threads of a block, in each direction
constexpr unsigned kBlock = kSide * kSide;
constexpr int kFetches = 4;     // elements of one side that a thread brings for a step
constexpr Index kEnough = 132;  // tiles that keep all of an H100 at work

// Blocks that a multiprocessor holds at least. Said even where it is 1: nvcc spills to fit more.
template <class E> constexpr int kBlocks = sizeof(E) == 8 ? 1 : 2;

// A thread makes kOwn x kOwn elements of a tile. Small tiles are deep, so that the elements of a
// step are as many, and what it takes to fetch them hides behind as much.
template <int kOwn> constexpr int kTile = static_cast<int>(kSide) * kOwn;
template <int kOwn> constexpr int kDepth = 64 / kOwn;
template <int kOwn, class T> using Sums = T[size_t{kOwn}][size_t{kOwn}];
template <int kOwn, class T> using Tile = T[size_t{kDepth<kOwn>}][size_t{kTile<kOwn> + 4}];

// What one thread brings of one side. Where neighbours along k lie together, neighbouring threads
// take them, else neighbouring rows (of the left side; columns of the right).
template <int kOwn, class Side> class Fetch {
 public:
  using T = Compute<typename Side::Element>;

  __device__ Fetch(const Side& side, Index first_row) {
    for (int q = 0; q < kRows; ++q) rows_[q] = side.row(first_row + row_of(q));
    for (int q = 0; q < kSteps; ++q) steps_[q] = side.step(k_of(q));
  }

  __device__ void fetch(const Side& side) {
    for (int q = 0; q < kFetches; ++q) {
      values_[q] = side.template element<T>(rows_[kRows > 1 ? q : 0], steps_[kRows > 1 ? 0 : q]);
    }
    for (int q = 0; q < kSteps; ++q) side.advance(steps_[q], kDepth<kOwn>);
  }

  __device__ void put(Tile<kOwn, T>& tile) const {
    for (int q = 0; q < kFetches; ++q) tile[k_of(q)][row_of(q)] = values_[q];
  }

 private:
  static constexpr int kRows = Side::kAlongSteps ? kFetches : 1;
  static constexpr int kSteps = Side::kAlongSteps ? 1 : kFetches;

  __device__ static int row_of(int q) {
    const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(kBlock);
    return kRows > 1 ? t / kDepth<kOwn> + q * (block / kDepth<kOwn>) : t % kTile<kOwn>;
  }

  __device__ static int k_of(int q) {
    const int t = static_cast<int>(threadIdx.x), block = static_cast<int>(kBlock);
    return kRows > 1 ? t % kDepth<kOwn> : t / kTile<kOwn> + q * (block / kTile<kOwn>);
  }

  typename Side::Row rows_[size_t{kRows}];
  typename Side::Step steps_[size_t{kSteps}];
  T values_[size_t{kFetches}];
};

template <int kOwn, class T>
__device__ void multiply_step(Sums<kOwn, T>& sum,
                              const Tile<kOwn, T>& left,
                              const Tile<kOwn, T>& right,
                              int depth) {
  const int down = static_cast<int>(threadIdx.x / kSide) * kOwn;
  const int across = static_cast<int>(threadIdx.x % kSide) * kOwn;
  for (int k = 0; k < depth; ++k) {
    const auto x = *reinterpret_cast<const Pack<T, kOwn>*>(&left[k][down]);
    const auto y = *reinterpret_cast<const Pack<T, kOwn>*>(&right[k][across]);
    for (int r = 0; r < kOwn; ++r) {
      for (int s = 0; s < kOwn; ++s) sum[r][s] = math::fma(x.of[r], y.of[s], sum[r][s]);
    }
  }
}

// The sizes of the products, and how many tiles one has.
struct Shape {
  Index groups, rows, columns, depth, down, across;
};

// sum += the tile at (i0, j0) of the product of one group.
template <int kOwn, class Left, class Right, class T>
__device__ void multiply_tile(
    Sums<kOwn, T>& sum, const Left& left, const Right& right, Index i0, Index j0, Index depth) {
  alignas(32) __shared__ Tile<kOwn, T> left_tile;
  alignas(32) __shared__ Tile<kOwn, T> right_tile;
  Fetch<kOwn, Left> of_left(left, i0);
  Fetch<kOwn, Right> of_right(right, j0);
  of_left.fetch(left);
  of_right.fetch(right);
  for (Index k = 0; k < depth; k += kDepth<kOwn>) {
    __syncthreads();
    of_left.put(left_tile);
    of_right.put(right_tile);
    __syncthreads();
    const Index rest = depth - k;
    if (rest > kDepth<kOwn>) {
      of_left.fetch(left);
      of_right.fetch(right);
    }
    if (rest >= kDepth<kOwn>) multiply_step<kOwn>(sum, left_tile, right_tile, kDepth<kOwn>);
    else multiply_step<kOwn>(sum, left_tile, right_tile, static_cast<int>(rest));
  }
}

template <int kOwn, class Left, class Right, class Result>
__global__ void __launch_bounds__(kBlock, kBlocks<typename Result::Element>)
    multiply(Left left, Right right, Result result, Shape shape) {
  using T = Compute<typename Result::Element>;
  const Index tile = blockIdx.x, tiles = shape.down * shape.across;
  const Index group = tile / tiles;
  const Index i0 = tile % tiles / shape.across * kTile<kOwn>;
  const Index j0 = tile % shape.across * kTile<kOwn>;
  left.enter(group);
  right.enter(group);
  result.enter(group);
  const Index i = i0 + threadIdx.x / kSide * kOwn, j = j0 + threadIdx.x % kSide * kOwn;
  Sums<kOwn, T> sum;
  for (int r = 0; r < kOwn; ++r) {
    const T start = i + r < shape.rows ? result.template start<T>(i + r) : T(0);
    for (int s = 0; s < kOwn; ++s) sum[r][s] = start;
  }
  if (shape.depth > 0) multiply_tile<kOwn>(sum, left, right, i0, j0, shape.depth);
  for (int s = 0; s < kOwn; ++s) {
    if (j + s >= shape.columns) continue;
    auto* column = result.column(j + s);
    for (int r = 0; r < kOwn; ++r) {
      if (i + r < shape.rows) result.store(column, i + r, sum[r][s]);
    }
  }
}

// The same by a thread for each element: where a group has few channels, as in a depthwise
// convolution, tiles would be nearly empty. `by_rows`: neighbouring threads take neighbouring rows.
template <class Left, class Right, class Result>
__global__ void multiply_narrow(Left left, Right right, Result result, Shape shape, bool by_rows) {
  using T = Compute<typename Result::Element>;
  const Index rows = shape.groups * shape.rows, n = rows * shape.columns;
  for (Index at = first_index(); at < n; at += index_step()) {
    const Index row = by_rows ? at % rows : at / shape.columns;
    const Index j = by_rows ? at / rows : at % shape.columns, i = row % shape.rows;
    Left l = left;
    Right r = right;
    Result to = result;
    l.enter(row / shape.rows);
    r.enter(row / shape.rows);
    to.enter(row / shape.rows);
    T sum = to.template start<T>(i);
    if (shape.depth > 0) {
      const auto left_row = l.row(i);
      const auto right_row = r.row(j);
      auto left_step = l.step(0);
      auto right_step = r.step(0);
      for (Index k = 0; k < shape.depth; ++k) {
        sum = math::fma(l.template element<T>(left_row, left_step),
                        r.template element<T>(right_row, right_step), sum);
        l.advance(left_step, 1);
        r.advance(right_step, 1);
      }
    }
    to.store(to.column(j), i, sum);
  }
}

template <int kOwn> Shape cut(Shape shape) {
  shape.down = (shape.rows + kTile<kOwn> - 1) / kTile<kOwn>;
  shape.across = (shape.columns + kTile<kOwn> - 1) / kTile<kOwn>;
  return shape;
}

Index tiles_of(const Shape& shape) {
  return shape.groups * shape.down * shape.across;
}

template <int kOwn, class Left, class Right, class Result>
void launch_tiles(const Exec& exec,
                  const Left& left,
                  const Right& right,
                  const Result& result,
                  const Shape& shape) {
  const Shape tiled = cut<kOwn>(shape);
  const Index tiles = tiles_of(tiled);
  TAPER_CHECK(tiles <= 0x7fffffff, "conv2d: the result has too many elements for one launch");
  launch_on(exec, static_cast<unsigned>(tiles), kBlock, multiply<kOwn, Left, Right, Result>, left,
            right, result, tiled);
}

// Picks the largest tiles of which there are enough.
template <class Left, class Right, class Result>
void launch_product(const Exec& exec,
                    const Left& left,
                    const Right& right,
                    const Result& result,
                    const Shape& shape) {
  if (shape.rows > 32 && tiles_of(cut<4>(shape)) >= kEnough) {
    launch_tiles<4>(exec, left, right, result, shape);
  } else if (tiles_of(cut<2>(shape)) >= kEnough) {
    launch_tiles<2>(exec, left, right, result, shape);
  } else {
    launch_tiles<1>(exec, left, right, result, shape);
  }
}

// out (N, channels, ...) = weights (groups, taps, inputs, outputs) times what the windows of src
// see.
template <class E>
void correlate(const Exec& exec,
               const Images<E>& out,
               const Pixels& pixels,
               const Source<E>& src,
               const Weights<E>& weights,
               const View& bias,
               Index groups) {
  const Shape shape{groups, weights.rows, pixels.count(), src.places.count(), 0, 0};
  const ToPixels<E> result{out, weights.rows, pixels, bias.as<const E>(),
                           bias.defined() ? bias.layout->strides[0] : 0};
  const bool channels_last = src.images.channel == 1 && src.places.channels > 1;
  if (weights.rows <= 4) {
    launch_on(exec, blocks_for(groups * shape.rows * shape.columns), kThreads,
              multiply_narrow<Weights<E>, PixelsOf<E, false>, ToPixels<E>>, weights,
              PixelsOf<E, false>{src}, result, shape, out.channel == 1);
  } else if (channels_last) {
    launch_product(exec, weights, PixelsOf<E, true>{src}, result, shape);
  } else {
    launch_product(exec, weights, PixelsOf<E, false>{src}, result, shape);
  }
}

// The weight as (groups, taps, inputs, outputs) without gaps, "outputs" being its dim `rows`. Of
// its taps those that are in the runs.
template <class E>
Weights<E> weights_of(
    const Exec& exec, const View& w, Index groups, int rows, const TapRun (&runs)[2]) {
  const Layout& from = *w.layout;
  const Index of_group = from.sizes[0] / groups, inner = rows == 0 ? from.sizes[1] : of_group;
  const Index outer = rows == 0 ? of_group : from.sizes[1];
  const Index *s = from.strides, sizes[] = {groups, runs[0].count, runs[1].count, inner, outer};
  const Index strides[] = {of_group * s[0], runs[0].step * s[2], runs[1].step * s[3], s[1 - rows],
                           s[rows]};
  Layout layout = contiguous_layout({sizes, 5});
  for (int d = 0; d < 5; ++d) layout.strides[d] = strides[d];
  View view = w;
  view.layout = &layout;
  if (layout.numel() > 0) view.data = w.as<E>() + runs[0].first * s[2] + runs[1].first * s[3];
  const Index depth = sizes[1] * sizes[2] * inner;
  return {static_cast<const E*>(dense(exec, view)), depth * outer, outer, depth};
}

template <class E>
void forward(const Exec& exec,
             const View& y,
             const View& x,
             const View& w,
             const View& bias,
             const Window2d& window) {
  const Index groups = window.groups;
  const TapRun runs[2] = {TapRun::all(window, 0), TapRun::all(window, 1)};
  const Weights<E> weights = weights_of<E>(exec, w, groups, 0, runs);
  const Pixels pixels(*y.layout, window.stride[0], window.stride[1]);
  const Source<E> src(x, pixels, Places(runs, w.layout->sizes[1]));
  correlate<E>(exec, images_of<E>(y), pixels, src, weights, bias, groups);
}

// The pixels of dx whose coordinates leave `rest` by the stride.
template <class E>
void input_gradient(const Exec& exec,
                    const View& dx,
                    const View& grad,
                    const View& w,
                    const Window2d& window,
                    const Index (&rest)[2]) {
  const Index groups = window.groups;
  const TapRun runs[2] = {TapRun::meeting(window, 0, rest[0]), TapRun::meeting(window, 1, rest[1])};
  const Weights<E> weights = weights_of<E>(exec, w, groups, 1, runs);
  Images<E> out = images_of<E>(dx);
  out.data += rest[0] * out.row + rest[1] * out.col;
  out.row *= window.stride[0];
  out.col *= window.stride[1];
  Layout some = *dx.layout;
  for (int d = 0; d < 2; ++d) {
    some.sizes[2 + d] = (some.sizes[2 + d] - rest[d] + window.stride[d] - 1) / window.stride[d];
  }
  const Pixels pixels(some, 1, 1);
  const Source<E> src(grad, pixels, Places(runs, w.layout->sizes[0] / groups));
  correlate<E>(exec, out, pixels, src, weights, View{}, groups);
}

template <class E>
void weight_gradient(
    const Exec& exec, const View& dw, const View& grad, const View& x, const Window2d& window) {
  const Index groups = window.groups, outputs = dw.layout->sizes[0] / groups;
  const TapRun runs[2] = {TapRun::all(window, 0), TapRun::all(window, 1)};
  const Pixels pixels(*grad.layout, window.stride[0], window.stride[1]);
  const Places places(runs, dw.layout->sizes[1]);
  const Source<E> src(x, pixels, places);
  const Images<const E> grads = images_of<const E>(grad);
  const ToPlaces<E> result{images_of<E>(dw), outputs, places};
  const Shape shape{groups, outputs, places.count(), pixels.count(), 0, 0};
  if (src.images.channel == 1 && places.channels > 1) {
    launch_product(exec, Channels<E, false>{grads, pixels, outputs}, PlacesOf<E, false>{src},
                   result, shape);
  } else {
    launch_product(exec, Channels<E, true>{grads, pixels, outputs}, PlacesOf<E, true>{src}, result,
                   shape);
  }
}

}  // namespace

// Bytes: x and w once for each 64 output channels or pixels, y once. Flops: 2 N O H' W' (C /
// groups) kH kW, and as many in each gradient.
void conv2d(const Exec& exec, Out y, In x, In w, In bias, const Window2d& window) {
  if (y.layout->numel() == 0) return;
  visit_floating(y.dtype, [&](auto type) {
    forward<typename decltype(type)::type>(exec, y, x, w, bias, window);
  });
}

void conv2d_grad_input(const Exec& exec, Out dx, In grad, In w, const Window2d& window) {
  if (dx.layout->numel() == 0) return;
  visit_floating(dx.dtype, [&](auto type) {
    for (Index i = 0; i < window.stride[0] && i < dx.layout->sizes[2]; ++i) {
      for (Index j = 0; j < window.stride[1] && j < dx.layout->sizes[3]; ++j) {
        input_gradient<typename decltype(type)::type>(exec, dx, grad, w, window, {i, j});
      }
    }
  });
}

void conv2d_grad_weight(const Exec& exec, Out dw, In grad, In x, const Window2d& window) {
  if (dw.layout->numel() == 0) return;
  visit_floating(dw.dtype, [&](auto type) {
    weight_gradient<typename decltype(type)::type>(exec, dw, grad, x, window);
  });
}

}  // namespace taper::cuda
