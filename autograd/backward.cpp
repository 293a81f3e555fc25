// The backward pass: gradients flow from the roots, entry by entry, to the leaves.
#include "taper/autograd/backward.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_set>

#include "taper/autograd/inplace.h"
#include "taper/autograd/lens/cuts.h"
#include "taper/autograd/lens/history.h"
#include "taper/autograd/lens/hunt.h"
#include "taper/autograd/lens/within.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/shape.h"

namespace taper {
namespace {

// The gradient of a root: what was given, checked, or one.
Tensor root_gradient(const Tensor& root, const Tensor& given) {
  if (!gradient_edge(root)) {
    const lens::Cut cut = lens::cut(root.impl().cut);
    TAPER_CHECK(cut.id == 0, "backward: the tensor does not require grad: its path was cut by ",
                to_string(cut));
    fail(
        "backward: the tensor does not require grad, and nothing that it was made of did; call "
        "requires_grad_() on a leaf, or register it as a parameter");
  }
  if (given.defined()) {
    TAPER_CHECK(given.sizes() == root.sizes(), "backward: the gradient has shape ", given.sizes(),
                ", the tensor ", root.sizes());
    TAPER_CHECK(given.device() == root.device(), "backward: the gradient of ", given.sizes(),
                " lies on ", given.device(), ", the tensor on ", root.device(),
                "; move it with to(device)");
    return given;
  }
  TAPER_CHECK(root.numel() == 1, "backward: the tensor has shape ", root.sizes(),
              "; give a gradient of that shape, or reduce it to one element first");
  return ones_like(root);
}

// May `grad` be written in place? Only we hold it, and its elements lie apart.
bool is_ours(const Tensor& grad) {
  return grad.use_count() == 1 && grad.storage().use_count() == 1 && is_dense(grad.layout());
}

// The gradient as its target is: summed over broadcast dims, and of the same dtype.
Tensor fit(Tensor grad, const TensorSpec& spec) {
  if (!(grad.sizes() == IntArrayRef(spec.sizes))) grad = sum_to(grad, spec.sizes);
  if (grad.dtype() != spec.dtype) {
    TAPER_CHECK(grad.is_floating_point(), "backward returned a gradient ", grad.dtype(), " ",
                grad.sizes(), " for an input ", spec.dtype);
    grad = grad.to(spec.dtype);
  }
  if (!(grad.device() == spec.device)) grad = grad.to(spec.device);
  return grad;
}

std::size_t slots_of(const Node& node) {
  return node.is_leaf ? 1 : static_cast<const Entry&>(node).outputs.size();
}

std::size_t hash_of(const Node* node) {
  return (reinterpret_cast<std::size_t>(node) >> 4) * 0x9E3779B97F4A7C15u;
}

// What `from` wrote is used on the device's current stream from now on.
void take_over(const Tensor& t, StreamId from) {
  const Stream here = current_stream(t.device());
  if (here.id() == from) return;
  wait_for(here, Stream(t.device(), from));
  t.record_stream(here);
}

// Shows an entry to debuggers while it runs backwards: from before run_entry(), where they stop.
class Shown {
 public:
  Shown(const Entry& entry, ArrayRef<Tensor> grads, DebugPass& pass) : pass_(pass) {
    pass.grads = grads.data();
    pass.num_grads = grads.size();
    pass.entry = &entry;
  }

  ~Shown() { pass_.entry = nullptr; }

  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

 private:
  DebugPass& pass_;
};

// While an entry runs backwards, its thread stands at the line of its forward.
class AtEntry {
 public:
  explicit AtEntry(const Entry& entry) : kept_(call_site) {
    const char* op = entry.op->name();
    call_site = {&entry.loc, op, nullptr, op, entry.index, entry.scope};
  }

  ~AtEntry() { call_site = kept_; }

  AtEntry(const AtEntry&) = delete;
  AtEntry& operator=(const AtEntry&) = delete;

