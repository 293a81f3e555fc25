// Layer normalisation and its gradients: a warp or a thread for each row, or a block for a strip of
// columns.
#include "taper/core/math_base.h"
#include "taper/cuda/lanes.cuh"

// The formulas, and the order of the sums, are those of cpu/norm.cpp, Note [Layer normalisation].
// The first pass over a row brings it to the cache; what is derived from it is made again each
// time.
namespace taper::cuda {
namespace {

constexpr unsigned kStrip = 16;  // columns that one block sums over all rows
constexpr unsigned kLanes = fn::kReduceLanes;

// Element (r, c) is data[r * row + c * col].
template <class E> struct Matrix {
  E* data;
  Index row, col;
};

// Numbers of the type that is computed in; data is null for no operand.
template <class T> struct Vector {
  T* data;
  Index step;

  __device__ T& operator[](Index i) const { return data[i * step]; }
};

template <class Team, class E, class T = Compute<E>>
__global__ void normalize_rows(Matrix<E> y,
                               Vector<T> mean,
                               Vector<T> rstd,
                               Matrix<const E> x,
                               Vector<const T> weight,
                               Vector<const T> bias,
                               Index rows,
                               Index cols,
                               T eps) {
  const T count = static_cast<T>(cols);
  for (Index r = first_index() / Team::kSize; r < rows; r += index_step() / Team::kSize) {
    const E* from = x.data + r * x.row;
    E* to = y.data + r * y.row;
    const auto element = [&](Index c) { return static_cast<T>(from[c * x.col]); };
    const T m = reduce_sequence<fn::Sum, Team, T>(cols, element) / count;
    const T squares =
        reduce_sequence<fn::SumOfSquares, Team, T>(cols, [&](Index c) { return element(c) - m; });
    const T s = T(1) / math::sqrt(squares / count + eps);
    for (Index c = Team::member(); c < cols; c += Team::kSize) {
      T normal = (element(c) - m) * s;
      if (weight.data != nullptr) normal *= weight[c];
      if (bias.data != nullptr) normal += bias[c];
      to[c * y.col] = static_cast<E>(normal);
    }
    if (Team::member() != 0) continue;
    mean[r] = m;
    rstd[r] = s;
  }
}

template <class Team, class E, class T = Compute<E>>
__global__ void input_rows(Matrix<E> dx,
                           Matrix<const E> grad,
                           Matrix<const E> x,
                           Vector<const T> mean,
                           Vector<const T> rstd,
                           Vector<const T> weight,
                           Index rows,
                           Index cols) {
  const T count = static_cast<T>(cols);
  for (Index r = first_index() / Team::kSize; r < rows; r += index_step() / Team::kSize) {
    const E *g = grad.data + r * grad.row, *from = x.data + r * x.row;
    E* to = dx.data + r * dx.row;
    const T m = mean[r], s = rstd[r];
    const auto normal = [&](Index c) { return (static_cast<T>(from[c * x.col]) - m) * s; };
    const auto weighed = [&](Index c) {
      const T own = static_cast<T>(g[c * grad.col]);
      return weight.data != nullptr ? own * weight[c] : own;
    };
    const T mean_h = reduce_sequence<fn::Sum, Team, T>(cols, weighed) / count;
    const T mean_product =
        reduce_sequence<fn::Sum, Team, T>(cols, [&](Index c) { return weighed(c) * normal(c); }) /
        count;
    for (Index c = Team::member(); c < cols; c += Team::kSize) {
      to[c * dx.col] = static_cast<E>(s * (weighed(c) - mean_h - normal(c) * mean_product));
    }
  }
}

// Joins the 64 lanes of two sums into the first; all threads of the block have to call it.
template <class T> using Strip = T[kLanes][kStrip];

template <class T> __device__ void join(Strip<T>& a, Strip<T>& b, unsigned lane, unsigned column) {
  for (unsigned wide = kLanes / 2; wide > 0; wide /= 2) {
    __syncthreads();
    if (lane >= wide) continue;
    a[lane][column] += a[lane + wide][column];
    b[lane][column] += b[lane + wide][column];
  }
  __syncthreads();
}

// A thread is one lane of one column: it takes every 64th row.
template <class E, class T = Compute<E>>
__global__ void __launch_bounds__(kStrip* kLanes) sum_columns(Vector<T> dweight,
                                                              Vector<T> dbias,
                                                              Matrix<const E> grad,
                                                              Matrix<const E> x,
                                                              Vector<const T> mean,
                                                              Vector<const T> rstd,
                                                              Index rows,
                                                              Index cols) {
  __shared__ Strip<T> products, grads;
  const unsigned column = threadIdx.x % kStrip, lane = threadIdx.x / kStrip;
  const Index c = Index{blockIdx.x} * kStrip + column;
  T of_blocks[2] = {};  // this lane of the sequence of the blocks' results
  Index blocks = 0;
  for (Index begin = 0; begin < rows || begin == 0; begin += fn::kReduceBlock, ++blocks) {
    const Index end = rows - begin < fn::kReduceBlock ? rows : begin + fn::kReduceBlock;
    T product = T(0), sum = T(0);
    for (Index r = begin + lane; c < cols && r < end; r += kLanes) {
      const T g = static_cast<T>(grad.data[r * grad.row + c * grad.col]);
      const T own = static_cast<T>(x.data[r * x.row + c * x.col]);
      product += g * ((own - mean[r]) * rstd[r]);
      sum += g;
    }
    products[lane][column] = product;
    grads[lane][column] = sum;
    join(products, grads, lane, column);
    if (blocks % kLanes == lane) {
      of_blocks[0] += products[0][column];
      of_blocks[1] += grads[0][column];
    }
    __syncthreads();
  }
  if (blocks > 1) {
    products[lane][column] = of_blocks[0];
    grads[lane][column] = of_blocks[1];
    join(products, grads, lane, column);
  }
  if (lane > 0 || c >= cols) return;
  if (dweight.data != nullptr) dweight[c] = products[0][column];
  if (dbias.data != nullptr) dbias[c] = grads[0][column];
}

template <class E> Matrix<E> matrix_of(const View& view) {
  return {view.as<E>(), view.layout->strides[0], view.layout->strides[1]};
}

template <class T> Vector<T> vector_of(const StandIn& operand) {
  const View& view = operand.view();
  return {view.as<T>(), view.defined() ? view.layout->strides[0] : 0};
}

template <class... Params, class... Args>
void launch_rows(const Exec& exec,
                 Index rows,
                 Index cols,
                 bool dense,
                 void (*by_warp)(Params...),
                 void (*by_thread)(Params...),
                 const Args&... args) {
  const bool warps = suits_warps(rows, cols, dense);
  const Index threads = warps ? rows * WarpTeam::kSize : rows;
  launch_on(exec, blocks_for(threads), kThreads, warps ? by_warp : by_thread, args...);
}

}  // namespace

// Bytes: x from memory once (two more times from the cache), y once. About 8 flops an element.
void layer_norm(const Exec& exec, Out y, Out mean, Out rstd, In x, In weight, In bias, double eps) {
  const Index rows = x.layout->sizes[0], cols = x.layout->sizes[1];
  visit_floating(x.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    using T = Compute<E>;
    constexpr DType kNumber = dtype_of<T>();
    StandIn out(exec, y, x.dtype), out_mean(exec, mean, kNumber), out_rstd(exec, rstd, kNumber);
    const StandIn scale(exec, weight, kNumber), shift(exec, bias, kNumber);
    const Matrix<E> to = matrix_of<E>(out.view());
    const Matrix<const E> from = matrix_of<const E>(x);
    launch_rows(exec, rows, cols, to.col == 1 && from.col == 1, normalize_rows<WarpTeam, E>,
                normalize_rows<ThreadTeam, E>, to, vector_of<T>(out_mean), vector_of<T>(out_rstd),
                from, vector_of<const T>(scale), vector_of<const T>(shift), rows, cols,
                static_cast<T>(eps));
    for (StandIn* result : {&out, &out_mean, &out_rstd}) result->finish();
  });
}

