// Matrix products of every dtype: by cuBLAS, or on tiles, which give the CPU's bits.
#include "taper/core/functors_activation.h"
#include "taper/core/math_base.h"
#include "taper/core/precision.h"
#include "taper/cuda/device.cuh"
#include "taper/cuda/gemm_blas.h"

// Note [One chain of fmas, on the device]
// As on the CPU (cpu/gemm.cpp), an element starts as the bias or zero and takes one fma for each k,
// in order; 16-bit types are summed in f32 and rounded, and the activation is of what was rounded.
// A block makes one tile of C; a thread keeps kOwn x kOwn of its elements in registers. No atomics,
// no split of k: the order is fixed.
namespace taper::cuda {
namespace {

constexpr int kTile = 64;   // rows and columns of C that a block makes
constexpr int kDepth = 16;  // k of one step through shared memory
constexpr int kOwn = 4;     // rows and columns of C that a thread makes
constexpr unsigned kSide = kTile / kOwn;

// A batch of matrices: element (i, j) of one is data[i * row + j * col], the next is `batch` on.
template <class E> struct Matrix {
  E* data;
  Index batch, row, col;
};

// c (batch, m, n) = activation(a (batch, m, k) b (batch, k, n) + bias); bias.data may be null.
template <class E> struct Product {
  Index m, n, k;
  Matrix<const E> a, b, bias;
  Matrix<E> c;
  Activation activation;
  bool tf32;  // round what is multiplied; f32 alone
};

// What an element type is summed in. Unsigned, so that overflow wraps.
template <class E> struct SumOf : std::type_identity<Compute<E>> {};
template <> struct SumOf<std::int64_t> : std::type_identity<std::uint64_t> {};
template <> struct SumOf<std::int32_t> : std::type_identity<std::uint32_t> {};
template <> struct SumOf<std::uint8_t> : std::type_identity<std::uint32_t> {};

template <class T> __device__ T multiply_add(T a, T b, T c) {
  if constexpr (std::is_same_v<T, bool>) {
    return c || (a && b);
  } else if constexpr (std::is_floating_point_v<T>) {
    return math::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

// Brings rows [row0, row0 + kTile) and columns [k0, k0 + kDepth) to shared memory, transposed:
// to[k][row]. Beyond the matrix: zeros, which nobody uses. `along` is 1 where neighbours in a row
// of the matrix lie together, so that neighbouring threads read neighbouring elements.
template <class E, class T>
__device__ void bring(T (*to)[kTile + 1],
                      const E* from,
                      Index row,
                      Index col,
                      Index row0,
                      Index rows,
                      Index k0,
                      Index k_end,
                      bool tf32) {
  for (unsigned at = threadIdx.x; at < kTile * kDepth; at += kSide * kSide) {
    const unsigned r = col == 1 ? at / kDepth : at % kTile;
    const unsigned k = col == 1 ? at % kDepth : at / kTile;
    const bool inside = row0 + r < rows && k0 + k < k_end;
    T x = inside ? static_cast<T>(from[(row0 + r) * row + (k0 + k) * col]) : T(0);
    if constexpr (std::is_same_v<E, float>) x = tf32 ? round_to_tf32(x) : x;
    to[k][r] = x;
  }
}

template <class E, class T = typename SumOf<E>::type>
__global__ void __launch_bounds__(kSide* kSide, 2)
    multiply(Product<E> p, Index tiles_down, Index tiles_across) {
  __shared__ T left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const Index tile = blockIdx.x;
  const Index batch = tile / (tiles_down * tiles_across);
  const Index i0 = tile / tiles_across % tiles_down * kTile;
  const Index j0 = tile % tiles_across * kTile;
  const unsigned down = threadIdx.x / kSide, across = threadIdx.x % kSide;
  const E* a = p.a.data + batch * p.a.batch;
  const E* b = p.b.data + batch * p.b.batch;
  T sum[kOwn][kOwn];
  for (unsigned r = 0; r < kOwn; ++r) {
    for (unsigned s = 0; s < kOwn; ++s) {
      const Index i = i0 + down + r * kSide, j = j0 + across + s * kSide;
      const bool biased = p.bias.data != nullptr && i < p.m && j < p.n;
      const Index at = batch * p.bias.batch + i * p.bias.row + j * p.bias.col;
      sum[r][s] = biased ? static_cast<T>(p.bias.data[at]) : T(0);
    }
  }
  for (Index k0 = 0; k0 < p.k; k0 += kDepth) {
    bring(left, a, p.a.row, p.a.col, i0, p.m, k0, p.k, p.tf32);
    bring(right, b, p.b.col, p.b.row, j0, p.n, k0, p.k, p.tf32);
    __syncthreads();
    const int depth = p.k - k0 < kDepth ? static_cast<int>(p.k - k0) : kDepth;
    for (int k = 0; k < depth; ++k) {
      T x[kOwn], y[kOwn];
      for (unsigned r = 0; r < kOwn; ++r) x[r] = left[k][down + r * kSide];
      for (unsigned s = 0; s < kOwn; ++s) y[s] = right[k][across + s * kSide];
      for (unsigned r = 0; r < kOwn; ++r) {
        for (unsigned s = 0; s < kOwn; ++s) sum[r][s] = multiply_add(x[r], y[s], sum[r][s]);
      }
    }
    __syncthreads();
  }
  for (unsigned r = 0; r < kOwn; ++r) {
    for (unsigned s = 0; s < kOwn; ++s) {
      const Index i = i0 + down + r * kSide, j = j0 + across + s * kSide;
      if (i >= p.m || j >= p.n) continue;
      E x = static_cast<E>(sum[r][s]);
      if constexpr (std::is_floating_point_v<T>) {
        fn::visit_activation(p.activation, [&](auto activation) {
          x = static_cast<E>(activation(static_cast<T>(x)));
        });
      }
      p.c.data[batch * p.c.batch + i * p.c.row + j * p.c.col] = x;
    }
  }
}

// The view as a batch of matrices of `sizes`; what it lacks of them has stride 0.
template <class E> Matrix<E> matrix_of(const View& view, const std::int64_t* sizes) {
  if (!view.defined()) return {nullptr, 0, 0, 0};
  const Layout& layout = *view.layout;
  Index stride[3] = {};
  for (int d = 0; d < 3; ++d) {
    const int own = d + layout.ndim - 3;
    if (own >= 0 && layout.sizes[own] == sizes[d]) stride[d] = layout.strides[own];
  }
  return {view.as<E>(), stride[0], stride[1], stride[2]};
}

}  // namespace

// Bytes: each element of a and b once for each 64 columns or rows of C. Flops: 2 B M N K.
void matmul(const Exec& exec, Out out, In a, In b, In bias, Activation activation) {
  if (out.layout->numel() == 0) return;
  if (blas_selected() && blas_matmul(exec, out, a, b, bias, activation)) return;
  const std::int64_t* sizes = out.layout->sizes;
  const Index m = sizes[1], n = sizes[2], k = a.layout->sizes[2];
  const std::int64_t sizes_a[] = {sizes[0], m, k}, sizes_b[] = {sizes[0], k, n};
  const Index down = (m + kTile - 1) / kTile, across = (n + kTile - 1) / kTile;
  const Index tiles = sizes[0] * down * across;
  TAPER_CHECK(tiles <= 0x7fffffff, "matmul: the result has too many elements for one launch");
  visit_dtype(out.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const Product<E> p{m,
                       n,
                       k,
                       matrix_of<const E>(a, sizes_a),
                       matrix_of<const E>(b, sizes_b),
                       matrix_of<const E>(bias, sizes),
                       matrix_of<E>(out, sizes),
                       activation,
                       matmul_rounds_to_tf32()};
    launch_on(exec, static_cast<unsigned>(tiles), kSide * kSide, multiply<E>, p, down, across);
  });
}

}  // namespace taper::cuda
