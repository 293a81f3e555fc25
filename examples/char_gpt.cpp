// A GPT that learns a text letter by letter, then writes one. char_gpt [TEXT FILE] [--steps N]
// [--sample N] [--device cuda]
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "taper/taper.h"

using namespace taper;

constexpr std::int64_t kContext = 64, kWidth = 64, kHeads = 4, kBlocks = 2, kBatch = 16;

struct GptImpl : nn::Module {
  explicit GptImpl(std::int64_t letters)
      : token(register_module("token", nn::Embedding(letters, kWidth))),
        place(register_module("place", nn::Embedding(kContext, kWidth))),
        blocks(register_module("blocks", nn::Sequential())),
        norm(register_module("norm", nn::LayerNorm(std::vector<std::int64_t>{kWidth}))),
        head(register_module("head", nn::Linear(kWidth, letters))) {
    for (std::int64_t i = 0; i < kBlocks; ++i)
      blocks->push_back(nn::TransformerBlock(kWidth, kHeads));
    nn::init::normal_(token->weight, 0, 0.02);
    nn::init::normal_(place->weight, 0, 0.02);
  }

  // (B, T) letters -> (B, T, V): scores of the letter that follows each.
  Tensor forward(const Tensor& ids) {
    const Tensor x = token(ids) + place(arange(ids.size(1), ids.device()));
    return head(norm(blocks(x)));
  }

  nn::Embedding token, place;
  nn::Sequential blocks;
  nn::LayerNorm norm;
  nn::Linear head;
};
TAPER_MODULE(Gpt);

struct Text {
  std::string letters;  // each distinct byte once
  Tensor ids;           // (N), i64
};

// What is learned when no file is given.
constexpr const char* kBuiltIn =
    "A tape lies on the table, and the loss stands at its end. Who winds it back\n"
    "sees every number that was made on the way, the last one first, and asks of\n"
    "each: how much of the loss is yours? The sum says: it is all theirs who came\n"
    "before me, I only held their hands. The product says: it is the one's as much\n"
    "as the other is large. The maximum points at one and is silent on the rest.\n"
    "So the tape winds back to the weights, and they take a small step downhill.\n"
    "Then the tape is laid out anew, and the loss stands at its end, a little\n"
    "lower than before.\n";

Text text_of(const std::string& text) {
  Text out;
  std::vector<std::int64_t> ids;
  for (const char c : text) {
    if (out.letters.find(c) == std::string::npos) out.letters += c;
    ids.push_back(static_cast<std::int64_t>(out.letters.find(c)));
  }
  out.ids = tensor(ids);
  return out;
}

// The next letter, drawn by its probability.
std::int64_t draw(const Tensor& scores, double temperature) {
  const Tensor sums = (scores / temperature).softmax(0).cumsum(0);
  const auto i = (sums < rand({1}, scores.device())).sum().item<std::int64_t>();
  return i < scores.size(0) ? i : scores.size(0) - 1;
}

std::string write_text(Gpt& model, const Text& text, std::int64_t length) {
  const NoGradGuard no_grad;
  Tensor ids = text.ids.narrow(0, 0, 1);
  std::string out;
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t n = ids.size(0) < kContext ? ids.size(0) : kContext;
    const Tensor scores = model(ids.narrow(0, ids.size(0) - n, n).unsqueeze(0))[0][n - 1];
    const std::int64_t next = draw(scores, 0.8);
    out += text.letters[static_cast<std::size_t>(next)];
    ids = cat({ids, tensor({next}, ids.device())});
  }
  return out;
}

int main(int argc, char** argv) try {
  std::string path;
  std::int64_t steps = 500, length = 300;
  Device device = kCPU;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--steps" && i + 1 < argc) steps = std::atoll(argv[++i]);
    else if (option == "--sample" && i + 1 < argc) length = std::atoll(argv[++i]);
    else if (option == "--device" && i + 1 < argc) device = argv[++i];
    else if (option == "--help")
      return std::puts("char_gpt [FILE] [--steps N] [--sample LETTERS] [--device cuda]"), 0;
    else if (option.starts_with("--"))
      return std::fprintf(stderr, "char_gpt: unknown option %s\n", option.c_str()), 1;
    else path = option;
  }
  manual_seed(1);
  std::string read = kBuiltIn;
  if (!path.empty()) {
    std::ifstream in(path, std::ios::binary);
    if (!in.is_open() || (in.peek(), in.bad()))
      return std::fprintf(stderr, "char_gpt: cannot open %s\n", path.c_str()), 1;
    read.assign(std::istreambuf_iterator<char>(in), {});
  }
  if (read.size() <= 4 * kContext)
    return std::fprintf(stderr, "char_gpt: %s has %zu bytes; more than %d are needed\n",
                        path.c_str(), read.size(), static_cast<int>(4 * kContext)),
           1;
  Text text = text_of(read);
  text.ids = text.ids.to(device);
  const auto vocabulary = static_cast<std::int64_t>(text.letters.size());
  Gpt model(vocabulary);
  model->to(device);
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(3e-3).betas({0.9, 0.99}));
  optim::WarmupCosineLR schedule(optimizer, steps / 20, steps + 1, 0.1);
  std::int64_t parameters = 0;
  for (const Tensor& p : model->parameters()) parameters += p.numel();
  std::printf("%s: %lld letters, %lld distinct. The model: %lld numbers.\n",
              path.empty() ? "The built-in text" : path.c_str(),
              static_cast<long long>(text.ids.size(0)), static_cast<long long>(vocabulary),
              static_cast<long long>(parameters));
  std::printf("Knowing nothing costs ln %lld = %.2f nats a letter.\n\n",
              static_cast<long long>(vocabulary), std::log(static_cast<double>(vocabulary)));

  double mean = std::log(static_cast<double>(vocabulary));
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t step = 1; step <= steps; ++step) {
    // kBatch windows from random places; the target is the window moved by one.
    const Tensor from = randint(text.ids.size(0) - kContext, {kBatch, 1}, device);
    const Tensor at = from + arange(kContext, device);
    const Tensor input = text.ids.index({at}), target = text.ids.index({at + 1});
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(input).flatten(0, 1), target.flatten());
    loss.backward();
    nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    schedule.step();
    mean = 0.9 * mean + 0.1 * loss.item<double>();
    if (step % (steps < 10 ? 1 : steps / 10) == 0) {
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      std::printf("step %5lld   %.3f nats a letter   %.1f s\n", static_cast<long long>(step), mean,
                  took.count());
    }
  }
  std::printf("\nIt writes:\n----\n%s\n----\n", write_text(model, text, length).c_str());
  return mean < std::log(static_cast<double>(vocabulary)) - 0.3 ? 0 : 1;
} catch (const Error& e) {
  return std::fprintf(stderr, "char_gpt: %s\n", e.what()), 1;
}
