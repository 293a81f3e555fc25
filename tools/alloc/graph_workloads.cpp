// Traces like those of graph compilers: what a schedule of a whole training step keeps and drops.
#include "taper/tools/alloc/workload_writer.h"

namespace taper {
namespace {

// What one convolution of a residual network keeps and makes: f16 maps, f32 statistics and weights.
struct Conv {
  std::uint64_t map = 0, weight = 0, channels = 0;
  std::string scope;
  std::uint32_t out = 0, normed = 0, mean = 0, spread = 0, gradient = 0;
};

// Bottleneck blocks 3, 4, 6, 3 on 224 x 224 images, 32 of them.
std::vector<Conv> residual_network() {
  std::vector<Conv> convs;
  const auto add = [&](std::uint64_t in, std::uint64_t out, std::uint64_t side, std::uint64_t k) {
    Conv c;
    c.map = 32 * out * side * side * 2;
    c.weight = in * out * k * k * 4;
    c.channels = out;
    c.scope = "conv." + std::to_string(convs.size());
    convs.push_back(c);
  };
  add(3, 64, 112, 7);
  std::uint64_t in = 64, width = 64, side = 56;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int i = 0; i < blocks; ++i) {
      add(in, width, side, 1);
      add(width, width, side, 3);
      add(width, 4 * width, side, 1);
      if (i == 0) add(in, 4 * width, side, 1);
      in = 4 * width;
    }
    width *= 2;
    side /= 2;
  }
  return convs;
}

// Makes blocks that die by themselves, each after so many more were made.
class Brief {
 public:
  explicit Brief(WorkloadWriter& t) : t_(t) {}

  void make(std::uint64_t bytes, std::size_t life, const char* op, const std::string& scope) {
    out_.push_back({t_.alloc(bytes, op, scope), made_ + life});
    tick();
  }

  // A block that somebody else frees counts too.
  std::uint32_t keep(std::uint64_t bytes, const char* op, const std::string& scope) {
    const std::uint32_t block = t_.alloc(bytes, op, scope);
    tick();
    return block;
  }

  void end() {
    for (const Out& out : out_) t_.free(out.block);
    out_.clear();
  }

 private:
  struct Out {
    std::uint32_t block;
    std::size_t dies;
  };

  void tick() {
    ++made_;
    std::vector<Out> left;
    for (const Out& out : out_) {
      if (out.dies > made_) left.push_back(out);
      else t_.free(out.block);
    }
    out_ = std::move(left);
  }

  WorkloadWriter& t_;
  std::vector<Out> out_;
  std::size_t made_ = 0;
};

// A step of a decoder of 2.6 billion parameters on one of its devices.
class BigDecoder {
 public:
  BigDecoder() : t_("pangu_like"), brief_(t_), kept_(kLayers) {}

  Trace run();

 private:
  static constexpr std::size_t kLayers = 32;
  static constexpr std::uint64_t kTable = 409'600'000;  // the embedding's
  static constexpr std::uint64_t kRow = 20 * kMi;  // of a layer's input; the hidden one is twice it

  void forward(std::size_t layer);
  void head();
  void backward(std::size_t layer);
  void optimize();

  WorkloadWriter t_;
  Brief brief_;
  std::vector<std::vector<std::uint32_t>> kept_;  // until the layer's backward
  std::vector<std::uint32_t> to_the_end_, gradients_;
};

void BigDecoder::forward(std::size_t layer) {
  const std::string scope = "layer." + std::to_string(layer);
  const auto pin = [&](std::uint64_t bytes) {
    to_the_end_.push_back(brief_.keep(bytes, "all_gather", scope));
  };
  const auto keep = [&](std::uint64_t bytes, const char* op) {
    kept_[layer].push_back(brief_.keep(bytes, op, scope));
  };
  for (int half = 0; half < 2; ++half) {  // attention, then the two wide products
    for (int i = 0; i < 8; ++i) brief_.make(kRow / 8, 4, "linear", scope);
    brief_.make(32 * kMi, 3, "matmul", scope);
    brief_.make(32 * kMi, 5, "softmax", scope);
    pin(2 * kMi);
    brief_.make(32 * kMi, 3, "dropout", scope);
    brief_.make(kRow / 8, 4, "transpose", scope);
    brief_.make(kRow, 5, "linear", scope);
    brief_.make(kRow, 30, "add", scope);
    pin(kRow / 16);
    keep(1'638'400, "layer_norm");
    keep(kRow, "layer_norm");
    for (int i = 0; i < 5; ++i) brief_.make(2 * kRow, 3, "gelu", scope);
    keep(6'553'600, "dropout");
    brief_.make(kRow / 2, 4, "cast", scope);
    keep(1'638'400, "layer_norm");
    brief_.make(kRow, 28, "add", scope);
    pin(kRow / 16);
    keep(kRow, "add");
    brief_.make(kRow, 3, "linear", scope);
  }
}

