// The orders of samplers.
#include "taper/data/sampler.h"

#include <utility>

#include "taper/autograd/ops/random.h"
#include "taper/core/philox.h"

namespace taper::data::samplers {
namespace {

__extension__ using Wide = unsigned __int128;

// Uniform in [0, n), up to n / 2^64: the high word of random * n.
std::size_t below(std::uint64_t random, std::size_t n) {
  return static_cast<std::size_t>(static_cast<Wide>(random) * n >> 64);
}

}  // namespace

std::vector<std::size_t> SequentialSampler::order(std::uint64_t) const {
  std::vector<std::size_t> out(size_);
  for (std::size_t i = 0; i < size_; ++i) out[i] = i;
  return out;
}

RandomSampler::RandomSampler(std::size_t size)
    : size_(size), seed_(default_generator().current_seed() + default_generator().draw(1).offset) {}

// Fisher and Yates: each place takes one of those not yet taken.
std::vector<std::size_t> RandomSampler::order(std::uint64_t epoch) const {
  std::vector<std::size_t> out(size_);
  for (std::size_t i = 0; i < size_; ++i) out[i] = i;
  for (std::size_t i = size_; i > 1; --i) {
    const auto block = static_cast<std::uint64_t>(size_ - i);
    const philox::Words words = philox::philox4x32(
        {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
          static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)}},
        seed_);
    const std::uint64_t random = static_cast<std::uint64_t>(words.lane[0]) << 32 | words.lane[1];
    const std::size_t j = below(random, i);
    std::swap(out[i - 1], out[j]);
  }
  return out;
}

}  // namespace taper::data::samplers
