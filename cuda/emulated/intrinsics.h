// What a CUDA thread can call: barriers, warp collectives, atomics.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace taper::emulated {

enum class WarpOp : uint8_t { kSync, kShuffle, kBallot };

// Where a thread calls what others must call too.
struct Site {
  const char* file;
  unsigned line;

  static constexpr Site here(const char* file = __builtin_FILE(),
                             unsigned line = __builtin_LINE()) {
    return {file, line};
  }
};

// Defined by the machine; each may let other threads of the block run before it returns.
void sync_threads(Site site);
// Gives every live lane of `mask` its result once all of them have called with the same op and
// mask. kShuffle: the value of lane `source`, which must take part. kBallot: one bit for each lane
// whose value is not zero.
uint64_t warp_collective(WarpOp op, unsigned mask, uint64_t value, unsigned source, Site site);
unsigned lane();
[[noreturn]] void trap();

template <class T>
concept Shuffled = std::is_arithmetic_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

template <Shuffled T> T shuffle(unsigned mask, T value, unsigned source, Site site) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const uint64_t bits =
      warp_collective(WarpOp::kShuffle, mask, std::bit_cast<Bits>(value), source, site);
  return std::bit_cast<T>(static_cast<Bits>(bits));
}

// The first lane of the caller's segment, of a warp cut into segments of `width` lanes.
inline unsigned segment_begin(int width) {
  return lane() & ~(static_cast<unsigned>(width) - 1u);
}

}  // namespace taper::emulated

inline void __syncthreads(taper::emulated::Site site = taper::emulated::Site::here()) {
  taper::emulated::sync_threads(site);
}

inline void __syncwarp(unsigned mask = 0xffffffffu,
                       taper::emulated::Site site = taper::emulated::Site::here()) {
  taper::emulated::warp_collective(taper::emulated::WarpOp::kSync, mask, 0, 0, site);
}

inline unsigned __ballot_sync(unsigned mask,
                              int predicate,
                              taper::emulated::Site site = taper::emulated::Site::here()) {
  using namespace taper::emulated;
  return static_cast<unsigned>(warp_collective(WarpOp::kBallot, mask, predicate != 0, 0, site));
}

inline int __any_sync(unsigned mask,
                      int predicate,
                      taper::emulated::Site site = taper::emulated::Site::here()) {
  return __ballot_sync(mask, predicate, site) != 0;
}

inline int __all_sync(unsigned mask,
                      int predicate,
                      taper::emulated::Site site = taper::emulated::Site::here()) {
  return __ballot_sync(mask, !predicate, site) == 0;
}

// The four shuffles pick their source as the PTX instruction shfl.sync does: a lane outside the
// caller's segment gives the caller's own value back.
template <class T>
T __shfl_sync(unsigned mask,
              T value,
              int source,
              int width = warpSize,
              taper::emulated::Site site = taper::emulated::Site::here()) {
  const unsigned within = static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1u);
  return taper::emulated::shuffle(mask, value, taper::emulated::segment_begin(width) | within,
                                  site);
}

template <class T>
T __shfl_up_sync(unsigned mask,
                 T value,
                 unsigned delta,
                 int width = warpSize,
                 taper::emulated::Site site = taper::emulated::Site::here()) {
  const unsigned self = taper::emulated::lane();
  const unsigned begin = taper::emulated::segment_begin(width);
  const unsigned back = delta & 31u;
  return taper::emulated::shuffle(mask, value, self >= begin + back ? self - back : self, site);
}

template <class T>
T __shfl_down_sync(unsigned mask,
                   T value,
                   unsigned delta,
                   int width = warpSize,
                   taper::emulated::Site site = taper::emulated::Site::here()) {
  const unsigned self = taper::emulated::lane();
  const unsigned end = taper::emulated::segment_begin(width) + static_cast<unsigned>(width);
  const unsigned source = self + (delta & 31u);
  return taper::emulated::shuffle(mask, value, source < end ? source : self, site);
}

template <class T>
T __shfl_xor_sync(unsigned mask,
                  T value,
                  int lane_mask,
                  int width = warpSize,
                  taper::emulated::Site site = taper::emulated::Site::here()) {
  const unsigned self = taper::emulated::lane();
  const unsigned end = taper::emulated::segment_begin(width) + static_cast<unsigned>(width);
  const unsigned source = self ^ (static_cast<unsigned>(lane_mask) & 31u);
  return taper::emulated::shuffle(mask, value, source < end ? source : self, site);
}

// Atomics are atomic between OS threads too: two streams may run on two of them.
template <class T>
requires std::is_arithmetic_v<T> T atomicAdd(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}

template <class T>
requires std::is_integral_v<T> T atomicCAS(T* address,
                                           std::type_identity_t<T> compare,
                                           std::type_identity_t<T> value) {
  std::atomic_ref<T>(*address).compare_exchange_strong(compare, value, std::memory_order_relaxed);
  return compare;
}

template <class T>
requires std::is_integral_v<T> T atomicExch(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}

template <class T>
requires std::is_integral_v<T> T atomicMax(T* address, std::type_identity_t<T> value) {
  std::atomic_ref<T> target(*address);
  T old = target.load(std::memory_order_relaxed);
  while (old < value && !target.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
  }
  return old;
}

template <class T>
requires std::is_integral_v<T> T atomicMin(T* address, std::type_identity_t<T> value) {
  std::atomic_ref<T> target(*address);
  T old = target.load(std::memory_order_relaxed);
  while (value < old && !target.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
  }
  return old;
}

inline int __popc(unsigned bits) {
  return std::popcount(bits);
}

[[noreturn]] inline void __trap() {
  taper::emulated::trap();
}
