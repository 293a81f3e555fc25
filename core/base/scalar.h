// Scalar: one number that remembers whether it was written as a bool, an integer or a float.
#pragma once
#include <concepts>

#include "taper/core/base/dtype.h"

namespace taper {

class Scalar {
 public:
  Scalar() = default;

  template <class T>
  requires std::is_arithmetic_v<T> Scalar(
      T v) {  // NOLINT(google-explicit-constructor): x + 2 is the point
    if constexpr (std::is_same_v<T, bool>) {
      category_ = DTypeCategory::kBoolean;
      integer_ = v;
    } else if constexpr (std::is_integral_v<T>) {
      category_ = DTypeCategory::kInteger;
      integer_ = static_cast<std::int64_t>(v);
    } else {
      category_ = DTypeCategory::kFloating;
      real_ = static_cast<double>(v);
    }
  }

  Scalar(Half v) : Scalar(static_cast<float>(v)) {}      // NOLINT
  Scalar(BFloat16 v) : Scalar(static_cast<float>(v)) {}  // NOLINT

  DTypeCategory category() const { return category_; }

  bool is_floating_point() const { return category_ == DTypeCategory::kFloating; }

  double to_double() const { return is_floating_point() ? real_ : static_cast<double>(integer_); }

  // Truncates. What has no integer (nan, infinity, beyond 64 bits) throws.
  std::int64_t to_int() const { return is_floating_point() ? truncated(real_) : integer_; }

  // LibTorch's spelling: scalar.to<float>().
  template <class T> T to() const {
    if constexpr (std::is_same_v<T, bool>) return is_floating_point() ? real_ != 0 : integer_ != 0;
    else if constexpr (std::is_integral_v<T>) return static_cast<T>(to_int());
    else return static_cast<T>(to_double());
  }

  // LibTorch's other spelling.
  float toFloat() const { return to<float>(); }

  double toDouble() const { return to<double>(); }

  int toInt() const { return to<int>(); }

  std::int64_t toLong() const { return to<std::int64_t>(); }

  bool toBool() const { return to<bool>(); }

  // The dtype of a 0-dim tensor made of it: f64, i64 or bool.
  DType dtype() const {
    if (category_ == DTypeCategory::kFloating) return kFloat64;
    return category_ == DTypeCategory::kInteger ? kInt64 : kBool;
  }

 private:
  static std::int64_t truncated(double real);

  DTypeCategory category_ = DTypeCategory::kInteger;
  std::int64_t integer_ = 0;
  double real_ = 0;
};

inline void append(std::string& out, const Scalar& s) {
  if (s.is_floating_point()) append(out, s.to_double());
  else append(out, s.to_int());
}

}  // namespace taper
