// Runs golden samples through adapters over Taper's public functions and counts what passes.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "taper/tests/golden/args.h"

namespace taper::golden {

// Calls the op as the sample says and returns its tensor outputs in PyTorch's order.
using Adapter = std::vector<Tensor> (*)(const Args&);

struct Registry {
  std::map<std::string, Adapter> calls;     // by op name; a "name.variant" goes first
  std::map<std::string, Adapter> in_place;  // writes args[0], which is a copy without grad

  const Adapter* find(const Sample& sample) const;
};

void add_elementwise(Registry& registry);
void add_reductions(Registry& registry);
void add_products(Registry& registry);
void add_shapes(Registry& registry);
void add_indexing(Registry& registry);
void add_activations(Registry& registry);
void add_nn(Registry& registry);
void add_losses(Registry& registry);

const Registry& registry();

enum class Verdict : std::uint8_t { kPass, kFail, kSkip };

struct Outcome {
  Verdict verdict = Verdict::kPass;
  std::string why;
};

// Forward within 1e-10, view relations, gradients within 1e-8, written inputs, the in-place twin.
Outcome run(const Sample& sample, const Adapter& call);

struct Tally {
  int pass = 0, fail = 0, skip = 0, known = 0;
};

// Per op: what passed. Samples of ops that have no adapter are under `missing`.
struct Report {
  std::map<std::string, Tally> ops;
  std::map<std::string, int> missing;
  std::map<std::string, int> skips;  // by reason
  std::vector<std::string> failures;

  void add(const Sample& sample, const Outcome& outcome);
  Tally total() const;
  void print() const;
};

Report run_all(const std::vector<Sample>& samples);

// Why Taper differs from PyTorch here on purpose; null where it must not.
const char* known_difference(const Sample& sample);

}  // namespace taper::golden
