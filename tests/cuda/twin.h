// One operand on both machines: made once, given to a slot of each column, compared to the bit.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "taper/core/kernels.h"
#include "taper/cuda/check.h"
#include "taper/cuda/runtime.h"

namespace taper::cuda {

using Random = std::mt19937_64;

// How an operand lies in its storage.
enum class Lie { kRowMajor, kReversed, kGaps, kBackwards, kStretched, kOneNumber };

inline constexpr Lie kEveryLie[] = {Lie::kRowMajor,  Lie::kReversed,  Lie::kGaps,
                                    Lie::kBackwards, Lie::kStretched, Lie::kOneNumber};

inline Layout lay(Lie lie, IntArrayRef sizes) {
  Layout out = contiguous_layout(sizes);
  if (out.ndim == 0) return out;
  const int last = out.ndim - 1;
  if (lie == Lie::kReversed) {
    std::int64_t stride = 1;
    for (int d = 0; d < out.ndim; ++d) {
      out.strides[d] = stride;
      stride *= out.sizes[d] > 0 ? out.sizes[d] : 1;
    }
  }
  for (int d = 0; d < out.ndim; ++d) {
    if (lie == Lie::kGaps) out.strides[d] *= 3;
    if (lie == Lie::kOneNumber) out.strides[d] = 0;
  }
  if (lie == Lie::kStretched) out.strides[last > 0 ? 0 : last] = 0;
  if (lie == Lie::kBackwards && out.sizes[last] > 0) {
    out.offset = (out.sizes[last] - 1) * out.strides[last];
    out.strides[last] = -out.strides[last];
  }
  return out;
}

// The layout without dim `dim`'s extent, as the output of a reduction has it.
inline Layout reduced(Layout layout, std::initializer_list<int> dims) {
  Layout out = layout;
  for (const int d : dims) out.sizes[d] = 1;
  out = contiguous_layout(out.shape());
  for (const int d : dims) {
    out.sizes[d] = layout.sizes[d];
    if (layout.sizes[d] != 1) out.strides[d] = 0;
  }
  return out;
}

template <class T> T any_value(Random& random) {
  if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    const auto bits = static_cast<T>(random());
    return random() % 2 == 0 ? bits : static_cast<T>(static_cast<int>(random() % 21) - 10);
  } else {
    constexpr double kOdd[] = {0.0, -0.0, 1.0, -1.0, 1e30, -1e30, 1e-42, 0.5, 88.0, -104.0};
    const auto pick = random() % 40;
    if (pick == 0) return T(static_cast<float>(std::numeric_limits<float>::infinity()));
    if (pick == 1) return T(-std::numeric_limits<float>::infinity());
    if (pick == 2) return T(std::numeric_limits<float>::quiet_NaN());
    if (pick < 10) return T(static_cast<float>(kOdd[pick - 3]));
    return T(std::normal_distribution<double>(0, 2)(random));
  }
}

