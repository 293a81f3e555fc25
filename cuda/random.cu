// Fills tensors with random numbers; element i depends on (seed, offset, i) alone.
#include "taper/core/philox.h"
#include "taper/cuda/device.cuh"

// A thread makes a block of four numbers at a time (core/philox.h, Note [Random numbers by
// counter]) and writes them together.
namespace taper::cuda {
namespace {

// Numbers that are stored at once, in memory that is aligned to them.
template <class E> struct alignas(sizeof(E) < 4 ? 4 * sizeof(E) : 16) Pack {
  E lane[philox::kLanes];
};

// make(index) gives the four numbers of block `index` of the stream.
template <class E, class Make>
__global__ void fill_random(E* out, Index n, Count offset, bool aligned, Make make) {
  constexpr auto kLanes = static_cast<Index>(philox::kLanes);
  const std::uint64_t first = offset.value();
  for (Index i = first_index() * kLanes; i < n; i += index_step() * kLanes) {
    const auto made = make(first + static_cast<std::uint64_t>(i / kLanes));
    Pack<E> pack;
    for (Index l = 0; l < kLanes; ++l) pack.lane[l] = static_cast<E>(made.lane[l]);
    if (aligned && n - i >= kLanes) {
      *reinterpret_cast<Pack<E>*>(out + i) = pack;
    } else {
      for (Index l = 0; l < kLanes && i + l < n; ++l) out[i + l] = pack.lane[l];
    }
  }
}

template <class E, class Make>
void fill_with(const Exec& exec, const Out& out, Count offset, const Make& make) {
  const Index n = out.layout->numel();
  DenseOut to(exec, out);
  const bool aligned = reinterpret_cast<std::uintptr_t>(to.data()) % alignof(Pack<E>) == 0;
  const Index blocks = static_cast<Index>(philox::blocks_for(static_cast<std::uint64_t>(n)));
  launch_on(exec, blocks_for(blocks), kThreads, fill_random<E, Make>, static_cast<E*>(to.data()), n,
            offset, aligned, make);
  to.finish();
}

// The distributions. T is what numbers are made as.

template <class E> struct Uniform {
  using T = Compute<E>;
  Count seed;
  T from, to;

  __device__ philox::Four<T> operator()(std::uint64_t index) const {
    philox::Four<T> x = philox::uniform_block<T>(seed.value(), index);
    for (T& lane : x.lane) lane = philox::uniform_stored_as<E>(lane, from, to);
    return x;
  }
};

template <class T> struct Normal {
  Count seed;
  T mean, std;

  __device__ philox::Four<T> operator()(std::uint64_t index) const {
    philox::Four<T> x = philox::normal_block<T>(seed.value(), index);
    for (T& lane : x.lane) lane = math::fma(lane, std, mean);
    return x;
  }
};

struct Bernoulli {
  Count seed;
  double p;

  __device__ philox::Four<float> operator()(std::uint64_t index) const {
    const philox::Words words = philox::block(seed.value(), index, 0);
    philox::Four<float> x;
    for (std::uint64_t l = 0; l < philox::kLanes; ++l) {
      x.lane[l] = philox::bernoulli(words.lane[l], p) ? 1.0f : 0.0f;
    }
    return x;
  }
};

struct Integers {
  std::int64_t lane[philox::kLanes];
};

struct Randint {
  Count seed;
  std::uint64_t start, range;

  __device__ Integers operator()(std::uint64_t index) const {
    const std::uint64_t key = seed.value();
    const philox::Words high = philox::block(key, index, 0), low = philox::block(key, index, 1);
    Integers x;
    for (std::uint64_t l = 0; l < philox::kLanes; ++l) {
      const std::uint64_t below = philox::below(high.lane[l], low.lane[l], range);
      x.lane[l] = static_cast<std::int64_t>(start + below);
    }
    return x;
  }
};

}  // namespace

void uniform(const Exec& exec, Out out, Count seed, Count offset, double a, double b) {
  visit_floating(out.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    using T = Compute<E>;
    fill_with<E>(exec, out, offset, Uniform<E>{seed, static_cast<T>(a), static_cast<T>(b)});
  });
}

void normal(const Exec& exec, Out out, Count seed, Count offset, double mean, double std) {
  visit_floating(out.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    using T = Compute<E>;
    fill_with<E>(exec, out, offset, Normal<T>{seed, static_cast<T>(mean), static_cast<T>(std)});
  });
}

void bernoulli(const Exec& exec, Out out, Count seed, Count offset, double p, double) {
  visit_dtype(out.dtype, [&](auto type) {
    fill_with<typename decltype(type)::type>(exec, out, offset, Bernoulli{seed, p});
  });
}

void randint(const Exec& exec, Out out, Count seed, Count offset, double a, double b) {
  const auto start = static_cast<std::uint64_t>(static_cast<std::int64_t>(a));
  const auto range = static_cast<std::uint64_t>(static_cast<std::int64_t>(b)) - start;
  visit_dtype(out.dtype, [&](auto type) {
    fill_with<typename decltype(type)::type>(exec, out, offset, Randint{seed, start, range});
  });
}

}  // namespace taper::cuda
