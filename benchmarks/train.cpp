// Lists the models and their goals; times steps, and the products that are their floor.
#include "taper/benchmarks/train.h"

#include <cmath>
#include <map>

#include "taper/benchmarks/gemm.h"
#include "taper/benchmarks/models.h"
#include "taper/benchmarks/peers.h"

namespace bench {
namespace {

constexpr double kTurnSeconds = 0.25;  // of steps, in one turn
constexpr const char* kAbove = " above its GEMMs";

struct Model {
  std::string name;
  std::vector<StepProduct> products;
  int steps;  // in one call
  std::function<TrainingStep()> make;
  double goal;  // beside LibTorch at its best; 0: none
};

std::vector<Model> models(const Setup& setup) {
  const bool tiny = setup.tiny;
  const auto [small, large, cnn, gpt] = model_sizes(tiny);
  using enum taper::MemoryFormat;
  return {
      {"MLP 64", products_of(small), 1, [s = small] { return mlp_step(s); }, 0.65},
      {"MLP 512", products_of(large), 1, [s = large] { return mlp_step(s); }, 0.85},
      {"CNN NCHW", products_of(cnn), 1, [s = cnn] { return cnn_step(s, kContiguous); }, 0},
      {"CNN channels_last", products_of(cnn), 1, [s = cnn] { return cnn_step(s, kChannelsLast); },
       0},
      {"GPT", products_of(gpt), 1, [s = gpt] { return gpt_step(s); }, 0.8},
      {"Fashion-MNIST epoch", products_of(small), tiny ? 4 : 60000 / 64,
       [s = small, tiny] { return fashion_mnist_epoch(s, tiny); }, 0.6},
  };
}

std::vector<Row> rows(const Setup& setup) {
  std::vector<Row> out;
  for (const Model& m : models(setup)) {
    out.push_back({m.name, "ms"});
    if (m.goal > 0) out.back().goals = {{kBestTorch, m.goal}};
  }
  Row better{"CNN, better layout", "ms", {{kBestTorch, 0.6}}};
  better.best_of = {"CNN NCHW", "CNN channels_last"};
  out.push_back(better);
  for (const char* name :
       {"MLP 64", "MLP 512", "CNN, better layout", "GPT", "Fashion-MNIST epoch"}) {
    Row above{std::string(name) + kAbove, "ms", {{kBestTorch, 0.5}}};
    above.above_limit_of = name;
    out.push_back(above);
  }
  return out;
}

// The least that a product takes by anybody's hand: ours, OpenBLAS's or oneDNN's.
double least_seconds(const Setup& setup, const Product& product) {
  static std::map<int, std::vector<Column>> columns;  // by threads; they go on running
  if (columns[setup.threads].empty()) {
    for (const Peer& p : gemm_peers(setup)) columns[setup.threads].emplace_back(p);
  }
  double least = product_seconds(product);
  for (Column& c : columns[setup.threads]) least = std::fmin(least, c.ask(product.name()));
  return least;
}

Turn turn(const Setup& setup, const std::string& row) {
  static std::map<std::string, TrainingStep> steps;  // warm from turn to turn
  for (const Model& m : models(setup)) {
    if (m.name != row) continue;
    TrainingStep& step = steps[row];
    if (!step) {
      if (step = m.make(); !step) return {std::nan("")};
      for (int i = 0; m.steps == 1 && i < 5; ++i) step();
    }
    double floor = 0;
    for (const StepProduct& p : m.products) floor += p.times * least_seconds(setup, p.product);
    // Last, so that the peers are right behind.
    const double best = best_seconds(step, setup.tiny ? 0 : kTurnSeconds);
    return {best, m.steps * floor};
  }
  return {std::nan("")};
}

std::vector<Peer> peers(const Setup& setup) {
  return torch_peers(setup, "train");
}

}  // namespace

const Group kTrain = {"train", "training steps beside LibTorch and their matrix products",
                      rows,    peers,
                      turn,    nullptr};

}  // namespace bench
