// How generators count, and how random tensors are filled.
#include "taper/autograd/ops/random.h"

#include <mutex>
#include <random>

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/core/cuda_graph.h"
#include "taper/core/philox.h"
#include "taper/core/promote.h"

namespace taper {

struct Generator::Stream {
  std::mutex mutex;  // for the two as one
  ReplayCount seed, offset;

  explicit Stream(std::uint64_t seed_in) : seed(seed_in), offset(0) {}
};

Generator::Generator(std::uint64_t seed) : stream_(std::make_shared<Stream>(seed)) {}

void Generator::set_current_seed(std::uint64_t seed) const {
  set_state({seed, 0});
}

std::uint64_t Generator::seed() const {
  std::random_device system;
  const std::uint64_t seed = std::uint64_t{system()} << 32 | system();
  set_current_seed(seed);
  return seed;
}

Generator::State Generator::state() const {
  const std::lock_guard lock(stream_->mutex);
  return {stream_->seed, stream_->offset};
}

void Generator::set_state(const State& state) const {
  const std::lock_guard lock(stream_->mutex);
  stream_->seed = state.seed;
  stream_->offset = state.offset;
}

Generator::State Generator::draw(std::int64_t numel) const {
  const std::lock_guard lock(stream_->mutex);
  return {stream_->seed,
          stream_->offset.fetch_add(philox::blocks_for(static_cast<std::uint64_t>(numel)))};
}

Generator::Drawn Generator::draw(std::int64_t numel, Device device) const {
  const auto moved = [&](ReplayCount& count) {
    return moved_since_capture(device, std::shared_ptr<ReplayCount>(stream_, &count));
  };
  MovedCount seed, offset;
  if (device.is_cuda()) seed = moved(stream_->seed), offset = moved(stream_->offset);
  const State from = draw(numel);
  return {{from.seed, seed.at}, {from.offset, offset.at}, seed.memory, offset.memory};
}

const Generator& default_generator() {
  static const Generator generator;
  return generator;
}

void manual_seed(std::uint64_t seed) {
  default_generator().set_current_seed(seed);
}

namespace {

using ops::RandomSlot;

// A distribution: its slot and parameters.
struct Draw {
  RandomSlot slot;
  double a, b;
};

constexpr Draw kUnit{&Kernels::uniform, 0, 1}, kStandard{&Kernels::normal, 0, 1};

void fill(const Exec& exec, const Tensor& t, const Draw& draw, const Generator& generator) {
  const Generator::Drawn from = generator.draw(t.numel(), t.device());
  if (t.numel() == 0) return;
  (kernels_for(t.device()).*draw.slot)(exec, t.as<Out>(), from.seed, from.offset, draw.a, draw.b);
}

// A leaf: the elements are written before it may require grad.
Tensor filled(const Tensor& t,
              const TensorOptions& options,
              const Draw& draw,
              const Generator& generator) {
  fill(Exec(t.device()), t, draw, generator);
  if (options.requires_grad()) t.requires_grad_();
  return t;
}

Tensor floats(IntArrayRef sizes,
              const TensorOptions& options,
              const Draw& draw,
              const Generator& generator,
              const char* op) {
  TAPER_CHECK(is_floating_point(options.dtype()), op, ": needs a floating-point dtype, got ",
              options.dtype());
  return filled(empty(sizes, options.requires_grad(false)), options, draw, generator);
}

Tensor floats_like(const Tensor& t,
                   const TensorOptions& options,
                   const Draw& draw,
                   const char* op) {
  const Tensor out = empty_like(t, options.requires_grad(false));
  TAPER_CHECK(out.is_floating_point(), op, ": needs a floating-point dtype, got ", out.dtype());
  return filled(out, options, draw, default_generator());
}

Draw integers(std::int64_t low, std::int64_t high) {
  TAPER_CHECK(low < high, "randint: the range [", low, ", ", high, ") is empty");
  return {&Kernels::randint, static_cast<double>(low), static_cast<double>(high)};
}

void check_probability(double p, const char* op) {
  TAPER_CHECK(p >= 0 && p <= 1, op, ": the probability must lie in [0, 1], got ", p);
}

// NaN fails too: it lies nowhere.
void check_probabilities(const Tensor& p) {
  if (p.is_meta()) return;
  TAPER_CHECK(logical_and(p >= 0, p <= 1).all().item<bool>(),
              "bernoulli: each probability must lie in [0, 1]; one of ", p.sizes(), " does not");
}

void fill_inplace(const Tensor& t, const char* name, const Draw& draw, const Generator& generator) {
  apply_inplace(ops::RandomFill(name, draw.slot, draw.a, draw.b, generator), t, {&t});
}

}  // namespace

namespace ops {

void RandomFill::forward(Frame& f) {
  const Tensor& self = f.in(0);
  fill(f.exec(), f.out(self.layout(), self.dtype()), {slot_, a_, b_}, generator_);
}

void Dropout::forward(Frame& f) {
  const Tensor& x = f.in(0);
  const Tensor kept = make_tensor(contiguous_layout(x.sizes()), kBool, x.device());
  if (x.numel() > 0) {
    f.kernels().bernoulli(f.exec(), kept.as<Out>(), from_.seed, from_.offset, 1 - p_, 0);
  }
  f.out(where(kept, x * (p_ < 1 ? 1 / (1 - p_) : 0), 0));
}

Grads Dropout::backward(const Reverse& r) const {
  return {apply(Dropout(p_, from_), {&r.grad()})};
}

}  // namespace ops

Tensor rand(IntArrayRef sizes, TensorOptions options, Loc loc) {
  return rand(sizes, default_generator(), options, loc);
}

Tensor rand(IntArrayRef sizes, const Generator& generator, TensorOptions options, Loc loc) {
  const Call call(loc);
  return floats(sizes, options, kUnit, generator, "rand");
}

Tensor randn(IntArrayRef sizes, TensorOptions options, Loc loc) {
  return randn(sizes, default_generator(), options, loc);
}

Tensor randn(IntArrayRef sizes, const Generator& generator, TensorOptions options, Loc loc) {
  const Call call(loc);
  return floats(sizes, options, kStandard, generator, "randn");
}

Tensor randint(std::int64_t high, IntArrayRef sizes, TensorOptions options, Loc loc) {
  return randint(0, high, sizes, default_generator(), options, loc);
}

Tensor randint(
    std::int64_t low, std::int64_t high, IntArrayRef sizes, TensorOptions options, Loc loc) {
  return randint(low, high, sizes, default_generator(), options, loc);
}

Tensor randint(std::int64_t low,
               std::int64_t high,
               IntArrayRef sizes,
               const Generator& generator,
               TensorOptions options,
               Loc loc) {
  const Call call(loc);
  if (!options.has_dtype()) options = options.dtype(kInt64);
  const Draw draw = integers(low, high);
  return filled(empty(sizes, options.requires_grad(false)), options, draw, generator);
}

Tensor randperm(std::int64_t n, TensorOptions options, Loc loc) {
  return randperm(n, default_generator(), options, loc);
}

// The order of n random keys. Two of 2^53 keys may be equal and then keep their order: for 10^6
// elements with a probability of 6e-5.
Tensor randperm(std::int64_t n, const Generator& generator, TensorOptions options, Loc loc) {
  const Call call(loc);
  TAPER_CHECK(n >= 0, "randperm: n must not be negative, got ", n);
  const Tensor keys = rand(n, generator, TensorOptions(kFloat64).device(options.device()));
  return argsort(keys).to(options.has_dtype() ? options.dtype() : kInt64);
}

Tensor rand_like(const TensorArg& t, TensorOptions options) {
  const Call call(t.loc);
  return floats_like(*t, options, kUnit, "rand_like");
}

Tensor randn_like(const TensorArg& t, TensorOptions options) {
  const Call call(t.loc);
  return floats_like(*t, options, kStandard, "randn_like");
}

Tensor randint_like(const TensorArg& t, std::int64_t high, TensorOptions options) {
  return randint_like(TensorArg(*t, t.loc), 0, high, options);
}

Tensor randint_like(const TensorArg& t,
                    std::int64_t low,
                    std::int64_t high,
                    TensorOptions options) {
  const Call call(t.loc);
  const Draw draw = integers(low, high);
  return filled(empty_like(*t, options.requires_grad(false)), options, draw, default_generator());
}

Tensor bernoulli(const TensorArg& p, const Generator& generator) {
  const Call call(p.loc);
  TAPER_CHECK(p->is_floating_point(), "bernoulli: needs floating-point probabilities, got ",
              p->dtype());
  check_probabilities(p->detach());
  const DType dtype = p->dtype() == kFloat64 ? kFloat64 : kFloat32;
  const Tensor unit = rand(p->sizes(), generator, p->options().dtype(dtype));
  return (unit < p->detach()).to(p->dtype());
}

Tensor bernoulli(const TensorArg& x, double p, const Generator& generator) {
  const Call call(x.loc);
  check_probability(p, "bernoulli");
  return filled(empty_like(*x), {}, {&Kernels::bernoulli, p, 0}, generator);
}

Tensor normal(const TensorArg& mean, const TensorArg& std, const Generator& generator) {
  const Call call(mean.loc);
  const DType dtype = floating_type(result_type(*mean, *std));
  const Sizes sizes = broadcast_sizes(mean->sizes(), std->sizes());
  const Device device = mean->dim() > 0 ? mean->device() : std->device();
  const Tensor draws = randn(sizes, generator, TensorOptions(dtype).device(device));
  return draws * std->detach() + mean->detach();
}

Tensor normal(double mean,
              double std,
              IntArrayRef sizes,
              const Generator& generator,
              TensorOptions options,
              Loc loc) {
  const Call call(loc);
  TAPER_CHECK(std >= 0, "normal: the standard deviation must not be negative, got ", std);
  return floats(sizes, options, {&Kernels::normal, mean, std}, generator, "normal");
}

void uniform_(const TensorArg& t, double from, double to, const Generator& generator) {
  const Call call(t.loc);
  TAPER_CHECK(t->is_floating_point(), "uniform_: needs floating-point elements, got ", t->dtype());
  TAPER_CHECK(from <= to, "uniform_: the range [", from, ", ", to, ") runs backwards");
  fill_inplace(*t, "uniform_", {&Kernels::uniform, from, to}, generator);
}

void normal_(const TensorArg& t, double mean, double std, const Generator& generator) {
  const Call call(t.loc);
  TAPER_CHECK(t->is_floating_point(), "normal_: needs floating-point elements, got ", t->dtype());
  TAPER_CHECK(std >= 0, "normal_: the standard deviation must not be negative, got ", std);
  fill_inplace(*t, "normal_", {&Kernels::normal, mean, std}, generator);
}

void bernoulli_(const TensorArg& t, double p, const Generator& generator) {
  const Call call(t.loc);
  check_probability(p, "bernoulli_");
  fill_inplace(*t, "bernoulli_", {&Kernels::bernoulli, p, 0}, generator);
}

const Tensor& Tensor::uniform_(double from, double to, Loc loc) const {
  const Call call(loc);
  taper::uniform_(*this, from, to, default_generator());
  return *this;
}

const Tensor& Tensor::normal_(double mean, double std, Loc loc) const {
  const Call call(loc);
  taper::normal_(*this, mean, std, default_generator());
  return *this;
}

const Tensor& Tensor::bernoulli_(double p, Loc loc) const {
  const Call call(loc);
  taper::bernoulli_(*this, p, default_generator());
  return *this;
}

Tensor dropout(const TensorArg& x, double p, bool train) {
  const Call call(x.loc);
  check_probability(p, "dropout");
  if (!train || p == 0 || x->numel() == 0) return *x;
  return apply(ops::Dropout(p, default_generator().draw(x->numel(), x->device())), {&*x});
}

}  // namespace taper