 private:
  CallSite kept_;
};

}  // namespace

Tensor Reverse::grad_or_zeros(std::size_t i) const {
  if (grads_[i].defined()) return grads_[i];
  const TensorSpec& spec = entry_.outputs[i];
  return zeros(spec.sizes, TensorOptions(spec.dtype).device(spec.device));
}

Tensor Reverse::saved(std::size_t k) const {
  TAPER_ASSERT(k < entry_.saved.size());
  const SavedTensor& s = entry_.saved[k];
  if (s.storage->version() != s.version) {
    std::string message = str("a tensor of shape ", s.layout.shape(), " that ", entry_.op->name(),
                              " saved for backward at ", to_string(entry_.loc), " (version ",
                              s.version, ") has been written since");
    for (const Mutation& m : s.storage->last_writers()) {
      if (m.version <= s.version) continue;
      message += str("; ", m.op, " at ", to_string(m.loc), " made version ", m.version);
    }
    fail(message + ". Write to a clone(), or write before the op that saves");
  }
  Tensor t = make_tensor(s.storage, s.layout, s.dtype);
  if (!GradMode::is_enabled()) return t;
  if (s.output < 0) {
    if (s.edge) meta_of(t).edge = s.edge;
    return t;
  }
  const Edge whole{Ref<Node>(const_cast<Entry*>(&entry_)),  // NOLINT: counting is not a change
                   static_cast<std::uint32_t>(s.output)};
  meta_of(t).edge = part_of_ == nullptr ? whole : part_edge(whole, part_of_->base, t);
  return t;
}

Backward::Backward(const Tensor& loss, BackwardOptions options, Loc loc)
    : Backward(ArrayRef<Tensor>(&loss, 1), {}, {}, options, loc) {}

Backward::Backward(ArrayRef<Tensor> roots,
                   ArrayRef<Tensor> gradients,
                   ArrayRef<Tensor> inputs,
                   BackwardOptions options,
                   Loc loc)
    : options_(options), loc_(loc), captured_(inputs.size()), restricted_(!inputs.empty()) {
  const Call call(loc);
  if (options.create_graph) options_.retain_graph = true;  // the new graph needs what is saved
  TAPER_CHECK(gradients.empty() || gradients.size() == roots.size(), "backward: ", roots.size(),
              " tensors but ", gradients.size(), " gradients");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Edge& edge = gradient_edge(inputs[i]);
    TAPER_CHECK(edge, "grad: input ", i, " of shape ", inputs[i].sizes(), " does not require grad");
    captures_.push_back({edge.node.get(), edge.slot, i});
  }
  if (restricted_) find_needed(roots);
  if (lens::hunts.load(std::memory_order_relaxed) != 0) [[unlikely]]
    lens::Hunt::look_at_roots(roots, gradients);
  const GradModeSetting mode({options_.create_graph, grad_mode_state.inference, &loc_});
  for (std::size_t i = 0; i < roots.size(); ++i) {
    Tensor g = root_gradient(roots[i], gradients.empty() ? Tensor() : gradients[i]);
    const Edge& edge = gradient_edge(roots[i]);
    if (!restricted_ || is_needed(edge)) add(edge, std::move(g));
  }
}

Backward::~Backward() {
  forget();
}

// Marks the nodes from which a captured input can be reached. Entries only point to smaller
// indices, so one pass in rising order sees inputs before what is made of them.
void Backward::find_needed(ArrayRef<Tensor> roots) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> all, stack;
  const auto visit = [&](const Edge& edge) {
    if (!edge || !seen.insert(edge.node.get()).second) return;
    all.push_back(edge.node.get());
    stack.push_back(edge.node.get());
  };
  for (const Tensor& root : roots) visit(gradient_edge(root));
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (node->is_leaf) continue;
    for (const Edge& edge : static_cast<const Entry*>(node)->inputs) visit(edge);
  }
  std::sort(all.begin(), all.end(),
            [](const Node* a, const Node* b) { return a->index < b->index; });
  std::unordered_set<const Node*> needed;
  for (const Capture& c : captures_) needed.insert(c.node);
  for (const Node* node : all) {
    if (node->is_leaf) continue;
    for (const Edge& edge : static_cast<const Entry*>(node)->inputs) {
      if (edge && needed.count(edge.node.get()) != 0) needed.insert(node);
    }
  }
  needed_.assign(needed.begin(), needed.end());
  std::sort(needed_.begin(), needed_.end());
}

