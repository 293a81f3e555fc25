// Writes down the ranges of NVTX, thread by thread.
#include <nvtx3/nvToolsExt.h>

namespace {

struct Ranges {
  std::vector<std::string> pushed;
  int depth = 0;
};

thread_local Ranges ranges;

}  // namespace

// One domain is all that Taper makes.
nvtxDomainHandle_t nvtxDomainCreateA(const char*) {
  return nullptr;
}

int nvtxDomainRangePushEx(nvtxDomainHandle_t, const nvtxEventAttributes_t* range) {
  const auto depth = static_cast<std::size_t>(ranges.depth);
  ranges.pushed.push_back(std::string(2 * depth, ' ') + range->message.ascii);
  return ranges.depth++;
}

int nvtxDomainRangePop(nvtxDomainHandle_t) {
  return --ranges.depth;
}

namespace taper::emulated {

std::vector<std::string> nvtx_ranges(int* depth) {
  *depth = ranges.depth;
  return ranges.pushed;
}

void forget_nvtx_ranges() {
  ranges.pushed.clear();
}

}  // namespace taper::emulated
