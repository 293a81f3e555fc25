// Samples of the ops of networks: softmax, attention, norms, losses, convolution, pooling, dropout.
#pragma once
#include "taper/tests/contract/samples.h"

namespace taper::contract {

template <> struct Samples<ops::Softmax> {
  static std::vector<Sample> make() {
    return {{"last", {numbers({3, 4})}, one([](Inputs in) { return softmax(in[0], 1); })},
            {"first", {numbers({2, 3, 2})}, one([](Inputs in) { return softmax(in[0], 0); })}};
  }
};

template <> struct Samples<ops::LogSoftmax> {
  static std::vector<Sample> make() {
    return {{"last", {numbers({3, 4})}, one([](Inputs in) { return log_softmax(in[0], 1); })},
            {"first", {numbers({3, 4})}, one([](Inputs in) { return log_softmax(in[0], 0); })}};
  }
};

template <> struct Samples<ops::Attention> {
  static std::vector<Sample> make() {
    const std::vector<Tensor> qkv = {numbers({2, 3, 2}), numbers({2, 4, 2}), numbers({2, 4, 3})};
    return {{"plain", qkv,
             one([](Inputs in) { return scaled_dot_product_attention(in[0], in[1], in[2]); })},
            {"causal", qkv, one([](Inputs in) {
               return scaled_dot_product_attention(in[0], in[1], in[2], {}, 0, true, 0.7);
             })},
            {"masked", qkv, one([](Inputs in) {
               return scaled_dot_product_attention(in[0], in[1], in[2],
                                                   mask34().to(in[0].device()));
             })},
            {"added, shared keys",
             {numbers({2, 3, 3, 2}), numbers({2, 1, 4, 2}), numbers({4, 3})},
             one([](Inputs in) {
               return scaled_dot_product_attention(in[0], in[1], in[2],
                                                   numbers({3, 4}).to(in[0].options()));
             })}};
  }
};

template <> struct Samples<ops::Lstm> {
  static std::vector<Sample> make() {
    const auto states = [](std::vector<std::int64_t> sizes) {
      return [sizes](Inputs in) -> Outputs {
        const LstmStates s = lstm_layer(in[0], in[1], in[2], in[3], sizes);
        return {s.h, s.c};
      };
    };
    const std::vector<Tensor> weights = {numbers({8, 2}, -1, 1), numbers({3, 2}), numbers({3, 2})};
    const auto inputs = [&](std::int64_t rows) {
      return std::vector<Tensor>{numbers({rows, 8}, -1, 1), weights[0], weights[1], weights[2]};
    };
    return {{"equal lengths", inputs(9), states({3, 3, 3})},
            {"unequal lengths", inputs(8), states({3, 2, 2, 1})},
            {"one step", inputs(3), states({3})},
            {"with gates", inputs(6), direct([] {
               return ops::Lstm({3, 2, 1});
             })}};
  }
};

template <> struct Samples<ops::Gru> {
  static std::vector<Sample> make() {
    const auto states = [](std::vector<std::int64_t> sizes) {
      return one([sizes](Inputs in) { return gru_layer(in[0], in[1], in[2], in[3], sizes); });
    };
    const auto inputs = [](std::int64_t rows) {
      return std::vector<Tensor>{numbers({rows, 6}, -1, 1), numbers({6, 2}, -1, 1), numbers({6}),
                                 numbers({3, 2})};
    };
    return {{"equal lengths", inputs(9), states({3, 3, 3})},
            {"unequal lengths", inputs(8), states({3, 2, 2, 1})},
            {"no bias",
             {numbers({6, 6}, -1, 1), numbers({6, 2}, -1, 1), numbers({3, 2})},
             one([](Inputs in) {
               return gru_layer(in[0], in[1], {}, in[2], {3, 3});
             })},
            {"with gates", inputs(6), direct([] {
               return ops::Gru({3, 2, 1});
             })}};
  }
};

template <> struct Samples<ops::LayerNorm> {
  static std::vector<Sample> make() {
    return {{"affine", {numbers({3, 4}), numbers({4}, 0.5, 2), numbers({4})}, one([](Inputs in) {
               return layer_norm(in[0], 4, in[1], in[2]);
             })},
            {"plain", {numbers({2, 3, 2})}, one([](Inputs in) {
               return layer_norm(in[0], {3, 2});
             })}};
  }
};

template <> struct Samples<ops::BatchNorm> {
  static std::vector<Sample> make() {
    return {
        {"training",
         {numbers({3, 2, 2, 2}), numbers({2}, 0.5, 2), numbers({2})},
         one([](Inputs in) { return batch_norm(in[0], {}, {}, in[1], in[2], true, 0.1, 1e-5); })},
        {"evaluation", {numbers({3, 2, 2}), numbers({2}, 0.5, 2), numbers({2})}, one([](Inputs in) {
           return batch_norm(in[0], numbers({2}).to(in[0].options()),
                             numbers({2}, 0.5, 1).to(in[0].options()), in[1], in[2], false, 0.1,
                             1e-5);
         })}};
  }
};

template <> struct Samples<ops::NllLoss> {
  static std::vector<Sample> make() {
    return {{"mean", {numbers({3, 4})}, one([](Inputs in) {
               return nll_loss(in[0], integers({1, 0, 3}).to(in[0].device()));
             })},
            {"none", {numbers({3, 4})}, one([](Inputs in) {
               return nll_loss(in[0], integers({1, 0, 3}).to(in[0].device()), {}, kNone);
             })},
            {"cross-entropy", {numbers({3, 4})}, one([](Inputs in) {
               return cross_entropy(in[0], integers({1, 0, 3}).to(in[0].device()), {}, kSum);
             })}};
  }
};

template <> struct Samples<ops::Huber> {
  static std::vector<Sample> make() {
    return {{"huber", {numbers({3, 4}), numbers({3, 4}, -2, 2)}, one([](Inputs in) {
               return huber_loss(in[0], in[1], kNone, 0.7);
             })},
            {"smooth l1", {numbers({3, 4}), numbers({3, 4}, -2, 2)}, one([](Inputs in) {
               return smooth_l1_loss(in[0], in[1]);
             })}};
  }
};

template <> struct Samples<ops::BinaryCrossEntropy> {
  static std::vector<Sample> make() {
    return {{"mean", {numbers({3, 4})}, one([](Inputs in) {
               return binary_cross_entropy(in[0], numbers({3, 4}, 0, 1, 0.2).to(in[0].options()));
             })}};
  }
};

template <> struct Samples<ops::Conv2d> {
  static std::vector<Sample> make() {
    return {{"bias",
             {numbers({2, 2, 3, 3}, -1, 1), numbers({3, 2, 2, 2}, -1, 1), numbers({3})},
             one([](Inputs in) { return conv2d(in[0], in[1], in[2]); })},
            {"stride, padding",
             {numbers({1, 2, 4, 4}, -1, 1), numbers({2, 1, 3, 2}, -1, 1)},
             one([](Inputs in) {
               return conv2d(in[0], in[1], {}, {2, 1}, {1, 0}, 1, 2);
             })}};
  }
};

template <> struct Samples<ops::Conv2dGradInput> {
  static std::vector<Sample> make() {
    return {{"transpose",
             {numbers({1, 2, 2, 2}, -1, 1), numbers({2, 2, 2, 2}, -1, 1)},
             one([](Inputs in) { return conv_transpose2d(in[0], in[1]); })}};
  }
};

template <> struct Samples<ops::Conv2dGradWeight> {
  static std::vector<Sample> make() {
    return {{"apply", {numbers({2, 3, 2, 2}, -1, 1), numbers({2, 2, 3, 3}, -1, 1)}, direct([] {
               Window2d w;
               w.kernel[0] = w.kernel[1] = 2;
               return ops::Conv2dGradWeight(w, Sizes{3, 2, 2, 2});
             })}};
  }
};

template <> struct Samples<ops::MaxPool2d> {
  static std::vector<Sample> make() {
    return {{"2", {numbers({1, 2, 4, 4})}, one([](Inputs in) { return max_pool2d(in[0], 2); })},
            {"overlapping", {numbers({1, 1, 4, 5})}, one([](Inputs in) {
               return max_pool2d(in[0], 3, 1, 1);
             })}};
  }
};

template <> struct Samples<ops::MaxPool2dGrad> {
  static std::vector<Sample> make() { return {}; }
};

template <> struct Samples<ops::AvgPool2d> {
  static std::vector<Sample> make() {
    return {{"2", {numbers({1, 2, 4, 4})}, one([](Inputs in) { return avg_pool2d(in[0], 2); })},
            {"padding", {numbers({1, 1, 3, 4})}, one([](Inputs in) {
               return avg_pool2d(in[0], 3, 2, 1);
             })}};
  }
};

template <> struct Samples<ops::AvgPool2dGrad> {
  static std::vector<Sample> make() { return {}; }
};

template <> struct Samples<ops::RandomFill> {
  static std::vector<Sample> make() { return {}; }
};

template <> struct Samples<ops::Dropout> {
  static std::vector<Sample> make() {
    return {{"half", {numbers({3, 4})}, one([](Inputs in) {
               return [&] {
                 default_generator().set_state({7, 0});
                 return dropout(in[0], 0.5, true);
               }();
             })}};
  }
};

}  // namespace taper::contract