bool Backward::is_needed(const Edge& edge) const {
  if (!edge || !restricted_) return static_cast<bool>(edge);
  return std::binary_search(needed_.begin(), needed_.end(), edge.node.get());
}

// A free cell, or the cell of the node. Cells of finished nodes stay behind: the place that they
// name may serve another node by now, which is then found there just as well.
std::uint32_t& Backward::cell_of(const Node* node) {
  std::size_t at = hash_of(node) & (table_.size() - 1);
  while (table_[at] != 0 && reached_[table_[at] - 1].node.get() != node) {
    at = (at + 1) & (table_.size() - 1);
  }
  return table_[at];
}

void Backward::rebuild_table() {
  std::size_t size = 64;
  while (size < 4 * (heap_.size() + 1)) size *= 2;
  table_.assign(size, 0);
  for (const std::uint32_t place : heap_) cell_of(reached_[place].node.get()) = place + 1;
  used_cells_ = heap_.size();
}

Backward::Reached& Backward::reach(const Edge& edge) {
  if (2 * (used_cells_ + 1) > table_.size()) rebuild_table();
  std::uint32_t& cell = cell_of(edge.node.get());
  if (cell != 0) return reached_[cell - 1];
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(reached_.size()));
    reached_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  cell = place + 1;
  ++used_cells_;
  Reached& fresh = reached_[place];
  fresh.node = edge.node;
  fresh.streams.clear();
  for (std::size_t s = 0; s < slots_of(*edge.node); ++s) {
    fresh.grads.emplace_back();
    fresh.streams.push_back(0);
  }
  heap_.push_back(place);
  std::push_heap(heap_.begin(), heap_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return reached_[a].node->index < reached_[b].node->index;
  });
  return fresh;
}

void Backward::add(const Edge& edge, Tensor grad) {
  grad = fit(std::move(grad), spec_of(edge));
  Reached& reached = reach(edge);
  Tensor& sum = reached.grads[edge.slot];
  if (grad.device().is_cuda()) {
    if (sum.defined()) take_over(sum, reached.streams[edge.slot]);
    reached.streams[edge.slot] = current_stream(grad.device()).id();
  }
  if (!sum.defined()) {
    sum = std::move(grad);
  } else if (!options_.create_graph && is_dense(sum.layout())) {
    // In place or not, the same kernel and the same strides: the same bits.
    const Tensor to =
        is_ours(sum) ? sum : make_tensor(dense_like(sum.layout()), sum.dtype(), sum.device());
    const Exec exec(sum.device());
    kernels_for(sum.device()).add(exec, to.as<Out>(), sum.as<In>(), grad.as<In>());
    sum = to;
  } else {
    sum = sum + grad;
  }
}

namespace {

// While it lives, an entry's ops run on the stream of its forward; leaves add up on the stream that
// is current for the caller, who may use grad() at once. Both wait for those that wrote `grads`.
class OnStreamOf {
 public:
  OnStreamOf(const Node& node, ArrayRef<Tensor> grads, ArrayRef<StreamId> writers) {
    if (!node.is_leaf) {
      const auto& entry = static_cast<const Entry&>(node);
      const Device device = entry.outputs[0].device;
      if (device.is_cuda()) guard_.emplace(Stream(device, entry.stream));
    }
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (grads[i].defined() && grads[i].is_cuda()) take_over(grads[i], writers[i]);
    }
  }

  // The caller's stream goes on after what the entry did.
  void join() {
    if (!guard_) return;
    const Stream entrys = guard_->stream();
    guard_.reset();
    wait_for(current_stream(entrys.device()), entrys);
  }

