// A perceptron on Fashion-MNIST, and what it takes for what. mlp [--data DIR|glyphs] [--epochs N]
// [--limit N] [--device cuda]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "taper/taper.h"

using namespace taper;
using data::datasets::MNIST, data::datasets::TensorDataset;

struct MlpImpl : nn::Module {
  MlpImpl()
      : fc1(register_module("fc1", nn::Linear(784, 256))),
        fc2(register_module("fc2", nn::Linear(256, 128))),
        fc3(register_module("fc3", nn::Linear(128, 10))) {}

  // (N, 1, 28, 28) -> (N, 10)
  Tensor forward(const Tensor& x) { return fc3(relu(fc2(relu(fc1(x.flatten(1)))))); }

  nn::Linear fc1, fc2, fc3;
};
TAPER_MODULE(Mlp);

// At most `limit` examples (0: all), from files or, for "glyphs", drawn.
TensorDataset load_images(const std::string& root, MNIST::Mode mode, std::int64_t limit) {
  const bool train = mode == MNIST::Mode::kTrain;
  if (root == "glyphs") {
    const std::int64_t all = train ? 20000 : 4000;
    return data::datasets::glyphs(limit > 0 && limit < all ? limit : all, train ? 1 : 2);
  }
  const MNIST files(root, mode);
  const std::int64_t all = files.images().size(0), n = limit > 0 && limit < all ? limit : all;
  return {files.images().narrow(0, 0, n), files.targets().narrow(0, 0, n)};
}

void print_confusions(const Tensor& truth, const Tensor& guess, bool fashion) {
  const char* names[] = {"T-shirt", "trouser", "pullover", "dress", "coat",
                         "sandal",  "shirt",   "sneaker",  "bag",   "boot"};
  const Tensor counts = zeros({10, 10})
                            .flatten()
                            .index_add(0, truth * 10 + guess, ones({truth.numel()}))
                            .reshape({10, 10});
  std::printf("\nMost often taken for another:\n");
  Tensor wrong = counts * (1 - eye(10));
  for (int k = 0; k < 3; ++k) {
    const auto at = wrong.flatten().argmax().item<std::int64_t>();
    const auto n = wrong.flatten()[at].item<int>();
    const auto a = static_cast<int>(at / 10), b = static_cast<int>(at % 10);
    if (fashion) std::printf("  %4d times a %s for a %s\n", n, names[a], names[b]);
    else std::printf("  %4d times class %d for class %d\n", n, a, b);
    wrong.flatten()[at].fill_(0);
  }
}

int main(int argc, char** argv) try {
  std::string root = data::datasets::find_fashion_mnist();
  std::int64_t epochs = 5, limit = 0;
  Device device = kCPU;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--data" && !value.empty()) root = value;
    else if (option == "--epochs" && !value.empty()) epochs = std::atoll(value.c_str());
    else if (option == "--limit" && !value.empty()) limit = std::atoll(value.c_str());
    else if (option == "--device" && !value.empty()) device = value;
    else
      return std::puts("mlp [--data DIR|glyphs] [--epochs N] [--limit N] [--device cuda]"),
             option != "--help";
  }
  if (root.empty()) {
    std::printf(
        "Fashion-MNIST is not here (apt install dataset-fashion-mnist, or set TAPER_DATA): drawn "
        "glyphs it is.\n");
    root = "glyphs";
  }
  manual_seed(1);
  const TensorDataset train = load_images(root, MNIST::Mode::kTrain, limit);
  const TensorDataset test = load_images(root, MNIST::Mode::kTest, limit);
  auto loader = data::make_data_loader(
      TensorDataset(train).map(data::transforms::Stack<>()),
      data::DataLoaderOptions(128).workers(1).drop_last(true).device(device));
  Mlp model;
  model->to(device);
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(2e-3).weight_decay(1e-2));
  const auto steps = static_cast<std::int64_t>(loader->size()) * epochs;
  optim::WarmupCosineLR schedule(optimizer, steps / 20, steps, 0.02);
  std::printf("%lld images from %s\n", static_cast<long long>(train.data().size(0)), root.c_str());

  double accuracy = 0;
  Tensor guess;
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    double total = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      const Tensor loss = cross_entropy(model(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      schedule.step();
      total += loss.item<double>();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const NoGradGuard no_grad;
    guess = model(test.data().to(device)).argmax(1).to(kCPU);
    accuracy = guess.eq(test.targets()).to(kFloat32).mean().item<double>();
    std::printf("epoch %2lld   loss %.4f   test accuracy %.2f %%   %.1f s\n",
                static_cast<long long>(epoch), total / static_cast<double>(loader->size()),
                100 * accuracy, took.count());
    std::fflush(stdout);  // seen at once, in a file too
  }
  print_confusions(test.targets(), guess, root != "glyphs");
  return accuracy > 0.6 ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "mlp: %s\n", e.what()), 1;
}
