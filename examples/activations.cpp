// What backward needs of GPT-2 small, term by term: what the tape holds beside the closed formula.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "taper/taper.h"

using namespace taper;

struct Size {
  std::int64_t layers = 12, h = 768, a = 12, v = 50257, b = 8, s = 1024;
};

struct GptImpl : nn::Module {
  explicit GptImpl(const Size& n)
      : token(register_module("token", nn::Embedding(n.v, n.h))),
        place(register_module("place", nn::Embedding(n.s, n.h))),
        drop(register_module("drop", nn::Dropout(0.1))),
        blocks(register_module("blocks", nn::Sequential())),
        norm(register_module("norm", nn::LayerNorm(std::vector<std::int64_t>{n.h}))) {
    const auto options = nn::TransformerBlockOptions(n.h, n.a).dropout(0.1);
    for (std::int64_t i = 0; i < n.layers; ++i) blocks->push_back(nn::TransformerBlock(options));
  }

  // Scores of the next word; the last layer is the first one's weight, as in GPT-2.
  Tensor forward(const Tensor& ids) {
    const Tensor x = token(ids) + place(arange(ids.size(1), ids.options()));
    return linear(norm(blocks(drop(x))), token->weight);
  }

  nn::Embedding token, place;
  nn::Dropout drop;
  nn::Sequential blocks;
  nn::LayerNorm norm;
};
TAPER_MODULE(Gpt);

// On the meta device, which has shapes and no memory. In f16.
lens::TapeDump tape_of(Gpt& model, const Size& n) {
  const Tensor ids = zeros({n.b, n.s}, TensorOptions(kInt64).device(kMeta));
  const Tensor scores = model(ids).view({n.b * n.s, n.v});
  return lens::dump(cross_entropy(scores, ids.view({n.b * n.s})));
}

// Bytes, but for parameters, by what saves them first: the module, the op, and which of such ops.
// All layers count as one, called L.
std::map<std::string, double> saved_by(const lens::TapeDump& dump) {
  std::map<std::string, double> bytes;
  std::map<std::string, int> seen;  // with the layer's number
  for (const lens::DumpEntry& e : dump.entries) {
    std::string scope = e.scope;
    const int nth = ++seen[scope + " " + e.op];
    if (scope.rfind("blocks.", 0) == 0) {
      const std::size_t dot = scope.find('.', 7);
      scope = dot == std::string::npos ? "L" : "L" + scope.substr(dot);
    }
    const lens::DumpBytes first = first_bytes_of(dump, e);
    if (first.total() == first.parameters) continue;
    bytes[scope + " " + e.op + (nth > 1 ? " " + std::to_string(nth) : "")] +=
        static_cast<double>(first.activations + first.data);
  }
  return bytes;
}

// One term of both formulas, as text and in bytes.
struct Term {
  const char* what;
  std::string key;  // of saved_by
  const char* closed;
  double closed_bytes;
  const char* ours;
  double our_bytes;
  const char* why;
};

constexpr double kMiB = 1024 * 1024;

bool print_terms(const char* title,
                 const std::vector<Term>& terms,
                 double times,
                 std::map<std::string, double>& saved,
                 double& closed_sum,
                 double& our_sum) {
  bool right = true;
  double closed = 0, ours = 0;
  std::printf("%-26s %-11s %7s   %-13s %7s\n", title, "formula", "MiB", "on the tape", "MiB");
  for (const Term& t : terms) {
    const double held = saved[t.key] / times;
    saved.erase(t.key);
    if (held != t.our_bytes) {
      std::printf("%s: the tape holds %.0f bytes, not %.0f\n", t.what, held, t.our_bytes);
      right = false;
    }
    std::string line(160, '\0');
    line.resize(static_cast<std::size_t>(
        std::snprintf(line.data(), line.size(), "  %-24s %-11s %7.1f   %-13s %7.1f   %s", t.what,
                      t.closed, t.closed_bytes / kMiB, t.ours, held / kMiB, t.why)));
    while (line.back() == ' ') line.pop_back();
    std::printf("%s\n", line.c_str());
    closed += t.closed_bytes;
    ours += held;
  }
  std::printf("  %-24s %-11s %7.1f   %-13s %7.1f\n", "together", "", closed / kMiB, "",
              ours / kMiB);
  closed_sum += times * closed;
  our_sum += times * ours;
  return right;
}