class Twin {
 public:
  Twin(DType dtype, const Layout& layout, Random& random) : dtype_(dtype), layout_(layout) {
    Layout from_zero = layout;
    from_zero.offset = 0;
    for (int d = 0; d < layout.ndim; ++d) {
      if (layout.strides[d] == 0) from_zero.sizes[d] = 1;  // an output of nothing has elements
    }
    const Extent touched = extent(from_zero);
    first_ = -touched.begin;
    const auto count = static_cast<size_t>(touched.end - touched.begin);
    host_.resize(count * static_cast<size_t>(element_size(dtype)) + 64);
    visit_dtype(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      for (size_t i = 0; i < count; ++i) {
        const T value = any_value<T>(random);
        std::memcpy(host_.data() + i * sizeof(T), &value, sizeof(T));
      }
    });
    TAPER_CUDA_CHECK(cudaMalloc(&device_, host_.size()));
    upload();
  }

  ~Twin() { cudaFree(device_); }

  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;

  void upload() {
    TAPER_CUDA_CHECK(cudaMemcpy(device_, host_.data(), host_.size(), cudaMemcpyHostToDevice));
  }

  // Makes every element anew, gaps too, by calling value().
  template <class Fn> void fill(const Fn& value) {
    visit_dtype(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      for (size_t i = 0; i < host_.size() / sizeof(T); ++i) {
        const T element = static_cast<T>(value());
        std::memcpy(host_.data() + i * sizeof(T), &element, sizeof(T));
      }
    });
    upload();
  }

  // Numbers near 1, for sums: one NaN or infinity would be all that is left of them.
  void tame(Random& random) {
    fill([&] { return std::normal_distribution<double>(0, 1)(random); });
  }

  // For divisors, where the columns differ in what 0 does.
  void replace_zeros() {
    for (std::byte& byte : host_) byte |= std::byte{1};
    upload();
  }

  // Index tensors: numbers in [low, high), many of them equal where there are few.
  void draw_indices(Random& random, std::int64_t low, std::int64_t high) {
    const auto range = static_cast<std::uint64_t>(high > low ? high - low : 1);
    for (size_t i = 0; i + 8 <= host_.size(); i += 8) {
      const std::int64_t index = low + static_cast<std::int64_t>(random() % range);
      std::memcpy(host_.data() + i, &index, 8);
    }
    upload();
  }

  // Element i of the storage.
  void put_index(std::int64_t i, std::int64_t index) {
    std::memcpy(host_.data() + i * 8, &index, 8);
    upload();
  }

  template <class V> V on_cpu() {
    return {{host_.data() + first_ * element_size(dtype_), &layout_, dtype_}};
  }

  template <class V> V on_cuda() {
    return {{static_cast<std::byte*>(device_) + first_ * element_size(dtype_), &layout_, dtype_}};
  }

  // Empty, or where the two first differ: all of the storage counts, gaps too.
  std::string difference() const {
    std::vector<std::byte> got(host_.size());
    TAPER_CUDA_CHECK(cudaMemcpy(got.data(), device_, got.size(), cudaMemcpyDeviceToHost));
    std::string found;
    visit_dtype(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      for (size_t i = 0; i < host_.size() / sizeof(T) && found.empty(); ++i) {
        T a, b;
        std::memcpy(&a, host_.data() + i * sizeof(T), sizeof(T));
        std::memcpy(&b, got.data() + i * sizeof(T), sizeof(T));
        if (std::memcmp(&a, &b, sizeof(T)) == 0) continue;
        if constexpr (!std::is_integral_v<T>) {
          if (static_cast<double>(a) != static_cast<double>(a) &&
              static_cast<double>(b) != static_cast<double>(b)) {
            continue;  // NaN is NaN
          }
        }
        found =
            str("element ", i, ": cpu ", static_cast<double>(a), ", cuda ", static_cast<double>(b));
      }
    });
    return found;
  }

 private:
  DType dtype_;
  Layout layout_;
  std::int64_t first_ = 0;
  std::vector<std::byte> host_;
  void* device_ = nullptr;
};

// Calls the slot of both columns; they must agree in all outputs, or in the text of the error.
template <class... Params> class Both {
 public:
  template <class Slot, class OnCpu, class OnCuda>
  static void run(Slot slot, const OnCpu& on_cpu, const OnCuda& on_cuda) {
    static const StreamId stream = make_stream(0);
    const std::string cpu = error_of([&] {
      const Exec exec(kCPU);
      on_cpu(cpu_kernels().*slot, exec);
    });
    const std::string cuda = error_of([&] {
      const Exec exec(Device(kCUDA, 0), stream);
      on_cuda(cuda_kernels().*slot, exec);
    });
    EXPECT_EQ(cpu, cuda);
    TAPER_CUDA_CHECK(cudaStreamSynchronize(stream_of(Device(kCUDA, 0), stream)));
  }

 private:
  template <class Fn> static std::string error_of(const Fn& fn) {
    try {
      fn();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
};

}  // namespace taper::cuda
