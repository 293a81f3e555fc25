// Softmax, its logarithm, and their gradients. 1 or 2 reads, 1 write, one exponential an element.
#include "taper/cpu/lanes.h"
#include "taper/cpu/line_io.h"
#include "taper/cpu/parallel.h"

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

constexpr std::int64_t kShortLine = kBlock / 2;  // several of these share a block
constexpr std::int64_t kKept = 4 * kBlock;       // exponentials kept on the stack

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

// Lines of up to kShortLine elements, several at a time: their exponentials are one loop.
template <bool kLog, class T> class ShortLines {
 public:
  ShortLines(const Lines& lines) : lines_(lines), in_(lines.operands[1]), out_(lines.operands[0]) {}

  void run(std::int64_t begin, std::int64_t end) {
    LineCursor from(lines_, begin), to(lines_, begin);
    const std::int64_t length = lines_.length, most = kBlock / length;
    for (std::int64_t i = begin; i < end; i += most) {
      const std::int64_t n = end - i < most ? end - i : most;
      for (std::int64_t k = 0; k < n; ++k, from.next()) {
        T* x = x_ + k * length;
        in_.copy_in(x, from.base(1), 0, length);
        const T max = max_of(x, length, fn::Max::identity<T>());
        for (std::int64_t j = 0; j < length; ++j) x[j] = x[j] - max;
      }
      exp_row(e_, x_, n * length, T(0));
      for (std::int64_t k = 0; k < n; ++k, to.next()) {
        T* e = e_ + k * length;
        const T sum = reduce_dense<fn::Sum>(e, length, T(0));
        normalise<kLog>(e, kLog ? x_ + k * length : e, length, T(0), sum);
        out_.store(e, to.base(0), 0, length);
      }
    }
  }

 private:
  const Lines& lines_;
  LineIo<T> in_, out_;
  alignas(64) T x_[kBlock];
  alignas(64) T e_[kBlock];
};

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
void long_lines(const Lines& lines, std::int64_t begin, std::int64_t end) {
  const LineIo<T> in(lines.operands[1]), out(lines.operands[0]);
  LineCursor cursor(lines, begin);
  for (std::int64_t i = begin; i < end; ++i, cursor.next()) {
    std::byte* from = cursor.base(1);
    T max = fn::Max::identity<T>();
    for_each_piece(lines.length, [&](std::int64_t first, std::int64_t n) {
      alignas(64) T buffer[kBlock];
      max = max_of(in.load(buffer, from, first, n), n, max);
    });
    if constexpr (kLog) log_softmax_line(in, out, from, cursor.base(0), max, lines.length);
    else softmax_line(in, out, from, cursor.base(0), max, lines.length);
  }
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
      const T* g = grad.load(grads, cursor.base(1), first, n);
      if constexpr (kLog) return sums.take(g, n);
      const T* v = y.load(ys, cursor.base(2), first, n);
      for (std::int64_t j = 0; j < n; ++j) dx[j] = g[j] * v[j];
      sums.take(dx, n);
    });
    const T t = sums.join();
    for_each_piece(lines.length, [&](std::int64_t first, std::int64_t n) {
      const T* g = grad.load(grads, cursor.base(1), first, n);
      const T* v = y.load(ys, cursor.base(2), first, n);
      for (std::int64_t j = 0; j < n; ++j)
        dx[j] = kLog ? g[j] - math::exp(v[j]) * t : (g[j] - t) * v[j];
      out.store(dx, cursor.base(0), first, n);
    });
  }
}

template <bool kLog, class T> void forward(const Lines& lines) {
  parallel_for(lines.count, grain_of(8 * lines.length), [&](std::int64_t begin, std::int64_t end) {
    if (lines.length <= kShortLine) ShortLines<kLog, T>(lines).run(begin, end);
    else long_lines<kLog, T>(lines, begin, end);
  });
}

template <bool kLog, class T> void backward(const Lines& lines) {
  parallel_for(
      lines.count, grain_of((kLog ? 8 : 2) * lines.length),
      [&](std::int64_t begin, std::int64_t end) { grad_lines<kLog, T>(lines, begin, end); });
}

template <bool kLog> void softmax_in(const View& out, const View& in, int dim) {
  const View* const views[] = {&out, &in};
  const Lines lines = lines_along(dim, views, 2);
  if (lines.length == 0) return;
  const DType dtype = computed(in.dtype);
  if (dtype == kFloat64) return forward<kLog, double>(lines);
  if (dtype == kFloat32) return forward<kLog, float>(lines);
  fail_dtype("a floating-point", info(in.dtype).name);
}

template <bool kLog> void grad_in(const View& out, const View& grad, const View& y, int dim) {
  const View* const views[] = {&out, &grad, &y};
  const Lines lines = lines_along(dim, views, 3);
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