bool print_table(const Size& n, const lens::TapeDump& dump) {
  const auto b = static_cast<double>(n.b), s = static_cast<double>(n.s),
             h = static_cast<double>(n.h), a = static_cast<double>(n.a),
             v = static_cast<double>(n.v), sb = s * b, sbh = sb * h, scores = a * s * s * b;
  const char* again = "drawn again from its seed";
  const char* rows = "mean and 1/std of each row, in f32";
  const std::vector<Term> layer = {
      {"x, for norm1", "L.norm1 layer_norm", "2sbh", 2 * sbh, "2sbh + 8sb", 2 * sbh + 8 * sb, rows},
      {"its result, for QKV", "L.attn linear", "2sbh", 2 * sbh, "2sbh", 2 * sbh, ""},
      {"Q, K and V", "L.attn matmul", "6sbh", 6 * sbh, "8sbh", 8 * sbh,
       "one storage, and Q scaled beside it"},
      {"1 / sqrt(h / a)", "L.attn mul", "", 0, "8", 8, "a number"},
      {"causal mask", "L.attn masked_fill", "", 0, "ss", s * s, "one byte for each pair"},
      {"softmax", "L.attn softmax", "2assb", 2 * scores, "2assb", 2 * scores, ""},
      {"mask of its dropout", "L.attn dropout", "assb", scores, "", 0, again},
      {"its result, for V", "L.attn matmul 2", "2assb", 2 * scores, "2assb", 2 * scores, ""},
      {"heads, for out_proj", "L.attn.out_proj linear", "2sbh", 2 * sbh, "2sbh", 2 * sbh, ""},
      {"mask of its dropout", "L.drop dropout", "sbh", sbh, "", 0, again},
      {"x, for norm2", "L.norm2 layer_norm", "2sbh", 2 * sbh, "2sbh + 8sb", 2 * sbh + 8 * sb, rows},
      {"its result, for fc1", "L.fc1 linear", "2sbh", 2 * sbh, "2sbh", 2 * sbh, ""},
      {"fc1's, for gelu", "L gelu", "8sbh", 8 * sbh, "8sbh", 8 * sbh, ""},
      {"gelu's, for fc2", "L.fc2 linear", "8sbh", 8 * sbh, "8sbh", 8 * sbh, ""},
      {"mask of its dropout", "L.drop dropout 2", "sbh", sbh, "", 0, again},
  };
  const std::vector<Term> rest = {
      {"words", "token embedding", "", 0, "8sb", 8 * sb, "to scatter gradients by"},
      {"places", "place embedding", "", 0, "8s", 8 * s, "the same"},
      {"mask of dropout", "drop dropout", "sbh", sbh, "", 0, again},
      {"x, for norm", "norm layer_norm", "2sbh", 2 * sbh, "2sbh + 8sb", 2 * sbh + 8 * sb, rows},
      {"its result, for scores", " linear", "2sbh", 2 * sbh, "2sbh", 2 * sbh, ""},
      {"scores", " log_softmax", "4sbv", 4 * sb * v, "2sbv", 2 * sb * v,
       "their log_softmax, in f16 where the formula has f32"},
      {"labels", " nll_loss", "", 0, "12sb", 12 * sb, "and what each of them counts"},
  };
  std::map<std::string, double> saved = saved_by(dump);
  double closed = 0, ours = 0;
  bool right =
      print_terms("each of 12 layers", layer, static_cast<double>(n.layers), saved, closed, ours);
  std::printf("  sbh (34 + 5as/h) is      %-11s %7.1f\n\n", "", sbh * (34 + 5 * a * s / h) / kMiB);
  right = print_terms("before and after", rest, 1, saved, closed, ours) && right;
  for (const auto& [key, bytes] : saved) {
    std::printf("%s: %.0f bytes are of no term\n", key.c_str(), bytes);
    right = false;
  }
  std::printf("\nin all                     formula   %9.1f   on the tape   %9.1f\n", closed / kMiB,
              ours / kMiB);
  const lens::DumpBytes all = bytes_of(dump);
  return right && ours == static_cast<double>(all.activations + all.data);
}

int main(int argc, char** argv) {
  Size n;
  std::string out;
  if (argc == 2) out = argv[1];
  Gpt model(Size{12, 768, 12, 50257, 8, 2048});
  double weights = 0;
  for (const Tensor& p : model->parameters()) weights += 2 * static_cast<double>(p.numel());
  model->to(kMeta);
  model->to(kHalf);
  const lens::TapeDump dump = tape_of(model, n);
  if (!out.empty()) std::ofstream(out) << to_json(dump);
  std::printf("GPT-2 small in f16: h = 768, a = 12 heads, v = 50257; b = 8 rows of s = 1024\n\n");
  const bool right = print_table(n, dump);
  const lens::DumpHeld peak = peak_of(dump);
  std::printf("at the peak, backward of %s: saved %.1f MiB, gradients at most %.1f MiB\n\n",
              dump.find_entry(peak.entry)->op.c_str(), static_cast<double>(peak.saved) / kMiB,
              static_cast<double>(peak.gradients) / kMiB);
  std::printf("There is no ratio to the weights (%.0f MiB):\n", weights / kMiB);
  for (const auto& [b, s] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 256}, {1, 1024}, {8, 256}, {8, 1024}, {8, 2048}}) {
    n.b = b;
    n.s = s;
    const lens::DumpBytes bytes = bytes_of(tape_of(model, n));
    const auto held = static_cast<double>(bytes.activations + bytes.data);
    std::printf("  b = %lld, s = %4lld   %8.1f MiB   %5.1f times\n", static_cast<long long>(b),
                static_cast<long long>(s), held / kMiB, held / weights);
  }
  return right ? 0 : 1;
}
