// The Lens of a backward pass: forth and back, node by node.
#include <algorithm>
#include <unordered_set>

#include "taper/autograd/lens/debug_root.h"
#include "taper/autograd/lens/history.h"
#include "taper/autograd/lens/hunt_origin.h"

namespace taper {

// --- What is kept -------------------------------------------------------------------------------

Backward::History::History(const Backward& pass)
    : first(pass.position()), furthest(pass.position()) {
  std::unordered_set<const Storage*> storages;
  const std::vector<const Node*> ahead = pass.nodes_ahead();
  for (const Node* n : ahead) {
    if (n->is_leaf) continue;
    for (const SavedTensor& s : static_cast<const Entry*>(n)->saved) {
      if (storages.insert(s.storage.get()).second) most_bytes += s.storage->nbytes();
    }
  }
  most_bytes /= 20;
  while (stride * stride < ahead.size()) ++stride;
  take(pass);
}

void Backward::History::take(const Backward& pass) {
  Snapshot now{pass.position(), {}};
  for (const std::uint32_t place : pass.heap_) now.reached.push_back(pass.reached_[place]);
  snapshots.push_back(std::move(now));
  const auto bytes_kept = [this] {
    std::unordered_set<const Storage*> storages;
    std::uint64_t bytes = 0;
    for (const Snapshot& s : snapshots) {
      for (const Reached& r : s.reached) {
        for (const Tensor& t : r.grads) {
          if (t.defined() && storages.insert(t.storage().get()).second)
            bytes += t.storage()->nbytes();
        }
      }
    }
    return bytes;
  };
  while (snapshots.size() > 1 && bytes_kept() > most_bytes) {
    // Every second one goes, never the first: from there every place can be reached.
    std::size_t kept = 1;
    for (std::size_t i = 2; i < snapshots.size(); i += 2)
      snapshots[kept++] = std::move(snapshots[i]);
    snapshots.resize(kept);
    stride *= 2;
  }
}

void Backward::History::before(const Backward& pass) {
  node.reset();
  incoming.clear();
  outgoing.clear();
  if (pass.position() == furthest && pass.position() >= snapshots.back().position + stride)
    take(pass);
}

// Hooks get a copy: one that writes to its gradient in place must not change what is kept here.
void Backward::History::run_hooks(Backward& pass, Node& at, Gradients& grads) {
  if (const auto it = hooked.find(pass.position()); it != hooked.end()) {
    if (!it->second.empty()) grads = it->second;
    return;
  }
  const bool has_hooks = at.is_leaf ? !static_cast<Leaf&>(at).hooks.empty()
                                    : static_cast<bool>(static_cast<Entry&>(at).hooks);
  if (!has_hooks || is_old(pass.position())) return;  // if old, they came too late
  Gradients given;
  std::vector<std::uint32_t> versions;
  for (const Tensor& g : grads) {
    given.push_back(g.defined() ? g.clone() : g);
    versions.push_back(g.defined() ? given.back().version() : 0);
  }
  Gradients made = given;
  pass.run_hooks(at, made);
  bool changed = false;
  for (std::size_t i = 0; i < made.size(); ++i) {
    changed = changed || (made[i].defined() &&
                          (!made[i].is_same(given[i]) || made[i].version() != versions[i]));
  }
  if (changed) grads = made;
  else made.clear();
  hooked[pass.position()] = std::move(made);
}

void Backward::History::keep_outgoing(const Grads& grads) {
  outgoing = grads;
}

void Backward::History::after(const Backward& pass, const Ref<Node>& at, Gradients grads) {
  node = at;
  incoming = std::move(grads);
  if (pass.position() <= furthest) return;
  furthest = pass.position();
  ran.push_back(at);
}

const Backward::History::Snapshot& Backward::History::latest_before(std::size_t position) const {
  const Snapshot* found = &snapshots.front();
  for (const Snapshot& s : snapshots) {
    if (s.position < position) found = &s;
  }
  return *found;
}

// What would go: storages that nothing holds but what ran.
std::uint64_t Backward::History::bytes_ran(std::size_t position) const {
  std::unordered_map<const Storage*, std::uint32_t> holders;
  for (std::size_t i = 0; i < position - first; ++i) {
    if (ran[i]->is_leaf) continue;
    for (const SavedTensor& s : static_cast<const Entry&>(*ran[i]).saved)
      ++holders[s.storage.get()];
  }
  std::uint64_t bytes = 0;
  for (const auto& [storage, count] : holders) {
    if (storage->refs.load(std::memory_order_relaxed) == count) bytes += storage->nbytes();
  }
  return bytes;
}

// --- Going --------------------------------------------------------------------------------------

// The nodes that gradients in flight can reach, those included.
std::vector<const Node*> Backward::nodes_ahead() const {
  std::vector<const Node*> nodes;
  std::unordered_set<const Node*> seen;
  for (const std::uint32_t place : heap_) {
    const Node* node = reached_[place].node.get();
    seen.insert(node);
    nodes.push_back(node);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->is_leaf) continue;
    for (const Edge& edge : static_cast<const Entry*>(nodes[i])->inputs) {
      if (is_needed(edge) && seen.insert(edge.node.get()).second) nodes.push_back(edge.node.get());
    }
  }
  return nodes;
}

