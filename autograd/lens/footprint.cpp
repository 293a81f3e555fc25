// Compares where views lie, run by run, without looking at each.
#include "taper/autograd/lens/footprint.h"

#include <algorithm>
#include <numeric>

namespace taper::lens {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

// Note [Do two views meet]
// Both are sums of steps, the longest first. A dim is tried step by step, but only where the rest
// of it can reach the other view at all. Where the longest strides are equal, as they are in two
// views of one tensor, only the difference of the two steps matters, and few differences reach.
// Columns that interleave are told apart at once: all steps are multiples of one number, and modulo
// that number the runs lie apart.
class Meeting {
 public:
  Meeting(const Footprint& a, const Footprint& b) : a_(a), b_(b) {}

  // Of what is left from the dims i and j on; b's part begins `shift` bytes after a's.
  bool search(int i, int j, std::int64_t shift) {
    if (steps_left_-- <= 0) return true;
    if (shift >= span(a_, i) || shift + span(b_, j) <= 0) return false;
    if (i == a_.ndim && j == b_.ndim) return true;
    if (interleave(i, j, shift)) return false;
    const std::int64_t in_a = i < a_.ndim ? a_.dims[i].stride : 0;
    const std::int64_t in_b = j < b_.ndim ? b_.dims[j].stride : 0;
    const std::int64_t stride = std::max(in_a, in_b);
    std::int64_t low = 0, high = 0;  // steps of b less those of a
    if (in_a == stride) low = 1 - a_.dims[i++].count;
    if (in_b == stride) high = b_.dims[j++].count - 1;
    low = std::max(low, floor_div(-span(b_, j) - shift, stride) + 1);
    high = std::min(high, floor_div(span(a_, i) - 1 - shift, stride));
    for (std::int64_t k = low; k <= high; ++k) {
      if (search(i, j, shift + k * stride)) return true;
    }
    return false;
  }

 private:
  static std::int64_t span(const Footprint& f, int from) {
    std::int64_t bytes = f.run;
    for (int d = from; d < f.ndim; ++d) bytes += (f.dims[d].count - 1) * f.dims[d].stride;
    return bytes;
  }

  bool interleave(int i, int j, std::int64_t shift) const {
    std::int64_t step = 0;
    for (int d = i; d < a_.ndim; ++d) step = std::gcd(step, a_.dims[d].stride);
    for (int d = j; d < b_.ndim; ++d) step = std::gcd(step, b_.dims[d].stride);
    const std::int64_t at = shift - floor_div(shift, step) * step;
    return at >= a_.run && at + b_.run <= step;
  }

  const Footprint &a_, &b_;
  int steps_left_ = 10000;
};

}  // namespace

Footprint footprint(const View& view) {
  Footprint f;
  if (!view.defined() || view.data == nullptr) return f;
  const Layout& layout = *view.layout;
  const std::int64_t size = element_size(view.dtype);
  Footprint::Dim dims[kMaxDims];
  int count = 0;
  std::int64_t first = 0;  // bytes from the first element to the lowest one
  for (int d = 0; d < layout.ndim; ++d) {
    if (layout.sizes[d] == 0 && layout.strides[d] != 0) return f;
    if (layout.sizes[d] <= 1 || layout.strides[d] == 0) continue;
    const std::int64_t stride = layout.strides[d] * size;
    if (stride < 0) first += (layout.sizes[d] - 1) * stride;
    const Footprint::Dim dim{layout.sizes[d], stride < 0 ? -stride : stride};
    int at = count++;  // the shortest stride first
    for (; at > 0 && dims[at - 1].stride > dim.stride; --at) dims[at] = dims[at - 1];
    dims[at] = dim;
  }
  f.run = size;
  std::int64_t span = size;
  for (int d = 0; d < count; ++d) {
    const auto [n, stride] = dims[d];
    span += (n - 1) * stride;
    if (f.ndim == 0 && stride <= f.run) {
      f.run = span;
    } else if (f.ndim > 0 && stride == f.dims[f.ndim - 1].count * f.dims[f.ndim - 1].stride) {
      f.dims[f.ndim - 1].count *= n;
    } else {
      f.dims[f.ndim++] = dims[d];
    }
  }
  std::reverse(f.dims, f.dims + f.ndim);
  f.begin = reinterpret_cast<std::uintptr_t>(view.data) + static_cast<std::uintptr_t>(first);
  f.end = f.begin + static_cast<std::uintptr_t>(span);
  return f;
}

bool meet(const Footprint& a, const Footprint& b) {
  if (a.begin >= b.end || b.begin >= a.end) return false;
  return Meeting(a, b).search(0, 0, static_cast<std::int64_t>(b.begin - a.begin));
}

bool covers(const Footprint& a, const Footprint& b) {
  if (a.ndim == 0) return a.begin <= b.begin && b.end <= a.end;
  if (a.begin != b.begin || a.run < b.run || a.ndim != b.ndim) return false;
  return std::equal(a.dims, a.dims + a.ndim, b.dims, [](const auto& x, const auto& y) {
    return x.stride == y.stride && x.count >= y.count;
  });
}

}  // namespace taper::lens
