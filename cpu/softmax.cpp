// Softmax, its logarithm, and their gradients. 1 or 2 reads, 1 write, one exponential an element.
#include "taper/cpu/lanes.h"
#include "taper/cpu/line_io.h"
#include "taper/cpu/strip.h"

// Note [Softmax]
// m = max(x), e[i] = exp(x[i] - m), s = sum(e) by the rule of core/reducers.h.
//   softmax       y[i] = e[i] / s
//   log_softmax   y[i] = (x[i] - m) - log(s)
//   softmax_grad      t = sum(grad y), by the same rule: dx[i] = (grad[i] - t) y[i]
//   log_softmax_grad  t = sum(grad):                     dx[i] = grad[i] - exp(y[i]) t
// All in f32, or in f64 for f64.
namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

constexpr std::int64_t kKept = 8 * kBlock;  // exponentials of a line kept on the stack
constexpr std::int64_t kKeptRows = 64;      // rows of a strip kept there

template <class T> T max_of(const T* x, std::int64_t n, T before) {
  return fn::Max::join(before, reduce_dense<fn::Max>(x, n, T(0)));
}

template <class T> void exp_row(T* e, const T* x, std::int64_t n, T max) {
  for (std::int64_t i = 0; i < n; ++i) e[i] = math::exp(x[i] - max);
}

template <bool kLog, class T> void normalise(T* y, const T* x, std::int64_t n, T max, T sum) {
  if constexpr (kLog) {
    const T log_sum = math::log(sum);
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - max) - log_sum;
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] / sum;
  }
}

// Calls piece(first, n) for [0, length), kBlock elements at a time.
template <class Piece> TAPER_INLINE void for_each_piece(std::int64_t length, const Piece& piece) {
  for (std::int64_t first = 0; first < length; first += kBlock) {
    piece(first, length - first < kBlock ? length - first : kBlock);
  }
}

// The exponentials are left in the output, or on the stack, or else taken twice.
template <class T>
void softmax_line(const LineIo<T>& in,
                  const LineIo<T>& out,
                  std::byte* from,
                  std::byte* to,
                  T max,
                  std::int64_t length) {
  alignas(64) T buffer[kBlock];
  alignas(64) T kept[kKept];
  const bool stays = out.is_direct() || length <= kKept;
  const auto place = [&](std::int64_t first) {
    if (out.is_direct()) return out.at(to, first);
    return length <= kKept ? kept + first : buffer;
  };
  BlockSum<T> sums;
  for_each_piece(length, [&](std::int64_t first, std::int64_t n) {
    T* e = place(first);
    exp_row(e, in.load(buffer, from, first, n), n, max);
    sums.take(e, n);
  });
  const T sum = sums.join();
  for_each_piece(length, [&](std::int64_t first, std::int64_t n) {
    T* e = place(first);
    if (!stays) exp_row(e, in.load(buffer, from, first, n), n, max);
    normalise<false>(e, e, n, max, sum);
    out.store(e, to, first, n);
  });
}

template <class T>
void log_softmax_line(const LineIo<T>& in,
                      const LineIo<T>& out,
                      std::byte* from,
                      std::byte* to,
                      T max,
                      std::int64_t length) {
  alignas(64) T buffer[kBlock];
  alignas(64) T e[kBlock];
  BlockSum<T> sums;
  for_each_piece(length, [&](std::int64_t first, std::int64_t n) {
    exp_row(e, in.load(buffer, from, first, n), n, max);
    sums.take(e, n);
  });
  const T sum = sums.join();
  for_each_piece(length, [&](std::int64_t first, std::int64_t n) {
    T* y = out.is_direct() ? out.at(to, first) : e;
    normalise<true>(y, in.load(buffer, from, first, n), n, max, sum);
    out.store(y, to, first, n);
  });
}

template <bool kLog, class T>
void softmax_lines(const Lines& lines, std::int64_t begin, std::int64_t end) {
  const LineIo<T> in(lines.operands[1]), out(lines.operands[0]);
  LineCursor cursor(lines, begin);
  for (std::int64_t i = begin; i < end; ++i, cursor.next()) {
    std::byte* from = cursor.base(1);
    alignas(64) T buffer[kBlock];
    T max = fn::Max::identity<T>();
    for_each_piece(lines.length, [&](std::int64_t first, std::int64_t n) {
      max = max_of(in.load(buffer, from, first, n), n, max);
    });
    if constexpr (kLog) log_softmax_line(in, out, from, cursor.base(0), max, lines.length);
    else softmax_line(in, out, from, cursor.base(0), max, lines.length);
  }
}

