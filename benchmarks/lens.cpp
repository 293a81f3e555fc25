// The lens group: what provenance costs always, and what stepping, hunt and profiler cost when on.
#include "taper/benchmarks/lens.h"

#include <algorithm>
#include <memory>

#include "taper/taper.h"

namespace bench {
namespace {

using taper::Tensor;
namespace nn = taper::nn;

// How much longer, in percent, f takes while a Watcher lives: the median of pairs, taken in turns.
template <class Watcher, class F> double overhead(F& f, int pairs) {
  std::vector<double> ratios;
  const auto time = [&] {
    const double start = now();
    f();
    return now() - start;
  };
  for (int i = 0; i < 4; ++i) f();
  for (int i = 0; i < pairs; ++i) {
    double on = 0, off = 0;
    for (int half = 0; half < 2; ++half) {
      if (half == i % 2) {
        off = time();
      } else {
        const Watcher watcher;
        on = time();
      }
    }
    ratios.push_back(100 * (on / off - 1));
  }
  return median(ratios);
}

// An MLP's training step, batch 64.
class MlpStep {
 public:
  void operator()() {
    adam_.zero_grad();
    nn::functional::cross_entropy(model_(x_), y_).backward();
    adam_.step();
  }

 private:
  nn::Sequential model_{nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(),
                        nn::Linear(128, 10)};
  taper::optim::Adam adam_{model_->parameters(), 1e-3};
  Tensor x_ = taper::rand({64, 784}), y_ = taper::randint(10, {64});
};

// A GPT's: 4 blocks of width 128, 8 sequences of 64.
class GptStep {
 public:
  GptStep() {
    for (int i = 0; i < 4; ++i) body_->push_back(nn::TransformerBlock(kWidth, 4));
    body_->push_back(nn::LayerNorm(std::vector<std::int64_t>{kWidth}));
    body_->push_back(nn::Linear(kWidth, kLetters));
    std::vector<Tensor> all = body_->parameters();
    all.push_back(token_->weight);
    adam_ = std::make_unique<taper::optim::AdamW>(all, 1e-4);
  }

  void operator()() {
    adam_->zero_grad();
    nn::functional::cross_entropy(body_(token_(x_)).flatten(0, 1), y_.flatten()).backward();
    adam_->step();
  }

 private:
  static constexpr std::int64_t kWidth = 128, kLetters = 96;
  nn::Embedding token_{kLetters, kWidth};
  nn::Sequential body_;
  std::unique_ptr<taper::optim::AdamW> adam_;
  Tensor x_ = taper::randint(kLetters, {8, 64}), y_ = taper::randint(kLetters, {8, 64});
};

// An op that does next to nothing, so that the call around it shows.
class Same final : public taper::OpOf<Same> {
 public:
  static constexpr const char* kName = "same";

  void forward(taper::Frame& f) override { f.out(f.in(0).sizes(), f.in(0).dtype()); }

