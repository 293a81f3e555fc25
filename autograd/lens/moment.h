// One step of a backward pass, told whole: which line it belongs to, what it holds, what flowed.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/autograd/tape.h"

namespace taper::lens {

// An input of the forward, as the tape knows it.
struct InputInfo {
  TensorSpec spec;  // sizes are empty and `wanted` is false where no gradient is wanted
  bool wanted = false;
  std::string
      from;  // "#12 relu at model.cpp:19", "fc1.weight", "a leaf (3, 4)", "no gradient wanted"
};

// A tensor that the entry keeps for its rule.
struct SavedInfo {
  Sizes sizes;
  DType dtype = DType::kFloat32;
  std::uint64_t bytes = 0;  // of its storage, which others may share
  std::string owner;     // whose it is: "its own output 0", "#12 relu at ...", "fc1.weight", "data"
  bool written = false;  // since it was saved: the rule will refuse it
};

// What one step of Backward did. Gradients are the tensors themselves, not copies.
struct Moment {
  std::uint64_t entry = 0;  // number on the tape
  std::string op;           // of a leaf: "accumulate"
  SourceLoc loc;            // of the forward
  std::string scope;        // "encoder.3.attn"; of a leaf its full name
  bool is_leaf = false;
  std::vector<InputInfo> inputs;
  std::vector<SavedInfo> saved;
  std::uint64_t saved_bytes = 0;  // storages counted once
  std::vector<Tensor> grads_in;   // of the forward's outputs; undefined where none came
  std::vector<Tensor> grads_out;  // of the forward's inputs; undefined where none is wanted
  std::vector<double> norms_in, norms_out;  // their 2-norms, 0 where undefined
};

// "#17 relu at model.cpp:19 in forward", with the scope when there is one.
std::string describe(const Node& node);

// The step of that node, from its gradients.
Moment moment_of(const Node& node, ArrayRef<Tensor> incoming, ArrayRef<Tensor> outgoing);

// Several lines, for a terminal.
std::string to_string(const Moment& moment);
std::ostream& operator<<(std::ostream& out, const Moment& moment);

}  // namespace taper::lens
