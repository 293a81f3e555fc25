// Random numbers: generators, and the functions and ops that draw from them.
#pragma once
#include <atomic>
#include <memory>

#include "taper/autograd/op.h"
#include "taper/autograd/ops/create.h"
#include "taper/core/kernels.h"

namespace taper {

// A stream of random numbers: a seed, and how much of it has been drawn. A handle; copies share
// the stream. Safe to draw from on several threads. The same on every device.
class Generator {
 public:
  // All there is to a stream; saved by hand or in a checkpoint.
  struct State {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;  // in Philox blocks (core/philox.h)
  };

  explicit Generator(std::uint64_t seed = kDefaultSeed);

  static constexpr std::uint64_t kDefaultSeed = 67280421310721;  // LibTorch's

  void set_current_seed(std::uint64_t seed) const;  // and starts at its beginning
  std::uint64_t current_seed() const { return state().seed; }
  std::uint64_t seed() const;  // takes a seed from the system, and returns it
  State state() const;
  void set_state(const State& state) const;

  // Takes the numbers of `numel` elements off the stream: where they begin. What is taken depends
  // on numel alone, so that runs on other devices and dtypes stay in step.
  State draw(std::int64_t numel) const;
  // The same for a kernel on the device: a graph that captures it draws on at each replay.
  struct Drawn {
    Count seed, offset;
    Ref<Storage> seed_memory, offset_memory;  // of what they point to
  };
  Drawn draw(std::int64_t numel, Device device) const;

 private:
  struct Stream;
  std::shared_ptr<Stream> stream_;
};

// The stream that is drawn from when none is given; one for the process.
const Generator& default_generator();
void manual_seed(std::uint64_t seed);

Tensor rand(IntArrayRef sizes, TensorOptions options = {}, Loc loc = Loc::current());  // [0, 1)
Tensor rand(IntArrayRef sizes,
            const Generator& generator,
            TensorOptions options = {},
            Loc loc = Loc::current());
Tensor randn(IntArrayRef sizes, TensorOptions options = {}, Loc loc = Loc::current());
Tensor randn(IntArrayRef sizes,
             const Generator& generator,
             TensorOptions options = {},
             Loc loc = Loc::current());
// Integers of [low, high); i64 unless the options say otherwise.
Tensor randint(std::int64_t high,
               IntArrayRef sizes,
               TensorOptions options = {},
               Loc loc = Loc::current());
Tensor randint(std::int64_t low,
               std::int64_t high,
               IntArrayRef sizes,
               TensorOptions options = {},
               Loc loc = Loc::current());
Tensor randint(std::int64_t low,
               std::int64_t high,
               IntArrayRef sizes,
               const Generator& generator,
               TensorOptions options = {},
               Loc loc = Loc::current());
// 0, ..., n - 1 in random order; i64 unless the options say otherwise.
Tensor randperm(std::int64_t n, TensorOptions options = {}, Loc loc = Loc::current());
Tensor randperm(std::int64_t n,
                const Generator& generator,
                TensorOptions options = {},
                Loc loc = Loc::current());

Tensor rand_like(const TensorArg& t, TensorOptions options = {});
Tensor randn_like(const TensorArg& t, TensorOptions options = {});
Tensor randint_like(const TensorArg& t, std::int64_t high, TensorOptions options = {});
Tensor randint_like(const TensorArg& t,
                    std::int64_t low,
                    std::int64_t high,
                    TensorOptions options = {});

// 1 with the probability that p's element says, else 0; the dtype of p.
Tensor bernoulli(const TensorArg& p, const Generator& generator = default_generator());
// The sizes and dtype of x, each element 1 with probability p.
Tensor bernoulli(const TensorArg& x, double p, const Generator& generator = default_generator());
// Mean and standard deviation may each be a number or a tensor; tensors broadcast.
Tensor normal(const TensorArg& mean,
              const TensorArg& std,
              const Generator& generator = default_generator());
Tensor normal(double mean,
              double std,
              IntArrayRef sizes,
              const Generator& generator = default_generator(),
              TensorOptions options = {},
              Loc loc = Loc::current());

// The in-place methods, from a generator of one's own.
void uniform_(const TensorArg& t, double from, double to, const Generator& generator);
void normal_(const TensorArg& t, double mean, double std, const Generator& generator);
void bernoulli_(const TensorArg& t, double p, const Generator& generator);

// Zeroes each element with probability p and divides the rest by 1 - p (Srivastava et al. 2014).
Tensor dropout(const TensorArg& x, double p = 0.5, bool train = true);

namespace ops {

using RandomSlot = Kernels::Random Kernels::*;

// uniform_, normal_, bernoulli_: self forgets what it was.
class RandomFill final : public OpOf<RandomFill> {
 public:
  static constexpr const char* kName = "random";

  RandomFill(const char* name, RandomSlot slot, double a, double b, Generator generator)
      : name_(name), slot_(slot), a_(a), b_(b), generator_(std::move(generator)) {}

  const char* name() const override { return name_; }

  bool elementwise() const override { return true; }

  void forward(Frame& f) override;

  Grads backward(const Reverse&) const override { return Grads(1); }

 private:
  const char* name_;
  RandomSlot slot_;
  double a_, b_;
  Generator generator_;
};

// y = m x / (1 - p), m drawn anew from the seed whenever it is needed: dy = m dx / (1 - p)
class Dropout final : public OpOf<Dropout> {
 public:
  static constexpr const char* kName = "dropout";

  Dropout(double p, const Generator::Drawn& from) : p_(p), from_(from) {}

  void forward(Frame& f) override;
  Grads backward(const Reverse& r) const override;

 private:
  double p_;
  Generator::Drawn from_;
};

}  // namespace ops
}  // namespace taper