// Bytes: grad and x once for dx and once for dweight and dbias, dx once.
void layer_norm_grad(
    const Exec& exec, Out dx, Out dweight, Out dbias, In grad, In x, In mean, In rstd, In weight) {
  const Index rows = x.layout->sizes[0], cols = x.layout->sizes[1];
  visit_floating(x.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    using T = Compute<E>;
    constexpr DType kNumber = dtype_of<T>();
    const StandIn g(exec, grad, x.dtype), m(exec, mean, kNumber), s(exec, rstd, kNumber);
    const Matrix<const E> of_grad = matrix_of<const E>(g.view()), of_x = matrix_of<const E>(x);
    const Vector<const T> means = vector_of<const T>(m), rstds = vector_of<const T>(s);
    if (dx.defined()) {
      const StandIn scale(exec, weight, kNumber);
      StandIn out(exec, dx, x.dtype);
      const Matrix<E> to = matrix_of<E>(out.view());
      launch_rows(exec, rows, cols, to.col == 1 && of_x.col == 1, input_rows<WarpTeam, E>,
                  input_rows<ThreadTeam, E>, to, of_grad, of_x, means, rstds,
                  vector_of<const T>(scale), rows, cols);
      out.finish();
    }
    if (!dweight.defined() && !dbias.defined()) return;
    StandIn sums(exec, dweight, kNumber), grads(exec, dbias, kNumber);
    launch_on(exec, static_cast<unsigned>((cols + kStrip - 1) / kStrip), kStrip * kLanes,
              sum_columns<E>, vector_of<T>(sums), vector_of<T>(grads), of_grad, of_x, means, rstds,
              rows, cols);
    sums.finish();
    grads.finish();
  });
}

}  // namespace taper::cuda
