// Loading and storing pieces of lines as the type that a kernel computes in.
#pragma once
#include "taper/core/reducers.h"
#include "taper/cpu/elementwise.h"
#include "taper/cpu/lines.h"
#include "taper/cpu/parallel.h"

namespace taper::cpu {
inline namespace TAPER_ISA {

// The dtype whose elements are T; u64, which sums of integers wrap around in, stands for i64.
template <class T> TAPER_INLINE constexpr DType stored_as() {
  if constexpr (std::is_same_v<T, std::uint64_t>) return kInt64;
  else return dtype_of<T>();
}

// n, here, is at most kBlock.
template <class T> class LineIo {
 public:
  explicit LineIo(const Line& line)
      : line_(line),
        is_stored_as_t_(line.dtype == stored_as<T>()),
        in_(converter(stored_as<T>(), line.dtype)),
        out_(converter(line.dtype, stored_as<T>())) {}

  // Whether pieces can be used where they lie.
  bool is_direct() const { return is_stored_as_t_ && line_.is_dense(); }

  T* at(std::byte* base, std::int64_t first) const {
    return reinterpret_cast<T*>(base + first * line_.step);
  }

  // Elements [first, first + n) of the line at `base`: where they lie, or copied to `buffer`.
  const T* load(T* buffer, std::byte* base, std::int64_t first, std::int64_t n) const {
    if (is_direct()) return at(base, first);
    copy_in(buffer, base, first, n);
    return buffer;
  }

  void copy_in(T* values, std::byte* base, std::int64_t first, std::int64_t n) const {
    alignas(64) std::byte stored[kBlock * 8];
    void* dense = base + first * line_.step;
    if (!line_.is_dense()) {
      pack(stored, {static_cast<std::byte*>(dense), line_.starts.size, {line_.step}},
           Cursor(1, &n, 0), n);
      dense = stored;
    }
    in_(values, dense, n);
  }

  // Nothing to do where `values` already is the place.
  void store(const T* values, std::byte* base, std::int64_t first, std::int64_t n) const {
    alignas(64) std::byte stored[kBlock * 8];
    std::byte* target = base + first * line_.step;
    if (line_.is_dense()) {
      if (reinterpret_cast<const std::byte*>(values) != target) out_(target, values, n);
      return;
    }
    out_(stored, values, n);
    unpack({target, line_.starts.size, {line_.step}}, stored, Cursor(1, &n, 0), n);
  }

 private:
  const Line& line_;
  bool is_stored_as_t_;
  ConvertFn in_, out_;
};

// Calls strip(first, n) for strips of n <= width neighbouring lines, `first` being the number of
// the first. `cost` is the work of one element, in additions.
template <class Fn>
TAPER_INLINE void for_each_strip(const Lines& lines,
                                 std::int64_t width,
                                 std::int64_t cost,
                                 const Fn& strip) {
  const std::int64_t columns = lines.sizes[lines.ndim - 1], strips = (columns - 1) / width + 1;
  const std::int64_t work = cost * lines.length * (columns < width ? columns : width);
  parallel_for(lines.count / columns * strips, grain_of(work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t column = i % strips * width, left = columns - column;
                   strip(i / strips * columns + column, left < width ? left : width);
                 }
               });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
