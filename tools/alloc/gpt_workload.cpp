// The traces of a decoder in training: what each layer allocates, keeps for its backward, and
// frees.
#include "taper/tools/alloc/workload_writer.h"
#include "taper/tools/alloc/workloads.h"

namespace taper {
namespace {

using Blocks = std::vector<std::uint32_t>;

std::string numbered(const char* what, std::uint64_t n) {
  return what + std::to_string(n);
}

// The trace of a decoder as it is written.
class Gpt {
 public:
  Gpt(const char* name, const GptWorkload& shape) : t_(name), s_(shape), chance_(shape.seed) {}

  Trace run();

 private:
  void make_parameters();
  Blocks forward(std::uint32_t layer, std::uint64_t length, const char* suffix);
  void loss_and_its_backward(std::uint64_t length);
  void backward(std::uint32_t layer, std::uint64_t length, const Blocks& saved);
  void optimize(std::uint32_t step);

  WorkloadWriter t_;
  GptWorkload s_;
  Chance chance_;
  std::vector<std::uint64_t> sizes_;  // of the parameters: ten a layer, then two embeddings
  std::vector<std::string> scopes_;
  Blocks gradients_;  // by parameter
  std::uint32_t dx_ = 0;
};

void Gpt::make_parameters() {
  const std::uint64_t d = s_.width;
  for (std::uint32_t layer = 0; layer < s_.layers; ++layer) {
    const std::uint64_t bytes[] = {6 * d * d, 6 * d,     2 * d * d, 2 * d, 8 * d * d,
                                   8 * d,     8 * d * d, 2 * d,     4 * d, 4 * d};
    for (const std::uint64_t b : bytes) {
      sizes_.push_back(b);
      scopes_.push_back(numbered("layer.", layer));
    }
  }
  sizes_.push_back(std::uint64_t{s_.vocabulary} * d * 2);
  scopes_.emplace_back("token_embedding");
  sizes_.push_back(std::uint64_t{s_.most_length} * d * 2);
  scopes_.emplace_back("position_embedding");
  for (std::size_t i = 0; i < sizes_.size(); ++i) t_.alloc(sizes_[i], "parameter", scopes_[i]);
  gradients_.resize(sizes_.size());
}

// What backward needs of a layer; the last is its output.
Blocks Gpt::forward(std::uint32_t layer, std::uint64_t length, const char* suffix) {
  const std::uint64_t tokens = s_.batch * length, row = 2 * s_.width;
  const std::string scope = numbered("layer.", layer) + suffix;
  const auto make = [&](std::uint64_t bytes, const char* op) {
    return t_.alloc(tokens * bytes, op, scope);
  };
  return {make(row, "layer_norm"),
          make(8, "layer_norm"),
          make(3 * row, "linear"),
          make(row, "scaled_dot_product_attention"),
          make(s_.width / 64 * 4, "scaled_dot_product_attention"),
          make(row, "add"),
          make(row, "layer_norm"),
          make(8, "layer_norm"),
          make(4 * row, "linear"),
          make(4 * row, "gelu"),
          make(row, "add")};
}

void Gpt::loss_and_its_backward(std::uint64_t length) {
  const std::uint64_t logits = s_.batch * length * s_.vocabulary;
  const std::size_t tied = sizes_.size() - 2;
  const std::uint32_t out = t_.alloc(logits * 2, "linear", "head");
  const std::uint32_t wide = t_.alloc(logits * 4, "to", "head");
  const std::uint32_t loss = t_.alloc(4, "cross_entropy", "head");
  const std::uint32_t dwide = t_.alloc(logits * 4, "cross_entropy backward", "head");
  t_.free(wide);
  const std::uint32_t dout = t_.alloc(logits * 2, "to backward", "head");
  t_.free(dwide);
  t_.free(out);
  gradients_[tied] = t_.alloc(sizes_[tied], "linear backward", scopes_[tied]);
  dx_ = t_.alloc(s_.batch * length * 2 * s_.width, "linear backward", "head");
  t_.free(dout);
  t_.free(loss);
}

void Gpt::backward(std::uint32_t layer, std::uint64_t length, const Blocks& saved) {
  const std::uint64_t bytes = s_.batch * length * 2 * s_.width;
  const std::string scope = numbered("layer.", layer);
  const auto gradients = [&](std::initializer_list<std::size_t> which) {
    for (const std::size_t i : which)
      gradients_[layer * 10 + i] = t_.alloc(sizes_[layer * 10 + i], "linear backward", scope);
  };
  const std::uint32_t hidden = t_.alloc(4 * bytes, "gelu backward", scope);
  gradients({4, 5});
  const std::uint32_t normed = t_.alloc(bytes, "layer_norm backward", scope);
  gradients({6, 7, 9});
  t_.free(hidden);
  const std::uint32_t attended = t_.alloc(bytes, "linear backward", scope);
  gradients({2, 3});
  t_.free(normed);
  const std::uint32_t qkv = t_.alloc(3 * bytes, "scaled_dot_product_attention backward", scope);
  gradients({0, 1, 8});
  t_.free(attended);
  const std::uint32_t dx = t_.alloc(bytes, "add backward", scope);
  t_.free(qkv);
  t_.free(dx_);
  dx_ = dx;
  t_.free_backwards(saved);
}

void Gpt::optimize(std::uint32_t step) {
  if (step >= s_.states_at) {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::uint64_t bytes = 2 * sizes_[i];  // f32
      if (step == s_.states_at) {
        for (const char* state : {"first moment", "second moment", "master weight"})
          t_.alloc(bytes, state, scopes_[i]);
      }
      t_.free(t_.alloc(bytes, "AdamW update", scopes_[i]));
    }
  }
  t_.free(gradients_);
}

Trace Gpt::run() {
  make_parameters();
  for (std::uint32_t step = 0; step < s_.steps; ++step) {
    const std::uint64_t length = chance_.between(s_.least_length, s_.most_length);
    const std::uint32_t ids = t_.alloc(s_.batch * length * 8, "batch");
    const std::uint32_t x = t_.alloc(s_.batch * length * 2 * s_.width, "embedding");
    std::vector<Blocks> kept(s_.layers);
    for (std::uint32_t layer = 0; layer < s_.layers; ++layer) {
      kept[layer] = forward(layer, length, "");
      if (!s_.checkpoint) continue;
      const std::uint32_t out = kept[layer].back();
      kept[layer].pop_back();
      t_.free(kept[layer]);
      kept[layer] = {out};
    }
    loss_and_its_backward(length);
    for (std::uint32_t layer = s_.layers; layer-- > 0;) {
      if (s_.checkpoint) {
        backward(layer, length, forward(layer, length, " again"));
        t_.free(kept[layer]);
      } else {
        backward(layer, length, kept[layer]);
      }
    }
    gradients_.back() = t_.alloc(sizes_.back(), "embedding backward", scopes_.back());
    t_.free({dx_, x, ids});
    optimize(step);
    t_.step();
  }
  return t_.finish();
}

}  // namespace

Trace gpt_workload(const char* name, const GptWorkload& shape) {
  return Gpt(name, shape).run();
}

}  // namespace taper
