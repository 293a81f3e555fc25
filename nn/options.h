// What option structs share: how they are written, sizes of one or N numbers, reductions.
#pragma once
#include "taper/autograd/ops/loss.h"

namespace taper::nn {

// Note [Options]
// Every option x has a getter x() and a setter x(value) that returns the struct, so that setters
// chain: Conv2dOptions(3, 16, 5).stride(2).bias(false). The names are LibTorch's.

// N numbers, or one that stands for all: stride(2), stride({2, 1}).
template <std::size_t N> class ExpandingArray {
 public:
  ExpandingArray(std::int64_t all) {  // NOLINT(google-explicit-constructor)
    for (std::int64_t& v : values_) v = all;
  }

  ExpandingArray(IntArrayRef values) {  // NOLINT(google-explicit-constructor)
    TAPER_CHECK(values.size() == N || values.size() == 1, "expected 1 or ", N, " numbers, got ",
                values);
    for (std::size_t i = 0; i < N; ++i) values_[i] = values[values.size() == 1 ? 0 : i];
  }

  ExpandingArray(std::initializer_list<std::int64_t> values)
      : ExpandingArray(IntArrayRef(values.begin(), values.size())) {}

  operator IntArrayRef() const { return {values_, N}; }  // NOLINT(google-explicit-constructor)

  std::int64_t operator[](std::size_t i) const { return values_[i]; }

  static constexpr std::size_t size() { return N; }

 private:
  std::int64_t values_[N];
};

// "[2, 3]": how modules print sizes.
inline std::string listed(IntArrayRef numbers) {
  std::string out;
  for (const std::int64_t n : numbers) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return "[" + out + "]";
}

// Padding by rule: kSame keeps the size (stride 1), kValid pads nothing.
enum class PaddingRule : std::uint8_t { kNumbers, kValid, kSame };

// Padding of a convolution: numbers, or a rule.
template <std::size_t N> class ConvPadding {
 public:
  template <class T>
  requires std::is_integral_v<T> ConvPadding(T all)  // NOLINT(google-explicit-constructor)
      : numbers_(static_cast<std::int64_t>(all)) {}
  ConvPadding(ExpandingArray<N> numbers) : numbers_(numbers) {}  // NOLINT
  ConvPadding(std::initializer_list<std::int64_t> numbers) : numbers_(numbers) {}
  ConvPadding(PaddingRule rule) : numbers_(0), rule_(rule) {}  // NOLINT

  const ExpandingArray<N>& numbers() const { return numbers_; }

  PaddingRule rule() const { return rule_; }

 private:
  ExpandingArray<N> numbers_;
  PaddingRule rule_ = PaddingRule::kNumbers;
};

template <class Self> class WithReduction {
 public:
  WithReduction() = default;
  WithReduction(Reduction r) : reduction_(r) {}  // NOLINT(google-explicit-constructor)

  Reduction reduction() const { return reduction_; }

  Self& reduction(Reduction r) {
    reduction_ = r;
    return static_cast<Self&>(*this);
  }

 private:
  Reduction reduction_ = Reduction::kMean;
};

template <class Self> class WithInplace {
 public:
  bool inplace() const { return inplace_; }

  Self& inplace(bool on) {
    inplace_ = on;
    return static_cast<Self&>(*this);
  }

 private:
  bool inplace_ = false;
};

}  // namespace taper::nn

namespace taper {

inline constexpr nn::PaddingRule kValid = nn::PaddingRule::kValid;
inline constexpr nn::PaddingRule kSame = nn::PaddingRule::kSame;

}  // namespace taper