// The logits and their loss: large blocks of three sizes, each splintering the ones before.
void BigDecoder::head() {
  constexpr std::uint64_t kLogits = 327'680'000, kPart = kLogits / 4;
  for (int i = 0; i < 2; ++i) {
    brief_.make(kLogits, 3, "linear", "head");
    brief_.make(kLogits, 3, "log_softmax", "head");
    brief_.make(kPart, 20, "linear", "head");
  }
  for (std::size_t i = 0; i < 8; ++i) brief_.make(kPart, i % 2 == 0 ? 4 : 12, "linear", "head");
  for (int i = 0; i < 4; ++i) brief_.make(kLogits, 4, "linear backward", "head");
  for (int i = 0; i < 2; ++i) gradients_.push_back(brief_.keep(kTable, "linear backward", "head"));
}

void BigDecoder::backward(std::size_t layer) {
  const std::string scope = "layer." + std::to_string(layer);
  std::vector<std::uint32_t>& kept = kept_[layer];
  for (int part = 0; part < 6; ++part) {
    brief_.make(kRow, 80, "add backward", scope);
    for (int i = 0; i < 5; ++i) {
      brief_.make(2 * kRow, 5, "gelu backward", scope);
      brief_.make(2 * kRow, 8, "linear backward", scope);
      brief_.make(8 * kMi, 4, "all_gather", scope);
    }
    brief_.make(kRow, 6, "linear backward", scope);
    brief_.make(32 * kMi, 4, "softmax backward", scope);
    for (int i = 0; i < 2 && !kept.empty(); ++i) {
      t_.free(kept.back());
      kept.pop_back();
    }
    if (part % 3 == 0) gradients_.push_back(brief_.keep(13'107'200, "linear backward", scope));
    gradients_.push_back(brief_.keep(3'276'800, "linear backward", scope));
  }
}

// Everything new is made before a gradient goes.
void BigDecoder::optimize() {
  for (int i = 0; i < 5; ++i) brief_.make(kTable, 4, "Adam", "embedding");
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (i % 2 == 0) to_the_end_.push_back(brief_.keep(13'107'200, "Adam", ""));
    to_the_end_.push_back(brief_.keep(3'276'800, "Adam", ""));
    if (i % 8 == 0) brief_.make(10 * kMi, 6, "Adam", "");
  }
  t_.free(gradients_);
}

Trace BigDecoder::run() {
  to_the_end_ = {brief_.keep(204'800'000, "all_gather", "embedding"),
                 brief_.keep(81'920'000, "all_gather", "embedding")};
  for (std::size_t layer = 0; layer < kLayers; ++layer) forward(layer);
  head();
  for (std::size_t layer = kLayers; layer-- > 0;) backward(layer);
  optimize();
  brief_.end();
  t_.free(to_the_end_);
  t_.step();
  return t_.finish();
}

}  // namespace

// Twin of a graph compiler's schedule of ResNet-50: parameters, their gradients and the batch live
// through the step, f16 copies of weights and transposed maps for some kernels only.
Trace resnet_like_workload() {
  WorkloadWriter t("resnet_like");
  std::vector<Conv> convs = residual_network();
  for (int step = 0; step < 3; ++step) {
    const std::uint32_t images = t.alloc(32 * 3 * 224 * 224 * 4, "batch");
    for (Conv& c : convs) {
      const std::uint32_t narrow = t.alloc(c.weight / 2, "to", c.scope);
      c.out = t.alloc(c.map, "conv2d", c.scope);
      t.free(narrow);
      c.mean = t.alloc(c.channels * 4, "batch_norm", c.scope);
      c.spread = t.alloc(c.channels * 4, "batch_norm", c.scope);
      c.normed = t.alloc(c.map, "batch_norm", c.scope);
    }
    const std::uint32_t logits = t.alloc(32 * 1000 * 4, "linear", "head");
    std::uint32_t dx = t.alloc(convs.back().map, "linear backward", "head");
    t.free(logits);
    for (std::size_t i = convs.size(); i-- > 0;) {
      Conv& c = convs[i];
      const std::uint32_t dnormed = t.alloc(c.map, "batch_norm backward", c.scope);
      t.free({dx, c.normed, c.mean, c.spread});
      const std::uint32_t narrow = t.alloc(c.weight / 2, "to", c.scope);
      const std::uint64_t before = i == 0 ? 32 * 3 * 224 * 224 * 2 : convs[i - 1].map;
      dx = t.alloc(before, "conv2d backward", c.scope);
      t.free(narrow);
      c.gradient = t.alloc(c.weight, "conv2d backward", c.scope);
      t.free({dnormed, c.out});
    }
    t.free({dx, images});
    for (const Conv& c : convs) t.free(c.gradient);
    t.step();
  }
  return t.finish();
}

// Twin of a step of PanGu 2.6B: most blocks die within a few events, and what a layer keeps until
// its backward lies between small blocks that live to the end.
Trace pangu_like_workload() {
  return BigDecoder().run();
}

}  // namespace taper