 private:
  std::optional<StreamGuard> guard_;
};

}  // namespace

// Runs one node. One that throws is lost with its gradients, unless there is a way back.
bool Backward::advance() {
  if (heap_.empty()) return false;
  if (history_) history_->before(*this);
  std::pop_heap(heap_.begin(), heap_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return reached_[a].node->index < reached_[b].node->index;
  });
  const std::uint32_t place = heap_.back();
  heap_.pop_back();
  // Taken out whole: its gradients are freed as soon as the entry has run.
  const Ref<Node> node = std::move(reached_[place].node);
  SmallVector<Tensor, 1> grads = std::move(reached_[place].grads);
  OnStreamOf on_stream(*node, ArrayRef<Tensor>(grads.data(), grads.size()),
                       ArrayRef<StreamId>(reached_[place].streams.data(), grads.size()));
  free_.push_back(place);
  const GradModeSetting mode({options_.create_graph, grad_mode_state.inference, &loc_});
  running_ = true;
  try {
    show_to_user(*node, grads);
    if (node->is_leaf) {
      if (!history_) run_leaf(static_cast<Leaf&>(*node), std::move(grads[0]));
      else if (!history_->is_old(position())) run_leaf(static_cast<Leaf&>(*node), grads[0]);
    } else {
      const ArrayRef<Tensor> incoming(grads.data(), grads.size());
      const Shown shown(static_cast<Entry&>(*node), incoming, debug_);
      run_entry(static_cast<Entry&>(*node), incoming);
    }
  } catch (...) {
    running_ = false;
    broken_ = lens::describe(*node);
    throw;
  }
  running_ = false;
  if (!captures_.empty()) on_stream.join();
  ++debug_.position;
  if (history_) history_->after(*this, node, std::move(grads));
  return true;
}

// The gradients that have come: to hooks, to who asked for them, and to a hunt.
void Backward::show_to_user(Node& node, SmallVector<Tensor, 1>& grads) {
  if (history_) history_->run_hooks(*this, node, grads);
  else run_hooks(node, grads);
  capture(node, grads);
  if (lens::hunts.load(std::memory_order_relaxed) != 0) [[unlikely]]
    lens::Hunt::look_at(node, ArrayRef<Tensor>(grads.data(), grads.size()));
}

void Backward::check_usable(const char* wanted) const {
  TAPER_CHECK(!running_, wanted,
              ": called from within a node of this pass, by a hook or a rule; call it "
              "between two nodes");
  TAPER_CHECK(broken_.empty(), wanted, ": this pass failed in ", broken_,
              ", and its gradients are lost; "
              "make a new Backward");
}

void Backward::finish(Loc loc) {
  const Call call(loc);
  check_usable("backward");
  if (history_) {
    while (history_->is_old(position()) && advance()) {
    }
    forget();
  }
  do {
    if (taper_debug_v1.attention != 0) [[unlikely]]
      obey_debugger();
  } while (advance());
  forget();
}

void Backward::run_hooks(Node& node, SmallVector<Tensor, 1>& grads) {
  if (!options_.run_hooks) return;
  for (std::uint32_t s = 0; s < grads.size(); ++s) {
    if (!grads[s].defined()) continue;
    if (node.is_leaf) {
      const lens::Within hook("hook");
      grads[s] = static_cast<Leaf&>(node).hooks.run(std::move(grads[s]));
    } else if (static_cast<Entry&>(node).hooks) {
      auto& entry = static_cast<Entry&>(node);
      const Shown shown(entry, ArrayRef<Tensor>(grads.data(), grads.size()), debug_);
      const AtEntry here(entry);
      grads[s] = entry.hooks[s].run(std::move(grads[s]));
    }
  }
}

void Backward::capture(const Node& node, SmallVector<Tensor, 1>& grads) {
  for (const Capture& c : captures_) {
    if (c.node == &node) captured_[c.input] = grads[c.slot];
  }
}

