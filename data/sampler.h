// Samplers: the order in which examples are visited.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace taper::data::samplers {

// The order of epoch `epoch`; pure, so that a position in an epoch is two numbers.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual std::vector<std::size_t> order(std::uint64_t epoch) const = 0;
  virtual std::size_t size() const = 0;
};

// 0, 1, 2, ...
class SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(std::size_t size) : size_(size) {}

  std::vector<std::size_t> order(std::uint64_t epoch) const override;

  std::size_t size() const override { return size_; }

 private:
  std::size_t size_;
};

// A fresh permutation each epoch, from Philox keyed by (seed, epoch).
class RandomSampler final : public Sampler {
 public:
  // Without a seed: drawn from the default generator, so manual_seed() decides it.
  explicit RandomSampler(std::size_t size);
  RandomSampler(std::size_t size, std::uint64_t seed) : size_(size), seed_(seed) {}

  std::vector<std::size_t> order(std::uint64_t epoch) const override;

  std::size_t size() const override { return size_; }

  std::uint64_t seed() const { return seed_; }

 private:
  std::size_t size_;
  std::uint64_t seed_;
};

}  // namespace taper::data::samplers
