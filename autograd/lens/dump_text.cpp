// Writes a dump for people and for Graphviz.
#include <algorithm>
#include <map>

#include "taper/autograd/lens/dump_parts.h"
#include "taper/core/base/dtype.h"
#include "taper/core/base/text.h"

namespace taper::lens {
namespace {

std::string spec_text(const TensorSpec& spec) {
  return str(spec.dtype, " ", IntArrayRef(spec.sizes));
}

std::string name_of(const DumpLeaf& leaf) {
  return leaf.name.empty() ? str("a leaf ", IntArrayRef(leaf.spec.sizes)) : leaf.name;
}

std::string counted(std::size_t n, const char* one, const char* many) {
  return str(n, " ", n == 1 ? one : many);
}

std::string sizes_text(const DumpBytes& bytes) {
  return str(size_text(bytes.total()), ": activations ", size_text(bytes.activations),
             ", parameters ", size_text(bytes.parameters), ", data ", size_text(bytes.data));
}

// Of a saved tensor without a history: an activation only where its maker was left out of the dump.
const char* no_owner(const TapeDump& dump, const DumpSaved& saved) {
  return dump.storages[saved.storage].kind == StorageKind::kData ? "data" : "another's";
}

// "in0, out0"
std::string saved_text(const TapeDump& dump, const DumpEntry& e) {
  if (e.consumed) return "given back";
  std::string out;
  for (const DumpSaved& s : e.saved) {
    const auto input = std::find(e.inputs.begin(), e.inputs.end(), s.from);
    if (!out.empty()) out += ", ";
    if (s.from.node == e.index) out += str("out", s.from.slot);
    else if (s.from.node == 0) out += no_owner(dump, s);
    else if (input != e.inputs.end()) out += str("in", input - e.inputs.begin());
    else out += str("#", s.from.node);
  }
  return out;
}

std::string from_text(const TapeDump& dump, const DumpEntry& e) {
  std::string out;
  for (const DumpEdge& edge : e.inputs) {
    if (!out.empty()) out += ", ";
    const DumpLeaf* leaf = dump.find_leaf(edge.node);
    if (edge.node == 0) out += "-";
    else if (leaf == nullptr) out += str("#", edge.node);
    else out += leaf->name.empty() ? "leaf" : leaf->name.substr(leaf->name.rfind('.') + 1);
  }
  return out;
}

std::string outputs_text(const DumpEntry& e) {
  if (e.outputs.empty()) return "";
  return spec_text(e.outputs[0]) +
         (e.outputs.size() > 1 ? str(" + ", e.outputs.size() - 1, " more") : "");
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

void append_node(std::string& out, const DumpEntry& e) {
  out += str("e", e.index, " [label=",
             quoted(str("#", e.index, " ", e.op, "|", outputs_text(e), "|", place_of(e),
                        e.saved_bytes == 0 ? "" : str("|saves ", size_text(e.saved_bytes)))),
             "];\n");
}

}  // namespace

std::string place_of(const DumpEntry& entry) {
  if (entry.line == 0) return "an unknown line";
  return str(entry.file.substr(entry.file.rfind('/') + 1), ":", entry.line);
}

std::string owner_of(const TapeDump& dump, const DumpEntry& entry, const DumpSaved& saved) {
  if (saved.from.node == 0) return no_owner(dump, saved);
  if (saved.from.node == entry.index) return str("its output ", saved.from.slot);
  std::string whose;
  const DumpEntry* maker = dump.find_entry(saved.from.node);
  const DumpLeaf* leaf = dump.find_leaf(saved.from.node);
  if (leaf != nullptr) whose = name_of(*leaf);
  if (maker != nullptr) {
    whose = str("#", maker->index, " ", maker->op, "'s output ", saved.from.slot);
  }
  const auto input = std::find(entry.inputs.begin(), entry.inputs.end(), saved.from);
  if (input == entry.inputs.end()) return whose;
  return str("input ", input - entry.inputs.begin(), ", ", whose);
}

std::string to_text(const TapeDump& dump) {
  const DumpHeld peak = peak_of(dump);
  std::string out = str(counted(dump.entries.size(), "entry", "entries"), ", ",
                        counted(dump.leaves.size(), "leaf", "leaves"), "; saved ",
                        sizes_text(bytes_of(dump)), "\n");
  if (const DumpEntry* e = dump.find_entry(peak.entry)) {
    out += str("peak ", size_text(peak.total()), " while #", e->index, " ", e->op, " at ",
               place_of(*e), " runs ", peak.backward ? "backward" : "forward", ": saved ",
               size_text(peak.saved), ", gradients at most ", size_text(peak.gradients), "\n");
  }
  Table table({"entry", "line", "scope", "from", "output", "saves", "bytes", "of them new"}, 6);
  for (const DumpEntry& e : dump.entries) {
    table.add({str("#", e.index, " ", e.op), place_of(e), e.scope, from_text(dump, e),
               outputs_text(e), saved_text(dump, e), size_text(e.saved_bytes),
               size_text(e.first_bytes)});
  }
  return dump.entries.empty() ? out : out + "\n" + table.text();
}

std::string to_dot(const TapeDump& dump) {
  std::string out = "digraph tape {\nrankdir=BT;\nnode [shape=record, fontname=\"sans-serif\"];\n";
  std::map<std::string, std::vector<const DumpEntry*>> scopes;
  for (const DumpEntry& e : dump.entries) scopes[e.scope].push_back(&e);
  std::size_t cluster = 0;
  for (const auto& [scope, entries] : scopes) {
    if (!scope.empty())
      out += str("subgraph cluster_", cluster++, " {\nlabel=", quoted(scope), ";\n");
    for (const DumpEntry* e : entries) append_node(out, *e);
    if (!scope.empty()) out += "}\n";
  }
  for (const DumpLeaf& leaf : dump.leaves) {
    out += str("l", leaf.index, " [shape=ellipse, label=",
               quoted(str(leaf.name.empty() ? "leaf" : leaf.name, "\\n", spec_text(leaf.spec))),
               "];\n");
  }
  for (const DumpEntry& e : dump.entries) {
    for (const DumpEdge& edge : e.inputs) {
      if (edge.node == 0) continue;
      out += str(dump.find_entry(edge.node) != nullptr ? "e" : "l", edge.node, " -> e", e.index,
                 ";\n");
    }
  }
  return out + "}\n";
}

}  // namespace taper::lens