void Backward::run_leaf(Leaf& leaf, Tensor grad) {
  if (!options_.accumulate) return;
  const std::lock_guard lock(leaf.mutex);
  if (leaf.tensor == nullptr) return;
  leaf.added_at = loc_;
  leaf.added = next_entry_index();
  if (leaf.grad.defined() && !options_.create_graph && !leaf.grad.requires_grad()) {
    leaf.grad.add_(grad);
  } else if (leaf.grad.defined()) {
    leaf.grad = leaf.grad + grad;
  } else if (options_.create_graph) {
    leaf.grad = grad;
  } else if (is_ours(grad) && grad.strides() == leaf.layout.steps()) {
    leaf.grad = std::move(grad);
  } else {
    leaf.grad = make_tensor(leaf.layout, leaf.spec.dtype, leaf.spec.device);
    const Exec exec(leaf.spec.device);
    kernels_for(leaf.spec.device).copy(exec, leaf.grad.as<Out>(), grad.as<In>());
  }
}

// Runs one entry's rule and passes its gradients on. Out of line and named, so that a debugger
// finds it: its caller's frames are Backward's, the next is the op's own backward.
[[gnu::noinline]] void Backward::run_entry(Entry& entry, ArrayRef<Tensor> grads) {
  if (entry.consumed) {
    const Call call(loc_);
    fail(str("backward: ", entry.op->name(), ", recorded at ", to_string(entry.loc),
             ", was already run backwards at ", to_string(entry.consumed_at),
             " and gave back what it had saved; ask for retain_graph there"));
  }
  std::uint64_t needs = 0;
  for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
    if (is_needed(entry.inputs[i])) needs |= std::uint64_t{1} << i;
  }
  if (needs == 0) return;
  const AtEntry here(entry);
  Grads out = entry.op->backward(Reverse(entry, grads, needs));
  if (history_) history_->keep_outgoing(out);
  else consume(entry);
  pass_on(entry, out);
}

// What saved nothing can run again: two losses may share a trunk of additions and views.
void Backward::consume(Entry& entry) const {
  if (options_.retain_graph || entry.consumed || entry.saved.empty()) return;
  entry.consumed = true;
  entry.consumed_at = loc_;
  entry.saved.clear();
  entry.saved_bytes = 0;
}

void Backward::pass_on(const Entry& entry, Grads& grads) {
  TAPER_CHECK(grads.size() == entry.inputs.size(), "backward returned ", grads.size(),
              " gradients for ", entry.inputs.size(), " inputs");
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined() && is_needed(entry.inputs[i])) {
      add(entry.inputs[i], std::move(grads[i]));
    }
  }
}

std::vector<Tensor> grad(ArrayRef<Tensor> outputs,
                         ArrayRef<Tensor> inputs,
                         ArrayRef<Tensor> grad_outputs,
                         std::optional<bool> retain_graph,
                         bool create_graph,
                         bool allow_unused,
                         Loc loc) {
  const Call call(loc);
  TAPER_CHECK(!inputs.empty(), "grad: give at least one input");
  Backward pass(outputs, grad_outputs, inputs,
                {retain_graph.value_or(create_graph), create_graph, false}, loc);
  pass.finish();
  std::vector<Tensor> grads;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TAPER_CHECK(allow_unused || pass.captured(i).defined(), "grad: input ", i, " of shape ",
                inputs[i].sizes(),
                " took no part in the outputs; allow_unused = true gives an undefined tensor");
    grads.push_back(pass.captured(i));
  }
  return grads;
}

void backward(ArrayRef<Tensor> tensors,
              ArrayRef<Tensor> grad_tensors,
              std::optional<bool> retain_graph,
              bool create_graph,
              ArrayRef<Tensor> inputs,
              Loc loc) {
  const Call call(loc);
  Backward pass(tensors, grad_tensors, inputs,
                {retain_graph.value_or(create_graph), create_graph, true}, loc);
  pass.finish();
}

}  // namespace taper
