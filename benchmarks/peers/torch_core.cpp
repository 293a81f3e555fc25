// LibTorch's side of the core group: the same names, one "name<TAB>value" line each.
#include <cstdio>

#include <torch/torch.h>

#include "taper/benchmarks/bench.h"

using torch::Tensor;

static void ns(const char* name, double seconds) {
  std::printf("%s\t%.3f\n", name, seconds * 1e9);
}

int main() {
  const Tensor g = torch::ones({1}, torch::requires_grad()), b = torch::ones({1});
  ns("mul recorded", bench::seconds_per_call([&] { bench::keep(g * b); }));
  {
    torch::NoGradGuard guard;
    ns("mul no_grad", bench::seconds_per_call([&] { bench::keep(g * b); }));
    const Tensor m = torch::ones({4, 8, 16});
    ns("transpose no_grad", bench::seconds_per_call([&] { bench::keep(m.transpose(0, 1)); }));
  }
  const int length = 1000;
  std::vector<double> forward, backward;
  for (int round = 0; round < 41; ++round) {
    const double t0 = bench::now();
    Tensor y = g;
    for (int i = 0; i < length; ++i) y = y * b;
    const double t1 = bench::now();
    y.backward();
    const double t2 = bench::now();
    g.mutable_grad() = Tensor();
    if (round == 0) continue;
    forward.push_back((t1 - t0) / length);
    backward.push_back((t2 - t1) / length);
  }
  ns("mul chain forward per node", bench::median(forward));
  ns("mul chain backward per node", bench::median(backward));
  torch::nn::Linear linear(8, 8);
  const Tensor x = torch::ones({8, 8});
  ns("Linear(8,8) recorded", bench::seconds_per_call([&] { bench::keep(linear(x)); }));
  std::vector<Tensor> params;
  for (int i = 0; i < 10; ++i) {
    params.push_back(torch::randn({16}, torch::requires_grad()));
    params.back().mutable_grad() = torch::randn({16});
  }
  torch::optim::Adam adam(params, 1e-3);
  ns("Adam per parameter of 16", bench::seconds_per_call([&] { adam.step(); }) / 10);
  ns("empty({1})", bench::seconds_per_call([&] { bench::keep(torch::empty({1})); }));
}