  taper::Grads backward(const taper::Reverse& r) const override { return {r.grad()}; }
};

// As the public functions of ops are: the argument brings the line, Call keeps it at hand.
[[gnu::noinline]] Tensor with_provenance(const taper::TensorArg& x) {
  const taper::Call call(x.loc);
  return taper::apply(Same(), {&*x});
}

[[gnu::noinline]] Tensor without_provenance(const Tensor& x) {
  return taper::apply(Same(), {&x});
}

// What an entry holds of it, as far from one another as entries are.
struct Stored {
  taper::SourceLoc loc;
  std::uint32_t scope;
  char rest[sizeof(taper::Entry) - sizeof(taper::SourceLoc) - 8];
};

template <class F> double seconds_of(int calls, F f) {
  const double start = now();
  for (int i = 0; i < calls; ++i) f();
  return (now() - start) / calls;
}

// Seconds per op for the line and the scope: to keep them at hand, and to write them down. The
// difference of two times of some 100 ns: the median of many short pairs stands still.
double provenance_per_op() {
  const Tensor x = taper::ones({1}, taper::requires_grad());
  std::vector<double> at_hand;
  for (int i = 0; i < 4000; ++i) {
    double with = 0, without = 0;
    for (int half = 0; half < 2; ++half) {
      if (half == i % 2) with = seconds_of(100, [&] { keep(with_provenance(x)); });
      else without = seconds_of(100, [&] { keep(without_provenance(x)); });
    }
    at_hand.push_back(with - without);
  }
  std::vector<Stored> entries(256);
  const double stores = seconds_per_call([&] {
    for (Stored& e : entries) {
      e.loc = taper::call_site.loc();
      e.scope = taper::call_site.scope;
      keep(e);
    }
  });
  return std::max(0.0, median(at_hand)) + stores / static_cast<double>(entries.size());
}

// A backward pass over a chain of 1,000 nodes, in seconds per node; and one seek to any place.
struct Stepping {
  double finish, step, seek;
};

Stepping stepping() {
  const int length = 1000;
  const Tensor x = taper::ones({1}, taper::requires_grad()), b = taper::ones({1});
  const auto chain = [&] {
    Tensor y = x;
    for (int i = 0; i < length; ++i) y = y * b;
    return y;
  };
  std::vector<double> finish, step, seek;
  for (int round = 0; round < 15; ++round) {
    const Tensor plain = chain(), stepped = chain();
    double start = now();
    taper::Backward(plain).finish();
    finish.push_back((now() - start) / length);
    taper::Backward pass(stepped);
    start = now();
    while (pass.step()) {
    }
    step.push_back((now() - start) / length);
    start = now();
    for (std::size_t i = 1; i <= 100; ++i) pass.seek(i * 7919 % length);
    seek.push_back((now() - start) / 100);
    pass.finish();
    x.mutable_grad() = Tensor();
  }
  return {median(finish), median(step), median(seek)};
}

double profiler_per_kernel() {
  const taper::NoGradGuard no_grad;
  const Tensor x = taper::ones({1});
  std::vector<double> differences;
  for (int i = 0; i < 200; ++i) {
    const double off = seconds_of(1000, [&] { keep(x * x); });
    const taper::lens::Profile profile;
    differences.push_back(seconds_of(1000, [&] { keep(x * x); }) - off);
  }
  return median(differences);
}

std::vector<Row> rows(const Setup&) {
  return {
      {"provenance per op", "ns", {}, 2}, {"provenance in a GPT step", "ppm", {}, 1000},
      {"finish() per node", "ns"},        {"step() per node", "ns"},
      {"seek() in 1000 nodes", "us"},     {"hunt on an MLP step", "%", {}, 5},
      {"hunt on a GPT step", "%", {}, 5}, {"profiler per kernel", "ns", {}, 200},
      {"profiler on an MLP step", "%"},   {"profiler on a GPT step", "%"},
  };
}

std::vector<Result> whole(const Setup&) {
  std::vector<Result> out;
  const double per_op = provenance_per_op();
  out.push_back({"provenance per op", per_op * 1e9});
  GptStep gpt;
  gpt();
  const std::uint64_t before = taper::next_entry_index();
  gpt();
  const auto ops = static_cast<double>(taper::next_entry_index() - before);
  const double step = seconds_per_call([&] { gpt(); }, 0.1, 5);
  out.push_back({"provenance in a GPT step", 1e6 * ops * per_op / step});
  const Stepping s = stepping();
  out.push_back({"finish() per node", s.finish * 1e9});
  out.push_back({"step() per node", s.step * 1e9});
  out.push_back({"seek() in 1000 nodes", s.seek * 1e6});
  MlpStep mlp;
  out.push_back({"hunt on an MLP step", overhead<taper::lens::Hunt>(mlp, 101)});
  out.push_back({"hunt on a GPT step", overhead<taper::lens::Hunt>(gpt, 41)});
  out.push_back({"profiler per kernel", profiler_per_kernel() * 1e9});
  out.push_back({"profiler on an MLP step", overhead<taper::lens::Profile>(mlp, 101)});
  out.push_back({"profiler on a GPT step", overhead<taper::lens::Profile>(gpt, 41)});
  return out;
}

std::vector<Peer> no_peers(const Setup&) {
  return {};  // nobody else has one
}

}  // namespace

const Group kLens = {"lens", "watching", rows, no_peers, nullptr, whole};

}  // namespace bench
