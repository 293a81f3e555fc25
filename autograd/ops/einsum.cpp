// einsum: reads the equation, then contracts the operands from left to right by bmm.
#include <cctype>

#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"

namespace taper {
namespace {

// A dim's name: 0 to 51 for A-Z and a-z in this order, from 52 on for the dims of "...".
using Label = int;
using Labels = SmallVector<Label, 8>;

constexpr Label kEllipsis = 52;
constexpr int kLabels = kEllipsis + kMaxDims;

Label label_of(char c, const std::string& equation) {
  TAPER_CHECK(std::isalpha(static_cast<unsigned char>(c)) != 0, "einsum: '", c, "' in \"", equation,
              "\" is no letter");
  return c < 'a' ? c - 'A' : 26 + c - 'a';
}

// One term of the equation: letters, and kEllipsis where "..." stands.
Labels parse_term(const std::string& term, const std::string& equation) {
  Labels labels;
  bool dots = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term[i] != '.') {
      labels.push_back(label_of(term[i], equation));
      continue;
    }
    TAPER_CHECK(!dots && term.compare(i, 3, "...") == 0, "einsum: a term of \"", equation,
                "\" may have one \"...\"");
    dots = true;
    labels.push_back(kEllipsis);
    i += 2;
  }
  return labels;
}

struct Equation {
  std::vector<Labels> terms;
  std::optional<Labels> result;  // after "->"

  explicit Equation(const std::string& text) {
    std::string plain;
    for (const char c : text) {
      if (c != ' ') plain += c;
    }
    const std::size_t arrow = plain.find("->");
    if (arrow != std::string::npos) result = parse_term(plain.substr(arrow + 2), text);
    const std::string left = plain.substr(0, arrow);
    std::size_t at = 0;
    while (true) {
      const std::size_t comma = left.find(',', at);
      terms.push_back(parse_term(left.substr(at, comma - at), text));
      if (comma == std::string::npos) return;
      at = comma + 1;
    }
  }
};

// A tensor and the names of its dims.
struct Named {
  Tensor tensor;
  Labels labels;

  int find(Label label) const {
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (labels[d] == label) return static_cast<int>(d);
    }
    return -1;
  }

  void drop(int dim) {
    Labels left;
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (static_cast<int>(d) != dim) left.push_back(labels[d]);
    }
    labels = left;
  }

  // Sums over the dims whose labels do not pass.
  template <class Keep> void sum_unless(Keep keep) {
    Sizes dims;
    Labels left;
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (keep(labels[d])) left.push_back(labels[d]);
      else dims.push_back(static_cast<std::int64_t>(d));
    }
    if (dims.empty()) return;
    tensor = tensor.sum(dims);
    labels = left;
  }

  void permute(const Labels& order) {
    Sizes dims;
    for (const Label label : order) dims.push_back(find(label));
    tensor = tensor.permute(dims);
    labels = order;
  }
};

// The operand with a label for each dim of "...", and the diagonal of dims that share a label.
Named named(const Tensor& t, const Labels& term, std::size_t operand) {
  bool dots = false;
  for (const Label label : term) dots = dots || label == kEllipsis;
  const auto letters = static_cast<int>(term.size()) - (dots ? 1 : 0);
  const int extra = static_cast<int>(t.dim()) - letters;
  TAPER_CHECK(extra == 0 || (dots && extra > 0), "einsum: operand ", operand, " has shape ",
              t.sizes(), " but its term names ", letters, " dims");
  Named out{t, {}};
  for (const Label label : term) {
    if (label != kEllipsis) {
      out.labels.push_back(label);
      continue;
    }
    // Counted so that the last dims of all the "..." meet.
    for (int d = 0; d < extra; ++d) out.labels.push_back(kEllipsis + kMaxDims - extra + d);
  }
  for (std::size_t d = 0; d < out.labels.size();) {
    const int first = out.find(out.labels[d]);
    if (first == static_cast<int>(d)) {
      ++d;
      continue;
    }
    const auto second = static_cast<int>(d);
    const Label label = out.labels[d];
    TAPER_CHECK(out.tensor.size(first) == out.tensor.size(second), "einsum: operand ", operand,
                " has one letter at dims of sizes ", out.tensor.size(first), " and ",
                out.tensor.size(second));
    out.tensor = out.tensor.diagonal(0, first, second);
    out.drop(second);
    out.drop(first);
    out.labels.push_back(label);
    d = 0;
  }
  return out;
}

