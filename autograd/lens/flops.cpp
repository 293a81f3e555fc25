// The arithmetic of every op, in terms of its shapes.
#include "taper/autograd/lens/flops.h"

#include <cmath>
#include <limits>

#include "taper/autograd/ops/all_ops.h"

namespace taper::lens {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// An entry's shapes; null where the tape has none, as of inputs that want no gradient.
struct Shapes {
  std::vector<const TensorSpec*> in;
  const DumpEntry& entry;

  const TensorSpec* input(std::size_t k) const { return k < in.size() ? in[k] : nullptr; }

  // Such an input may still be saved, for the gradients of the others.
  const TensorSpec* input_or_saved(std::size_t k) const {
    return input(k) != nullptr || entry.saved.empty() ? input(k) : &entry.saved.back().spec;
  }
};

double n(const TensorSpec* t) {
  if (t == nullptr) return kUnknown;
  double count = 1;
  for (const std::int64_t s : t->sizes) count *= static_cast<double>(s);
  return count;
}

double n_out(const Shapes& s) {
  return n(&s.entry.outputs[0]);
}

double n_in(const Shapes& s) {
  return n(s.input(0));
}

double none(const Shapes&) {
  return 0;
}

// The dim from the end; 1-d operands of a product have but the one that is summed over.
double size(const TensorSpec* t, std::size_t from_end) {
  if (t == nullptr || t->sizes.empty()) return kUnknown;
  const std::size_t dims = t->sizes.size();
  return static_cast<double>(t->sizes[dims == 1 ? 0 : dims - from_end]);
}

double known(double a, double b) {
  return std::isnan(a) ? b : a;
}

double product(const Shapes& s) {
  return 2 * n_out(s) * known(size(s.input(0), 1), size(s.input(1), 2));
}

double sum_and_product(const Shapes& s) {
  return n_out(s) * (2 * known(size(s.input(1), 1), size(s.input(2), 2)) + 3);
}

double linear_layer(const Shapes& s) {
  return n_out(s) * (2 * known(size(s.input(0), 1), size(s.input(1), 1)) + 1);
}

double per_filter(const TensorSpec* weight) {
  return weight == nullptr || weight->sizes.empty()
             ? kUnknown
             : n(weight) / static_cast<double>(weight->sizes[0]);
}

// Of the inputs, or of what was saved for lack of them: q (..., T, E), k (..., S, E).
double attention(const Shapes& s) {
  const auto spec = [&](std::size_t k) {
    return s.input(k) != nullptr || k >= s.entry.saved.size() ? s.input(k) : &s.entry.saved[k].spec;
  };
  const double columns = size(&s.entry.outputs[0], 1);
  return 2 * n_out(s) / columns * size(spec(1), 2) * (size(spec(0), 1) + columns);
}

// Each row of x (N, G H) meets w_hh, (G H, H), by way of the state before it.
double recurrent(const Shapes& s) {
  return n(s.input(0)) * (2 * size(&s.entry.outputs[0], 1) + 4);
}

double conv(const Shapes& s) {
  return 2 * n_out(s) * per_filter(s.input_or_saved(1));
}

double conv_grad_input(const Shapes& s) {
  return 2 * n(s.input_or_saved(0)) * per_filter(s.input_or_saved(1));
}

double conv_grad_weight(const Shapes& s) {
  return 2 * n(s.input_or_saved(0)) * per_filter(&s.entry.outputs[0]);
}

double sorting(const Shapes& s) {
  return n_in(s) * std::log2(std::max(n_in(s), 1.0));
}

double second(const Shapes& s) {
  return n(s.input(1));
}

double third(const Shapes& s) {
  return n(s.input(2));
}

double by_class(const Shapes& s) {
  const TensorSpec* x = s.input(0);
  if (x == nullptr || x->sizes.size() < 2 || x->sizes[1] == 0) return kUnknown;
  return 3 * n(x) / static_cast<double>(x->sizes[1]);
}

template <int Factor, double (*Count)(const Shapes&)> double times(const Shapes& s) {
  return Factor * Count(s);
}

struct Rule {
  const char* ops;  // their names, with spaces before and behind
  const char* formula;
  double (*count)(const Shapes&);
};

constexpr const char* kPerElement = "n(out)";

constexpr Rule kRules[] = {
    {" where masked_fill dropout random rand rand_like randn randn_like normal normal_ uniform_ "
     "bernoulli bernoulli_ "
     "bitwise not bitwise_and bitwise_or bitwise_xor bitwise_not logical_not avg_pool2d_grad ",
     kPerElement, n_out},
    {" view reshape flatten permute transpose t movedim expand select slice diagonal unfold narrow "
     "as_strided embed replace_part copy clone contiguous to repeat copy_ fill_ cat stack flip pad "
     "index gather index_select embedding nonzero squeeze unsqueeze chunk split unbind ",
     "0", none},
    {" sum prod cumsum cumprod amax amin max min argmax argmin any all "
     "max_pool2d_grad ",
     "n(in0)", n_in},
    {" max_pool2d avg_pool2d ", "n(in0) where windows do not overlap", n_in},
    {" norm ", "2 n(in0)", times<2, n_in>},
    {" var var_mean std logsumexp huber ", "4 n(in0)", times<4, n_in>},
    {" softmax log_softmax ", "5 n(in0)", times<5, n_in>},
    {" layer_norm batch_norm binary_cross_entropy ", "8 n(in0)", times<8, n_in>},
    {" nll_loss ", "3 n(in0) / C", by_class},
    {" sort topk ", "n(in0) log2 n(in0) at most", sorting},
    {" scatter ", "0", none},
    {" index_put ", "n(in1) at most", second},
    {" scatter_add ", "n(in2)", third},
    {" index_add ", "n(in2)", third},
    {" matmul mm bmm mv dot ", "2 n(out) K", product},
    {" addmm baddbmm ", "n(out) (2 K + 3)", sum_and_product},
    {" linear ", "n(out) (2 K + 1)", linear_layer},
    {" scaled_dot_product_attention ", "2 n(out) S (E + D) / D", attention},
    {" lstm gru ", "n(in0) (2 H + 4)", recurrent},
    {" conv2d ", "2 n(out) C/g kH kW", conv},
    {" conv2d_grad_input ", "2 n(in0) C/g kH kW", conv_grad_input},
    {" conv2d_grad_weight ", "2 n(in0) C/g kH kW", conv_grad_weight},
};

template <class... Ops> bool is_one_of(const std::string& op, ops::OpList<Ops...>) {
  return ((op == Ops::kName) || ...);
}

const Rule* rule_of(const std::string& op) {
  static constexpr Rule kElementwise = {"", kPerElement, n_out};
  if (is_one_of(op, ops::UnaryOps()) || is_one_of(op, ops::BinaryOps())) return &kElementwise;
  for (const Rule& rule : kRules) {
    if (std::string_view(rule.ops).find(" " + op + " ") != std::string_view::npos) return &rule;
  }
  return nullptr;
}

}  // namespace

const char* flops_formula(const std::string& op) {
  const Rule* rule = rule_of(op);
  return rule == nullptr ? nullptr : rule->formula;
}

double recompute_flops(const TapeDump& dump, const DumpEntry& entry) {
  const Rule* rule = rule_of(entry.op);
  if (rule == nullptr || entry.outputs.empty()) return kUnknown;
  Shapes shapes{{}, entry};
  for (const DumpEdge& edge : entry.inputs) {
    const DumpEntry* from = dump.find_entry(edge.node);
    const DumpLeaf* leaf = dump.find_leaf(edge.node);
    if (from != nullptr && edge.slot < from->outputs.size()) {
      shapes.in.push_back(&from->outputs[edge.slot]);
    } else {
      shapes.in.push_back(leaf != nullptr ? &leaf->spec : nullptr);
    }
  }
  return rule->count(shapes);
}

}  // namespace taper::lens
