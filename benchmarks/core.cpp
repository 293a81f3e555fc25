// The core group: what recording, running backward and stepping an optimizer cost on tiny tensors.
#include "taper/benchmarks/core.h"

#include "taper/benchmarks/peers.h"
#include "taper/taper.h"

namespace bench {
namespace {

using taper::Tensor;

// Forward, backward and freeing of a chain of `length` nodes, seconds per node.
struct Chain {
  double forward, backward;
};

Chain chain() {
  const int length = 1000;
  const Tensor x = taper::ones({1}, taper::requires_grad());
  const Tensor b = taper::ones({1});
  std::vector<double> forward, backward;
  for (int round = 0; round < 41; ++round) {
    const double t0 = now();
    Tensor y = x;
    for (int i = 0; i < length; ++i) y = y * b;
    const double t1 = now();
    y.backward();
    const double t2 = now();
    x.mutable_grad() = Tensor();
    if (round == 0) continue;
    forward.push_back((t1 - t0) / length);
    backward.push_back((t2 - t1) / length);
  }
  return {median(forward), median(backward)};
}

// Page faults in a training step of an MLP, batch 64, after it has run for a while.
double faults_per_step() {
  taper::nn::Sequential model(taper::nn::Linear(784, 256), taper::nn::ReLU(),
                              taper::nn::Linear(256, 128), taper::nn::ReLU(),
                              taper::nn::Linear(128, 10));
  taper::optim::Adam adam(model->parameters(), 1e-3);
  const Tensor x = taper::rand({64, 784}), y = taper::randint(10, {64});
  const auto step = [&] {
    adam.zero_grad();
    taper::nn::functional::cross_entropy(model(x), y).backward();
    adam.step();
  };
  for (int i = 0; i < 20; ++i) step();
  const long before = page_faults();
  for (int i = 0; i < 200; ++i) step();
  return static_cast<double>(page_faults() - before) / 200;
}

double adam_per_parameter() {
  std::vector<Tensor> params;
  for (int i = 0; i < 10; ++i) {
    params.push_back(taper::randn({16}, taper::requires_grad()));
    params.back().mutable_grad() = taper::randn({16});
  }
  taper::optim::Adam adam(params, 1e-3);
  return seconds_per_call([&] { adam.step(); }) / 10;
}

std::vector<Row> rows(const Setup&) {
  return {
      {"mul recorded", "ns", {{kTorch, 0.25}}},
      {"mul no_grad", "ns", {{kTorch, 0.25}}},
      {"mul chain forward per node", "ns", {{kTorch, 0.25}}},
      {"mul chain backward per node", "ns", {{kTorch, 0.25}}},
      {"Linear(8,8) recorded", "ns", {{kTorch, 0.3}}},
      {"Adam per parameter of 16", "ns", {{kTorch, 0.05}}},
      {"empty({1})", "ns"},
      {"transpose no_grad", "ns"},
      {"page faults per MLP step", "faults", {}, 0},
  };
}

std::vector<Result> whole(const Setup&) {
  std::vector<Result> out;
  const auto ns = [&](const char* name, double seconds) { out.push_back({name, seconds * 1e9}); };
  const Tensor g = taper::ones({1}, taper::requires_grad()), b = taper::ones({1});
  ns("mul recorded", seconds_per_call([&] { keep(g * b); }));
  {
    const taper::NoGradGuard guard;
    ns("mul no_grad", seconds_per_call([&] { keep(g * b); }));
    const Tensor m = taper::ones({4, 8, 16});
    ns("transpose no_grad", seconds_per_call([&] { keep(m.transpose(0, 1)); }));
  }
  const Chain c = chain();
  ns("mul chain forward per node", c.forward);
  ns("mul chain backward per node", c.backward);
  taper::nn::Linear linear(8, 8);
  const Tensor x = taper::ones({8, 8});
  ns("Linear(8,8) recorded", seconds_per_call([&] { keep(linear(x)); }));
  ns("Adam per parameter of 16", adam_per_parameter());
  ns("empty({1})", seconds_per_call([&] { keep(taper::empty({1})); }));
  out.push_back({"page faults per MLP step", faults_per_step()});
  return out;
}

std::vector<Peer> peers(const Setup& setup) {
  return torch_peers(setup, "core");
}

}  // namespace

const Group kCore = {"core", "tiny tensors", rows, peers, nullptr, whole};

}  // namespace bench
