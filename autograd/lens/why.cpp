// Where a gradient's path was cut, or where it became zero.
#include <algorithm>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include "taper/autograd/lens/answers.h"
#include "taper/autograd/lens/cuts.h"
#include "taper/autograd/lens/within.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"

namespace taper::lens {
namespace {

std::string norm_text(const Tensor& t) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g",
                t.detach().to(kDouble).square().sum().sqrt().item<double>());
  return text;
}

std::string name_of(const Tensor& t) {
  const AutogradMeta* meta = t.impl().meta;
  const std::string name = meta != nullptr && meta->leaf ? full_name(*meta->leaf) : "";
  return name.empty() ? str("the tensor ", t.dtype(), " ", t.sizes()) : str(name, " ", t.sizes());
}

// Of those that happened since `stamp`, the likeliest first: one whose result went on into a
// recorded op, later before earlier; then what was cut and never used again, among which reading a
// number is the most usual and harmless.
std::vector<Cut> cuts_of(const Leaf& leaf, std::uint64_t stamp) {
  std::vector<Cut> cuts;
  for (const auto& id : leaf.cuts) {
    const Cut c = cut(id.load(std::memory_order_relaxed));
    if (c.id != 0 && c.stamp >= stamp) cuts.push_back(c);
  }
  const auto rank = [](const Cut& c) {
    using Kind = Cut::Kind;
    if (c.joined.known()) return 0;
    return c.kind == Kind::kItem ? 3 : c.kind == Kind::kNoDerivative ? 2 : 1;
  };
  std::stable_sort(cuts.begin(), cuts.end(), [&](const Cut& a, const Cut& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.stamp > b.stamp;
  });
  return cuts;
}

std::string list_of(const std::string& name, const std::vector<Cut>& cuts) {
  std::string text;
  for (const Cut& c : cuts) {
    text += str(text.empty() ? name + ": the path of its gradient was cut by " : "\n  and by ",
                to_string(c));
    if (c.joined.known()) text += str("; the result was taken at ", taper::to_string(c.joined));
  }
  return text;
}

std::string last_use(const Leaf& leaf) {
  SourceLoc loc(leaf.last_file.load(std::memory_order_relaxed), "",
                leaf.last_line.load(std::memory_order_relaxed));
  std::string text = taper::to_string(loc);
  return text.substr(0, text.find(" in "));
}

// What happened last counts: a cut, a use that came to nothing, or a gradient that was dropped.
std::string why_no_leaf_grad(const std::string& name, Leaf& leaf) {
  const std::lock_guard lock(leaf.mutex);
  const std::uint64_t use = leaf.last_use.load(std::memory_order_relaxed);
  const std::uint64_t since = std::max(leaf.added, leaf.dropped);
  const std::vector<Cut> cuts = cuts_of(leaf, std::max(since, use));
  if (!cuts.empty()) return list_of(name, cuts);
  if (use >= since && use != 0) {
    std::string text =
        str(name, ": used last at ", last_use(leaf),
            ", but no backward ran over what came of it; does the loss depend on it?");
    for (const Cut& c : cuts_of(leaf, since))
      text += str("\n  before that its path was cut by ", to_string(c));
    return text;
  }
  if (leaf.dropped != 0) {
    return str(name, ": its gradient was dropped at ", taper::to_string(leaf.dropped_at),
               ", after backward at ", taper::to_string(leaf.added_at), " had added to it");
  }
  if (leaf.added != 0) {
    return str(name, ": backward at ", taper::to_string(leaf.added_at),
               " added to its gradient, which was reset since");
  }
  return str(name, ": made at ", taper::to_string(leaf.made_at),
             ", and no recorded op has used it; is it part of forward()?");
}

}  // namespace

std::string why_none(const Tensor& param, Loc loc) {
  const Call call(loc);
  const std::string name = name_of(param);
  const Within our_own("why_none");
  if (param.grad().defined())
    return str(name, ": there is a gradient, of norm ", norm_text(param.grad()));
  const AutogradMeta* meta = param.impl().meta;
  const Edge& edge = gradient_edge(param);
  if (edge && !edge.node->is_leaf && !param.retains_grad()) {
    return str(
        name, ": it was made by ", describe(*edge.node),
        "; gradients stay with leaves alone, unless retain_grad() is called before backward");
  }
  if (edge && !edge.node->is_leaf) {
    return str(name, ": it keeps its gradient, but no backward ran over ", describe(*edge.node),
               " since retain_grad()");
  }
  if (edge) return why_no_leaf_grad(name, *meta->leaf);
  const Cut own = cut(param.impl().cut);
  if (own.id != 0) return list_of(name, {own});
  if (!param.is_floating_point()) return str(name, ": only floating-point tensors have gradients");
  return str(name,
             ": it does not require grad, and never did; call requires_grad_(), or "
             "register_parameter() in a module");
}

