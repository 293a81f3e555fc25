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

constexpr Known kKnown[] = {
    {"", 0, ""},
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
