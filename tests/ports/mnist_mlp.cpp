// A LibTorch script: a perceptron on MNIST-like files. mnist_mlp ROOT [EPOCHS [BATCHES PER EPOCH]]
#include <cstdio>
#include <cstdlib>
#include <string>

#include <torch/torch.h>

struct NetImpl : torch::nn::Module {
  NetImpl(int64_t hidden)
      : fc1(register_module("fc1", torch::nn::Linear(784, hidden))),
        fc2(register_module("fc2", torch::nn::Linear(hidden, 64))),
        fc3(register_module("fc3", torch::nn::Linear(64, 10))) {}

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(fc1(x.view({-1, 784})));
    x = torch::dropout(x, /*p=*/0.1, /*train=*/is_training());
    x = torch::relu(fc2(x));
    return torch::log_softmax(fc3(x), /*dim=*/1);
  }

  torch::nn::Linear fc1, fc2, fc3;
};
TORCH_MODULE(Net);

template <typename Loader>
void train(int epoch, Net& net, Loader& loader, torch::optim::Optimizer& optimizer, int limit) {
  net->train();
  int batches = 0;
  double total = 0;
  for (auto& batch : loader) {
    if (limit > 0 && batches == limit) continue;  // a loader must run out before it begins again
    optimizer.zero_grad();
    torch::Tensor prediction = net->forward(batch.data);
    torch::Tensor loss = torch::nll_loss(prediction, batch.target);
    loss.backward();
    optimizer.step();
    total += loss.template item<float>();
    ++batches;
  }
  std::printf("epoch %d  training loss %.4f\n", epoch, total / batches);
}

template <typename Loader> double evaluate(Net& net, Loader& loader) {
  torch::NoGradGuard no_grad;
  net->eval();
  int64_t right = 0, seen = 0;
  for (const auto& batch : loader) {
    auto prediction = net(batch.data).argmax(1);
    right += prediction.eq(batch.target).sum().template item<int64_t>();
    seen += batch.data.size(0);
  }
  return static_cast<double>(right) / static_cast<double>(seen);
}

int main(int argc, char** argv) {
  const std::string root = argc > 1 ? argv[1] : "./data";
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 3;
  const int limit = argc > 3 ? std::atoi(argv[3]) : 0;
  torch::manual_seed(1);

  using namespace torch::data;
  auto train_set =
      datasets::MNIST(root).map(transforms::Normalize<>(0.1307, 0.3081)).map(transforms::Stack<>());
  auto test_set = datasets::MNIST(root, datasets::MNIST::Mode::kTest)
                      .map(transforms::Normalize<>(0.1307, 0.3081))
                      .map(transforms::Stack<>());
  std::printf("%zu images to learn, %zu to test\n", train_set.size().value(),
              test_set.size().value());
  auto train_loader = make_data_loader(std::move(train_set), DataLoaderOptions(64).workers(1));
  auto test_loader = make_data_loader(std::move(test_set), /*batch_size=*/500);

  Net net(128);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(2e-3));
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    train(epoch, net, *train_loader, optimizer, limit);
  }
  const double accuracy = evaluate(net, *test_loader);

  torch::save(net, "mnist_mlp.pt");
  torch::save(optimizer, "mnist_mlp_optimizer.pt");
  Net again(128);
  torch::load(again, "mnist_mlp.pt");
  torch::load(optimizer, "mnist_mlp_optimizer.pt");
  const double reloaded = evaluate(again, *test_loader);
  std::printf("test accuracy %.2f %%, after save and load %.2f %%\n", 100 * accuracy,
              100 * reloaded);
  return accuracy > 0.7 && accuracy == reloaded ? 0 : 1;
}