// Neighbouring lines side by side, in rows of one element of each. What is a number of a line above
// is a row here.
template <bool kLog, class T> class SoftmaxStrip {
 public:
  SoftmaxStrip(const Lines& lines, std::int64_t first, std::int64_t width)
      : out_row_(across(lines, 0)),
        in_row_(across(lines, 1)),
        out_(out_row_),
        in_(in_row_),
        length_(lines.length),
        width_(width),
        to_step_(lines.operands[0].step),
        from_step_(lines.operands[1].step),
        keeps_(length_ <= kKeptRows) {
    const LineCursor cursor(lines, first);
    to_ = cursor.base(0);
    from_ = cursor.base(1);
  }

  void run() {
    find_max();
    static constexpr T kNone[kWidth] = {};
    alignas(64) T sum[kWidth];
    Strip<fn::Sum, T> lanes;
    lanes.start(width_, length_);
    for (std::int64_t i = 0; i < length_; ++i) lanes.take(exponentials(i), i, kNone);
    lanes.join(sum);
    if constexpr (kLog) {
      for (std::int64_t j = 0; j < width_; ++j) sum[j] = math::log(sum[j]);
    }
    for (std::int64_t i = 0; i < length_; ++i) finish(i, sum);
  }

 private:
  static constexpr auto kWidth = static_cast<std::size_t>(kStripWidth<T>);

  void find_max() {
    for (std::int64_t j = 0; j < width_; ++j) max_[j] = fn::Max::identity<T>();
    for (std::int64_t i = 0; i < length_; ++i) {
      if (keeps_) in_.copy_in(kept_[i], from_ + i * from_step_, 0, width_);
      const T* x = row(i);
      for (std::int64_t j = 0; j < width_; ++j) max_[j] = fn::Max::join(max_[j], x[j]);
    }
  }

  const T* row(std::int64_t i) {
    return keeps_ ? kept_[i] : in_.load(buffer_, from_ + i * from_step_, 0, width_);
  }

  // Row i of e, left where finish finds it, if there is such a place.
  const T* exponentials(std::int64_t i) {
    const T* x = row(i);
    T* e = e_;
    if (!kLog && keeps_) e = kept_[i];
    else if (!kLog && out_.is_direct()) e = out_.at(to_ + i * to_step_, 0);
    for (std::int64_t j = 0; j < width_; ++j) e[j] = math::exp(x[j] - max_[j]);
    return e;
  }

  void finish(std::int64_t i, const T* sum) {
    std::byte* to = to_ + i * to_step_;
    if constexpr (kLog) {
      const T* x = row(i);
      for (std::int64_t j = 0; j < width_; ++j) e_[j] = (x[j] - max_[j]) - sum[j];
    } else {
      const T* e = keeps_ ? kept_[i] : out_.is_direct() ? out_.at(to, 0) : exponentials(i);
      for (std::int64_t j = 0; j < width_; ++j) e_[j] = e[j] / sum[j];
    }
    out_.store(e_, to, 0, width_);
  }

  const Line out_row_, in_row_;
  const LineIo<T> out_, in_;
  const std::int64_t length_, width_, to_step_, from_step_;
  const bool keeps_;
  std::byte *to_, *from_;
  alignas(64) T max_[kWidth];
  alignas(64) T buffer_[kWidth];
  alignas(64) T e_[kWidth];
  alignas(64) T kept_[kKeptRows][kWidth];
};

template <bool kLog, class T> void forward(const Lines& lines) {
  if (go_side_by_side(lines, 1) && lines.length <= fn::kReduceBlock) {
    return for_each_strip(lines, kStripWidth<T>, 8, [&](std::int64_t first, std::int64_t width) {
      SoftmaxStrip<kLog, T>(lines, first, width).run();
    });
  }
  parallel_for(lines.count, grain_of(8 * lines.length), [&](std::int64_t begin, std::int64_t end) {
    softmax_lines<kLog, T>(lines, begin, end);
  });
}

// What each piece of a line adds to its t, and then its gradient.
template <bool kLog, class T>
TAPER_INLINE void terms(T* out, const T* g, const T* y, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) out[j] = kLog ? g[j] : g[j] * y[j];
}

template <bool kLog, class T> TAPER_INLINE T gradient(T g, T y, T t) {
  return kLog ? g - math::exp(y) * t : (g - t) * y;
}

