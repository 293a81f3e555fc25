// Adds up a dump: by kind, by scope, op and line, and over the time of a step.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "taper/autograd/lens/dump_parts.h"
#include "taper/core/base/dtype.h"

namespace taper::lens {
namespace {

template <class T> const T* find(const std::vector<T>& sorted, std::uint64_t index) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), index,
                                   [](const T& x, std::uint64_t i) { return x.index < i; });
  return at == sorted.end() || at->index != index ? nullptr : &*at;
}

std::uint64_t& part(DumpBytes& bytes, StorageKind kind) {
  if (kind == StorageKind::kActivation) return bytes.activations;
  return kind == StorageKind::kParameter ? bytes.parameters : bytes.data;
}

void add(DumpGroup& group, const DumpBytes& bytes) {
  ++group.entries;
  group.bytes.activations += bytes.activations;
  group.bytes.parameters += bytes.parameters;
  group.bytes.data += bytes.data;
}

// The scope and all that it lies in: "", "encoder", "encoder.3".
std::vector<std::string> path_of(const std::string& scope) {
  std::vector<std::string> path{""};
  for (std::size_t i = 0; i < scope.size(); ++i) {
    if (scope[i] == '.') path.push_back(scope.substr(0, i));
  }
  if (!scope.empty()) path.push_back(scope);
  return path;
}

// A tree's groups, each behind the one that it lies in, in the order in which they first appeared.
class ScopeTree {
 public:
  void add_entry(const std::string& scope, const DumpBytes& bytes) {
    std::size_t parent = 0;
    for (const std::string& name : path_of(scope)) {
      const auto [at, fresh] = places_.emplace(name, groups_.size());
      if (fresh) {
        groups_.push_back({name, 0, {}});
        children_.emplace_back();
        if (!name.empty()) children_[parent].push_back(at->second);
      }
      parent = at->second;
      add(groups_[parent], bytes);
    }
  }

  std::vector<DumpGroup> in_order() const {
    std::vector<DumpGroup> out;
    std::vector<std::size_t> ahead;
    if (!groups_.empty()) ahead.push_back(0);
    while (!ahead.empty()) {
      const std::size_t at = ahead.back();
      ahead.pop_back();
      out.push_back(groups_[at]);
      ahead.insert(ahead.end(), children_[at].rbegin(), children_[at].rend());
    }
    return out;
  }

 private:
  std::vector<DumpGroup> groups_;
  std::vector<std::vector<std::size_t>> children_;
  std::unordered_map<std::string, std::size_t> places_;
};

// Which outputs a gradient has reached while backward runs.
class Gradients {
 public:
  explicit Gradients(const TapeDump& dump) : dump_(dump) {}

  // A gradient comes to that output, if none has yet.
  void reach(const DumpEdge& edge) {
    if (edge.node == 0) return;
    const DumpEntry* entry = dump_.find_entry(edge.node);
    const DumpLeaf* leaf = entry == nullptr ? dump_.find_leaf(edge.node) : nullptr;
    if (entry == nullptr && leaf == nullptr) return;
    std::vector<std::uint32_t>& slots = reached_[edge.node];
    if (std::find(slots.begin(), slots.end(), edge.slot) != slots.end()) return;
    slots.push_back(edge.slot);
    bytes += bytes_of(entry == nullptr ? leaf->spec : entry->outputs[edge.slot]);
  }

  bool has(const DumpEntry& entry) const { return reached_.count(entry.index) != 0; }

  // The entry has run: its gradients are of no more use.
  void drop(const DumpEntry& entry) {
    const auto at = reached_.find(entry.index);
    if (at == reached_.end()) return;
    for (const std::uint32_t slot : at->second) bytes -= bytes_of(entry.outputs[slot]);
    reached_.erase(at);
  }

  std::uint64_t bytes = 0;

 private:
  const TapeDump& dump_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> reached_;
};

}  // namespace

const DumpEntry* TapeDump::find_entry(std::uint64_t index) const {
  return find(entries, index);
}

const DumpLeaf* TapeDump::find_leaf(std::uint64_t index) const {
  return find(leaves, index);
}

