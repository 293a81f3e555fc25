// A training step captured as a CUDA graph and replayed, beside the same steps without one.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

static Tensor train(int steps, bool as_graph) {
  const Device device(kCUDA, 0);
  const StreamGuard on(make_stream(device));
  manual_seed(1);
  nn::Sequential model(nn::Linear(8, 32), nn::ReLU(), nn::Linear(32, 1));
  const Tensor x = randn({64, 8}).to(device), y = randn({64, 1}).to(device);
  model->to(device);
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.05).momentum(0.9));
  const auto step = [&] {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(model(x), y);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  for (int i = 0; i < 3; ++i) step();  // buffers of the optimizer, cuBLAS's handle
  if (!as_graph) {
    for (int i = 1; i < steps; ++i) step();
    return step().cpu();
  }
  cuda::CUDAGraph graph;
  graph.capture_begin(device);
  const Tensor loss = step();
  graph.capture_end();
  for (int i = 0; i < steps; ++i) graph.replay();
  return loss.cpu();
}

int main() {
  if (cuda::device_count() == 0) return std::puts("there is no CUDA device"), 77;
  const Tensor eager = train(20, false), replayed = train(20, true);
  std::printf("loss after 20 steps: %.6f, as a graph %.6f: %s\n", eager.item<double>(),
              replayed.item<double>(), equal(eager, replayed) ? "the same bits" : "other bits");
  return equal(eager, replayed) ? 0 : 1;
}
