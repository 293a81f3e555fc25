// The ring of cuts, and the walk from a cut to the leaves whose gradient it ends.
#include "taper/autograd/lens/cuts.h"

#include <mutex>
#include <unordered_set>

#include "taper/core/base/spin_lock.h"

namespace taper::lens {

constinit Cut* cut_ring = nullptr;

namespace {

constexpr std::size_t kLines = 32;  // bits of Node::walked

struct Ring {
  SpinLock lock;
  std::uint32_t latest = 0;
  std::size_t num_lines = 0;
  Cut lines[kLines];  // the first places that cut, which have a bit each
};

constinit Ring ring;

std::uint32_t write_down(Cut c) {
  const std::lock_guard guard(ring.lock);
  if (cut_ring == nullptr) cut_ring = new Cut[kCutsKept];  // never freed: tensors may outlive main
  if (++ring.latest == 0) ring.latest = 1;
  c.id = ring.latest;
  cut_ring[c.id % kCutsKept] = c;
  return c.id;
}

bool same_place(const Cut& a, const Cut& b) {
  return a.id != 0 && a.kind == b.kind && a.op == b.op && a.loc.line == b.loc.line &&
         a.loc.file == b.loc.file && a.scope == b.scope;
}

// What is usual and harmless does not drive out what is neither.
int weight(const Cut& c) {
  if (c.id == 0) return 0;
  if (c.joined.known()) return 3;
  return c.kind == Cut::Kind::kItem || c.kind == Cut::Kind::kNoDerivative ? 1 : 2;
}

void mark(Leaf& leaf, std::uint32_t id, const Cut& c) {
  const std::lock_guard guard(leaf.mutex);
  std::size_t least = 0;
  int least_weight = 4;
  for (std::size_t i = 0; i < leaf.cuts.size(); ++i) {
    const Cut kept = cut(leaf.cuts[i]);
    if (same_place(kept, c)) {
      leaf.cuts[i] = id;
      return;
    }
    if (weight(kept) < least_weight) {
      least = i;
      least_weight = weight(kept);
    }
  }
  if (weight(c) < least_weight) return;
  for (std::size_t i = least; i + 1 < leaf.cuts.size(); ++i) leaf.cuts[i] = leaf.cuts[i + 1].load();
  leaf.cuts.back() = id;
}

// The number under which the leaf has that cut already, as in an evaluation loop; it happens again.
std::uint32_t again(const Leaf& leaf, const Cut& c) {
  const std::lock_guard guard(ring.lock);
  if (cut_ring == nullptr) return 0;
  for (const auto& kept : leaf.cuts) {
    const std::uint32_t id = kept.load(std::memory_order_relaxed);
    Cut& known = cut_ring[id % kCutsKept];
    if (id == 0 || known.id != id || !same_place(known, c)) continue;
    known.stamp = c.stamp;
    known.guard = c.guard;
    return id;
  }
  return 0;
}

// The bit of a place that cuts; 0 when all are taken.
std::uint32_t bit_of(const Cut& c) {
  const std::lock_guard guard(ring.lock);
  for (std::size_t i = 0; i < ring.num_lines; ++i) {
    if (same_place(ring.lines[i], c)) return 1U << i;
  }
  if (ring.num_lines == kLines) return 0;
  ring.lines[ring.num_lines] = c;
  return 1U << ring.num_lines++;
}

// Each node is walked once for each place that cuts: a metric that is read every step costs each
// step's entries once, and a loop that cuts the same growing graph does not walk it again. Places
// without a bit walk all each time.
void mark_leaves(Node& from, std::uint32_t id, const Cut& c) {
  const std::uint32_t bit = bit_of(c);
  std::unordered_set<const Node*> seen;  // without a bit
  const auto was_here = [&](Node& node) {
    if (bit == 0) return !seen.insert(&node).second;
    return (node.walked.fetch_or(bit, std::memory_order_relaxed) & bit) != 0;
  };
  std::vector<Node*> stack{&from};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (node->is_leaf) {
      mark(static_cast<Leaf&>(*node), id, c);
      continue;
    }
    if (was_here(*node)) continue;
    for (const Edge& edge : static_cast<Entry*>(node)->inputs) {
      if (edge) stack.push_back(edge.node.get());
    }
  }
}

}  // namespace

Cut cut(std::uint32_t id) {
  const std::lock_guard guard(ring.lock);
  if (id == 0 || cut_ring == nullptr) return {};
  const Cut& kept = cut_ring[id % kCutsKept];
  return kept.id == id ? kept : Cut();
}

void note_joined(std::uint32_t id) {
  const std::lock_guard guard(ring.lock);
  Cut& kept = cut_ring[id % kCutsKept];
  if (kept.id == id) kept.joined = call_site.loc();
}

std::uint32_t note_cut(Cut::Kind kind, const char* op, const Tensor& t) {
  const Edge& edge = gradient_edge(t);
  if (!edge) return t.impl().cut;
  Cut c;
  c.stamp = next_entry_index();
  c.kind = kind;
  c.op = op;
  c.loc = call_site.loc();
  c.scope = call_site.scope;
  const bool off = kind == Cut::Kind::kNoGrad || kind == Cut::Kind::kInference;
  if (off && grad_mode_state.at != nullptr) c.guard = *grad_mode_state.at;
  if (edge.node->is_leaf) {
    if (const std::uint32_t id = again(static_cast<const Leaf&>(*edge.node), c)) return id;
  }
  const std::uint32_t id = write_down(c);
  c.id = id;
  mark_leaves(*edge.node, id, c);
  return id;
}

std::uint32_t note_unrecorded(const Op& op, ArrayRef<const Tensor*> inputs) {
  const Cut::Kind kind = GradMode::is_enabled()        ? Cut::Kind::kNoDerivative
                         : InferenceMode::is_enabled() ? Cut::Kind::kInference
                                                       : Cut::Kind::kNoGrad;
  std::uint32_t id = 0;
  for (const Tensor* t : inputs) {
    if (!t->defined()) continue;
    const std::uint32_t of_this = note_cut(kind, op.name(), *t);
    if (id == 0) id = of_this;
  }
  return id;
}

std::string to_string(const Cut& c) {
  using Kind = Cut::Kind;
  std::string text;
  switch (c.kind) {
    case Kind::kDetach: text = str("detach() at ", taper::to_string(c.loc)); break;
    case Kind::kNoGrad:
    case Kind::kInference:
      text =
          str(c.kind == Kind::kNoGrad ? "NoGradGuard at " : "InferenceMode at ",
              taper::to_string(c.guard), ", in force for ", c.op, " at ", taper::to_string(c.loc));
      break;
    case Kind::kNoDerivative:
      text = str(c.op, " at ", taper::to_string(c.loc), ", which has no derivative");
      break;
    case Kind::kItem:
      text = str("item() at ", taper::to_string(c.loc), ", which made a C++ number of it");
      break;
    case Kind::kFrozen: text = str("requires_grad_(false) at ", taper::to_string(c.loc)); break;
  }
  const std::string& scope = scope_name(c.scope);
  return scope.empty() ? text : str(text, ", scope ", scope);
}

}  // namespace taper::lens
