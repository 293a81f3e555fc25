// A LibTorch script: a convolutional network on MNIST-like files. mnist_cnn ROOT [EPOCHS [BATCHES]]
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <torch/torch.h>

struct Net : torch::nn::Module {
  Net()
      : conv1(torch::nn::Conv2dOptions(1, 8, /*kernel_size=*/5)),
        conv2(torch::nn::Conv2dOptions(8, 16, 3).stride(1).padding(1).bias(false)),
        norm(16),
        drop(0.2),
        fc1(16 * 6 * 6, 50),
        fc2(50, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("norm", norm);
    register_module("drop", drop);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::max_pool2d(torch::relu(norm->forward(conv2->forward(x))), {2, 2});
    x = drop(torch::flatten(x, 1));
    return fc2->forward(torch::relu(fc1->forward(x)));
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::BatchNorm2d norm;
  torch::nn::Dropout drop;
  torch::nn::Linear fc1, fc2;
};

int main(int argc, char* argv[]) {
  const std::string root = argc > 1 ? argv[1] : "./data";
  const int epochs = argc > 2 ? std::stoi(argv[2]) : 2;
  const size_t limit = argc > 3 ? std::stoul(argv[3]) : 0;
  torch::manual_seed(1);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);

  auto model = std::make_shared<Net>();
  model->to(device);
  std::cout << *model << "\n";
  for (const auto& item : model->named_parameters()) {
    std::cout << item.key() << " " << item.value().sizes() << "\n";
  }

  auto train_loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      torch::data::datasets::MNIST(root, torch::data::datasets::MNIST::Mode::kTrain)
          .map(torch::data::transforms::Normalize<>(0.5, 0.5))
          .map(torch::data::transforms::Stack<>()),
      torch::data::DataLoaderOptions().batch_size(64).drop_last(true));
  auto test_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      torch::data::datasets::MNIST(root, torch::data::datasets::MNIST::Mode::kTest)
          .map(torch::data::transforms::Normalize<>(0.5, 0.5))
          .map(torch::data::transforms::Stack<>()),
      500);

  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-4));
  torch::nn::CrossEntropyLoss criterion;
  torch::optim::StepLR schedule(optimizer, /*step_size=*/1, /*gamma=*/0.7);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    model->train();
    size_t index = 0;
    for (auto& batch : *train_loader) {
      if (limit > 0 && index == limit) continue;  // a loader must run out before it begins again
      auto data = batch.data.to(device), targets = batch.target.to(device);
      optimizer.zero_grad();
      auto loss = criterion(model->forward(data), targets);
      loss.backward();
      torch::nn::utils::clip_grad_norm_(model->parameters(), 5.0);
      optimizer.step();
      if (index % 100 == 0)
        std::printf("epoch %d  batch %zu  loss %.4f\n", epoch, index, loss.item<float>());
      ++index;
    }
    schedule.step();
  }

  torch::save(model, "mnist_cnn.pt");
  auto copy = std::make_shared<Net>();
  torch::load(copy, "mnist_cnn.pt");
  copy->to(device);
  copy->eval();
  torch::NoGradGuard no_grad;
  double loss = 0;
  int64_t right = 0, seen = 0;
  std::vector<torch::Tensor> predictions;
  for (const auto& batch : *test_loader) {
    auto targets = batch.target.to(device);
    auto output = copy->forward(batch.data.to(device));
    loss += torch::nn::functional::cross_entropy(
                output, targets,
                torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
                .item<double>();
    predictions.push_back(output.argmax(1));
    right += predictions.back().eq(targets).sum().item<int64_t>();
    seen += targets.size(0);
  }
  const double accuracy = static_cast<double>(right) / static_cast<double>(seen);
  std::cout << "predicted " << torch::cat(predictions).slice(0, 0, 8).unsqueeze(0) << "\n";
  std::printf("test loss %.4f, accuracy %.2f %%\n", loss / static_cast<double>(seen),
              100 * accuracy);
  return accuracy > 0.7 ? 0 : 1;
}