namespace {

// What depends on the leaf, among the entries alive now; by rising index, as they are.
std::vector<Ref<Entry>> dependents(const Leaf& leaf) {
  std::unordered_set<const Node*> reached{&leaf};
  std::vector<Ref<Entry>> found;
  for (const Ref<Entry>& entry : all_entries()) {
    const bool depends =
        std::any_of(entry->inputs.begin(), entry->inputs.end(),
                    [&](const Edge& e) { return e && reached.count(e.node.get()) != 0; });
    if (!depends) continue;
    reached.insert(entry.get());
    found.push_back(entry);
  }
  return found;
}

// A tensor that stands for the output of an entry, to begin a pass from.
Tensor stand_in(const Ref<Entry>& entry) {
  const TensorSpec& spec = entry->outputs[0];
  const Tensor t = make_tensor(contiguous_layout(spec.sizes), spec.dtype, spec.device);
  set_history(t, entry, 0);
  return t;
}

bool all_zero(const Tensor& t) {
  return !t.defined() || !any(t != 0).item<bool>();
}

// "saved f32 (4, 8): all 32 elements are <= 0"
std::string what_of(const SavedTensor& s) {
  const Tensor t = make_tensor(s.storage, s.layout, s.dtype);
  std::string text = str("it had saved ", t.dtype(), " ", t.sizes());
  if (t.numel() == 0) return text;
  if (t.dtype() == kBool) return str(text, any(t).item<bool>() ? "" : ", all false");
  const auto low = t.min().item<double>(), high = t.max().item<double>();
  return low == high ? str(text, ", all ", low) : str(text, " between ", low, " and ", high);
}

bool any_nonzero(const std::vector<double>& norms) {
  return std::any_of(norms.begin(), norms.end(), [](double n) { return n != 0; });
}

// Whether the op lets no gradient at all through to inputs on the path. Tried with numbers that
// follow no pattern: softmax, say, rightly swallows equal ones. The first such op in the order of
// the forward is the cause; what comes after it often blocks only because of it.
bool blocks_all(const Entry& entry, const std::unordered_set<const Node*>& on_path) {
  SmallVector<Tensor, 1> grads;
  for (const TensorSpec& spec : entry.outputs) {
    std::int64_t n = 1;
    for (const std::int64_t size : spec.sizes) n *= size;
    const Tensor i = arange(Scalar(n), TensorOptions(kDouble)).reshape(spec.sizes);
    grads.push_back((sin(i * i + 1) + 2).to(spec.dtype).to(spec.device));
  }
  std::uint64_t needs = 0;
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    if (entry.inputs[i] && on_path.count(entry.inputs[i].node.get()) != 0)
      needs |= std::uint64_t{1} << i;
  }
  const Grads out =
      entry.op->backward(Reverse(entry, ArrayRef<Tensor>(grads.data(), grads.size()), needs));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if ((needs >> i & 1U) != 0 && !all_zero(out[i])) return false;
  }
  return needs != 0;
}

std::string told(bool first, const std::string& name, const Entry& entry) {
  std::string text =
      str(first ? name + ": its gradient became zero in " : "\n  and in ", describe(entry));
  for (const SavedTensor& s : entry.saved) text += "\n    " + what_of(s);
  return text;
}

// The latest recorded result that depends on a tensor.
Tensor latest_result(const AutogradMeta& meta, const std::string& name) {
  const std::vector<Ref<Entry>> found =
      meta.leaf ? dependents(*meta.leaf) : std::vector<Ref<Entry>>();
  TAPER_CHECK(!found.empty(), "why_zero: nothing that is alive depends on ", name,
              "; give the loss, and keep it");
  const Entry& last = *found.back();
  TAPER_CHECK(
      !last.consumed, "why_zero: ", describe(last), " was run backwards at ",
      taper::to_string(last.consumed_at),
      " and gave back what it had saved; ask before backward, or run that with retain_graph");
  return stand_in(found.back());
}

