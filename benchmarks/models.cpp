// An MLP, a CNN and a GPT, and what trains them.
#include "taper/benchmarks/models.h"

#include <memory>

#include "taper/taper.h"

namespace bench {
namespace {

namespace nn = taper::nn;
using taper::Tensor;

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

struct GptImpl : nn::Module {
  explicit GptImpl(const GptSizes& s)
      : token(register_module("token", nn::Embedding(s.letters, s.width))),
        place(register_module("place", nn::Embedding(s.context, s.width))),
        blocks(register_module("blocks", nn::Sequential())),
        norm(register_module("norm", nn::LayerNorm(std::vector<std::int64_t>{s.width}))),
        head(register_module("head",
                             nn::Linear(nn::LinearOptions(s.width, s.letters).bias(false)))) {
    for (long i = 0; i < s.blocks; ++i) blocks->push_back(nn::TransformerBlock(s.width, s.heads));
  }

  // (B, T) -> (B, T, letters)
  Tensor forward(const Tensor& ids) {
    return head(norm(blocks(token(ids) + place(taper::arange(ids.size(1))))));
  }

  nn::Embedding token, place;
  nn::Sequential blocks;
  nn::LayerNorm norm;
  nn::Linear head;
};
TAPER_MODULE(Gpt);

template <class Model> class Training {
 public:
  explicit Training(Model model) : model_(std::move(model)) {}

  void step(const Tensor& x, const Tensor& y) {
    adam_.zero_grad();
    const Tensor scores = model_(x);
    nn::functional::cross_entropy(scores.flatten(0, -2), y).backward();
    adam_.step();
  }

 private:
  Model model_;
  taper::optim::Adam adam_{model_->parameters(), 1e-3};
};

template <class Model> TrainingStep step_of(Model model, const Tensor& x, const Tensor& y) {
  const auto training = std::make_shared<Training<Model>>(std::move(model));
  return [training, x, y] { training->step(x, y); };
}

template <class Data> TrainingStep epoch_of(Data data, long batch) {
  using taper::data::DataLoaderOptions;
  auto stacked = std::move(data).map(taper::data::transforms::Stack<>());
  const std::shared_ptr loader = taper::data::make_data_loader(
      std::move(stacked),
      DataLoaderOptions(static_cast<std::size_t>(batch)).workers(1).drop_last(true));
  const auto training = std::make_shared<Training<nn::Sequential>>(mlp());
  return [loader, training] {
    for (auto& b : *loader) training->step(b.data.flatten(1), b.target);
  };
}

}  // namespace

TrainingStep mlp_step(const MlpSizes& s) {
  return step_of(mlp(), taper::rand({s.batch, 784}), taper::randint(10, {s.batch}));
}

TrainingStep cnn_step(const CnnSizes& s, taper::MemoryFormat format) {
  return step_of(cnn(), taper::rand({s.batch, 1, 28, 28}).contiguous(format),
                 taper::randint(10, {s.batch}));
}

TrainingStep gpt_step(const GptSizes& s) {
  return step_of(Gpt(s), taper::randint(s.letters, {s.batch, s.context}),
                 taper::randint(s.letters, {s.batch * s.context}));
}

TrainingStep fashion_mnist_epoch(const MlpSizes& s, bool tiny) {
  if (tiny) return epoch_of(taper::data::datasets::glyphs(4 * s.batch, 1), s.batch);
  const std::string root = taper::data::datasets::find_fashion_mnist();
  if (root.empty()) return {};
  return epoch_of(taper::data::datasets::MNIST(root), s.batch);
}

}  // namespace bench
