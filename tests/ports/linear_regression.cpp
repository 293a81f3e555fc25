// A LibTorch script: fits a plane to noisy points by SGD, with a dataset of its own.
#include <cstdio>

#include <torch/torch.h>

// y = 2 a - 3 b + 1 and a little noise.
class Points : public torch::data::Dataset<Points> {
 public:
  explicit Points(int64_t n) : x_(torch::rand({n, 2}) * 2 - 1) {
    y_ = x_.matmul(torch::tensor({2.0f, -3.0f})).unsqueeze(1) + 1 + 0.05 * torch::randn({n, 1});
  }

  torch::data::Example<> get(size_t index) override {
    const auto i = static_cast<int64_t>(index);
    return {x_[i], y_[i]};
  }

  torch::optional<size_t> size() const override { return static_cast<size_t>(x_.size(0)); }

 private:
  torch::Tensor x_, y_;
};

int main() {
  torch::manual_seed(1);
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Points(512).map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions().batch_size(32).workers(1));
  torch::nn::Linear model(2, 1);
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.1);

  for (int epoch = 1; epoch <= 20; ++epoch) {
    double total = 0;
    int batches = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      torch::Tensor loss = torch::mse_loss(model(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
      ++batches;
    }
    if (epoch % 5 == 0) std::printf("epoch %2d  loss %.5f\n", epoch, total / batches);
  }

  const torch::Tensor w = model->weight.detach().flatten();
  const double a = w[0].item<double>(), b = w[1].item<double>();
  const double c = model->bias.item<double>();
  std::printf("y = %.3f a + %.3f b + %.3f   (made with 2, -3, 1)\n", a, b, c);
  const bool good = std::abs(a - 2) < 0.05 && std::abs(b + 3) < 0.05 && std::abs(c - 1) < 0.05;
  return good ? 0 : 1;
}
