// LibTorch's side of the train group: the models of benchmarks/models.cpp, by the same names.
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>

#include <torch/torch.h>
#include <zlib.h>

#include "taper/benchmarks/bench.h"
#include "taper/benchmarks/peers/torch_peer.h"

namespace {

namespace nn = torch::nn;
using torch::Tensor;

using Step = std::function<void()>;

nn::Sequential mlp() {
  return nn::Sequential(nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 128), nn::ReLU(),
                        nn::Linear(128, 10));
}

nn::Sequential cnn() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 32, 3).padding(1)), nn::ReLU(),
                        nn::MaxPool2d(2), nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1)),
                        nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(64 * 7 * 7, 128),
                        nn::ReLU(), nn::Linear(128, 10));
}

constexpr long kLetters = 512, kWidth = 256, kBlocks = 4, kHeads = 4, kContext = 128, kBatch = 8;

struct BlockImpl : nn::Module {
  BlockImpl()
      : norm1(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({kWidth})))),
        norm2(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({kWidth})))),
        in(register_module("in", nn::Linear(kWidth, 3 * kWidth))),
        out(register_module("out", nn::Linear(kWidth, kWidth))),
        up(register_module("up", nn::Linear(kWidth, 4 * kWidth))),
        down(register_module("down", nn::Linear(4 * kWidth, kWidth))) {}

  Tensor forward(Tensor x, const Tensor& mask) {
    const long head = kWidth / kHeads;
    const Tensor qkv = in(norm1(x)).view({-1, kContext, 3, kHeads, head}).permute({2, 0, 3, 1, 4});
    const Tensor scores =
        torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(head)) +
        mask;
    const Tensor mixed = torch::matmul(torch::softmax(scores, -1), qkv[2]);
    x = x + out(mixed.transpose(1, 2).reshape({-1, kContext, kWidth}));
    return x + down(torch::gelu(up(norm2(x))));
  }

  nn::LayerNorm norm1, norm2;
  nn::Linear in, out, up, down;
};
TORCH_MODULE(Block);

struct GptImpl : nn::Module {
  GptImpl()
      : token(register_module("token", nn::Embedding(kLetters, kWidth))),
        place(register_module("place", nn::Embedding(kContext, kWidth))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({kWidth})))),
        head(register_module("head", nn::Linear(nn::LinearOptions(kWidth, kLetters).bias(false)))) {
    for (long i = 0; i < kBlocks; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), Block()));
  }

  Tensor forward(const Tensor& ids) {
    Tensor x = token(ids) + place(torch::arange(kContext));
    for (Block& b : blocks) x = b(x, mask);
    return head(norm(x));
  }

  nn::Embedding token, place;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  Tensor mask = torch::full({kContext, kContext}, -1e9).triu(1);
};
TORCH_MODULE(Gpt);

template <class Model> class Training {
 public:
  explicit Training(Model model) : model_(std::move(model)) {}

  void step(const Tensor& x, const Tensor& y) {
    adam_.zero_grad();
    const Tensor scores = model_->forward(x);
    nn::functional::cross_entropy(scores.flatten(0, -2), y).backward();
    adam_.step();
  }

 private:
  Model model_;
  torch::optim::Adam adam_{model_->parameters(), 1e-3};
};

template <class Model> Step step_of(Model model, const Tensor& x, const Tensor& y) {
  const auto training = std::make_shared<Training<Model>>(std::move(model));
  return [training, x, y] { training->step(x, y); };
}

Step mlp_step(long batch) {
  return step_of(mlp(), torch::rand({batch, 784}), torch::randint(10, {batch}, torch::kLong));
}

Step cnn_step(torch::MemoryFormat format) {
  nn::Sequential model = cnn();
  for (Tensor& p : model->parameters()) {
    if (p.dim() == 4) p.set_data(p.contiguous(format));
  }
  return step_of(model, torch::rand({64, 1, 28, 28}).contiguous(format),
                 torch::randint(10, {64}, torch::kLong));
}

Step gpt_step() {
  return step_of(Gpt(), torch::randint(kLetters, {kBatch, kContext}, torch::kLong),
                 torch::randint(kLetters, {kBatch * kContext}, torch::kLong));
}

Tensor read_idx(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return {};
  unsigned char head[4] = {};
  gzread(file, head, 4);
  std::vector<long> sizes;
  for (int d = 0; d < head[3]; ++d) {
    unsigned char n[4] = {};
    gzread(file, n, 4);
    sizes.push_back(n[0] << 24 | n[1] << 16 | n[2] << 8 | n[3]);
  }
  Tensor out = torch::empty(sizes, torch::kByte);
  gzread(file, out.data_ptr(), static_cast<unsigned>(out.numel()));
  gzclose(file);
  return out;
}

// Batches by index_select, which is quicker than its data loader.
Step fashion_mnist_epoch() {
  const char* named = std::getenv("TAPER_DATA");
  const std::string root = named == nullptr ? "/usr/share/datasets/fashion-mnist" : named;
  const Tensor images = read_idx(root + "/train-images-idx3-ubyte.gz");
  const Tensor labels = read_idx(root + "/train-labels-idx1-ubyte.gz");
  if (!images.defined() || !labels.defined()) return {};
  const Tensor x = images.view({-1, 784}).to(torch::kFloat).div_(255), y = labels.to(torch::kLong);
  const auto training = std::make_shared<Training<nn::Sequential>>(mlp());
  return [training, x, y] {
    const Tensor order = torch::randperm(x.size(0), torch::kLong);
    for (long i = 0; i + 64 <= x.size(0); i += 64) {
      const Tensor rows = order.slice(0, i, i + 64);
      training->step(x.index_select(0, rows), y.index_select(0, rows));
    }
  };
}

Step make(const std::string& row) {
  if (row == "MLP 64") return mlp_step(64);
  if (row == "MLP 512") return mlp_step(512);
  if (row == "CNN NCHW") return cnn_step(torch::MemoryFormat::Contiguous);
  if (row == "CNN channels_last") return cnn_step(torch::MemoryFormat::ChannelsLast);
  if (row == "GPT") return gpt_step();
  if (row == "Fashion-MNIST epoch") return fashion_mnist_epoch();
  return {};
}

}  // namespace

double train_seconds(const std::string& row) {
  static std::map<std::string, Step> steps;  // warm from turn to turn
  Step& step = steps[row];
  if (!step) {
    if (step = make(row); !step) return std::nan("");
    for (int i = 0; row != "Fashion-MNIST epoch" && i < 5; ++i) step();
  }
  return bench::best_seconds(step, 0.25);
}
