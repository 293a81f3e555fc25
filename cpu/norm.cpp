// Layer normalisation and its gradients, in f32, or in f64 for f64.
#include "taper/core/math_base.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/lanes.h"
#include "taper/cpu/parallel.h"

// Note [Layer normalisation]
// m = sum(x) / C, v = sum((x - m)^2) / C, r = 1 / sqrt(v + eps), n = (x - m) r:
//   y = n weight + bias
// With h = grad weight, the sums over a row (C) or over all rows (R):
//   dx = r (h - sum(h) / C - n sum(h n) / C),  dweight = sum_R(grad n),  dbias = sum_R(grad)
// All sums follow the rule of core/reducers.h, so no bit depends on the number of threads.
namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

using Index = std::int64_t;

constexpr Index kPiece = 512;  // elements of a row that are taken together
constexpr Index kStrip = 32;   // columns of which one thread sums all rows

// A matrix, or a vector as a matrix with one row, in any dtype and strides (in elements).
struct Rows {
  std::byte* data = nullptr;
  DType dtype = kFloat32;
  Index row = 0, col = 0;

  bool defined() const { return data != nullptr; }
};

Rows matrix_of(const View& view) {
  if (!view.defined()) return {};
  return {view.as<std::byte>(), view.dtype, view.layout->strides[0], view.layout->strides[1]};
}

Rows row_of(const View& view) {
  if (!view.defined()) return {};
  return {view.as<std::byte>(), view.dtype, 0, view.layout->strides[0]};
}

Rows column_of(const View& view) {
  if (!view.defined()) return {};
  return {view.as<std::byte>(), view.dtype, view.layout->strides[0], 0};
}

// Elements [c, c + n) of row r: where they lie, or in `buffer`.
template <class T> const T* load(const Rows& rows, Index r, Index c, Index n, T* buffer) {
  visit_floating(rows.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    const E* from = reinterpret_cast<const E*>(rows.data) + r * rows.row + c * rows.col;
    if constexpr (std::is_same_v<E, T>) {
      if (rows.col == 1) {
        buffer = const_cast<T*>(from);
        return;
      }
    }
    if (rows.col == 1) {
      for (Index i = 0; i < n; ++i) buffer[i] = static_cast<T>(from[i]);
    } else {
      for (Index i = 0; i < n; ++i) buffer[i] = static_cast<T>(from[i * rows.col]);
    }
  });
  return buffer;
}

template <class T> void save(const Rows& rows, Index r, Index c, Index n, const T* from) {
  visit_floating(rows.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    E* to = reinterpret_cast<E*>(rows.data) + r * rows.row + c * rows.col;
    if (rows.col == 1) {
      for (Index i = 0; i < n; ++i) to[i] = static_cast<E>(from[i]);
    } else {
      for (Index i = 0; i < n; ++i) to[i * rows.col] = static_cast<E>(from[i]);
    }
  });
}

template <class T> T load_one(const Rows& rows, Index r) {
  T x;
  return *load(rows, r, 0, 1, &x);
}

// The sum of a row that comes in pieces of kPiece.
template <class R, class T> class RowSum {
 public:
  RowSum() { lanes_.start(); }

  void take(const T* x, Index n, T p) {
    lanes_.take(x, n, p);
    in_block_ += n;
    if (in_block_ == fn::kReduceBlock) end_block();
  }

  T sum() {
    if (blocks_ == 0) return lanes_.join();
    if (in_block_ > 0) end_block();
    if (blocks_ == 1) return results_[0];
    return reduce_dense<fn::Sum, T>(results_, fn::kReduceLanes, T(0));
  }

 private:
  static_assert(fn::kReduceBlock % kPiece == 0);

  void end_block() {
    results_[blocks_ % fn::kReduceLanes] += lanes_.join();
    ++blocks_;
    in_block_ = 0;
    lanes_.start();
  }

  Lanes<R, T> lanes_;
  Index in_block_ = 0, blocks_ = 0;
  T results_[fn::kReduceLanes] = {};
};

// Calls use(c, n) for the pieces of a row.
template <class Use> TAPER_INLINE void for_pieces(Index cols, const Use& use) {
  for (Index c = 0; c < cols; c += kPiece) use(c, cols - c < kPiece ? cols - c : kPiece);
}

