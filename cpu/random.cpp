// Fills tensors with random numbers; element i depends on (seed, offset, i) alone.
#include "taper/core/philox.h"
#include "taper/cpu/kernels.h"
#include "taper/cpu/parallel.h"
#include "taper/cpu/walk.h"

namespace taper::cpu {
inline namespace TAPER_ISA {
namespace {

using Index = std::int64_t;

constexpr Index kLanes = 4, kBlocks = 128;  // numbers of a block, blocks made together
constexpr Index kNumbers = kGrain / 8;      // in one chunk; a number costs several elements' work

// Lane l of each block, one after the other: so the loops over blocks vectorise.
template <class T> struct Lanes { alignas(64) T lane[kLanes][kBlocks]; };

TAPER_INLINE void make_words(Lanes<std::uint32_t>& out,
                             std::uint64_t seed,
                             std::uint64_t first,
                             std::uint32_t stream) {
  for (Index block = 0; block < kBlocks; ++block) {
    const philox::Words words =
        philox::block(seed, first + static_cast<std::uint64_t>(block), stream);
    for (Index l = 0; l < kLanes; ++l) out.lane[l][block] = words.lane[l];
  }
}

// The low words of numbers of type T; a float does not look at them.
template <class T>
TAPER_INLINE void make_low_words(Lanes<std::uint32_t>& out,
                                 std::uint64_t seed,
                                 std::uint64_t first) {
  if constexpr (sizeof(T) == 8) make_words(out, seed, first, 1);
  else out = {};
}

// What numbers of a dtype are made as.
template <class E>
using Made = std::conditional_t<std::is_same_v<E, double>,
                                double,
                                std::conditional_t<std::is_integral_v<E>, std::int64_t, float>>;

// The numbers of kBlocks whole blocks, to where they lie side by side.
template <class E, class T> TAPER_INLINE void store_blocks(E* to, const Lanes<T>& lanes) {
  for (Index block = 0; block < kBlocks; ++block) {
    for (Index l = 0; l < kLanes; ++l) {
      to[kLanes * block + l] = static_cast<E>(lanes.lane[l][block]);
    }
  }
}

// Calls make(lanes, first) for runs of kBlocks blocks, and writes the numbers.
template <class E, class T, class Make> void fill_random(const Out& out, const Make& make) {
  const Layout& layout = *out.layout;
  Walk<1> start;
  start.ndim = layout.ndim;
  start.count = 1;
  for (int d = 0; d < layout.ndim; ++d) {
    start.sizes[d] = layout.sizes[d];
    start.strides[0][d] = layout.strides[d];
  }
  const bool dense = layout.is_contiguous();
  parallel_for(layout.numel(), kNumbers, [&](Index begin, Index end) {
    Lanes<T> lanes;
    Walk<1> walk = start;
    if (!dense) walk.seek(begin);
    for (Index i = begin; i < end;) {
      make(lanes, static_cast<std::uint64_t>(i / kLanes));
      E* to = out.as<E>() + i;
      const Index n = end - i < kLanes * kBlocks ? end - i : kLanes * kBlocks;
      if (dense && n == kLanes * kBlocks) {
        store_blocks(to, lanes);
      } else {
        for (Index j = 0; j < n; ++j) {
          const E x = static_cast<E>(lanes.lane[j % kLanes][j / kLanes]);
          if (dense) to[j] = x;
          else out.as<E>()[walk.offset[0]] = x, walk.next();
        }
      }
      i += n;
    }
  });
}

}  // namespace

// Bytes: the output once. About 100 integer operations for four numbers, and a logarithm, a square
// root, a sine and a cosine for two normal ones.
void uniform(const Exec&, Out out, Count seed, Count offset, double a, double b) {
  visit_floating(out.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    using T = Made<E>;
    const T from = static_cast<T>(a), to = static_cast<T>(b);
    fill_random<E, T>(out, [=](Lanes<T>& out_lanes, std::uint64_t first) {
      Lanes<std::uint32_t> high, low;
      make_words(high, seed.at, offset.at + first, 0);
      make_low_words<T>(low, seed.at, offset.at + first);
      for (Index l = 0; l < kLanes; ++l) {
        for (Index block = 0; block < kBlocks; ++block) {
          const T unit = philox::uniform<T>(high.lane[l][block], low.lane[l][block]);
          out_lanes.lane[l][block] = philox::uniform_stored_as<E>(unit, from, to);
        }
      }
    });
  });
}

void normal(const Exec&, Out out, Count seed, Count offset, double mean, double std) {
  visit_floating(out.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    using T = Made<E>;
    const T center = static_cast<T>(mean), scale = static_cast<T>(std);
    fill_random<E, T>(out, [=](Lanes<T>& out_lanes, std::uint64_t first) {
      Lanes<std::uint32_t> high, low;
      make_words(high, seed.at, offset.at + first, 0);
      make_low_words<T>(low, seed.at, offset.at + first);
      for (Index l = 0; l < 2; ++l) {  // as philox::normal_block pairs the lanes
        for (Index block = 0; block < kBlocks; ++block) {
          const auto pair = philox::normal_pair<T>(high.lane[l][block], low.lane[l][block],
                                                   high.lane[l + 2][block], low.lane[l + 2][block]);
          out_lanes.lane[l][block] = math::fma(pair.first, scale, center);
          out_lanes.lane[l + 2][block] = math::fma(pair.second, scale, center);
        }
      }
    });
  });
}

void bernoulli(const Exec&, Out out, Count seed, Count offset, double p, double) {
  visit_dtype(out.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    fill_random<E, float>(out, [=](Lanes<float>& out_lanes, std::uint64_t first) {
      Lanes<std::uint32_t> high;
      make_words(high, seed.at, offset.at + first, 0);
      for (Index l = 0; l < kLanes; ++l) {
        for (Index block = 0; block < kBlocks; ++block) {
          out_lanes.lane[l][block] = philox::bernoulli(high.lane[l][block], p) ? 1.0f : 0.0f;
        }
      }
    });
  });
}

void randint(const Exec&, Out out, Count seed, Count offset, double a, double b) {
  const auto start = static_cast<std::uint64_t>(static_cast<std::int64_t>(a));
  const auto range = static_cast<std::uint64_t>(static_cast<std::int64_t>(b)) - start;
  visit_dtype(out.dtype, [&](auto type) {
    using E = typename decltype(type)::type;
    fill_random<E, std::int64_t>(out, [=](Lanes<std::int64_t>& out_lanes, std::uint64_t first) {
      Lanes<std::uint32_t> high, low;
      make_words(high, seed.at, offset.at + first, 0);
      make_words(low, seed.at, offset.at + first, 1);
      for (Index l = 0; l < kLanes; ++l) {
        for (Index block = 0; block < kBlocks; ++block) {
          const std::uint64_t x = philox::below(high.lane[l][block], low.lane[l][block], range);
          out_lanes.lane[l][block] = static_cast<std::int64_t>(start + x);
        }
      }
    });
  });
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
