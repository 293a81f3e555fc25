// Who keeps a block of memory: the storage's handles are counted, and the last one gives it back.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

namespace {

void fact(bool holds, const char* text) {
  TAPER_CHECK(holds, "not so: ", text);
  std::printf("  %s\n", text);
}

std::uint32_t counted(const Tensor& t) {
  return t.storage().use_count();
}

// What is said here is so of the arena alone. TAPER_ALLOC may have put another policy in force.
bool is_the_arena() {
  const std::string summary = memory::summary(), which = summary.substr(0, summary.find('\n'));
  if (which.find("policy:taper") == std::string::npos) {
    std::fprintf(stderr,
                 "alloc_sharing shows the arena; it runs with the %s, whose blocks differ: run it "
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
  const AllocatorStats start = memory::stats();
  const auto blocks = [&] { return memory::stats().blocks - start.blocks; };
  const auto bytes = [&] { return memory::stats().allocated - start.allocated; };

  std::printf("a = empty({1000, 1000})\n");
  Tensor a = empty({1000, 1000});
  fact(blocks() == 1 && bytes() == 4'000'256, "one block of 4,000,256 bytes: 4 MB, rounded up");
  fact(counted(a) == 1, "its storage has one user");

  std::printf("\nb = a; row = a[3]; t = a.t(); flat = a.view({-1})\n");
  Tensor b = a, row = a[3], t = a.t(), flat = a.view({-1});
  fact(blocks() == 1, "still one block: no view has memory of its own");
  fact(counted(a) == 4,
       "the storage has four users: the tensor that a and b name, and three views");
  fact(a.use_count() == 5, "that tensor has five: a, b, and each view knows whose view it is");

  std::printf("\ncopy = a.clone()\n");
  Tensor copy = a.clone();
  fact(blocks() == 2 && counted(copy) == 1, "a second block, with a user of its own");
  copy = Tensor();
  fact(blocks() == 1, "which goes back when the copy dies");

  std::printf("\nall but row die\n");
  const void* address = a.data_ptr();
  a = b = t = flat = Tensor();
  fact(counted(row) == 2, "two users are left: row, and the tensor that row is a view of");
  fact(bytes() == 4'000'256, "and 4,000 bytes of row keep 4,000,256");

  std::printf("\nrow = row.clone()\n");
  row = row.clone();
  fact(blocks() == 1 && bytes() == 4'096, "now it keeps a block of 4,096");

  std::printf("\nc = empty({1000, 1000})\n");
  {
    const Tensor c = empty({1000, 1000});
    fact(c.data_ptr() == address, "the block that came back is given out again, at its address");
  }

  std::printf("\nThe tape is a user too: y = w.exp() needs y in backward\n");
  const Tensor w = zeros({1000}, requires_grad());
  Tensor y = w.exp();
  fact(counted(y) == 2, "y's storage is counted twice");
  y.sum().backward();
  fact(counted(y) == 1, "and once after backward, which gives back what was saved");
  return 0;
}
