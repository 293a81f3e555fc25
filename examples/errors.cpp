// What mistakes look like: each message names the op, the shapes, and the line of yours.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

namespace {

template <class F> void show(F mistake) {
  try {
    mistake();
  } catch (const Error& e) {
    std::printf("%s\n\n", e.what());
  }
}

}  // namespace

int main() {
  show([] {
    const Tensor x = ones({2, 3});
    x* ones({4});
  });

  show([] {  // inside a module: its path is named too
    nn::Sequential model(nn::Linear(784, 128), nn::ReLU(), nn::Linear(64, 10));
    model(ones({32, 784}));
  });

  show([] {
    const Tensor w = ones({2}, requires_grad());
    const Tensor h = w * 2;
    const Tensor y = h * h;  // needs h in backward
    h.add_(1);               // and here it is changed
    y.sum().backward();
  });

  show([] { cross_entropy(randn({4, 10}), tensor({1, 2, 3, 10})); });

  show([] { ones({std::int64_t{1} << 32, std::int64_t{1} << 32}); });
  return 0;
}
