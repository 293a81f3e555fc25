// Options of pooling, as modules and functions take them.
#pragma once
#include <optional>

#include "taper/nn/options.h"

namespace taper::nn {

template <std::size_t N> class MaxPoolOptions {
 public:
  // The stride is the kernel's size unless it is set.
  MaxPoolOptions(ExpandingArray<N> kernel_size)  // NOLINT(google-explicit-constructor)
      : kernel_size_(kernel_size), stride_(kernel_size) {}
  MaxPoolOptions(std::int64_t kernel_size)  // NOLINT(google-explicit-constructor)
      : MaxPoolOptions(ExpandingArray<N>(kernel_size)) {}
  MaxPoolOptions(std::initializer_list<std::int64_t> kernel_size)
      : MaxPoolOptions(ExpandingArray<N>(kernel_size)) {}

  const ExpandingArray<N>& kernel_size() const { return kernel_size_; }
  MaxPoolOptions& kernel_size(ExpandingArray<N> x) { return kernel_size_ = x, *this; }
  const ExpandingArray<N>& stride() const { return stride_; }
  MaxPoolOptions& stride(ExpandingArray<N> x) { return stride_ = x, *this; }
  const ExpandingArray<N>& padding() const { return padding_; }
  MaxPoolOptions& padding(ExpandingArray<N> x) { return padding_ = x, *this; }
  const ExpandingArray<N>& dilation() const { return dilation_; }
  MaxPoolOptions& dilation(ExpandingArray<N> x) { return dilation_ = x, *this; }
  bool ceil_mode() const { return ceil_mode_; }
  MaxPoolOptions& ceil_mode(bool x) { return ceil_mode_ = x, *this; }

 private:
  ExpandingArray<N> kernel_size_, stride_, padding_ = 0, dilation_ = 1;
  bool ceil_mode_ = false;
};

using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;

template <std::size_t N> class AvgPoolOptions {
 public:
  // The stride is the kernel's size unless it is set.
  AvgPoolOptions(ExpandingArray<N> kernel_size)  // NOLINT(google-explicit-constructor)
      : kernel_size_(kernel_size), stride_(kernel_size) {}
  AvgPoolOptions(std::int64_t kernel_size)  // NOLINT(google-explicit-constructor)
      : AvgPoolOptions(ExpandingArray<N>(kernel_size)) {}
  AvgPoolOptions(std::initializer_list<std::int64_t> kernel_size)
      : AvgPoolOptions(ExpandingArray<N>(kernel_size)) {}

  const ExpandingArray<N>& kernel_size() const { return kernel_size_; }
  AvgPoolOptions& kernel_size(ExpandingArray<N> x) { return kernel_size_ = x, *this; }
  const ExpandingArray<N>& stride() const { return stride_; }
  AvgPoolOptions& stride(ExpandingArray<N> x) { return stride_ = x, *this; }
  const ExpandingArray<N>& padding() const { return padding_; }
  AvgPoolOptions& padding(ExpandingArray<N> x) { return padding_ = x, *this; }
  bool ceil_mode() const { return ceil_mode_; }
  AvgPoolOptions& ceil_mode(bool x) { return ceil_mode_ = x, *this; }
  bool count_include_pad() const { return count_include_pad_; }
  AvgPoolOptions& count_include_pad(bool x) { return count_include_pad_ = x, *this; }
  std::optional<std::int64_t> divisor_override() const { return divisor_override_; }
  AvgPoolOptions& divisor_override(std::optional<std::int64_t> x) {
    return divisor_override_ = x, *this;
  }

 private:
  ExpandingArray<N> kernel_size_, stride_, padding_ = 0;
  bool ceil_mode_ = false, count_include_pad_ = true;
  std::optional<std::int64_t> divisor_override_;
};

using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;

template <std::size_t N> class AdaptiveAvgPoolOptions {
 public:
  AdaptiveAvgPoolOptions(ExpandingArray<N> output_size)  // NOLINT(google-explicit-constructor)
      : output_size_(output_size) {}
  AdaptiveAvgPoolOptions(std::int64_t output_size)  // NOLINT(google-explicit-constructor)
      : output_size_(output_size) {}
  AdaptiveAvgPoolOptions(std::initializer_list<std::int64_t> output_size)
      : output_size_(output_size) {}

  const ExpandingArray<N>& output_size() const { return output_size_; }
  AdaptiveAvgPoolOptions& output_size(ExpandingArray<N> x) { return output_size_ = x, *this; }

 private:
  ExpandingArray<N> output_size_;
};

using AdaptiveAvgPool1dOptions = AdaptiveAvgPoolOptions<1>;
using AdaptiveAvgPool2dOptions = AdaptiveAvgPoolOptions<2>;

}  // namespace taper::nn
