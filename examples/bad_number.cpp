// Three numbers that go bad, and what the hunt says of each: the line, the element, the rule.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

// A cross entropy by hand: where a probability underflows to 0, its log is -inf.
Tensor hand_made_loss(const Tensor& scores, const Tensor& target) {
  const Tensor p = scores.softmax(1);
  const Tensor log_p = p.log();
  return -(target * log_p).sum(1).mean();
}

// A distance: of a point to itself it is 0, which is fine, and its gradient is infinite.
Tensor distances(const Tensor& a, const Tensor& b) {
  const Tensor squares = (a - b).square().sum(1);
  return squares.sqrt();
}

template <class F> void hunt(const char* title, const F& loss) {
  const lens::Hunt hunt;
  try {
    loss().backward();
  } catch (const Error& e) {
    std::printf("%s\n%s\n\n", title, e.what());
  }
}

int main() {
  manual_seed(1);
  const Tensor scores = tensor({1.0, 2.0, 200.0}).view({1, 3}).requires_grad_();
  const Tensor target = tensor({0.0, 0.0, 1.0}).view({1, 3});
  hunt("-- A loss that is nan", [&] { return hand_made_loss(scores, target); });

  const Tensor points = tensor({0.0, 0.0, 3.0, 4.0}).view({2, 2}).requires_grad_();
  hunt("-- A gradient that is nan", [&] { return distances(points, zeros({2, 2})).mean(); });

  nn::Sequential model(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 1));
  {
    const NoGradGuard no_grad;
    model->parameters()[2].div_(0.0);
  }
  hunt("-- A parameter that was bad before", [&] { return model(ones({2, 3})).sum(); });
}