template <class T> class Forward {
 public:
  Forward(const View& y,
          const View& mean,
          const View& rstd,
          const View& x,
          const View& weight,
          const View& bias,
          double eps)
      : cols_(x.layout->sizes[1]),
        y_(matrix_of(y)),
        mean_(column_of(mean)),
        rstd_(column_of(rstd)),
        x_(matrix_of(x)),
        weight_(row_of(weight)),
        bias_(row_of(bias)),
        eps_(static_cast<T>(eps)) {}

  void row(Index r) const {
    alignas(64) T buffer[kPiece];
    const T count = static_cast<T>(cols_);
    RowSum<fn::Sum, T> sum;
    for_pieces(cols_, [&](Index c, Index n) { sum.take(load(x_, r, c, n, buffer), n, T(0)); });
    const T mean = sum.sum() / count;
    RowSum<fn::SumOfSquares, T> squares;
    for_pieces(cols_, [&](Index c, Index n) { squares.take(load(x_, r, c, n, buffer), n, mean); });
    const T rstd = T(1) / math::sqrt(squares.sum() / count + eps_);
    for_pieces(cols_, [&](Index c, Index n) { write(r, c, n, mean, rstd); });
    save(mean_, r, 0, 1, &mean);
    save(rstd_, r, 0, 1, &rstd);
  }

 private:
  void write(Index r, Index c, Index n, T mean, T rstd) const {
    alignas(64) T buffer[3][kPiece], out[kPiece];
    const T* x = load(x_, r, c, n, buffer[0]);
    for (Index i = 0; i < n; ++i) out[i] = (x[i] - mean) * rstd;
    if (weight_.defined()) {
      const T* weight = load(weight_, 0, c, n, buffer[1]);
      for (Index i = 0; i < n; ++i) out[i] *= weight[i];
    }
    if (bias_.defined()) {
      const T* bias = load(bias_, 0, c, n, buffer[2]);
      for (Index i = 0; i < n; ++i) out[i] += bias[i];
    }
    save(y_, r, c, n, out);
  }

  Index cols_;
  Rows y_, mean_, rstd_, x_, weight_, bias_;
  T eps_;
};

