// A small network, its backward taken step by step: forth, to a line, to a parameter, and back.
#include <cstdio>
#include <iostream>

#include "taper/taper.h"

using namespace taper;
using namespace taper::lens;

struct NetImpl : nn::Module {
  NetImpl()
      : fc1(register_module("fc1", nn::Linear(4, 8))),
        fc2(register_module("fc2", nn::Linear(8, 2))) {}

  Tensor forward(const Tensor& x) {
    const Tensor h = relu(fc1(x));
    return fc2(h);
  }

  nn::Linear fc1, fc2;
};
TAPER_MODULE(Net);

int main() {
  manual_seed(1);
  Net net;
  const Tensor x = randn({3, 4}), target = randn({3, 2});
  const Tensor loss = (net(x) - target).square().mean();

  Backward pass(loss);
  pass.step();
  std::cout << "The first step:\n" << pass.here();

  pass.run_until(op("relu"));
  std::cout << "\nThe relu:\n" << pass.here();

  pass.run_until(param("fc1.weight") | nonfinite());
  std::printf("\nNode %zu adds up in %s\n", pass.position(), pass.here().scope.c_str());

  pass.back();
  std::printf("One back: %s\n", pass.here().op.c_str());
  pass.seek(1);
  std::printf("At node 1 again: %s\n", pass.here().op.c_str());

  pass.finish();
  std::printf("\nAfter finish() there are %s\n",
              net->fc1->weight.grad().defined() ? "gradients" : "none");
  try {
    pass.back();
  } catch (const Error& e) {
    std::printf("back(): %s\n", e.what());
  }
  return 0;
}
