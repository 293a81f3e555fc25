// How a slot puts a kernel on the stream of its Exec, and how a kernel finds its elements.
#pragma once

#include "taper/cuda/kernels.cuh"
#include "taper/cuda/launch.cuh"
#include "taper/cuda/runtime.h"

namespace taper::cuda {

using Index = std::int64_t;

constexpr unsigned kThreads = 256;      // of a block that walks over elements
constexpr Index kMostBlocks = 132 * 8;  // as many as an H100 holds at once; each thread then loops

// For kernels that loop `for (Index i = first_index(); i < n; i += index_step())`.
__device__ inline Index first_index() {
  return Index{blockIdx.x} * blockDim.x + threadIdx.x;
}

__device__ inline Index index_step() {
  return Index{gridDim.x} * blockDim.x;
}

inline unsigned blocks_for(Index n) {
  const Index blocks = (n + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

// Neighbours that one instruction loads or stores, where they fill at most 16 bytes.
template <class T, int kSize> struct alignas(sizeof(T) * kSize) Pack { T of[size_t{kSize}]; };

// Launches on the device and the stream of `exec`; does nothing for an empty grid.
template <class... Params, class... Args>
void launch_on(const Exec& exec,
               unsigned blocks,
               unsigned threads,
               void (*kernel)(Params...),
               const Args&... args) {
  if (blocks == 0) return;
  const DeviceGuard guard(exec.device.index());
  launch({blocks, threads, 0, stream_of(exec.device, exec.stream), exec.device.index()}, kernel,
         args...);
}

// What is summed and computed in place of a storage type.
template <class T> struct ComputeOf : std::type_identity<T> {};
template <> struct ComputeOf<Half> : std::type_identity<float> {};
template <> struct ComputeOf<BFloat16> : std::type_identity<float> {};
template <class T> using Compute = typename ComputeOf<T>::type;

// Calls fn(std::type_identity<Word>{}) with the unsigned type of `size` bytes.
template <class Fn> void visit_word(std::int64_t size, Fn&& fn) {
  switch (size) {
    case 1: return fn(std::type_identity<std::uint8_t>{});
    case 2: return fn(std::type_identity<std::uint16_t>{});
    case 4: return fn(std::type_identity<std::uint32_t>{});
    default: return fn(std::type_identity<std::uint64_t>{});
  }
}

// The rest is defined in copy.cu.

// Merges the dims of layouts of equal sizes, and orders them by falling stride of the first.
void order_dims(Layout* const* layouts, int count);

// The elements of `in` in row-major order without gaps: where they lie, or copied to scratch.
const void* dense(const Exec& exec, const View& in);

// Where a slot writes row-major elements without gaps; finish() puts them where they belong.
class DenseOut {
 public:
  DenseOut(const Exec& exec, const View& out);

  void* data() const { return data_; }

  void finish();

 private:
  const Exec& exec_;
  const View& out_;
  void* data_;
};

// An operand in the dtype that a kernel wants: itself where it is so, else a dense one in scratch.
// It is a copy of an In; finish() writes an Out back.
class StandIn {
 public:
  StandIn(const Exec& exec, const In& in, DType dtype) : StandIn(exec, in, dtype, true) {}
  StandIn(const Exec& exec, const Out& out, DType dtype) : StandIn(exec, out, dtype, false) {}

  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  // Not defined where the operand is not.
  const View& view() const { return view_; }

  void finish();

 private:
  StandIn(const Exec& exec, const View& of, DType dtype, bool filled);

  const Exec& exec_;
  const View& of_;
  Layout layout_;
  View view_;
};

}  // namespace taper::cuda
