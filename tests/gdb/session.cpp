// What tests/gdb/session.py looks at: a small network with a layer that is never used, and a path
// that is cut.
#include "taper/taper.h"

using namespace taper;

namespace {

struct NetImpl : nn::Module {
  NetImpl()
      : fc1(register_module("fc1", nn::Linear(3, 4))),
        fc2(register_module("fc2", nn::Linear(4, 2))),
        unused(register_module("unused", nn::Linear(2, 2))),
        lost(register_module("lost", nn::Linear(4, 2))) {}

  nn::Linear fc1, fc2, unused, lost;
};
TAPER_MODULE(Net);

Tensor forward(const Net& net, const Tensor& x) {
  const Tensor h = net->fc1(x).relu();
  return net->fc2(h) + net->lost(h).detach();
}

struct Batch {
  Tensor x, turned, target, odd, none, big, meta;
};

[[gnu::noinline]] void train(const Net& net, Batch& batch, const Tensor& scale) {
  const Tensor made = forward(net, batch.x);
  const Tensor out = made * scale;
  const Tensor loss = (out - batch.target).square().mean();
  loss.backward();
}

}  // namespace

int main() {
  manual_seed(1);
  const Net net;
  Batch batch;
  batch.x = arange(6).to(kFloat).reshape({2, 3});
  batch.turned = batch.x.t();
  batch.target = zeros({2, 2});
  batch.target.add_(1);
  batch.odd = tensor({1.0F, NAN, 3.0F, INFINITY});
  batch.big = ones({2000, 2000}).t();
  batch.meta = empty({2, 3}, TensorOptions().device(kMeta));
  const Tensor scale = full({2}, 2.0, requires_grad());
  train(net, batch, scale);
  return batch.odd.defined() && scale.grad().defined() ? 0 : 1;
}
