// A LibTorch script: separates two rings of points, first by a line, then by a small network.
#include <iostream>

#include <torch/torch.h>

using namespace torch::indexing;
namespace F = torch::nn::functional;

double train(torch::nn::Sequential model, const torch::Tensor& x, const torch::Tensor& y) {
  auto options = torch::optim::AdamOptions(0.05).betas(std::make_tuple(0.9, 0.99));
  torch::optim::Adam optimizer(model->parameters(), options);
  torch::nn::BCEWithLogitsLoss criterion;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    auto loss = criterion(model->forward(x).squeeze(1), y);
    loss.backward();
    optimizer.step();
  }
  torch::NoGradGuard no_grad;
  auto predicted = (torch::sigmoid(model->forward(x)).squeeze(1) > 0.5).to(torch::kFloat32);
  return predicted.eq(y).to(torch::kFloat).mean().item<double>();
}

int main() {
  torch::manual_seed(3);
  const int64_t n = 400;
  auto angle = torch::rand({n}) * 2 * 3.14159265;
  auto y = (torch::arange(n) % 2).to(torch::kFloat32);
  auto radius = 1 + y + 0.1 * torch::randn({n});
  auto x = torch::stack({radius * angle.cos(), radius * angle.sin()}, 1);
  std::cout << "points " << x.sizes() << ", the first:\n"
            << x.index({Slice(None, 3), "..."}) << "\n";

  torch::nn::Sequential line(torch::nn::Linear(2, 1));
  torch::nn::Sequential network(torch::nn::Linear(torch::nn::LinearOptions(2, 16).bias(true)),
                                torch::nn::Functional(torch::tanh), torch::nn::Linear(16, 1));
  const double a = train(line, x, y), b = train(network, x, y);
  std::cout << "a line gets " << 100 * a << " % right, a network " << 100 * b << " %\n";

  // The same loss by hand, in three ways.
  auto logits = network->forward(x).squeeze(1).detach();
  auto p = torch::sigmoid(logits);
  auto by_hand = -(y * p.log() + (1 - y) * (1 - p).log()).mean();
  auto functional = F::binary_cross_entropy_with_logits(logits, y);
  std::cout << "loss " << functional.item<float>() << " = " << by_hand.item<float>() << "\n";
  const bool same = torch::allclose(by_hand, functional, 1e-3, 1e-5);
  return a < 0.75 && b > 0.97 && same ? 0 : 1;
}