template <bool kLog, class T>
void grad_lines(const Lines& lines, std::int64_t begin, std::int64_t end) {
  const LineIo<T> out(lines.operands[0]), grad(lines.operands[1]), y(lines.operands[2]);
  alignas(64) T dx[kBlock];
  alignas(64) T grads[kBlock];
  alignas(64) T ys[kBlock];
  LineCursor cursor(lines, begin);
  for (std::int64_t i = begin; i < end; ++i, cursor.next()) {
    BlockSum<T> sums;
    for_each_piece(lines.length, [&](std::int64_t first, std::int64_t n) {
      terms<kLog>(dx, grad.load(grads, cursor.base(1), first, n),
                  y.load(ys, cursor.base(2), first, n), n);
      sums.take(dx, n);
    });
    const T t = sums.join();
    for_each_piece(lines.length, [&](std::int64_t first, std::int64_t n) {
      const T* g = grad.load(grads, cursor.base(1), first, n);
      const T* v = y.load(ys, cursor.base(2), first, n);
      for (std::int64_t j = 0; j < n; ++j) dx[j] = gradient<kLog>(g[j], v[j], t);
      out.store(dx, cursor.base(0), first, n);
    });
  }
}

template <bool kLog, class T>
void grad_strip(const Lines& lines, const LineCursor& cursor, std::int64_t width) {
  constexpr auto kWidth = static_cast<std::size_t>(kStripWidth<T>);
  static constexpr T kNone[kWidth] = {};
  const Line rows[] = {across(lines, 0), across(lines, 1), across(lines, 2)};
  const LineIo<T> out(rows[0]), grad(rows[1]), y(rows[2]);
  alignas(64) T dx[kWidth];
  alignas(64) T grads[kWidth];
  alignas(64) T ys[kWidth];
  alignas(64) T t[kWidth];
  const auto at = [&](int k, std::int64_t i) {
    return cursor.base(k) + i * lines.operands[k].step;
  };
  Strip<fn::Sum, T> lanes;
  lanes.start(width, lines.length);
  for (std::int64_t i = 0; i < lines.length; ++i) {
    terms<kLog>(dx, grad.load(grads, at(1, i), 0, width), y.load(ys, at(2, i), 0, width), width);
    lanes.take(dx, i, kNone);
  }
  lanes.join(t);
  for (std::int64_t i = 0; i < lines.length; ++i) {
    const T* g = grad.load(grads, at(1, i), 0, width);
    const T* v = y.load(ys, at(2, i), 0, width);
    for (std::int64_t j = 0; j < width; ++j) dx[j] = gradient<kLog>(g[j], v[j], t[j]);
    out.store(dx, at(0, i), 0, width);
  }
}

template <bool kLog, class T> void backward(const Lines& lines) {
  const int cost = kLog ? 8 : 2;
  if (go_side_by_side(lines, 2) && lines.length <= fn::kReduceBlock) {
    return for_each_strip(lines, kStripWidth<T>, cost, [&](std::int64_t first, std::int64_t width) {
      grad_strip<kLog, T>(lines, LineCursor(lines, first), width);
    });
  }
  parallel_for(
      lines.count, grain_of(cost * lines.length),
      [&](std::int64_t begin, std::int64_t end) { grad_lines<kLog, T>(lines, begin, end); });
}

template <bool kLog> void softmax_in(const View& out, const View& in, int dim) {
  const View* const views[] = {&out, &in};
  const Lines lines = lines_along(dim, views, 2);
  if (lines.length == 0 || lines.count == 0) return;
  const DType dtype = computed(in.dtype);
  if (dtype == kFloat64) return forward<kLog, double>(lines);
  if (dtype == kFloat32) return forward<kLog, float>(lines);
  fail_dtype("a floating-point", info(in.dtype).name);
}

template <bool kLog> void grad_in(const View& out, const View& grad, const View& y, int dim) {
  const View* const views[] = {&out, &grad, &y};
  const Lines lines = lines_along(dim, views, 3);
  if (lines.length == 0 || lines.count == 0) return;
  const DType dtype = computed(y.dtype);
  if (dtype == kFloat64) return backward<kLog, double>(lines);
  if (dtype == kFloat32) return backward<kLog, float>(lines);
  fail_dtype("a floating-point", info(y.dtype).name);
}

}  // namespace

void softmax(const Exec&, Out out, In in, int dim) {
  softmax_in<false>(out, in, dim);
}

void log_softmax(const Exec&, Out out, In in, int dim) {
  softmax_in<true>(out, in, dim);
}

void softmax_grad(const Exec&, Out out, In grad, In y, int dim) {
  grad_in<false>(out, grad, y, dim);
}

void log_softmax_grad(const Exec&, Out out, In grad, In y, int dim) {
  grad_in<true>(out, grad, y, dim);
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
