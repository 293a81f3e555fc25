// Writes docs/op-table.md out of the list of all ops: what each saves, in which bytes, and what it
// would take to compute it again. op_table FILE [--write]
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <typeindex>

#include "taper/autograd/lens/flops.h"
#include "taper/core/base/text.h"
#include "taper/tests/contract/more_samples.h"

namespace taper::contract {
namespace {

// Remembers in which entry's forward each address was written last.
class Writers final : public Probe {
 public:
  Writers() { probe = this; }
  ~Writers() override { probe = nullptr; }
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;

  void before(const KernelCall&) override {}

  void after(const KernelCall& call) override {
    for (const View* v : call.writes) entries_[v->data] = call_site.entry_index;
  }

  // Whether the forward of that entry itself wrote the storage.
  bool wrote(std::uint64_t entry, const Storage& storage) const {
    const auto* begin = static_cast<const char*>(storage.data());
    for (auto at = entries_.lower_bound(begin); at != entries_.end(); ++at) {
      if (static_cast<const char*>(at->first) >= begin + storage.nbytes()) return false;
      if (at->second == entry) return true;
    }
    return false;
  }

 private:
  std::map<const void*, std::uint64_t> entries_;
};

double numel(IntArrayRef sizes) {
  double n = 1;
  for (const std::int64_t s : sizes) n *= static_cast<double>(s);
  return n;
}

// How many elements a tensor that the op made for itself may have, in terms of its shapes.
struct Count {
  const char* text;
  double (*of)(const Entry&);
};

double input(const Entry& e, std::size_t k) {
  return k < e.inputs.size() && e.inputs[k] ? numel(spec_of(e.inputs[k]).sizes) : -1;
}

double output(const Entry& e, std::size_t k) {
  return k < e.outputs.size() ? numel(e.outputs[k].sizes) : -1;
}

double classes(const Entry& e) {
  const bool has = !e.inputs.empty() && e.inputs[0] && spec_of(e.inputs[0]).sizes.size() > 1;
  return has ? static_cast<double>(spec_of(e.inputs[0]).sizes[1]) : -1;
}

const Count kCounts[] = {
    {"n(out0)", [](const Entry& e) { return output(e, 0); }},
    {"n(in1)", [](const Entry& e) { return input(e, 1); }},
    {"n(in0)/n(in1)", [](const Entry& e) { return input(e, 0) / input(e, 1); }},
    {"n(out0) 2/D",
     [](const Entry& e) {
       const Sizes& sizes = e.outputs[0].sizes;
       return output(e, 0) * 2 / static_cast<double>(sizes.empty() ? 1 : sizes[sizes.size() - 1]);
     }},
    {"n(in0)/C", [](const Entry& e) { return input(e, 0) / classes(e); }},
};

// One tensor that an op saves, over all samples in which it saves the like.
struct Saved {
  std::string whose;             // "in0", "out0", "given", "own"
  std::string bytes_each;        // "e" is the size of the inputs' elements
  std::set<std::size_t> counts;  // those of kCounts that fit every sample
};

std::string bytes_text(const Saved& s) {
  const bool counted = s.whose == "own" && !s.counts.empty();
  return str(s.bytes_each, " ", counted ? kCounts[*s.counts.begin()].text : "n(" + s.whose + ")");
}

class Row {
  // What some of the entries save.
  struct Pattern {
    std::size_t entries = 0;
    std::vector<Saved> saved;
  };

 public:
  void add(const Entry& e, const Writers& writers) {
    names_.insert(e.op->name());
    std::vector<Saved> all;
    std::string pattern;
    for (const SavedTensor& s : e.saved) {
      all.push_back(saved_of(e, s, writers));
      pattern += all.back().whose + all.back().bytes_each + " ";
    }
    const auto [at, fresh] = patterns_.emplace(pattern, Pattern{0, all});
    ++at->second.entries;
    for (std::size_t i = 0; !fresh && i < all.size(); ++i) {
      std::erase_if(at->second.saved[i].counts,
                    [&](std::size_t c) { return all[i].counts.count(c) == 0; });
    }
  }

  std::string text(const std::string& name) const {
    std::vector<Pattern> patterns;
    for (const auto& [key, pattern] : patterns_) patterns.push_back(pattern);
    std::stable_sort(patterns.begin(), patterns.end(),
                     [](const Pattern& a, const Pattern& b) { return a.entries > b.entries; });
    std::string saves, bytes;
    for (const Pattern& pattern : patterns) {
      std::string what, sum;
      for (const Saved& s : pattern.saved) {
        what += (what.empty() ? "" : ", ") + s.whose;
        sum += (sum.empty() ? "" : " + ") + bytes_text(s);
      }
      saves += (saves.empty() ? "" : "; or ") + (what.empty() ? "nothing" : what);
      bytes += (bytes.empty() ? "" : "; or ") + (sum.empty() ? "0" : sum);
    }
    if (patterns_.empty()) saves = "not recorded", bytes = "";
    std::string called = name;
    for (const std::string& other : names_) called += other == name ? "" : ", " + other;
    const char* formula = lens::flops_formula(name);
    for (const std::string& other : names_) {
      if (lens::flops_formula(other) == nullptr) formula = nullptr;
    }
    if (formula == nullptr)
      std::fprintf(stderr, "%s has no rule in lens/flops.cpp\n", called.c_str());
    return str("| ", called, " | ", saves, " | ", bytes, " | ", formula == nullptr ? "?" : formula,
               " |\n");
  }