void Backward::remember(const char* wanted) {
  if (history_) return;
  TAPER_CHECK(
      !heap_.empty(), wanted, ": this pass has ",
      debug_.position == 0 ? "nothing to run" : "finished",
      " and keeps no way back; use step() or run_until() instead of finish() to come back from "
      "where they lead");
  history_ = std::make_unique<History>(*this);
  debug_.first = debug_.position;
  debug_.remembers = 1;
}

// The entries that ran, and were not gone back over, count as run now: without retain_graph they
// give back what they saved.
void Backward::forget() noexcept {
  if (!history_) return;
  for (std::size_t i = 0; i < debug_.position - history_->first; ++i) {
    Node& node = *history_->ran[i];
    if (!node.is_leaf) consume(static_cast<Entry&>(node));
  }
  history_.reset();
  debug_.remembers = 0;
}

namespace {

// Debuggers do not stop while it lives.
class Seeking {
 public:
  explicit Seeking(DebugPass& pass) : pass_(pass) { pass_.seeking = 1; }
  ~Seeking() { pass_.seeking = 0; }
  Seeking(const Seeking&) = delete;
  Seeking& operator=(const Seeking&) = delete;

 private:
  DebugPass& pass_;
};

}  // namespace

// To a place where the pass was before; its last node runs again, so that here() can tell of it.
void Backward::restore(std::size_t position) {
  const History::Snapshot& from = history_->latest_before(position);
  history_->node.reset();
  history_->incoming.clear();
  history_->outgoing.clear();
  reached_ = from.reached;
  free_.clear();
  heap_.clear();
  for (std::uint32_t place = 0; place < reached_.size(); ++place) heap_.push_back(place);
  std::make_heap(heap_.begin(), heap_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return reached_[a].node->index < reached_[b].node->index;
  });
  rebuild_table();
  debug_.position = from.position;
  const Seeking seeking(debug_);
  while (debug_.position < position) advance();
}

// After a node that failed: to that place again, if rules still run that ran before.
void Backward::recover(std::size_t position) noexcept {
  try {
    broken_.clear();
    restore(position);
  } catch (...) {  // advance() has noted it
  }
}

bool Backward::step(Loc loc) {
  const Call call(loc);
  check_usable("step");
  if (!history_ && heap_.empty()) return false;
  remember("step");
  const std::size_t start = debug_.position;
  try {
    return advance();
  } catch (...) {
    recover(start);  // a rule that failed leaves the pass where it was
    throw;
  }
}

bool Backward::next_module(Loc loc) {
  const Call call(loc);
  std::optional<std::uint32_t> from;
  do {
    if (!history_ || !history_->node || history_->node->is_leaf) continue;
    const std::uint32_t now = static_cast<const Entry&>(*history_->node).scope;
    if (from && now != *from) return true;
    from = now;
  } while (step(loc));
  return false;
}

void Backward::back(Loc loc) {
  const Call call(loc);
  check_usable("back");
  remember("back");
  TAPER_CHECK(debug_.position > history_->first, "back: no step has been taken since the pass ",
              history_->first == 0 ? "began" : "began to remember its way");
  restore(debug_.position - 1);
}

void Backward::seek(std::size_t position, Loc loc) {
  const Call call(loc);
  check_usable("seek");
  remember("seek");
  TAPER_CHECK(position >= history_->first, "seek: to node ", position,
              ", but the pass remembers its way only from node ", history_->first, " on");
  if (position > history_->furthest) {
    const std::size_t most = debug_.position + nodes_ahead().size();
    TAPER_CHECK(position <= most, "seek: to node ", position, " of a pass that has at most ", most);
  }
  const std::size_t start = debug_.position;
  if (position < debug_.position || (position == debug_.position && !history_->node))
    restore(position);
  try {
    while (debug_.position < position) {
      TAPER_CHECK(advance(), "seek: to node ", position, " of a pass that has ", debug_.position);
    }
  } catch (...) {
    recover(start);
    throw;
  }
}

