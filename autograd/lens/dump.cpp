// Reads the tape into plain data.
#include "taper/autograd/lens/dump.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "taper/autograd/lens/dump_parts.h"
#include "taper/autograd/op.h"

namespace taper::lens {
namespace {

DumpEdge edge_of(const Edge& edge) {
  return edge ? DumpEdge{edge.node->index, edge.slot} : DumpEdge{};
}

TensorSpec spec_of(const SavedTensor& s) {
  TensorSpec spec;
  for (const std::int64_t n : s.layout.shape()) spec.sizes.push_back(n);
  spec.dtype = s.dtype;
  spec.device = s.storage->device();
  return spec;
}

// Collects nodes into a dump.
class Reader {
 public:
  void add(Leaf& leaf) {
    if (!leaves_.insert(&leaf).second) return;
    dump_.leaves.push_back({leaf.index, full_name(leaf), leaf.spec});
    const std::lock_guard lock(leaf.mutex);
    if (leaf.tensor != nullptr) parameters_.insert(leaf.tensor->storage.get());
  }

  void add(const Entry& entry) {
    DumpEntry& e = dump_.entries.emplace_back();
    e.index = entry.index;
    e.op = entry.name;
    e.file = entry.loc.file;
    e.function = entry.loc.function;
    e.line = entry.loc.line;
    e.scope = scope_name(entry.scope);
    e.stream = entry.stream;
    e.consumed = entry.consumed;
    for (const Edge& edge : entry.inputs) {
      e.inputs.push_back(edge_of(edge));
      if (edge && edge.node->is_leaf) add(static_cast<Leaf&>(*edge.node));
    }
    for (const TensorSpec& spec : entry.outputs) e.outputs.push_back(spec);
    for (const SavedTensor& s : entry.saved) e.saved.push_back(saved_of(entry, s));
  }

  // Entries were added by rising index.
  TapeDump take() {
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      if (parameters_.count(storages_[i]) != 0) dump_.storages[i].kind = StorageKind::kParameter;
    }
    std::sort(dump_.leaves.begin(), dump_.leaves.end(),
              [](const DumpLeaf& a, const DumpLeaf& b) { return a.index < b.index; });
    count_bytes(dump_);
    return std::move(dump_);
  }

 private:
  DumpSaved saved_of(const Entry& entry, const SavedTensor& s) {
    const bool own = s.output >= 0;
    DumpSaved out{spec_of(s), 0, edge_of(s.edge)};
    if (own) out.from = {entry.index, static_cast<std::uint32_t>(s.output)};
    if (s.edge && s.edge.node->is_leaf) {
      add(static_cast<Leaf&>(*s.edge.node));
      if (!own) parameters_.insert(s.storage.get());
    }
    const auto [at, fresh] = places_.emplace(s.storage.get(), dump_.storages.size());
    if (fresh) {
      dump_.storages.push_back({s.storage->nbytes(), StorageKind::kData, entry.index});
      storages_.push_back(s.storage.get());
    }
    out.storage = static_cast<std::uint32_t>(at->second);
    if (out.from.node != 0) dump_.storages[at->second].kind = StorageKind::kActivation;
    return out;
  }

  TapeDump dump_;
  std::unordered_set<const Leaf*> leaves_;
  std::unordered_set<const Storage*> parameters_;
  std::unordered_map<const Storage*, std::size_t> places_;
  std::vector<const Storage*> storages_;
};

// A saved tensor's own gradient may flow to where no input leads: a user's function saves what it
// likes.
template <class Visit> void for_each_edge(const Entry& entry, Visit visit) {
  for (const Edge& edge : entry.inputs) visit(edge);
  for (const SavedTensor& s : entry.saved) visit(s.edge);
}

}  // namespace

TapeDump dump(const Tensor& loss, Loc loc) {
  const Call call(loc);
  const Edge& root = gradient_edge(loss);
  TAPER_CHECK(root, "dump: the tensor does not require grad and nothing was recorded that made it");
  Reader reader;
  if (root.node->is_leaf) {
    reader.add(static_cast<Leaf&>(*root.node));
    return reader.take();
  }
  std::unordered_set<const Node*> seen{root.node.get()};
  std::vector<const Entry*> reached{static_cast<const Entry*>(root.node.get())};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for_each_edge(*reached[i], [&](const Edge& edge) {
      if (!edge || edge.node->is_leaf || !seen.insert(edge.node.get()).second) return;
      reached.push_back(static_cast<const Entry*>(edge.node.get()));
    });
  }
  std::sort(reached.begin(), reached.end(),
            [](const Entry* a, const Entry* b) { return a->index < b->index; });
  for (const Entry* entry : reached) reader.add(*entry);
  return reader.take();
}

TapeDump dump() {
  Reader reader;
  for (const Ref<Entry>& entry : all_entries()) reader.add(*entry);
  return reader.take();
}

}  // namespace taper::lens