// The ops on a path that let nothing through, in the order of the forward; "" when there are none.
std::string blocked(const std::vector<Ref<Entry>>& backwards,
                    const std::unordered_set<const Node*>& on_path,
                    const std::string& name) {
  std::string text;
  for (auto it = backwards.rbegin(); it != backwards.rend(); ++it) {
    if (blocks_all(**it, on_path)) text += told(text.empty(), name, **it);
  }
  return text;
}

}  // namespace

std::string why_zero(const Tensor& param, const Tensor& root, Loc loc) {
  const Call call(loc);
  const std::string name = name_of(param);
  const AutogradMeta* meta = param.impl().meta;
  TAPER_CHECK(meta != nullptr && meta->edge, "why_zero: ", name,
              " does not require grad; ask why_none");
  const Tensor from = root.defined() ? root : latest_result(*meta, name);
  const NoGradGuard no_grad;
  const Within our_own("why_zero");
  const Tensor ones_of = from.numel() == 1 ? Tensor() : ones_like(from.detach());
  BackwardOptions options;
  options.retain_graph = true;
  options.accumulate = false;
  options.run_hooks = false;
  Backward pass(ArrayRef<Tensor>(&from, 1),
                ones_of.defined() ? ArrayRef<Tensor>(&ones_of, 1) : ArrayRef<Tensor>(),
                ArrayRef<Tensor>(&param, 1), options, loc);
  std::vector<Ref<Entry>> path;  // backwards
  std::unordered_set<const Node*> on_path;
  std::string stops;
  while (pass.step()) {
    on_path.insert(&pass.node());
    if (pass.node().is_leaf) continue;
    const auto& entry = static_cast<const Entry&>(pass.node());
    path.emplace_back(const_cast<Entry*>(&entry));  // NOLINT: counting is not a change
    const Moment now = pass.here();
    if (any_nonzero(now.norms_in) && !any_nonzero(now.norms_out))
      stops += told(stops.empty(), name, entry);
  }
  const Tensor& grad = pass.captured(0);
  if (!grad.defined()) {
    return str(name, ": ", describe(*gradient_edge(from).node),
               " does not depend on it; ask why_none");
  }
  if (all_zero(grad)) {
    const std::string blocks = blocked(path, on_path, name);
    if (!blocks.empty()) return blocks;
    return stops.empty() ? str(name, ": the paths to it cancel each other") : stops;
  }
  std::string answer = str(name, ": its gradient is not zero, but of norm ", norm_text(grad));
  if (param.grad().defined() && all_zero(param.grad()))
    answer += "; grad() holds zeros all the same: a hook, or zero_grad(false) after backward?";
  return answer;
}

std::string writers(const Tensor& t) {
  std::string text;
  for (const Mutation& m : t.storage()->last_writers()) {
    text += str("version ", m.version, ": ", m.op, " at ", taper::to_string(m.loc), "\n");
  }
  return text;
}

std::string suspects(const Tensor& root, Loc loc) {
  const Call call(loc);
  TAPER_CHECK(gradient_edge(root), "suspects: nothing was recorded that made this tensor ",
              root.sizes());
  std::vector<Ref<Node>> nodes{gradient_edge(root).node};
  std::unordered_set<const Node*> seen{nodes[0].get()};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->is_leaf) continue;
    for (const Edge& edge : static_cast<const Entry&>(*nodes[i]).inputs) {
      if (edge && seen.insert(edge.node.get()).second) nodes.push_back(edge.node);
    }
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a->index < b->index; });
  std::string text;
  for (const Ref<Node>& node : nodes) {
    if (node->is_leaf) continue;
    const auto& entry = static_cast<const Entry&>(*node);
    if (entry.op->elementwise() && entry.both_stretched) {
      text += str(describe(entry), " stretched both its operands to ",
                  IntArrayRef(entry.outputs[0].sizes), "; is one a row and the other a column?\n");
    }
    for (const Edge& edge : entry.inputs) {
      const Cut c = cut(edge.cut);
      if (c.id != 0) text += str(describe(entry), " took what was cut by ", to_string(c), "\n");
    }
  }
  return text;
}

}  // namespace taper::lens
