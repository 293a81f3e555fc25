// Entries and leaves: where they live, how they die, and how tensors point to them.
#include "taper/autograd/tape.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "taper/autograd/op.h"
#include "taper/autograd/slab.h"
#include "taper/core/base/spin_lock.h"

namespace taper {

thread_local constinit GradModeState grad_mode_state;

constinit std::atomic<std::uint64_t> next_index{1};
constinit Slab* newest_slab = nullptr;

namespace {

class Slabs {
 public:
  Entry* take() {
    const std::lock_guard lock(mutex_);
    if (free_ == nullptr) grow();
    Place* place = free_;
    free_ = place->next_free;
    ++live_;
    auto* entry = new (&place->entry) Entry;
    entry->index = next_index.fetch_add(1, std::memory_order_relaxed);
    place->live = true;
    return entry;
  }

  void give_back(Entry* entry) {
    entry->~Entry();
    Place* place = Place::of(entry);
    const std::lock_guard lock(mutex_);
    place->next_free = free_;
    free_ = place;
    --live_;
  }

  std::size_t live() {
    const std::lock_guard lock(mutex_);
    return live_;
  }

  std::vector<Ref<Entry>> all() {
    std::vector<Ref<Entry>> entries;
    const std::lock_guard lock(mutex_);
    entries.reserve(live_);
    for (Slab* slab = newest_slab; slab != nullptr; slab = slab->next) {
      for (Place& place : slab->places) {
        if (place.live) entries.emplace_back(&place.entry);
      }
    }
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a->index < b->index; });
    return entries;
  }

 private:
  void grow() {
    auto* slab = new Slab;
    slab->next = newest_slab;
    newest_slab = slab;
    for (std::size_t i = kSlabEntries; i-- > 0;) {
      slab->places[i].next_free = free_;
      free_ = &slab->places[i];
    }
  }

  SpinLock mutex_;
  Place* free_ = nullptr;
  std::size_t live_ = 0;
};

Slabs& slabs() {
  static auto* slabs = new Slabs;  // never destroyed: tensors may die after main
  return *slabs;
}

thread_local constinit Node* graveyard __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local constinit bool burying __attribute__((tls_model("initial-exec"))) = false;

void bury(Node* node) {
  if (node->is_leaf) delete static_cast<Leaf*>(node);
  else slabs().give_back(static_cast<Entry*>(node));
}

}  // namespace

// Note [Long chains]
// Freeing an entry frees its edges, whose nodes may be at their last reference, and so on down a
// chain of a million ops. Each would be a stack frame; so the dead are queued, and the outermost
// caller frees them one by one.
void Node::destroy(Node* node) {
  if (!node->is_leaf) Place::of(static_cast<Entry*>(node))->live = false;
  node->next_dead = graveyard;
  graveyard = node;
  if (burying) return;
  burying = true;
  while (graveyard != nullptr) {
    Node* next = graveyard;
    graveyard = next->next_dead;
    bury(next);
  }
  burying = false;
}

Ref<Entry> new_entry() {
  return Ref<Entry>(slabs().take());
}

std::uint64_t next_entry_index() {
  return next_index.load(std::memory_order_relaxed);
}

std::size_t live_entries() {
  return slabs().live();
}

std::vector<Ref<Entry>> all_entries() {
  return slabs().all();
}

const TensorSpec& spec_of(const Edge& edge) {
  if (edge.node->is_leaf) return static_cast<const Leaf&>(*edge.node).spec;
  return static_cast<const Entry&>(*edge.node).outputs[edge.slot];
}

unsigned Hooks::add(std::unique_ptr<Hook> hook) {
  list_.push_back({next_, call_site.loc(), std::move(hook)});
  return next_++;
}

void Hooks::remove(unsigned handle) {
  std::erase_if(list_, [handle](const Registered& r) { return r.handle == handle; });
}

Tensor Hooks::run(Tensor grad) const {
  if (list_.empty()) return grad;
  const auto list = list_;  // hooks may add and remove hooks
  for (const auto& [handle, loc, hook] : list) {
    Tensor replaced = hook->call(grad);
    if (!replaced.defined()) continue;
    TAPER_CHECK(replaced.sizes() == grad.sizes() && replaced.dtype() == grad.dtype(),
                "the hook registered at ", to_string(loc), " returned a gradient ",
                replaced.dtype(), " ", replaced.sizes(), " in place of ", grad.dtype(), " ",
                grad.sizes());
    grad = std::move(replaced);
  }
  return grad;
}

AutogradMeta& meta_of(const Tensor& t) {
  TensorImpl& impl = t.impl();
  if (impl.meta == nullptr) impl.meta = new AutogradMeta;
  return *impl.meta;
}

void release_autograd_meta(AutogradMeta* meta) noexcept {
  // A gradient with history (create_graph) reaches the leaf again: nobody can ask for it any more,
  // and as a ring the two would never go.
  Tensor grad;
  if (meta->leaf) {
    const std::lock_guard lock(meta->leaf->mutex);
    meta->leaf->tensor = nullptr;
    grad = std::move(meta->leaf->grad);
  }
  delete meta;
}

Leaf& leaf_of(const Tensor& t) {
  AutogradMeta& meta = meta_of(t);
  if (!meta.leaf) {
    meta.leaf = Ref<Leaf>(new Leaf);
    meta.leaf->is_leaf = true;
    meta.leaf->index = next_index.fetch_add(1, std::memory_order_relaxed);
    meta.leaf->tensor = t.ref().get();
    meta.leaf->spec = TensorSpec(t);
    meta.leaf->layout = dense_like(t.layout());
    meta.leaf->made_at = call_site.loc();
  }
  return *meta.leaf;
}

std::string full_name(const Leaf& leaf) {
  const std::string& scope = scope_name(leaf.scope.load(std::memory_order_relaxed));
  return leaf.name.empty() || scope.empty() ? leaf.name : scope + "." + leaf.name;
}

void set_history(const Tensor& t, const Ref<Entry>& entry, std::uint32_t slot) {
  AutogradMeta& meta = meta_of(t);
  const bool retains = meta.leaf && meta.leaf->retains;
  if (retains) {
    hooks_of(meta.edge).remove(*meta.leaf->retains);
    meta.leaf->retains.reset();
  }
  meta.edge = {Ref<Node>(entry.get()), slot};
  if (retains) start_retaining(t);
}

Hooks& hooks_of(const Edge& edge) {
  TAPER_CHECK(edge, "a hook needs a tensor that requires grad");
  if (edge.node->is_leaf) return static_cast<Leaf&>(*edge.node).hooks;
  auto& entry = static_cast<Entry&>(*edge.node);
  if (!entry.hooks) entry.hooks = std::make_unique<Hooks[]>(entry.outputs.size());
  return entry.hooks[edge.slot];
}

}  // namespace taper