 private:
  static Saved saved_of(const Entry& e, const SavedTensor& s, const Writers& writers) {
    Saved out;
    if (s.output >= 0) out.whose = str("out", s.output);
    for (std::size_t k = 0; k < e.inputs.size() && out.whose.empty(); ++k) {
      if (s.edge && s.edge.node == e.inputs[k].node && s.edge.slot == e.inputs[k].slot)
        out.whose = str("in", k);
    }
    if (out.whose.empty()) out.whose = writers.wrote(e.index, *s.storage) ? "own" : "given";
    out.bytes_each = s.dtype == e.outputs[0].dtype ? "e" : str(element_size(s.dtype));
    for (std::size_t c = 0; c < std::size(kCounts); ++c) {
      if (kCounts[c].of(e) == numel(s.layout.shape())) out.counts.insert(c);
    }
    return out;
  }

  std::set<std::string> names_;
  std::map<std::string, Pattern> patterns_;
};

// The entries behind the tensors.
std::vector<Ref<Node>> entries_behind(const std::vector<Tensor>& tensors) {
  std::vector<Ref<Node>> out;
  std::set<const Node*> seen;
  const auto visit = [&](const Edge& edge) {
    if (edge && !edge.node->is_leaf && seen.insert(edge.node.get()).second)
      out.push_back(edge.node);
  };
  for (const Tensor& t : tensors) {
    if (t.defined()) visit(gradient_edge(t));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Ref<Node> node = out[i];
    for (const Edge& edge : static_cast<const Entry&>(*node).inputs) visit(edge);
  }
  return out;
}

// The rows of all ops, by their names in the list.
class Rows {
 public:
  template <class... Ops> void name(ops::OpList<Ops...>) {
    (names_.emplace(typeid(Ops), Ops::kName), ...);
  }

  template <class... Ops> void run(ops::OpList<Ops...>) { (run_samples<Ops>(), ...); }

  template <class... Ops> std::string text(const char* title, ops::OpList<Ops...>) {
    std::string out = str("\n## ", title, "\n\n| op | saves | bytes | to compute it again |\n",
                          "|---|---|---|---|\n");
    ((out += rows_[Ops::kName].text(Ops::kName)), ...);
    return out;
  }

 private:
  // An op that writes into a view is wrapped, and called as it is.
  void add(const Entry& entry, const Writers& writers) {
    const Op& op = *entry.op;
    const auto at = names_.find(typeid(op));
    rows_[at == names_.end() ? op.name() : at->second].add(entry, writers);
  }

  template <class Op> void run_samples() {
    for (const Sample& s : Samples<Op>::make()) {
      const Writers writers;
      std::vector<Tensor> inputs, wanted, outputs, seeds;
      for (const Tensor& t : s.inputs) {
        inputs.push_back(t.is_floating_point() ? t.to(kFloat16).requires_grad_() : t);
        if (t.is_floating_point()) wanted.push_back(inputs.back());
      }
      for (const Tensor& t : s.call(inputs)) {
        if (t.requires_grad() && t.numel() > 0) outputs.push_back(t);
      }
      if (outputs.empty()) continue;
      // Rules are made of ops too, some of which only they use.
      for (const Tensor& t : outputs) seeds.push_back(ones_like(t).requires_grad_());
      std::vector<Tensor> all = grad(outputs, wanted, seeds, true, true, true);
      all.insert(all.end(), outputs.begin(), outputs.end());
      for (const Ref<Node>& node : entries_behind(all))
        add(static_cast<const Entry&>(*node), writers);
    }
  }

  std::map<std::type_index, std::string> names_;
  std::map<std::string, Row> rows_;
};

constexpr const char* kHead =
    R"(# What ops save

Made from the list of all ops (`autograd/ops/all_ops.h`) by `tests/contract/op_table.cpp`, which runs each op's samples with
every floating input wanting its gradient, and looks at whose storage each saved tensor is. A test holds this page to it.

`in0`, `in1`, … are the op's inputs and `out0`, … its outputs; `given` is an input that takes no gradient, such as indices and
masks; `own` is what the op made for its derivative alone. An input or output costs nothing more than it does anyhow where
something else holds it too: only `own` is always new. `n(x)` is a tensor's number of elements, `e` the bytes of one of out0
(f16 here: statistics that are f32 beside it are 4 bytes, and would be 8 beside f64), `C` the size of in0's dim 1. What is saved for an input's
gradient is not saved where that gradient is not wanted.

The last column counts floating-point operations, an elementary function as one; `K` is the dim that a product sums over, `H`
the size of a recurrent state. It is what checkpointing would pay for the bytes: `lens::recompute_flops` gives it for an entry of a dump.
)";

}  // namespace
}  // namespace taper::contract

int main(int argc, char** argv) {
  using namespace taper;
  if (argc < 2) return std::puts("op_table FILE [--write]"), 1;
  contract::Rows rows;
  rows.name(ops::UnaryOps()), rows.name(ops::BinaryOps()), rows.name(ops::OtherOps());
  rows.run(ops::UnaryOps()), rows.run(ops::BinaryOps()), rows.run(ops::OtherOps());
  std::string page = contract::kHead;
  page += rows.text("Of one tensor, element by element", ops::UnaryOps());
  page += rows.text("Of two, element by element", ops::BinaryOps());
  page += rows.text("Others", ops::OtherOps());
  if (argc > 2) return std::ofstream(argv[1], std::ios::binary) << page ? 0 : 1;
  std::ifstream in(argv[1], std::ios::binary);
  const std::string there{std::istreambuf_iterator<char>(in), {}};
  if (page.find("| ? |") != std::string::npos)
    return std::puts("an op has no rule in lens/flops.cpp"), 1;
  if (page == there) return 0;
  std::printf("%s is not what the ops say; op_table %s --write renews it\n", argv[1], argv[1]);
  return 1;
}
