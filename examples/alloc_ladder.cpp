// The size ladder: what a tensor's bytes become once they are rounded up to blocks of 512.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

namespace {

void fact(bool holds, const char* text) {
  TAPER_CHECK(holds, "not so: ", text);
  std::printf("  %s\n", text);
}

// What tensors of `elements` floats cost, and what they asked for.
AllocatorStats cost(std::int64_t elements, int count) {
  const AllocatorStats before = memory::stats();
  std::vector<Tensor> kept;
  for (int i = 0; i < count; ++i) kept.push_back(empty({elements}));
  AllocatorStats after = memory::stats();
  after.allocated -= before.allocated;
  after.requested -= before.requested;
  after.blocks -= before.blocks;
  return after;
}

std::size_t number(std::uint64_t n) {
  return static_cast<std::size_t>(n);
}

// What is said here is so of the arena alone. TAPER_ALLOC may have put another policy in force.
bool is_the_arena() {
  const std::string summary = memory::summary(), which = summary.substr(0, summary.find('\n'));
  if (which.find("policy:taper") == std::string::npos) {
    std::fprintf(stderr,
                 "alloc_ladder shows the arena; it runs with the %s, whose blocks differ: run it "
                 "without TAPER_ALLOC\n",
                 which.c_str());
    return false;
  }
  std::printf("Of the arena, policy:taper, which is the default.\n\n");
  return true;
}

}  // namespace

int main() {
  if (!is_the_arena()) return 2;
  std::printf("floats in a tensor     bytes     block      lost\n");
  for (const std::int64_t elements : {0, 1, 127, 128, 129, 1000, 1024, 1025, 262144, 262145}) {
    const AllocatorStats one = cost(elements, 1);
    const std::uint64_t lost = one.allocated - one.requested;
    const double share =
        lost == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(one.allocated);
    std::printf("%18lld %9zu %9zu %7.1f %%\n", static_cast<long long>(elements),
                number(one.requested), number(one.allocated), 100 * share);
    TAPER_CHECK(one.allocated == (one.requested + 511) / 512 * 512,
                "a block is the bytes asked "
                "for, rounded up to 512");
  }

  std::printf("\n100 tensors of 1,000 floats:\n");
  const AllocatorStats hundred = cost(1000, 100);
  fact(hundred.blocks == 100, "100 blocks");
  fact(hundred.requested == 400'000, "400,000 bytes asked for");
  fact(hundred.allocated == 100 * 4096, "409,600 bytes in blocks: 4,096 for each");

  std::printf("\n100 scalars:\n");
  const AllocatorStats scalars = cost(1, 100);
  fact(scalars.requested == 400, "400 bytes asked for");
  fact(scalars.allocated == 100 * 512, "51,200 bytes in blocks: 512 is the floor");

  std::printf("\n100 rows of one tensor of 100 floats:\n");
  const AllocatorStats before = memory::stats();
  const Tensor all = empty({100});
  std::vector<Tensor> rows;
  for (int i = 0; i < 100; ++i) rows.push_back(all[i]);
  fact(memory::stats().blocks == before.blocks + 1, "one block for all: views take none");
  fact(memory::stats().allocated == before.allocated + 512, "512 bytes");
  return 0;
}
