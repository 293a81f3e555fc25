// How a backward pass goes back: gradients kept on the way, what hooks made of theirs, and the
// latest step.
#pragma once
#include <unordered_map>

#include "taper/autograd/backward.h"

namespace taper {

// Gradients in flight are the only state of a pass that changes; entries and what they saved stay.
// So a list of those gradients, kept every `stride` nodes, is enough to run on from there. They
// are handles, not copies: what they cost is that the tensors live longer. Whatever that adds is
// held to a twentieth of what the tape saved, by keeping fewer.
struct Backward::History {
  struct Snapshot {
    std::size_t position;
    std::vector<Reached> reached;
  };

  using Gradients = SmallVector<Tensor, 1>;

  explicit History(const Backward& pass);

  // Whether the node at that position has run once: then its hooks and its sums stand.
  bool is_old(std::size_t position) const { return position < furthest; }

  void before(const Backward& pass);  // a node runs
  void run_hooks(Backward& pass, Node& node, Gradients& grads);
  void keep_outgoing(const Grads& grads);
  void after(const Backward& pass, const Ref<Node>& node, Gradients grads);
  const Snapshot& latest_before(std::size_t position) const;
  void take(const Backward& pass);
  // What the entries that ran before that position had saved.
  std::uint64_t bytes_ran(std::size_t position) const;

  std::size_t first;     // where it begins
  std::size_t furthest;  // how far the pass ever came
  std::size_t stride = 1;
  std::uint64_t most_bytes = 0;
  std::vector<Snapshot> snapshots;  // by rising position
  std::vector<Ref<Node>> ran;       // [i] ran at position first + i
  // By position, where hooks have run: what they made of the gradients; empty: nothing.
  std::unordered_map<std::size_t, Gradients> hooked;  // by position, where hooks changed something
  // The latest step; no node: there is none.
  Ref<Node> node;
  Gradients incoming;
  Grads outgoing;
};

}  // namespace taper
