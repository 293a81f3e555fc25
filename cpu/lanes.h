// The 64 lanes of a reduction, in vector registers. See core/reducers.h for the rule.
#pragma once
#include <cstddef>
#include <cstdint>

#include "taper/core/reducers.h"

namespace taper::cpu {
inline namespace TAPER_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T> struct VectorOf {
  typedef T type [[gnu::vector_size(kVectorBytes)]];  // NOLINT: `using` cannot carry the attribute
  typedef T loose [[gnu::vector_size(kVectorBytes), gnu::aligned(alignof(T)), gnu::may_alias]];
};

template <class T> TAPER_INLINE typename VectorOf<T>::type load_vector(const T* from) {
  return *reinterpret_cast<const typename VectorOf<T>::loose*>(from);
}

// R is an operation of core/reducers.h, T the type that it computes in.
template <class R, class T> class Lanes {
 public:
  TAPER_INLINE void start() {
    for (int i = 0; i < kCount; ++i) lane_[i] = R::template identity<T>();
  }

  // The next n elements of the block: a multiple of 64, unless they are the last.
  void take(const T* x, std::int64_t n, T p) {
    const std::int64_t whole = n / kCount * kCount;
    // Eight registers at a time; where the lanes need more, the piece is read again from the cache.
    for (std::int64_t piece = 0; piece < whole; piece += kPiece) {
      const std::int64_t end = whole - piece < kPiece ? whole : piece + kPiece;
      for (int first = 0; first < kCount; first += kRegisters * kWidth)
        take_piece(x, piece, end, first, p);
    }
    for (std::int64_t i = whole; i < n; ++i) lane_[i - whole] = R::take(lane_[i - whole], x[i], p);
  }

  // Element i of a block.
  TAPER_INLINE void take_one(T x, std::int64_t i) {
    lane_[i % kCount] = R::join(lane_[i % kCount], x);
  }

  T join() {
    join_from<kCount / 2>();
    return lane_[0];
  }

 private:
  using Vector = typename VectorOf<T>::type;
  static constexpr int kCount = fn::kReduceLanes;
  static constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int kRegisters = kCount / kWidth < 8 ? kCount / kWidth : 8;
  static constexpr std::int64_t kPiece = 1024;

  TAPER_INLINE void take_piece(const T* x, std::int64_t begin, std::int64_t end, int first, T p) {
    Vector lanes[std::size_t{kRegisters}];
    for (int r = 0; r < kRegisters; ++r) lanes[r] = load_vector(lane_ + first + r * kWidth);
    for (std::int64_t i = begin; i < end; i += kCount) {
      for (int r = 0; r < kRegisters; ++r) {
        lanes[r] = R::take(lanes[r], load_vector(x + i + first + r * kWidth), p);
      }
    }
    for (int r = 0; r < kRegisters; ++r) {
      *reinterpret_cast<typename VectorOf<T>::loose*>(lane_ + first + r * kWidth) = lanes[r];
    }
  }

  template <int kWide> TAPER_INLINE void join_from() {
    for (int i = 0; i < kWide; ++i) lane_[i] = R::join(lane_[i], lane_[i + kWide]);
    if constexpr (kWide > 1) join_from<kWide / 2>();
  }

  alignas(64) T lane_[kCount];
};

// One block of n elements, dense.
template <class R, class T> TAPER_INLINE T reduce_dense(const T* x, std::int64_t n, T p) {
  if (n >= fn::kReduceLanes) {
    Lanes<R, T> lanes;
    lanes.start();
    lanes.take(x, n, p);
    return lanes.join();
  }
  const T identity = R::template identity<T>();
  T lane[fn::kReduceLanes];
  for (std::int64_t i = 0; i < n; ++i) lane[i] = R::take(identity, x[i], p);
  for (std::int64_t w = fn::kReduceLanes / 2; w > 0; w /= 2) {
    for (std::int64_t i = 0; i + w < n && i < w; ++i) lane[i] = R::join(lane[i], lane[i + w]);
  }
  return n > 0 ? R::join(lane[0], identity) : identity;
}

// The sum of a sequence that comes piece by piece; all but the last are multiples of 64 elements
// that divide a block.
template <class T> class BlockSum {
 public:
  void take(const T* x, std::int64_t n) {
    if (taken_ == 0 && n < fn::kReduceLanes) {  // all there is
      result_ = reduce_dense<fn::Sum>(x, n, T(0));
      return;
    }
    if (taken_ % fn::kReduceBlock == 0) start_block();
    lanes_.take(x, n, T(0));
    taken_ += n;
  }

  T join() {
    if (taken_ == 0) return result_;
    if (taken_ <= fn::kReduceBlock) return lanes_.join();
    end_block();
    return blocks_.join();
  }

 private:
  void start_block() {
    if (taken_ == fn::kReduceBlock) blocks_.start();
    if (taken_ > 0) end_block();
    lanes_.start();
  }

  void end_block() { blocks_.take_one(lanes_.join(), (taken_ - 1) / fn::kReduceBlock); }

  std::int64_t taken_ = 0;
  T result_ = T(0);
  Lanes<fn::Sum, T> lanes_, blocks_;
};

}  // namespace TAPER_ISA
}  // namespace taper::cpu
