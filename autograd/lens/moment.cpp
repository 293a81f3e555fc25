// Telling one step of a backward pass: whose it is, what it holds, what flowed.
#include "taper/autograd/lens/moment.h"

#include <cstdio>
#include <ostream>

#include "taper/autograd/lens/within.h"
#include "taper/autograd/op.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"

namespace taper::lens {
namespace {

double norm_of(const Tensor& t) {
  if (!t.defined()) return 0;
  const NoGradGuard no_grad;
  const Within our_own("here");
  return t.to(kDouble).square().sum().sqrt().item<double>();
}

std::string short_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", x);
  return text;
}

std::string name_of(const Leaf& leaf) {
  const std::string name = full_name(leaf);
  return name.empty() ? str("a leaf ", IntArrayRef(leaf.spec.sizes)) : name;
}

std::string origin(const Edge& edge) {
  if (!edge) return "no gradient wanted";
  return edge.node->is_leaf ? name_of(static_cast<const Leaf&>(*edge.node)) : describe(*edge.node);
}

void append_grads(std::string& out,
                  const char* label,
                  const std::vector<Tensor>& grads,
                  const std::vector<double>& norms) {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    out += str("  ", label, " ", i, ": ");
    if (!grads[i].defined()) out += "nothing\n";
    else out += str(grads[i].dtype(), " ", grads[i].sizes(), ", norm ", short_text(norms[i]), "\n");
  }
}

}  // namespace

std::string describe(const Node& node) {
  if (node.is_leaf)
    return str("#", node.index, " accumulate into ", name_of(static_cast<const Leaf&>(node)));
  const auto& entry = static_cast<const Entry&>(node);
  const std::string& scope = scope_name(entry.scope);
  return str("#", entry.index, " ", entry.name, " at ", to_string(entry.loc),
             scope.empty() ? "" : ", scope ", scope);
}

Moment moment_of(const Node& node, ArrayRef<Tensor> incoming, ArrayRef<Tensor> outgoing) {
  Moment m;
  m.entry = node.index;
  m.is_leaf = node.is_leaf;
  for (const Tensor& g : incoming) m.grads_in.push_back(g);
  for (const Tensor& g : outgoing) m.grads_out.push_back(g);
  for (const Tensor& g : m.grads_in) m.norms_in.push_back(norm_of(g));
  for (const Tensor& g : m.grads_out) m.norms_out.push_back(norm_of(g));
  if (node.is_leaf) {
    m.op = "accumulate";
    m.scope = name_of(static_cast<const Leaf&>(node));
    return m;
  }
  const auto& entry = static_cast<const Entry&>(node);
  m.op = entry.name;
  m.loc = entry.loc;
  m.scope = scope_name(entry.scope);
  m.saved_bytes = entry.saved_bytes;
  for (const Edge& edge : entry.inputs) {
    InputInfo& in = m.inputs.emplace_back();
    in.wanted = static_cast<bool>(edge);
    in.from = origin(edge);
    if (edge) in.spec = spec_of(edge);
  }
  for (const SavedTensor& s : entry.saved) {
    SavedInfo& saved = m.saved.emplace_back();
    for (const std::int64_t n : s.layout.shape()) saved.sizes.push_back(n);
    saved.dtype = s.dtype;
    saved.bytes = s.storage->nbytes();
    saved.owner = s.output >= 0 ? str("its own output ", s.output)
                  : s.edge      ? origin(s.edge)
                                : "data";
    saved.written = s.storage->version() != s.version;
  }
  return m;
}

std::string to_string(const Moment& m) {
  std::string out = str("#", m.entry, " ", m.op);
  if (m.is_leaf) {
    out += str(" into ", m.scope, "\n");
  } else {
    out += str(", recorded at ", taper::to_string(m.loc));
    if (!m.scope.empty()) out += str(", scope ", m.scope);
    out += "\n";
  }
  for (std::size_t i = 0; i < m.inputs.size(); ++i) {
    out += str("  input ", i, ": ");
    if (m.inputs[i].wanted)
      out += str(m.inputs[i].spec.dtype, " ", IntArrayRef(m.inputs[i].spec.sizes), " from ");
    out += m.inputs[i].from + "\n";
  }
  for (const SavedInfo& s : m.saved) {
    out += str("  saved ", s.dtype, " ", IntArrayRef(s.sizes), ", ", s.bytes, " B, of ", s.owner,
               s.written ? "; WRITTEN SINCE" : "", "\n");
  }
  append_grads(out, "gradient of output", m.grads_in, m.norms_in);
  append_grads(out, "gradient of input", m.grads_out, m.norms_out);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Moment& moment) {
  return out << to_string(moment);
}

}  // namespace taper::lens
