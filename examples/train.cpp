// A whole training script: Fashion-MNIST by a small network, with Adam. train [FOLDER]
// [--device cuda]
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

int main(int argc, char** argv) try {
  std::string root = data::datasets::find_fashion_mnist();
  Device device = kCPU;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--device" && i + 1 < argc) device = argv[++i];
    else root = argv[i];
  }
  const data::datasets::MNIST test(root, data::datasets::MNIST::Mode::kTest);
  auto train = data::make_data_loader(data::datasets::MNIST(root).map(data::transforms::Stack<>()),
                                      data::DataLoaderOptions(64).workers(1).device(device));
  manual_seed(1);
  nn::Sequential model(nn::Flatten(), nn::Linear(784, 128), nn::ReLU(), nn::Linear(128, 10));
  model->to(device);
  optim::Adam optimizer(model->parameters(), optim::AdamOptions(1e-3));
  for (int epoch = 1; epoch <= 3; ++epoch) {
    double total = 0;
    for (auto& batch : *train) {
      optimizer.zero_grad();
      const Tensor loss = cross_entropy(model(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      total += loss.item<double>() / static_cast<double>(train->size());
    }
    const NoGradGuard no_grad;
    const Tensor right = model(test.images().to(device)).argmax(1).to(kCPU).eq(test.targets());
    const auto accuracy = right.to(kFloat32).mean().item<double>();
    std::printf("epoch %d  loss %.4f  test accuracy %.2f %%\n", epoch, total, 100 * accuracy);
  }
} catch (const Error& e) {
  return std::fprintf(stderr, "train: %s\n", e.what()), 1;
}
