// Out of memory, on purpose: an evaluation that records a tape, and the message that shows where.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "taper/taper.h"

using namespace taper;

namespace {

// Adds up the losses of 100 batches. Without `guard` the sum keeps the tapes of all of them.
float evaluate(const Tensor& w, bool guard) {
  const AutoGradMode mode(!guard);
  Tensor total = zeros({});
  for (int batch = 0; batch < 100; ++batch) {
    const Tensor loss = w.exp().mean();  // backward of exp would need its result, of 4 MiB
    total = total + loss;
  }
  return total.item<float>();
}

}  // namespace

int main() {
  setenv("TAPER_ALLOC", "limit:64M", /*overwrite=*/1);  // read when the first tensor is made
  const Tensor w = zeros({1024, 1024}, requires_grad());
  try {
    evaluate(w, false);
    std::printf("it fits, which it should not\n");
    return 1;
  } catch (const OutOfMemory& e) {
    std::string text = e.what();
    // Left out here: how much the machine has, which differs.
    const std::size_t line = text.find("\n  limit:64.0 MiB is set");
    if (line != std::string::npos) text.erase(line, text.find('\n', line + 1) - line);
    std::printf("%s\n", text.c_str());
    const MemoryReport& r = e.report();
    TAPER_CHECK(r.capacity == r.live + r.pending + r.releasable + r.pinned + r.others + r.unused,
                "the sums should add up");
    TAPER_CHECK(r.holders.at(0).op == "exp", "what holds most should be named first");
  }
  std::printf("\nWithout a tape: %g\n", static_cast<double>(evaluate(w, true)));
  return 0;
}