template <class T> class Backward {
 public:
  Backward(const View& grad, const View& x, const View& mean, const View& rstd, const View& weight)
      : rows_(x.layout->sizes[0]),
        cols_(x.layout->sizes[1]),
        grad_(matrix_of(grad)),
        x_(matrix_of(x)),
        mean_(column_of(mean)),
        rstd_(column_of(rstd)),
        weight_(row_of(weight)) {}

  void input_row(const Rows& dx, Index r) const {
    alignas(64) T h[kPiece], normal[kPiece], product[kPiece];
    const T mean = load_one<T>(mean_, r), rstd = load_one<T>(rstd_, r);
    RowSum<fn::Sum, T> sum_h, sum_product;
    for_pieces(cols_, [&](Index c, Index n) {
      weigh(r, c, n, mean, rstd, h, normal);
      for (Index i = 0; i < n; ++i) product[i] = h[i] * normal[i];
      sum_h.take(h, n, T(0));
      sum_product.take(product, n, T(0));
    });
    const T mean_h = sum_h.sum() / static_cast<T>(cols_);
    const T mean_product = sum_product.sum() / static_cast<T>(cols_);
    for_pieces(cols_, [&](Index c, Index n) {
      weigh(r, c, n, mean, rstd, h, normal);
      for (Index i = 0; i < n; ++i) h[i] = rstd * (h[i] - mean_h - normal[i] * mean_product);
      save(dx, r, c, n, h);
    });
  }

  // Columns [c, c + n) of dweight and dbias, n <= kStrip.
  void parameter_strip(const Rows& dweight, const Rows& dbias, Index c, Index n) const {
    alignas(64) T blocks[2][fn::kReduceLanes][kStrip] = {};
    Index count = 0;
    for (Index begin = 0; begin < rows_; begin += fn::kReduceBlock, ++count) {
      alignas(64) T lanes[2][fn::kReduceLanes][kStrip] = {};
      const Index end = rows_ - begin < fn::kReduceBlock ? rows_ : begin + fn::kReduceBlock;
      for (Index r = begin; r < end; ++r) {
        const Index lane = (r - begin) % fn::kReduceLanes;
        take_row(r, c, n, lanes[0][lane], lanes[1][lane]);
      }
      for (int which = 0; which < 2; ++which) {
        join(lanes[which]);
        T* to = blocks[which][count % fn::kReduceLanes];
        for (Index i = 0; i < n; ++i) to[i] += lanes[which][0][i];
      }
    }
    for (int which = 0; which < 2; ++which) {
      if (count > 1) join(blocks[which]);
      const Rows& out = which == 0 ? dweight : dbias;
      if (out.defined()) save(out, 0, c, n, blocks[which][0]);
    }
  }

 private:
  // h = grad weight and n = (x - mean) rstd.
  void weigh(Index r, Index c, Index n, T mean, T rstd, T* h, T* normal) const {
    alignas(64) T buffer[kPiece];
    const T* x = load(x_, r, c, n, buffer);
    for (Index i = 0; i < n; ++i) normal[i] = (x[i] - mean) * rstd;
    const T* grad = load(grad_, r, c, n, buffer);
    for (Index i = 0; i < n; ++i) h[i] = grad[i];
    if (!weight_.defined()) return;
    const T* weight = load(weight_, 0, c, n, buffer);
    for (Index i = 0; i < n; ++i) h[i] *= weight[i];
  }

  void take_row(Index r, Index c, Index n, T* products, T* grads) const {
    T buffer[2][kStrip];
    const T mean = load_one<T>(mean_, r), rstd = load_one<T>(rstd_, r);
    const T* x = load(x_, r, c, n, buffer[0]);
    const T* grad = load(grad_, r, c, n, buffer[1]);
    for (Index i = 0; i < n; ++i) {
      products[i] += grad[i] * ((x[i] - mean) * rstd);
      grads[i] += grad[i];
    }
  }

  static void join(T (*lanes)[kStrip]) {
    for (Index wide = fn::kReduceLanes / 2; wide > 0; wide /= 2) {
      for (Index lane = 0; lane < wide; ++lane) {
        for (Index i = 0; i < kStrip; ++i) lanes[lane][i] += lanes[lane + wide][i];
      }
    }
  }

  Index rows_, cols_;
  Rows grad_, x_, mean_, rstd_, weight_;
};

template <class T>
void backward(const View& dx,
              const View& dweight,
              const View& dbias,
              const Backward<T>& run,
              Index rows,
              Index cols) {
  if (dx.defined()) {
    const Rows out = matrix_of(dx);
    parallel_for(rows, grain_of(4 * cols), [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) run.input_row(out, r);
    });
  }
  if (!dweight.defined() && !dbias.defined()) return;
  const Rows out_weight = row_of(dweight), out_bias = row_of(dbias);
  const Index strips = (cols + kStrip - 1) / kStrip;
  parallel_for(strips, grain_of(2 * kStrip * rows), [&](Index begin, Index end) {
    for (Index strip = begin; strip < end; ++strip) {
      const Index c = strip * kStrip;
      run.parameter_strip(out_weight, out_bias, c, cols - c < kStrip ? cols - c : kStrip);
    }
  });
}

}  // namespace

// Bytes: x from memory once (two more times from the cache), y once. About 8 flops an element.
void layer_norm(const Exec&, Out y, Out mean, Out rstd, In x, In weight, In bias, double eps) {
  const Index rows = x.layout->sizes[0], cols = x.layout->sizes[1];
  const auto run = [&](const auto& forward) {
    parallel_for(rows, grain_of(4 * cols), [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) forward.row(r);
    });
  };
  if (x.dtype == kFloat64) run(Forward<double>(y, mean, rstd, x, weight, bias, eps));
  else run(Forward<float>(y, mean, rstd, x, weight, bias, eps));
}

// Bytes: grad and x once for dx and once for dweight and dbias, dx once.
void layer_norm_grad(
    const Exec&, Out dx, Out dweight, Out dbias, In grad, In x, In mean, In rstd, In weight) {
  const Index rows = x.layout->sizes[0], cols = x.layout->sizes[1];
  if (x.dtype == kFloat64) {
    backward(dx, dweight, dbias, Backward<double>(grad, x, mean, rstd, weight), rows, cols);
  } else {
    backward(dx, dweight, dbias, Backward<float>(grad, x, mean, rstd, weight), rows, cols);
  }
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
