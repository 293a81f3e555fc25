// A convolutional network on Fashion-MNIST. cnn [--data DIR|glyphs] [--epochs N] [--limit N]
// [--device cuda]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "taper/taper.h"

using namespace taper;
using data::datasets::MNIST, data::datasets::TensorDataset;

struct CnnImpl : nn::Module {
  CnnImpl()
      : conv1(register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)))),
        conv2(register_module("conv2", nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)))),
        fc(register_module("fc", nn::Linear(32 * 7 * 7, 10))) {}

  Tensor forward(const Tensor& x) {                  // (N,  1, 28, 28)
    const Tensor h = max_pool2d(relu(conv1(x)), 2);  // (N, 16, 14, 14)
    const Tensor g = max_pool2d(relu(conv2(h)), 2);  // (N, 32,  7,  7)
    return fc(g.flatten(1));                         // (N, 10)
  }

  nn::Conv2d conv1, conv2;
  nn::Linear fc;
};
TAPER_MODULE(Cnn);

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

double accuracy_of(Cnn& model, const TensorDataset& test) {
  const NoGradGuard no_grad;
  const Device device = model->fc->weight.device();
  double right = 0;
  const std::int64_t n = test.data().size(0);
  for (std::int64_t begin = 0; begin < n; begin += 500) {
    const std::int64_t length = n - begin < 500 ? n - begin : 500;
    const Tensor images = test.data().narrow(0, begin, length).to(device);
    const Tensor guess = model(images).argmax(1).to(kCPU);
    right += guess.eq(test.targets().narrow(0, begin, length)).sum().item<double>();
  }
  return right / static_cast<double>(n);
}

// An image as text, dark to light.
void print_image(const Tensor& image) {
  const auto pixel = image.accessor<float, 2>();
  for (std::int64_t y = 0; y < 28; y += 2) {
    std::printf("    ");
    for (std::int64_t x = 0; x < 28; ++x) {
      const float mean = (pixel[y][x] + pixel[y + 1][x]) / 2;
      std::putchar(" .:-=+*#%@"[static_cast<int>(mean * 9.99f)]);
    }
    std::putchar('\n');
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
      return std::puts("cnn [--data DIR|glyphs] [--epochs N] [--limit N] [--device cuda]"),
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
  auto loader =
      data::make_data_loader(TensorDataset(train).map(data::transforms::Stack<>()),
                             data::DataLoaderOptions(64).workers(1).drop_last(true).device(device));
  Cnn model;
  model->to(device);
  optim::Adam optimizer(model->parameters(), optim::AdamOptions(2e-3));
  const auto steps = static_cast<std::int64_t>(loader->size()) * epochs;
  optim::WarmupCosineLR schedule(optimizer, steps / 20, steps, 0.02);
  std::printf("%lld images from %s\n", static_cast<long long>(train.data().size(0)), root.c_str());

  double accuracy = 0;
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
    accuracy = accuracy_of(model, test);
    std::printf("epoch %lld   loss %.4f   test accuracy %.2f %%   %.1f s\n",
                static_cast<long long>(epoch), total / static_cast<double>(loader->size()),
                100 * accuracy, took.count());
    std::fflush(stdout);  // seen at once, in a file too
  }
  const NoGradGuard no_grad;
  const Tensor odds = model(test.data().narrow(0, 0, 1).to(device)).softmax(1);
  const auto guess = odds.argmax(1).item<int>();
  std::printf("\nThe first test image:\n");
  print_image(test.data()[0][0].contiguous());
  std::printf("  taken for class %d with %.1f %%; it is class %d\n", guess,
              100 * odds[0][guess].item<double>(), test.targets()[0].item<int>());
  return accuracy > 0.6 ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "cnn: %s\n", e.what()), 1;
}
