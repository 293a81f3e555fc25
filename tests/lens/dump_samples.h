// Small networks whose tapes are dumped.
#pragma once
#include "taper/taper.h"

namespace taper::testing {

struct SmallNetImpl : nn::Module {
  SmallNetImpl()
      : fc1(register_module("fc1", nn::Linear(3, 7))),
        fc2(register_module("fc2", nn::Linear(7, 2))) {}

  Tensor forward(const Tensor& in) { return fc2(relu(fc1(in))); }

  nn::Linear fc1, fc2;
};

struct SmallNet {
  SmallNetImpl* operator->() { return &net; }

  SmallNetImpl net;
  Tensor x = rand({5, 3});
};

// The loss of two blocks on random numbers.
inline Tensor transformer_loss() {
  nn::Sequential blocks;
  for (int i = 0; i < 2; ++i) blocks->push_back(nn::TransformerBlock(16, 2));
  return blocks(rand({2, 6, 16})).square().mean();
}

}  // namespace taper::testing
