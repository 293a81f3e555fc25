// Looking at one kernel's operands where its result went bad, and putting that into words.
#include "taper/autograd/lens/hunt_origin.h"

#include <cmath>
#include <cstdio>
#include <unordered_set>

#include "taper/autograd/lens/slot_info.h"

namespace taper::lens {
namespace {

const Layout kOne;  // a single number

Out one(double& to) {
  return {{&to, &kOne, kFloat64}};
}

bool same_sizes(const View& a, const View& b) {
  return a.layout->shape() == b.layout->shape();
}

// "nan" whatever its sign.
std::string text_of(double x) {
  if (std::isnan(x)) return "nan";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

// The number of the largest magnitude, NaN if there is one.
double largest_of(const Exec& exec, const View& view) {
  if (view.layout->numel() == 0) return 0;
  Layout reduced = *view.layout;
  for (int d = 0; d < reduced.ndim; ++d) reduced.strides[d] = 0;
  void* result = exec.scratch(static_cast<std::size_t>(element_size(view.dtype)));
  const Out out{{result, &reduced, view.dtype}};
  const Kernels& kernels = kernels_for(exec.device);
  kernels.amax(exec, out, In{view});
  const double most = number_at(exec, result, view.dtype);
  kernels.amin(exec, out, In{view});
  const double least = number_at(exec, result, view.dtype);
  return std::abs(least) > std::abs(most) ? least : most;
}

OperandSeen operand_of(const Exec& exec, const View& view, const View& written, const Sizes* at) {
  OperandSeen seen;
  for (const std::int64_t n : view.layout->shape()) seen.sizes.push_back(n);
  seen.dtype = view.dtype;
  seen.memory = memory_of(view);
  const bool overwritten = view.data == written.data;
  seen.known = is_floating_point(view.dtype) && !overwritten;
  if (!seen.known) return seen;
  seen.value =
      at != nullptr ? number_at(exec, element_of(view, *at), view.dtype) : largest_of(exec, view);
  return seen;
}

// The tensor that lies at an address, among what a node leads to.
std::string name_of_memory(const std::byte* at, const Node* from, bool leaves_only) {
  if (from == nullptr) return "";
  std::vector<const Node*> nodes{from};
  std::unordered_set<const Node*> seen{from};
  const auto holds = [&](const Storage& s) {
    const auto* first = static_cast<const std::byte*>(s.data());
    return at >= first && at < first + s.nbytes();
  };
  const auto written = [](const Storage& s) {
    const std::vector<Mutation> writers = s.last_writers();
    return writers.empty()
               ? std::string(", which no op has written in place")
               : str(", last written by ", writers[0].op, " at ", to_string(writers[0].loc));
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->is_leaf) {
      const auto& leaf = static_cast<const Leaf&>(*nodes[i]);
      if (leaf.tensor == nullptr || !holds(*leaf.tensor->storage)) continue;
      const std::string name = full_name(leaf);
      return str(name.empty() ? "a leaf" : name, written(*leaf.tensor->storage));
    }
    const auto& entry = static_cast<const Entry&>(*nodes[i]);
    for (const Edge& edge : entry.inputs) {
      if (edge && seen.insert(edge.node.get()).second) nodes.push_back(edge.node.get());
    }
  }
  for (const Node* node : nodes) {
    if (node->is_leaf || leaves_only) continue;
    for (const SavedTensor& s : static_cast<const Entry*>(node)->saved) {
      if (s.storage && holds(*s.storage))
        return str("a tensor without gradient", written(*s.storage));
    }
  }
  return "";
}

std::string place_of(const Origin& o) {
  const std::string& scope = scope_name(o.scope);
  const std::string where =
      str(" at ", taper::to_string(o.loc), scope.empty() ? "" : ", scope ", scope);
  const std::string number = o.entry == 0 ? "" : str("#", o.entry, " ");
  if (o.rule == nullptr) return str("in forward: ", number, o.op, where);
  return str("in the backward of ", number, o.rule, ", recorded", where, ", in its ", o.op);
}

std::string operands_of(const Origin& o) {
  std::string text;
  for (std::size_t i = 0; i < o.operands.size(); ++i) {
    const OperandSeen& x = o.operands[i];
    text += str("\n    operand ", i, ", ", x.dtype, " ", IntArrayRef(x.sizes));
    if (!x.known) {
      text += is_floating_point(x.dtype) ? ": written over in place" : "";
    } else if (o.elementwise) {
      text += ": " + text_of(x.value) + " there";
    } else if (std::isfinite(x.value)) {
      text += ": finite, the largest " + text_of(x.value);
    } else {
      text += ": holds " + text_of(x.value);
    }
  }
  return text;
}

}  // namespace

Range memory_of(const View& view) {
  const Extent extent = taper::extent(*view.layout);
  const std::int64_t size = element_size(view.dtype), offset = view.layout->offset;
  const auto* data = view.as<const std::byte>();
  return {data + (extent.begin - offset) * size, data + (extent.end - offset) * size};
}

const std::byte* element_of(const View& view, const Sizes& at) {
  std::int64_t offset = 0;
  for (int d = 0; d < view.layout->ndim; ++d)
    offset += at[static_cast<std::size_t>(d)] * view.layout->strides[d];
  return view.as<const std::byte>() + offset * element_size(view.dtype);
}

double number_at(const Exec& exec, const void* address, DType dtype) {
  double number = 0;
  const In in{{const_cast<void*>(address), &kOne, dtype}};  // NOLINT: it is only read
  kernels_for(exec.device).copy(exec, one(number), in);
  return number;
}

std::int64_t first_nonfinite(const View& view, Device device, StreamId stream) {
  if (device.is_meta()) return -1;
  std::int64_t index = -1;
  const Exec exec(device, stream);
  const Kernels& kernels = kernels_for(device);
  if (device.is_cpu()) {
    kernels.first_nonfinite(exec, Out{{&index, &kOne, kInt64}}, In{view});
    return index;
  }
  void* there = exec.scratch(sizeof(index));
  kernels.first_nonfinite(exec, Out{{there, &kOne, kInt64}}, In{view});
  kernels.copy(exec, Out{{&index, &kOne, kInt64}}, In{{there, &kOne, kInt64}});
  return index;
}

Origin see(const KernelCall& call, const View& written, std::int64_t index) {
  const Exec exec(call.exec.device, call.exec.stream);
  Origin o;
  o.slot = slot_number(call.slot);
  o.kernel = slot_name(call.slot);
  o.op = call_site.op != nullptr ? call_site.op : o.kernel;
  o.rule = call_site.entry;
  o.loc = call_site.loc();
  o.scope = call_site.scope;
  o.entry = call_site.entry_index;
  o.dtype = written.dtype;
  for (const std::int64_t n : written.layout->shape()) o.sizes.push_back(n);
  o.at = o.sizes;
  for (std::size_t d = o.at.size(); d-- > 0; index /= o.sizes[d]) o.at[d] = index % o.sizes[d];
  o.value = number_at(exec, element_of(written, o.at), written.dtype);
  o.elementwise = is_elementwise(o.slot);
  for (const View* read : call.reads) {
    if (!read->defined()) continue;
    const bool there = o.elementwise && same_sizes(*read, written);
    o.operands.push_back(operand_of(exec, *read, written, there ? &o.at : nullptr));
  }
  return o;
}

std::string to_string(const Origin& o, const Node* from) {
  const char* verb = o.kind == Origin::Kind::kMade      ? "began "
                     : o.kind == Origin::Kind::kMadeNaN ? "became nan "
                                                        : "came from outside ";
  std::string text = str("\n  it ", verb, place_of(o));
  text += str("\n    element ", IntArrayRef(o.at), " of ", o.dtype, " ", IntArrayRef(o.sizes),
              " became ", text_of(o.value));
  if (std::string_view(o.kernel) != o.op) text += str(" in kernel ", o.kernel);
  text += operands_of(o);
  if (o.kind != Origin::Kind::kMade && o.before < 0) {
    const OperandSeen& bad = o.operands[o.bad_operand];
    const bool number = bad.memory.end - bad.memory.begin == element_size(bad.dtype);
    const std::string name = name_of_memory(bad.memory.begin, from, number);
    text += str("\n    operand ", o.bad_operand, " was so before: ",
                !name.empty() ? name
                : number      ? "it is the number " + text_of(bad.value)
                              : "no kernel that the hunt has seen wrote it");
  }
  if (o.kind == Origin::Kind::kCameIn) return text;
  const char* limits = o.rule != nullptr ? limits_of_gradient(o.rule) : "";
  if (*limits != 0) return text + str("\n    ", o.rule, ": ", limits);
  limits = limits_of_kernel(o.slot);
  return *limits != 0 ? text + str("\n    ", o.kernel, ": ", limits) : text;
}

}  // namespace taper::lens
