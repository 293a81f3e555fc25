// Layout: how an index finds its element. Offset, sizes and strides, and the rules of every view.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "taper/core/base/array_ref.h"
#include "taper/core/base/hd.h"

namespace taper {

inline constexpr int kMaxDims = 8;

// LibTorch's names stand beside ours.
enum class MemoryFormat : std::uint8_t {
  kContiguous,
  kChannelsLast,
  kPreserve,
  Contiguous = kContiguous,      // NOLINT(readability-identifier-naming)
  ChannelsLast = kChannelsLast,  // NOLINT(readability-identifier-naming)
  Preserve = kPreserve,          // NOLINT(readability-identifier-naming)
};

// Element (i0, i1, ...) lies at offset + i0 * strides[0] + i1 * strides[1] + ..., in elements.
// Plain data: copied into kernels by value.
struct Layout {
  std::int64_t offset = 0;
  std::int32_t ndim = 0;
  std::int64_t sizes[kMaxDims] = {};
  std::int64_t strides[kMaxDims] = {};

  TAPER_INLINE std::int64_t numel() const {
    std::int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }

  IntArrayRef shape() const { return {sizes, static_cast<std::size_t>(ndim)}; }

  IntArrayRef steps() const { return {strides, static_cast<std::size_t>(ndim)}; }

  // Row-major, without gaps; sizes of 1 may have any stride; true when there is no element.
  TAPER_INLINE bool is_contiguous() const {
    std::int64_t expected = 1;
    for (int d = ndim - 1; d >= 0; --d) {
      if (sizes[d] == 1) continue;
      if (sizes[d] == 0) return true;
      if (strides[d] != expected) return numel() == 0;
      expected *= sizes[d];
    }
    return true;
  }

  friend bool operator==(const Layout& a, const Layout& b) {
    return a.offset == b.offset && a.shape() == b.shape() && a.steps() == b.steps();
  }
};

// Row-major layout of `sizes`. Throws on a negative size, more than 8 dims, or 64-bit overflow.
Layout contiguous_layout(IntArrayRef sizes, MemoryFormat format = MemoryFormat::kContiguous);

// Product of sizes; throws on overflow. Used wherever sizes come from outside.
std::int64_t checked_numel(IntArrayRef sizes);

// NHWC in memory for a 4-d tensor; sizes of 1 may have any stride.
bool is_channels_last(const Layout& layout);

// Each element has an address of its own and together they fill a run of memory.
bool is_dense(const Layout& layout);

// Dense row-major layout of the same sizes whose dims are ordered as `like`'s strides are.
Layout dense_like(const Layout& like);

// Some address may be reached by two indices (stride 0 over a size above 1 always).
bool may_overlap_itself(const Layout& layout);

// First and one-past-last element offset that the layout touches; {0, 0} when it has none. Throws
// when 64 bits cannot hold them.
struct Extent {
  std::int64_t begin = 0, end = 0;
};

Extent extent(const Layout& layout);

// `dim` in [-ndim, ndim) as a number in [0, ndim), ndim being the number of sizes; a 0-dim tensor
// takes -1 and 0. Throws.
int wrap_dim(std::int64_t dim, IntArrayRef sizes);
int wrap_dim(std::int64_t dim, int ndim) = delete;  // a number would pass for a shape of one dim
[[noreturn]] void fail_dim(std::int64_t dim, IntArrayRef sizes);  // "dim 2 is outside [-2, 1] ..."

// The shape both operands stretch to, numpy's rule. Throws, naming both.
Sizes broadcast_sizes(IntArrayRef a, IntArrayRef b);

// The views. Each takes a layout and returns that of the view over the same storage; all throw.
Layout expand_layout(const Layout& in, IntArrayRef sizes);  // stride 0 on stretched dims
Layout permute_layout(const Layout& in, IntArrayRef dims);
Layout transpose_layout(const Layout& in, std::int64_t dim0, std::int64_t dim1);
Layout select_layout(const Layout& in, std::int64_t dim, std::int64_t index);
// start and stop clamp as Python's do; a negative step walks backwards from start.
Layout slice_layout(const Layout& in,
                    std::int64_t dim,
                    std::optional<std::int64_t> start,
                    std::optional<std::int64_t> stop,
                    std::int64_t step);
Layout squeeze_layout(const Layout& in, std::optional<std::int64_t> dim);
Layout unsqueeze_layout(const Layout& in, std::int64_t dim);
Layout diagonal_layout(const Layout& in, std::int64_t offset, std::int64_t dim0, std::int64_t dim1);
Layout unfold_layout(const Layout& in, std::int64_t dim, std::int64_t size, std::int64_t step);
// Replaces one -1 by the size that fits. Throws when none or several do.
Sizes infer_sizes(IntArrayRef sizes, std::int64_t numel);
// The strides that give `sizes` over the same elements in the same order, if any (PyTorch's rule:
// old dims are cut into runs that lie without gaps; new dims must tile each run).
std::optional<Layout> view_layout(const Layout& in, IntArrayRef sizes);

// Drops dims of size 1 and merges neighbours that lie as one in all `n` layouts, whose sizes are
// equal. Keeps the order of dims. Kernels loop over fewer, longer dims afterwards.
void coalesce(Layout* const* layouts, int n);

void append(std::string& out, const Layout& layout);  // "(2, 3) strides (3, 1) offset 0"

}  // namespace taper
