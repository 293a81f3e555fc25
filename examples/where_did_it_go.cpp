// Questions to the tape when training goes wrong: no gradient, a zero one, a tape that grows, a
// loss of the wrong shape, numbers too small for half precision.
#include <cstdio>
#include <iostream>

#include "taper/taper.h"

using namespace taper;
using namespace taper::lens;

int main() {
  manual_seed(1);
  const Tensor w = randn({4, 4}).requires_grad_(), head = randn({4, 1}).requires_grad_();
  const Tensor x = randn({8, 4}), target = randn({8});

  const Tensor features = relu(matmul(x, w)).detach();
  const Tensor loss = (matmul(features, head) - target).square().mean();
  loss.backward();
  std::cout << "Why has w no gradient?\n" << why_none(w) << "\n\n";

  const Tensor mask = zeros({8, 4});
  const Tensor masked = (matmul(x, w) * mask).square().sum();
  std::cout << "Why is the gradient of w zero?\n" << why_zero(w, masked) << "\n\n";

  std::cout << "Is there anything odd about the loss?\n" << suspects(loss) << "\n";

  Tensor total = zeros({});
  const auto step = [&] {
    const Tensor step_loss = matmul(x, w).square().mean();
    step_loss.backward();
    total += step_loss;
  };
  step();
  const TapeMark mark;
  step();
  std::cout << "Why does memory grow?\n" << mark.grown() << "\n";

  std::cout << "What would half precision lose of the gradient?\n"
            << to_string(exponents(w.grad() * 1e-6));
  return 0;
}
