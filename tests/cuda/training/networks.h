// Small networks that use most kinds of layers, and batches to train them with.
#pragma once
#include "taper/taper.h"

namespace taper::cuda {

struct MlpImpl : nn::Module {
  MlpImpl() {
    fc1 = register_module("fc1", nn::Linear(20, 33));
    norm = register_module("norm", nn::LayerNorm(std::vector<std::int64_t>{33}));
    drop = register_module("drop", nn::Dropout(0.2));
    fc2 = register_module("fc2", nn::Linear(33, 10));
  }

  // (N, 20) -> (N, 10)
  Tensor forward(const Tensor& x) { return fc2(drop(gelu(norm(fc1(x))))); }

  nn::Linear fc1{nullptr}, fc2{nullptr};
  nn::LayerNorm norm{nullptr};
  nn::Dropout drop{nullptr};
};
TAPER_MODULE(Mlp);

struct CnnImpl : nn::Module {
  CnnImpl() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 6, 3).padding(1)));
    norm = register_module("norm", nn::BatchNorm2d(6));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(6, 8, 3).stride(2).groups(2)));
    fc = register_module("fc", nn::Linear(8, 10));
  }

  Tensor forward(const Tensor& x) {                        // (N, 1, 14, 14)
    const Tensor h = max_pool2d(relu(norm(conv1(x))), 2);  // (N, 6,  7,  7)
    const Tensor g = silu(conv2(h));                       // (N, 8,  3,  3)
    return fc(avg_pool2d(g, 3).flatten(1));                // (N, 10)
  }

  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Linear fc{nullptr};
};
TAPER_MODULE(Cnn);

struct GptImpl : nn::Module {
  GptImpl() {
    token = register_module("token", nn::Embedding(10, 16));
    place = register_module("place", nn::Embedding(8, 16));
    blocks = register_module("blocks", nn::Sequential());
    for (int i = 0; i < 2; ++i) blocks->push_back(nn::TransformerBlock(16, 2));
    head = register_module("head", nn::Linear(16, 10));
  }

  // (B, T) letters -> (B T, 10): scores of the letter that follows each.
  Tensor forward(const Tensor& ids) {
    const Tensor x = token(ids) + place(arange(ids.size(1), ids.device()));
    return head(blocks(x)).flatten(0, 1);
  }

  nn::Embedding token{nullptr}, place{nullptr};
  nn::Sequential blocks{nullptr};
  nn::Linear head{nullptr};
};
TAPER_MODULE(Gpt);

struct RecurrentImpl : nn::Module {
  RecurrentImpl() {
    token = register_module("token", nn::Embedding(10, 12));
    lstm = register_module(
        "lstm", nn::LSTM(nn::LSTMOptions(12, 9).num_layers(2).bidirectional(true).dropout(0.2)));
    gru = register_module("gru", nn::GRU(nn::GRUOptions(18, 7).batch_first(true)));
    fc = register_module("fc", nn::Linear(7, 10));
  }

  // (B, T) letters -> (B T, 10)
  Tensor forward(const Tensor& ids) {
    const Tensor states = std::get<0>(lstm(token(ids.t())));
    return fc(std::get<0>(gru(states.transpose(0, 1)))).flatten(0, 1);
  }

  nn::Embedding token{nullptr};
  nn::LSTM lstm{nullptr};
  nn::GRU gru{nullptr};
  nn::Linear fc{nullptr};
};
TAPER_MODULE(Recurrent);

using Batch = data::Example<>;

inline Batch vectors() {
  return {randn({24, 20}), randint(10, {24})};
}

inline Batch images() {
  return {randn({6, 1, 14, 14}), randint(10, {6})};
}

inline Batch letters() {
  return {randint(10, {2, 8}), randint(10, {16})};
}

}  // namespace taper::cuda
