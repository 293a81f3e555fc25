// Reductions column by column: the lanes of up to 256 bytes of neighbouring outputs, side by side.
#pragma once
#include <cstddef>
#include <cstdint>

#include "taper/core/reducers.h"

namespace taper::cpu {
inline namespace TAPER_ISA {

inline constexpr std::int64_t kColumnBytes = 256;  // of one row of a strip
template <class T>
inline constexpr std::int64_t kStripWidth = kColumnBytes / std::int64_t{sizeof(T)};

// One block of every column of a strip: lane i of column j is lane_[i][j]. R is an operation of
// core/reducers.h, T the type that it computes in.
template <class R, class T> class Strip {
 public:
  void start(std::int64_t width, std::int64_t rows) {
    width_ = width;
    lanes_ = rows < fn::kReduceLanes ? rows : fn::kReduceLanes;
    for (std::int64_t i = 0; i < lanes_; ++i) {
      for (std::int64_t j = 0; j < kWidth; ++j) lane_[i][j] = R::template identity<T>();
    }
  }

  // Row `row` of the block; p holds a number of each column.
  TAPER_INLINE void take(const T* x, std::int64_t row, const T* p) {
    T* __restrict lane = lane_[row % fn::kReduceLanes];
    if (width_ == kWidth) {
      for (std::int64_t j = 0; j < kWidth; ++j) lane[j] = R::take(lane[j], x[j], p[j]);
    } else {
      for (std::int64_t j = 0; j < width_; ++j) lane[j] = R::take(lane[j], x[j], p[j]);
    }
  }

  void join(T* out) {
    for (std::int64_t w = fn::kReduceLanes / 2; w > 0; w /= 2) {
      for (std::int64_t i = 0; i < w && i + w < lanes_; ++i) {
        for (std::int64_t j = 0; j < kWidth; ++j) {
          lane_[i][j] = R::join(lane_[i][j], lane_[i + w][j]);
        }
      }
    }
    for (std::int64_t j = 0; j < width_; ++j) {
      const T identity = R::template identity<T>();
      out[j] = lanes_ > 0 ? R::join(lane_[0][j], identity) : identity;
    }
  }

 private:
  static constexpr std::int64_t kWidth = kStripWidth<T>;
  std::int64_t width_, lanes_;
  alignas(64) T lane_[fn::kReduceLanes][std::size_t{kWidth}];
};

}  // namespace TAPER_ISA
}  // namespace taper::cpu
