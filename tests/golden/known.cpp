// The samples on which Taper differs from PyTorch 1.13 on purpose, each with its reason.
#include <cstring>

#include "taper/tests/golden/runner.h"

namespace taper::golden {
namespace {

struct Known {
  const char* op;  // full name
  int number;      // -1: all samples of the op that fail
  const char* reason;
};

constexpr const char* kRoundedOrder = "PyTorch rounds a fractional order of the norm to f32";
constexpr const char* kNoMatrix = "PyTorch itself calls the matrix transpose of a number outdated";
constexpr const char* kNoChannels = "a shape of one dim has no channels";

constexpr Known kKnown[] = {
    {"linalg.vector_norm", 6, kRoundedOrder},
    {"linalg.vector_norm", 7, kRoundedOrder},
    {"linalg.vector_norm", 11, kRoundedOrder},
    {"linalg.vector_norm", 12, kRoundedOrder},
    {"linalg.vector_norm", 16, kRoundedOrder},
    {"linalg.vector_norm", 17, kRoundedOrder},
    {"linalg.vector_norm", 22, kRoundedOrder},
    {"linalg.vector_norm", 28, kRoundedOrder},
    {"linalg.vector_norm", 31, kRoundedOrder},
    {"mT", 1, kNoMatrix},
    {"mT", 10, kNoMatrix},
    {"mT", 15, kNoMatrix},
    {"nn.functional.softshrink", 12,
     "PyTorch 1.13 makes 0 of nan; later ones keep it, as Taper does"},
    {"nn.functional.batch_norm", 3, kNoChannels},
    {"nn.functional.batch_norm", 4, kNoChannels},
};

}  // namespace

const char* known_difference(const Sample& sample) {
  for (const Known& k : kKnown) {
    if (sample.full_name() != k.op) continue;
    if (k.number == -1 || k.number == sample.number) return k.reason;
  }
  return nullptr;
}

}  // namespace taper::golden