// Where both have a dim, one of size 1 goes: it only stretches.
void squeeze_stretched(Named& a, const Named& b) {
  for (int d = static_cast<int>(a.labels.size()) - 1; d >= 0; --d) {
    const int other = b.find(a.labels[static_cast<std::size_t>(d)]);
    if (other < 0 || a.tensor.size(d) == b.tensor.size(other)) continue;
    if (a.tensor.size(d) == 1) {
      a.tensor = a.tensor.squeeze(d);
      a.drop(d);
      continue;
    }
    TAPER_CHECK(b.tensor.size(other) == 1, "einsum: one label has sizes ", a.tensor.size(d),
                " and ", b.tensor.size(other));
  }
}

// Product of the sizes of some dims, which it also adds to `sizes`.
std::int64_t count(const Named& t, const Labels& labels, Sizes* sizes) {
  std::int64_t n = 1;
  for (const Label label : labels) {
    const std::int64_t size = t.tensor.size(t.find(label));
    n *= size;
    if (sizes != nullptr) sizes->push_back(size);
  }
  return n;
}

Labels joined(std::initializer_list<const Labels*> parts) {
  Labels out;
  for (const Labels* part : parts) {
    for (const Label label : *part) out.push_back(label);
  }
  return out;
}

// The product of both, summed over the labels that do not pass.
template <class Keep> Named contract(Named a, Named b, Keep keep) {
  squeeze_stretched(a, b);
  squeeze_stretched(b, a);
  a.sum_unless([&](Label label) { return keep(label) || b.find(label) >= 0; });
  b.sum_unless([&](Label label) { return keep(label) || a.find(label) >= 0; });
  Labels batch, only_a, only_b, summed;
  for (const Label label : a.labels) {
    if (b.find(label) < 0) only_a.push_back(label);
    else (keep(label) ? batch : summed).push_back(label);
  }
  for (const Label label : b.labels) {
    if (a.find(label) < 0) only_b.push_back(label);
  }
  Named out{{}, joined({&batch, &only_a, &only_b})};
  Sizes sizes;
  const std::int64_t nb = count(a, batch, &sizes), m = count(a, only_a, &sizes);
  const std::int64_t n = count(b, only_b, &sizes), k = count(a, summed, nullptr);
  a.permute(joined({&batch, &only_a, &summed}));
  b.permute(joined({&batch, &summed, &only_b}));
  const Tensor left = a.tensor.reshape({nb, m, k}), right = b.tensor.reshape({nb, k, n});
  out.tensor = (summed.empty() ? left * right : bmm(left, right)).reshape(sizes);
  return out;
}

// The labels of the result: as written, or by the rule.
Labels result_labels(const Equation& equation,
                     const std::vector<Named>& operands,
                     const std::string& text) {
  int times[kLabels] = {};
  bool present[kLabels] = {};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (const Label label : equation.terms[i]) ++times[label];
    for (const Label label : operands[i].labels) present[label] = true;
  }
  Labels out;
  const auto add_ellipsis = [&] {
    for (Label label = kEllipsis; label < kLabels; ++label) {
      if (present[label]) out.push_back(label);
    }
  };
  if (!equation.result) {
    add_ellipsis();
    for (Label label = 0; label < kEllipsis; ++label) {
      if (times[label] == 1) out.push_back(label);
    }
    return out;
  }
  for (const Label label : *equation.result) {
    if (label == kEllipsis) {
      add_ellipsis();
      continue;
    }
    TAPER_CHECK(times[label] > 0, "einsum: the result of \"", text,
                "\" names a letter that no operand has");
    for (const Label other : out) {
      TAPER_CHECK(other != label, "einsum: the result of \"", text, "\" names a letter twice");
    }
    out.push_back(label);
  }
  return out;
}

}  // namespace

Tensor einsum(const std::string& equation, const TensorList& operands) {
  const Call call(operands.loc);
  const Equation parsed(equation);
  TAPER_CHECK(!operands.empty() && parsed.terms.size() == operands.size(), "einsum: \"", equation,
              "\" has ", parsed.terms.size(), " terms for ", operands.size(), " operands");
  std::vector<Named> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(named(operands[i], parsed.terms[i], i));
  }
  const Labels result = result_labels(parsed, inputs, equation);
  std::size_t last[kLabels] = {};  // the operand that has it last; past all when the result does
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const Label label : inputs[i].labels) last[label] = i;
  }
  for (const Label label : result) last[label] = inputs.size();
  Named total = inputs[0];
  total.sum_unless([&](Label label) { return last[label] > 0; });
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    total = contract(total, inputs[i], [&](Label label) { return last[label] > i; });
  }
  total.permute(result);
  return total.tensor;
}

}  // namespace taper
