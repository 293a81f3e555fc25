// A training step with a mistake that the compiler cannot see; docs/debugging.md finds it with gdb.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

struct NetImpl : nn::Module {
  NetImpl()
      : fc1(register_module("fc1", nn::Linear(3, 4))),
        fc2(register_module("fc2", nn::Linear(4, 2))) {}

  Tensor forward(const Tensor& x) {
    const Tensor h = fc1(x);
    const Tensor scale = h.detach().abs().mean();  // rightly: the scale is to be a constant
    return fc2(relu(h.detach() / scale));          // wrongly: fc1 learns nothing
  }

  nn::Linear fc1, fc2;
};
TAPER_MODULE(Net);

static void train(const Net& net, const Tensor& x, const Tensor& target) {
  optim::SGD optimizer(net->parameters(), 0.1);
  const Tensor loss = cross_entropy(net(x), target);
  loss.backward();
  optimizer.step();
}

int main() {
  manual_seed(1);
  const Net net;
  const Tensor before = net->fc1->weight.clone();
  train(net, arange(6).to(kFloat).reshape({2, 3}), tensor({0, 1}));
  std::printf("fc1 %s\n", equal(before, net->fc1->weight) ? "learned nothing" : "learned");
}
