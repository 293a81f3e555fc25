// Running sums and products along one dim. 1 read, 1 write, two operations an element.
#include "taper/cpu/line_io.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

constexpr std::int64_t kColumns = 64;  // scanned side by side

// The rule is in core/reducers.h, Note [Running sums].
template <class R, class T>
void scan_line(const LineIo<T>& out,
               const LineIo<T>& in,
               std::byte* to,
               std::byte* from,
               std::int64_t length) {
  static_assert(fn::kScanBlock <= kBlock);
  alignas(64) T buffer[fn::kScanBlock];
  alignas(64) T y[fn::kScanBlock];
  T before = R::template identity<T>();
  for (std::int64_t first = 0; first < length; first += fn::kScanBlock) {
    const std::int64_t n = length - first < fn::kScanBlock ? length - first : fn::kScanBlock;
    const T* x = in.load(buffer, from, first, n);
    T running = x[0];
    y[0] = running;
    for (std::int64_t i = 1; i < n; ++i) y[i] = running = R::join(running, x[i]);
    if (first > 0) {
      for (std::int64_t i = 0; i < n; ++i) y[i] = R::join(before, y[i]);
    }
    before = y[n - 1];
    out.store(y, to, first, n);
  }
}

// `width` neighbouring lines at a time, by rows of one element of each.
template <class R, class T>
void scan_columns(const Lines& lines, const LineCursor& cursor, std::int64_t width) {
  const Line out_row = across(lines, 0), in_row = across(lines, 1);
  const LineIo<T> out(out_row), in(in_row);
  alignas(64) T buffer[kColumns];
  alignas(64) T running[kColumns];
  alignas(64) T before[kColumns];
  alignas(64) T y[kColumns] = {};
  std::byte *to = cursor.base(0), *from = cursor.base(1);
  for (std::int64_t i = 0; i < lines.length; ++i) {
    const T* x = in.load(buffer, from, 0, width);
    if (i % fn::kScanBlock == 0) {
      for (std::int64_t j = 0; j < width; ++j) before[j] = y[j];
      for (std::int64_t j = 0; j < width; ++j) running[j] = x[j];
    } else {
      for (std::int64_t j = 0; j < width; ++j) running[j] = R::join(running[j], x[j]);
    }
    for (std::int64_t j = 0; j < width; ++j) {
      y[j] = i < fn::kScanBlock ? running[j] : R::join(before[j], running[j]);
    }
    out.store(y, to, 0, width);
    to += lines.operands[0].step;
    from += lines.operands[1].step;
  }
}

template <class R, class T> void scan_in(const Lines& lines) {
  if (go_side_by_side(lines, 1)) {
    return for_each_strip(lines, kColumns, 2, [&](std::int64_t first, std::int64_t width) {
      scan_columns<R, T>(lines, LineCursor(lines, first), width);
    });
  }
  parallel_for(lines.count, grain_of(2 * lines.length), [&](std::int64_t begin, std::int64_t end) {
    const LineIo<T> out_io(lines.operands[0]), in_io(lines.operands[1]);
    LineCursor cursor(lines, begin);
    for (std::int64_t i = begin; i < end; ++i, cursor.next()) {
      scan_line<R>(out_io, in_io, cursor.base(0), cursor.base(1), lines.length);
    }
  });
}

template <class R> void scan(const View& out, const View& in, int dim) {
  const View* const views[] = {&out, &in};
  const Lines lines = lines_along(dim, views, 2);
  if (lines.length == 0 || lines.count == 0) return;
  const DType dtype = computed(out.dtype);
  if (dtype == kFloat64) return scan_in<R, double>(lines);
  if (dtype == kFloat32) return scan_in<R, float>(lines);
  scan_in<R, std::uint64_t>(lines);
}

}  // namespace

void cumsum(const Exec&, Out out, In in, int dim) {
  scan<fn::Sum>(out, in, dim);
}

void cumprod(const Exec&, Out out, In in, int dim) {
  scan<fn::Prod>(out, in, dim);
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