const char* to_string(StorageKind kind) {
  if (kind == StorageKind::kActivation) return "activation";
  return kind == StorageKind::kParameter ? "parameter" : "data";
}

std::uint64_t bytes_of(const TensorSpec& spec) {
  std::uint64_t n = static_cast<std::uint64_t>(element_size(spec.dtype));
  for (const std::int64_t s : spec.sizes) n *= static_cast<std::uint64_t>(s);
  return n;
}

void count_bytes(TapeDump& dump) {
  std::vector<std::uint64_t> last_seen(dump.storages.size());  // the entry that saved it last
  for (DumpEntry& e : dump.entries) {
    e.saved_bytes = e.first_bytes = 0;
    for (const DumpSaved& s : e.saved) {
      if (last_seen[s.storage] == e.index) continue;
      DumpStorage& storage = dump.storages[s.storage];
      e.saved_bytes += storage.bytes;
      if (last_seen[s.storage] == 0) {
        e.first_bytes += storage.bytes;
        storage.first_saver = e.index;
      }
      last_seen[s.storage] = e.index;
    }
  }
}

DumpBytes bytes_of(const TapeDump& dump) {
  DumpBytes sum;
  for (const DumpStorage& s : dump.storages) part(sum, s.kind) += s.bytes;
  return sum;
}

DumpBytes first_bytes_of(const TapeDump& dump, const DumpEntry& entry) {
  DumpBytes sum;
  for (std::size_t i = 0; i < entry.saved.size(); ++i) {
    const std::uint32_t at = entry.saved[i].storage;
    bool counted = dump.storages[at].first_saver != entry.index;
    for (std::size_t k = 0; k < i; ++k) counted = counted || entry.saved[k].storage == at;
    if (!counted) part(sum, dump.storages[at].kind) += dump.storages[at].bytes;
  }
  return sum;
}

std::vector<DumpGroup> bytes_by(const TapeDump& dump, DumpBy by) {
  ScopeTree tree;
  std::map<std::string, DumpGroup> groups;
  for (const DumpEntry& e : dump.entries) {
    const DumpBytes bytes = first_bytes_of(dump, e);
    if (by == DumpBy::kScope) {
      tree.add_entry(e.scope, bytes);
      continue;
    }
    const std::string name = by == DumpBy::kOp ? e.op : place_of(e);
    DumpGroup& group = groups[name];
    group.name = name;
    add(group, bytes);
  }
  if (by == DumpBy::kScope) return tree.in_order();
  std::vector<DumpGroup> out;
  for (const auto& [name, group] : groups) out.push_back(group);
  std::stable_sort(out.begin(), out.end(), [](const DumpGroup& a, const DumpGroup& b) {
    return a.bytes.total() > b.bytes.total();
  });
  return out;
}

std::vector<DumpHeld> held_over_time(const TapeDump& dump) {
  std::vector<DumpHeld> out;
  std::vector<std::uint64_t> adds;  // of each entry; what it was the first to save goes with it
  std::uint64_t saved = 0;
  for (const DumpEntry& e : dump.entries) {
    const DumpBytes bytes = first_bytes_of(dump, e);
    adds.push_back(bytes.activations + bytes.data);
    saved += adds.back();
    out.push_back({e.index, false, saved, 0});
  }
  Gradients gradients(dump);
  for (std::size_t i = dump.entries.size(); i-- > 0;) {
    const DumpEntry& e = dump.entries[i];
    const bool root = !gradients.has(e);
    for (std::uint32_t k = 0; root && k < e.outputs.size(); ++k) {
      if (is_floating_point(e.outputs[k].dtype)) gradients.reach({e.index, k});
    }
    for (const DumpEdge& edge : e.inputs) gradients.reach(edge);
    out.push_back({e.index, true, saved, gradients.bytes});
    saved -= adds[i];
    gradients.drop(e);
  }
  return out;
}

DumpHeld peak_of(const TapeDump& dump) {
  DumpHeld peak;
  for (const DumpHeld& held : held_over_time(dump)) {
    if (peak.entry == 0 || held.total() > peak.total()) peak = held;
  }
  return peak;
}

}  // namespace taper::lens
