// LibTorch's side: of the groups core and alloc all rows as "name<TAB>value" lines, of others an
// answer to each row that is read.
#include <cstdio>
#include <iostream>
#include <string>

#include <torch/torch.h>

#include "taper/benchmarks/bench.h"
#include "taper/benchmarks/peers/torch_peer.h"

using torch::Tensor;

static void ns(const char* name, double seconds) {
  std::printf("%s\t%.3f\n", name, seconds * 1e9);
}

static void print_step(const char* name, torch::nn::Sequential& model, const Tensor& x) {
  torch::optim::Adam adam(model->parameters(), 1e-3);
  const Tensor y = torch::randint(10, {x.size(0)}, torch::kLong);
  const auto step = [&] {
    adam.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(x), y).backward();
    adam.step();
  };
  for (int i = 0; i < 20; ++i) step();
  const long before = bench::page_faults();
  std::vector<double> took;
  for (int i = 0; i < 60; ++i) {
    const double start = bench::now();
    step();
    took.push_back(bench::now() - start);
  }
  std::printf("%s step\t%.1f\n%s faults per step\t%.2f\n", name, bench::median(took) * 1e6, name,
              static_cast<double>(bench::page_faults() - before) / 60);
}

// The alloc group: the models of benchmarks/alloc.cpp.
static void print_steps() {
  torch::nn::Sequential mlp(torch::nn::Linear(784, 256), torch::nn::ReLU(),
                            torch::nn::Linear(256, 128), torch::nn::ReLU(),
                            torch::nn::Linear(128, 10));
  print_step("MLP", mlp, torch::rand({64, 784}));
  torch::nn::Sequential cnn(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).padding(1)),
                            torch::nn::ReLU(), torch::nn::MaxPool2d(2),
                            torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).padding(1)),
                            torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
                            torch::nn::Linear(32 * 7 * 7, 10));
  print_step("CNN", cnn, torch::rand({64, 1, 28, 28}));
}

static void answer(double (*seconds)(const std::string&)) {
  std::string row;
  while (std::getline(std::cin, row)) {
    std::printf("%s\t%.9g\n", row.c_str(), seconds(row));
    std::fflush(stdout);
  }
}

static void print_tiny() {
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

int main(int argc, char** argv) {
  const std::string group = argc > 1 ? argv[1] : "core";
  if (group == "alloc") print_steps();
  else if (group == "train") answer(train_seconds);
  else if (group == "kernels") answer(kernel_seconds);
  else print_tiny();
}
