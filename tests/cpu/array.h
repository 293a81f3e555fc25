// Strided arrays of any dtype, built by hand, for tests that call kernels below the tensor.
#pragma once
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "taper/core/threads.h"
#include "taper/cpu/dispatch.h"

namespace taper::testing {

// How an array lies in memory.
enum class Form { kContiguous, kTransposed, kSliced, kReversed, kExpanded };

inline constexpr Form kForms[] = {Form::kContiguous, Form::kTransposed, Form::kSliced,
                                  Form::kReversed, Form::kExpanded};
inline constexpr Form kOutForms[] = {Form::kContiguous, Form::kTransposed, Form::kSliced};

inline const char* name(Form form) {
  constexpr const char* kNames[] = {"contiguous", "transposed", "sliced", "reversed", "expanded"};
  return kNames[static_cast<int>(form)];
}

inline constexpr DType kDTypes[] = {kFloat64, kFloat32, kFloat16, kBFloat16,
                                    kInt64,   kInt32,   kUInt8,   kBool};
inline constexpr DType kFloating[] = {kFloat64, kFloat32, kFloat16, kBFloat16};

// Memory that is not the array's holds kPad, and must go on holding it.
class Array {
 public:
  Array(DType dtype, const std::vector<std::int64_t>& sizes, Form form = Form::kContiguous)
      : dtype_(dtype), layout_(contiguous_layout(sizes)) {
    const int last = layout_.ndim - 1;
    if (form == Form::kTransposed && last >= 1) {
      Layout other = layout_;
      for (int d = 0; d <= last; ++d) other.sizes[d] = layout_.sizes[last - d];
      other = contiguous_layout(other.shape());
      for (int d = 0; d <= last; ++d) layout_.strides[d] = other.strides[last - d];
    } else if (form == Form::kExpanded && last >= 0) {
      layout_.strides[0] = 0;
    } else if (form == Form::kSliced || form == Form::kReversed) {
      for (int d = last; d >= 0; --d) {  // rows do not follow one another
        layout_.strides[d] = d == last ? 2 : layout_.strides[d + 1] * layout_.sizes[d + 1] + 2;
      }
      if (form == Form::kReversed && last >= 0) layout_.strides[last] *= -1;
    }
    const Extent reach = extent(layout_);
    first_ = -reach.begin + 3;
    bytes_.assign(static_cast<std::size_t>((reach.end - reach.begin + 8) * size()), kPad);
    for (std::int64_t i = 0; i < numel(); ++i) set(i, 0);
  }

  View view() const {
    return {const_cast<std::byte*>(bytes_.data()) + first_ * size(), &layout_, dtype_};
  }

  In in() const { return {view()}; }

  Out out() { return {view()}; }

  DType dtype() const { return dtype_; }

  const Layout& layout() const { return layout_; }

  Layout& layout() { return layout_; }

  std::int64_t numel() const { return layout_.numel(); }

  std::int64_t size() const { return element_size(dtype_); }

  // Where element i, in row-major order, lies.
  std::byte* at(std::int64_t i) const {
    std::int64_t offset = 0;
    for (int d = layout_.ndim - 1; d >= 0; --d) {
      offset += i % layout_.sizes[d] * layout_.strides[d];
      i /= layout_.sizes[d];
    }
    return view().as<std::byte>() + offset * size();
  }

  double get(std::int64_t i) const {
    return visit_dtype(dtype_, [&](auto type) {
      typename decltype(type)::type x;
      std::memcpy(&x, at(i), sizeof(x));
      return static_cast<double>(x);
    });
  }

  void set(std::int64_t i, double value) {
    visit_dtype(dtype_, [&](auto type) {
      const auto x = static_cast<typename decltype(type)::type>(value);
      std::memcpy(at(i), &x, sizeof(x));
    });
  }

  // Element i as an integer of its width.
  std::uint64_t bits(std::int64_t i) const {
    std::uint64_t x = 0;
    std::memcpy(&x, at(i), static_cast<std::size_t>(size()));
    return x;
  }

  // Fills with next(), in order.
  template <class Next> void fill(const Next& next) {
    for (std::int64_t i = 0; i < numel(); ++i) set(i, next());
  }

  // True when no byte outside of the elements was touched.
  bool is_pad_whole() const {
    std::vector<bool> ours(bytes_.size());
    for (std::int64_t i = 0; i < numel(); ++i) {
      const auto first = static_cast<std::size_t>(at(i) - bytes_.data());
      for (std::size_t k = 0; k < static_cast<std::size_t>(size()); ++k) ours[first + k] = true;
    }
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (!ours[i] && bytes_[i] != kPad) return false;
    }
    return true;
  }

 private:
  static constexpr std::byte kPad{0x5a};
  DType dtype_;
  Layout layout_;
  std::int64_t first_ = 0;
  std::vector<std::byte> bytes_;
};

// The same elements, bit for bit; all NaNs are the same.
inline ::testing::AssertionResult same_bits(const Array& a, const Array& b) {
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (a.bits(i) == b.bits(i) || (std::isnan(a.get(i)) && std::isnan(b.get(i)))) continue;
    return ::testing::AssertionFailure()
           << "element " << i << ": " << a.get(i) << " and " << b.get(i) << " differ by "
           << std::abs(a.get(i) - b.get(i));
  }
  return ::testing::AssertionSuccess();
}

// Relative to the larger of the two and to 1.
inline double tolerance(DType dtype) {
  if (dtype == kFloat64) return 1e-13;
  if (dtype == kFloat32) return 2e-6;
  if (dtype == kFloat16) return 2e-3;
  return dtype == kBFloat16 ? 1.6e-2 : 0;
}

inline bool is_near(double got, double expected, double tolerance) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (got == expected) return true;
  return std::abs(got - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// What the element type makes of a number: halves round, overflow to infinity.
inline double stored_as(DType dtype, double x) {
  return visit_dtype(dtype, [&](auto type) {
    return static_cast<double>(static_cast<typename decltype(type)::type>(x));
  });
}

// A small generator; the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed = 1) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53);
  }

 private:
  std::uint64_t state_;
};

// The columns that this machine can run.
inline std::vector<cpu::Column> runnable_columns() {
  std::vector<cpu::Column> out;
  for (const cpu::Column& column : cpu::columns()) {
    if (column.runs) out.push_back(column);
  }
  return out;
}

// Calls run(kernels) on every column, with one and with several threads, and check() after each.
template <class Run> void on_every_column(const Run& run) {
  const int before = get_num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    for (const cpu::Column& column : runnable_columns()) {
      SCOPED_TRACE(std::string(column.isa) + ", " + std::to_string(threads) + " threads");
      run(*column.kernels);
    }
  }
  set_num_threads(before);
}

}  // namespace taper::testing
