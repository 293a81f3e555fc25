// A training step with a mistake that the compiler cannot see; docs/debugging.md finds it with gdb.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

struct NetImpl : nn::Module {
  NetImpl()
      : fc1(register_module("fc1", nn::Linear(3, 4))),
        fc2(register_module("fc2", nn::Linear(4, 2))) {}

  nn::Linear fc1, fc2;
};
TAPER_MODULE(Net);

static Tensor forward(const Net& net, const Tensor& x) {
  const Tensor h = net->fc1(x);
  const Tensor scale = h.detach().abs().mean();  // rightly: the scale is to be a constant
  return net->fc2(relu(h.detach() / scale));     // wrongly: fc1 gets no gradient
}

static void train(const Net& net, const Tensor& x, const Tensor& target) {
  optim::SGD optimizer(net->parameters(), 0.1);
  const Tensor loss = cross_entropy(forward(net, x), target);
  loss.backward();
  optimizer.step();
}

int main() {
  manual_seed(1);
  const Net net;
  train(net, arange(6).to(kFloat).reshape({2, 3}), tensor({0, 1}));
  std::printf("fc1 has %s gradient\n", net->fc1->weight.grad().defined() ? "a" : "no");
}
