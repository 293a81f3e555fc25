// The rules of every view, as arithmetic on sizes and strides.
#include "taper/core/base/layout.h"

#include "taper/core/base/error.h"

namespace taper {
namespace {

std::int64_t checked_mul(std::int64_t a, std::int64_t b, IntArrayRef sizes) {
  std::int64_t product = 0;
  TAPER_CHECK(!__builtin_mul_overflow(a, b, &product), "sizes ", sizes,
              " have more elements than 64 bits can count");
  return product;
}

void check_ndim(std::size_t ndim) {
  TAPER_CHECK(ndim <= kMaxDims, "a tensor has at most ", kMaxDims, " dims, got ", ndim);
}

}  // namespace

std::int64_t checked_numel(IntArrayRef sizes) {
  std::int64_t n = 1;
  bool empty = false;
  for (const std::int64_t s : sizes) {
    TAPER_CHECK(s >= 0, "sizes ", sizes, " hold a negative number");
    empty = empty || s == 0;
    if (s != 0) n = checked_mul(n, s, sizes);  // so that (0, 2^62, 2^62) has a layout, or throws
  }
  return empty ? 0 : n;
}

Layout contiguous_layout(IntArrayRef sizes, MemoryFormat format) {
  check_ndim(sizes.size());
  checked_numel(sizes);
  Layout out;
  out.ndim = static_cast<std::int32_t>(sizes.size());
  for (int d = 0; d < out.ndim; ++d) out.sizes[d] = sizes[static_cast<std::size_t>(d)];
  std::int64_t stride = 1;
  const auto place = [&](int d) {
    out.strides[d] = stride;
    stride *= out.sizes[d] > 1 ? out.sizes[d] : 1;
  };
  if (format == MemoryFormat::kChannelsLast) {
    TAPER_CHECK(out.ndim == 4, "channels_last needs 4 dims (N, C, H, W), got ", sizes);
    for (const int d : {1, 3, 2, 0}) place(d);
  } else {
    for (int d = out.ndim - 1; d >= 0; --d) place(d);
  }
  return out;
}

bool is_channels_last(const Layout& layout) {
  if (layout.ndim != 4) return false;
  std::int64_t expected = 1;
  for (const int d : {1, 3, 2, 0}) {
    if (layout.sizes[d] == 1) continue;
    if (layout.strides[d] != expected) return layout.numel() == 0;
    expected *= layout.sizes[d];
  }
  return true;
}

namespace {

// Dims of size above 1, by rising |stride|; insertion sort, stable.
SmallVector<int, kMaxDims> by_stride(const Layout& layout) {
  SmallVector<int, kMaxDims> order;
  for (int d = layout.ndim - 1; d >= 0; --d) {
    if (layout.sizes[d] == 1) continue;
    order.push_back(d);
    for (std::size_t k = order.size() - 1; k > 0; --k) {
      const auto size_of = [&](std::size_t i) {
        const std::int64_t s = layout.strides[order[i]];
        return s < 0 ? -s : s;
      };
      if (size_of(k - 1) <= size_of(k)) break;
      std::swap(order[k - 1], order[k]);
    }
  }
  return order;
}

}  // namespace

bool is_dense(const Layout& layout) {
  if (layout.numel() == 0) return true;
  std::int64_t expected = 1;
  for (const int d : by_stride(layout)) {
    if (layout.strides[d] != expected) return false;
    expected *= layout.sizes[d];
  }
  return true;
}

namespace {

// Row-major to the letter, also in the strides of dims of size 1.
bool is_canonical(const Layout& layout) {
  std::int64_t expected = 1;
  for (int d = layout.ndim - 1; d >= 0; --d) {
    if (layout.sizes[d] == 0 || layout.strides[d] != expected) return false;
    expected *= layout.sizes[d];
  }
  return true;
}

}  // namespace

Layout dense_like(const Layout& like) {
  Layout out = like;
  out.offset = 0;
  if (is_canonical(like)) return out;
  out = contiguous_layout(like.shape());
  if (like.is_contiguous() || like.numel() == 0) return out;
  for (int d = 0; d < like.ndim; ++d) {
    if (like.sizes[d] > 1 && like.strides[d] <= 0) return out;  // no order to follow
  }
  std::int64_t stride = 1;
  for (const int d : by_stride(like)) {
    out.strides[d] = stride;
    stride *= like.sizes[d];
  }
  return out;
}

bool may_overlap_itself(const Layout& layout) {
  if (layout.numel() <= 1) return false;
  std::int64_t reach = 0;  // largest offset reachable with the dims so far
  for (const int d : by_stride(layout)) {
    const std::int64_t s = layout.strides[d] < 0 ? -layout.strides[d] : layout.strides[d];
    if (s <= reach) return true;
    reach += s * (layout.sizes[d] - 1);
  }
  return false;
}

Extent extent(const Layout& layout) {
  if (layout.numel() == 0) return {};
  Extent e{layout.offset, layout.offset};
  bool over = false;
  for (int d = 0; d < layout.ndim; ++d) {
    std::int64_t span = 0;
    over |= __builtin_mul_overflow(layout.strides[d], layout.sizes[d] - 1, &span);
    std::int64_t& side = span < 0 ? e.begin : e.end;
    over |= __builtin_add_overflow(side, span, &side);
  }
  over |= __builtin_add_overflow(e.end, 1, &e.end);
  TAPER_CHECK(!over, layout, " reaches further than 64 bits can count");
  return e;
}

void fail_dim(std::int64_t dim, IntArrayRef sizes) {
  const auto n = static_cast<std::int64_t>(sizes.size());
  TAPER_CHECK(n > 0, "a tensor of shape () has no dim ", dim);
  fail(str("dim ", dim, " is outside [", -n, ", ", n - 1, "] of shape ", sizes));
}

int wrap_dim(std::int64_t dim, IntArrayRef sizes) {
  const auto n = sizes.empty() ? 1 : static_cast<std::int64_t>(sizes.size());
  if (dim < -n || dim >= n) fail_dim(dim, sizes);
  return static_cast<int>(dim < 0 ? dim + n : dim);
}

Sizes broadcast_sizes(IntArrayRef a, IntArrayRef b) {
  const std::size_t n = a.size() > b.size() ? a.size() : b.size();
  Sizes out(n);
  for (std::size_t i = 0; i < n; ++i) {  // i counts from the last dim
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    TAPER_CHECK(x == y || x == 1 || y == 1, "shapes ", a, " and ", b, " do not broadcast: dim ",
                static_cast<std::int64_t>(i) * -1 - 1, " is ", x, " and ", y,
                "; they must be equal, or one of them 1");
    out[n - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Layout expand_layout(const Layout& in, IntArrayRef sizes) {
  check_ndim(sizes.size());
  const int added = static_cast<int>(sizes.size()) - in.ndim;
  TAPER_CHECK(added >= 0, "cannot expand ", in.shape(), " to the fewer dims of ", sizes);
  Layout out;
  out.offset = in.offset;
  out.ndim = static_cast<std::int32_t>(sizes.size());
  for (int d = 0; d < out.ndim; ++d) {
    std::int64_t want = sizes[static_cast<std::size_t>(d)];
    if (d < added) {
      TAPER_CHECK(want >= 0, "expand: -1 is not allowed for the new dim ", d, " in ", sizes);
      out.sizes[d] = want;
      continue;  // stride 0
    }
    const std::int64_t have = in.sizes[d - added];
    if (want == -1) want = have;
    TAPER_CHECK(have == want || (have == 1 && want >= 0), "cannot expand ", in.shape(), " to ",
                sizes, ": dim ", d, " is ", have, ", and only a dim of size 1 stretches");
    out.sizes[d] = want;
    out.strides[d] = have == want ? in.strides[d - added] : 0;
  }
  checked_numel(out.shape());
  return out;
}

Layout permute_layout(const Layout& in, IntArrayRef dims) {
  TAPER_CHECK(static_cast<int>(dims.size()) == in.ndim, "permute needs each of the ", in.ndim,
              " dims of ", in.shape(), " once, got ", dims);
  Layout out = in;
  unsigned seen = 0;
  for (int d = 0; d < in.ndim; ++d) {
    const int from = wrap_dim(dims[static_cast<std::size_t>(d)], in.shape());
    TAPER_CHECK((seen >> from & 1U) == 0, "permute names dim ", from, " twice in ", dims);
    seen |= 1U << from;
    out.sizes[d] = in.sizes[from];
    out.strides[d] = in.strides[from];
  }
  return out;
}

Layout transpose_layout(const Layout& in, std::int64_t dim0, std::int64_t dim1) {
  const int a = wrap_dim(dim0, in.shape());
  const int b = wrap_dim(dim1, in.shape());
  Layout out = in;
  std::swap(out.sizes[a], out.sizes[b]);
  std::swap(out.strides[a], out.strides[b]);
  return out;
}

namespace {

void remove_dim(Layout& layout, int d) {
  for (int i = d + 1; i < layout.ndim; ++i) {
    layout.sizes[i - 1] = layout.sizes[i];
    layout.strides[i - 1] = layout.strides[i];
  }
  --layout.ndim;
  layout.sizes[layout.ndim] = layout.strides[layout.ndim] = 0;
}

void insert_dim(Layout& layout, int d, std::int64_t size, std::int64_t stride) {
  check_ndim(static_cast<std::size_t>(layout.ndim) + 1);
  for (int i = layout.ndim; i > d; --i) {
    layout.sizes[i] = layout.sizes[i - 1];
    layout.strides[i] = layout.strides[i - 1];
  }
  ++layout.ndim;
  layout.sizes[d] = size;
  layout.strides[d] = stride;
}

}  // namespace

Layout select_layout(const Layout& in, std::int64_t dim, std::int64_t index) {
  TAPER_CHECK(in.ndim > 0, "a 0-dim tensor cannot be indexed; item() reads its value");
  const int d = wrap_dim(dim, in.shape());
  const std::int64_t n = in.sizes[d];
  TAPER_CHECK(index >= -n && index < n, "index ", index, " is out of range for dim ", d,
              " of size ", n, " of ", in.shape());
  Layout out = in;
  out.offset += (index < 0 ? index + n : index) * in.strides[d];
  remove_dim(out, d);
  return out;
}

Layout slice_layout(const Layout& in,
                    std::int64_t dim,
                    std::optional<std::int64_t> start,
                    std::optional<std::int64_t> stop,
                    std::int64_t step) {
  TAPER_CHECK(in.ndim > 0, "a 0-dim tensor cannot be sliced");
  TAPER_CHECK(step != 0, "slice: the step must not be 0");
  const int d = wrap_dim(dim, in.shape());
  const std::int64_t n = in.sizes[d];
  // Python's rule: forwards the bounds clamp to [0, n], backwards to [-1, n - 1].
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? n : n - 1;
  const auto clamp = [&](std::int64_t i) {
    if (i < 0) i += n;
    return i < low ? low : i > high ? high : i;
  };
  const std::int64_t from = start ? clamp(*start) : (step > 0 ? low : high);
  const std::int64_t to = stop ? clamp(*stop) : (step > 0 ? high : low);
  const std::int64_t span = step > 0 ? to - from : from - to;
  const std::int64_t stride = step > 0 ? step : -step;
  Layout out = in;
  out.sizes[d] = span <= 0 ? 0 : (span - 1) / stride + 1;
  out.offset += (from < 0 ? 0 : from) * in.strides[d];
  std::int64_t scaled = 0;
  if (!__builtin_mul_overflow(in.strides[d], step, &scaled)) out.strides[d] = scaled;
  return out;
}

Layout squeeze_layout(const Layout& in, std::optional<std::int64_t> dim) {
  Layout out = in;
  if (dim) {
    const int d = wrap_dim(*dim, in.shape());
    if (in.ndim > 0 && in.sizes[d] == 1) remove_dim(out, d);
    return out;
  }
  for (int d = in.ndim - 1; d >= 0; --d) {
    if (in.sizes[d] == 1) remove_dim(out, d);
  }
  return out;
}

Layout unsqueeze_layout(const Layout& in, std::int64_t dim) {
  const int n = in.ndim + 1;
  TAPER_CHECK(dim >= -n && dim < n, "a new dim of ", in.shape(), " may stand at [", -n, ", ", n - 1,
              "], not at dim ", dim);
  const int d = static_cast<int>(dim < 0 ? dim + n : dim);
  Layout out = in;
  insert_dim(out, d, 1, d < in.ndim ? in.sizes[d] * in.strides[d] : 1);
  return out;
}

Layout diagonal_layout(const Layout& in,
                       std::int64_t offset,
                       std::int64_t dim0,
                       std::int64_t dim1) {
  const int a = wrap_dim(dim0, in.shape());
  const int b = wrap_dim(dim1, in.shape());
  TAPER_CHECK(in.ndim >= 2 && a != b, "diagonal needs two different dims, got ", dim0, " and ",
              dim1, " of ", in.shape());
  const std::int64_t rows = offset < 0 ? in.sizes[a] + offset : in.sizes[a];
  const std::int64_t cols = offset > 0 ? in.sizes[b] - offset : in.sizes[b];
  const std::int64_t n = rows < cols ? rows : cols;
  Layout out = in;
  if (n > 0) out.offset += offset < 0 ? -offset * in.strides[a] : offset * in.strides[b];
  const std::int64_t stride = in.strides[a] + in.strides[b];
  remove_dim(out, a > b ? a : b);
  remove_dim(out, a > b ? b : a);
  insert_dim(out, out.ndim, n > 0 ? n : 0, stride);
  return out;
}

Layout unfold_layout(const Layout& in, std::int64_t dim, std::int64_t size, std::int64_t step) {
  const int d = wrap_dim(dim, in.shape());
  const std::int64_t n = in.ndim == 0 ? 1 : in.sizes[d];
  TAPER_CHECK(size >= 0 && size <= n, "unfold: the window ", size, " does not fit into dim ", d,
              " of size ", n, " of ", in.shape());
  TAPER_CHECK(step > 0, "unfold: the step must be positive, got ", step);
  Layout out = in;
  const std::int64_t stride = in.ndim == 0 ? 1 : in.strides[d];
  if (in.ndim > 0) {
    out.sizes[d] = (n - size) / step + 1;
    out.strides[d] = stride * step;
  }
  insert_dim(out, out.ndim, size, stride);
  return out;
}

Sizes infer_sizes(IntArrayRef sizes, std::int64_t numel) {
  Sizes out;
  int unknown = -1;
  std::int64_t known = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    out.push_back(sizes[d]);
    if (sizes[d] == -1) {
      TAPER_CHECK(unknown < 0, "only one size may be -1, got ", sizes);
      unknown = static_cast<int>(d);
      continue;
    }
    TAPER_CHECK(sizes[d] >= 0, "sizes ", sizes, " hold a negative number other than -1");
    known = checked_mul(known, sizes[d], sizes);
  }
  if (unknown >= 0) {
    TAPER_CHECK(known != 0, "the -1 in ", sizes, " could be any number beside a size of 0");
    out[static_cast<std::size_t>(unknown)] = numel / known;
    known *= numel / known;
  }
  TAPER_CHECK(known == numel, "shape ", sizes, " does not hold ", numel, " elements");
  return out;
}

std::optional<Layout> view_layout(const Layout& in, IntArrayRef sizes) {
  check_ndim(sizes.size());
  Layout out = contiguous_layout(sizes);
  out.offset = in.offset;
  if (in.numel() == 0) {
    if (in.shape() == sizes) out = in;
    return out;
  }
  int next = out.ndim - 1;  // new dim to place
  std::int64_t run = 1;     // elements of the run of old dims that lie without gaps
  std::int64_t base = 1;    // its innermost stride
  bool open = false;
  for (int d = in.ndim - 1; d >= 0; --d) {
    if (!open) {
      base = in.strides[d];
      open = true;
    }
    run *= in.sizes[d];
    const bool ends = d == 0 || (in.sizes[d - 1] != 1 && in.strides[d - 1] != run * base);
    if (!ends) continue;
    std::int64_t filled = 1;
    while (next >= 0 && (filled < run || out.sizes[next] == 1)) {
      out.strides[next] = filled * base;
      filled *= out.sizes[next];
      --next;
    }
    if (filled != run) return std::nullopt;
    run = 1;
    open = false;
  }
  if (next >= 0 && in.ndim > 0) return std::nullopt;
  return out;
}

void coalesce(Layout* const* layouts, int n) {
  Layout& first = *layouts[0];
  const auto keep = [&](int from, int to) {
    for (int k = 0; k < n; ++k) {
      layouts[k]->sizes[to] = layouts[k]->sizes[from];
      layouts[k]->strides[to] = layouts[k]->strides[from];
    }
  };
  const auto merges = [&](int outer, int inner) {
    for (int k = 0; k < n; ++k) {
      const Layout& l = *layouts[k];
      if (l.strides[outer] != l.strides[inner] * l.sizes[inner]) return false;
    }
    return true;
  };
  int last = -1;
  for (int d = 0; d < first.ndim; ++d) {
    if (first.sizes[d] == 1) continue;
    if (last >= 0 && merges(last, d)) {
      for (int k = 0; k < n; ++k) {
        layouts[k]->sizes[last] *= layouts[k]->sizes[d];
        layouts[k]->strides[last] = layouts[k]->strides[d];
      }
      continue;
    }
    keep(d, ++last);
  }
  for (int k = 0; k < n; ++k) layouts[k]->ndim = last + 1;
}

void append(std::string& out, const Layout& layout) {
  append(out, layout.shape());
  out += " strides ";
  append(out, layout.steps());
  if (layout.offset != 0) out += " offset " + std::to_string(layout.offset);
}

}  // namespace taper