// --- Where to stop ------------------------------------------------------------------------------

namespace {

bool names_file(const std::string& path, const std::string& wanted) {
  if (!path.ends_with(wanted)) return false;
  return path.size() == wanted.size() || path[path.size() - wanted.size() - 1] == '/';
}

bool is_within(const std::string& scope, const std::string& module) {
  return scope.starts_with(module) &&
         (scope.size() == module.size() || scope[module.size()] == '.');
}

bool all_finite(const Tensor& t) {
  return !t.defined() || !t.is_floating_point() ||
         lens::first_nonfinite(t.as<In>(), t.device(), 0) < 0;
}

}  // namespace

bool Backward::stops_at(const lens::Stop& stop) const {
  using What = lens::Stop::What;
  const Node& node = *history_->node;
  const Entry* entry = node.is_leaf ? nullptr : static_cast<const Entry*>(&node);
  const auto holds = [&](const lens::Stop::Test& test) {
    switch (test.what) {
      case What::kLine:
        return entry != nullptr && entry->loc.line == test.number &&
               names_file(entry->loc.file, test.text);
      case What::kOp: return entry != nullptr && test.text == entry->name;
      case What::kParam:
        return entry == nullptr && full_name(static_cast<const Leaf&>(node)) == test.text;
      case What::kEntry: return node.index == test.number;
      case What::kScope: return entry != nullptr && is_within(scope_name(entry->scope), test.text);
      case What::kBytesFreed: return history_->bytes_ran(debug_.position) >= test.number;
      case What::kNonfinite:
        return !std::all_of(history_->incoming.begin(), history_->incoming.end(), all_finite) ||
               !std::all_of(history_->outgoing.begin(), history_->outgoing.end(), all_finite);
    }
    return false;
  };
  return std::any_of(stop.any.begin(), stop.any.end(), holds);
}

bool Backward::run_until(const lens::Stop& stop, Loc loc) {
  const Call call(loc);
  while (step(loc)) {
    if (stops_at(stop)) return true;
  }
  return false;
}

const Node& Backward::node() const {
  TAPER_CHECK(!running_, "here: a node runs just now; ask after the step");
  TAPER_CHECK(history_ || heap_.empty(), "here: no node has run yet; call step() first");
  TAPER_CHECK(history_, "here: the pass has finished; go by step() or run_until() to look at it");
  TAPER_CHECK(history_->node, "here: the pass stands before its first node; call step()");
  return *history_->node;
}

lens::Moment Backward::here(Loc loc) const {
  const Call call(loc);
  const Node& latest = node();
  return lens::moment_of(latest, history_->incoming, history_->outgoing);
}

// What a debugger asks for, while finish() runs.
void Backward::obey_debugger() {
  DebugRoot& root = taper_debug_v1;
  if (root.remember != 0 && !history_ && !heap_.empty()) remember("taper back");
  if (root.seek_to >= 0 && history_) {
    const auto wanted = static_cast<std::size_t>(root.seek_to);
    root.seek_to = -1;
    restore(std::clamp(wanted, history_->first, history_->furthest));
  }
  root.attention = root.remember;
}

namespace lens {

Stop operator|(Stop a, const Stop& b) {
  a.any.insert(a.any.end(), b.any.begin(), b.any.end());
  return a;
}

Stop at(std::string file, std::uint32_t line) {
  return {{{Stop::What::kLine, std::move(file), line}}};
}
Stop op(std::string name) {
  return {{{Stop::What::kOp, std::move(name), 0}}};
}
Stop param(std::string full_name) {
  return {{{Stop::What::kParam, std::move(full_name), 0}}};
}
Stop nonfinite() {
  return {{{Stop::What::kNonfinite, {}, 0}}};
}
Stop bytes_freed(std::uint64_t bytes) {
  return {{{Stop::What::kBytesFreed, {}, bytes}}};
}
Stop entry(std::uint64_t index) {
  return {{{Stop::What::kEntry, {}, index}}};
}
Stop scope(std::string name) {
  return {{{Stop::What::kScope, std::move(name), 0}}};
}

}  // namespace lens
}  // namespace taper
