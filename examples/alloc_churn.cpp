// Blocks are cut and joined: follow the page map through a few tensors' lives.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

namespace {

void fact(bool holds, const char* text) {
  TAPER_CHECK(holds, "not so: ", text);
  std::printf("  %s\n", text);
}

constexpr std::uint64_t kMiB = 1 << 20;

Tensor of_mib(std::int64_t n) {
  return empty({n * std::int64_t{kMiB}}, kUInt8);
}

// The lines of the map behind its legend: memory, a character for each page of 2 MiB.
void show(const char* what) {
  const std::string map = memory::map();
  std::printf("\n%s\n%s", what, map.substr(map.find("several blocks\n") + 15).c_str());
}

// What is said here is so of the arena alone. TAPER_ALLOC may have put another policy in force.
bool is_the_arena() {
  const std::string summary = memory::summary(), which = summary.substr(0, summary.find('\n'));
  if (which.find("policy:taper") == std::string::npos) {
    std::fprintf(stderr,
                 "alloc_churn shows the arena; it runs with the %s, whose blocks differ: run it "
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
  Tensor whole = of_mib(16);
  show("whole = 16 MiB: eight pages, covered by one block, a");
  fact(memory::stats().reserved == 16 * kMiB, "reserved is what was needed");

  whole = Tensor();
  show("whole dies: the pages stay, free, as one block");
  fact(memory::stats().largest_free == 16 * kMiB, "of 16 MiB");
  const std::uint64_t calls = memory::stats().device_calls;

  Tensor a = of_mib(4), b = of_mib(4), c = of_mib(4);
  show("a, b, c = 4 MiB each: cut from its front");
  fact(memory::stats().largest_free == 4 * kMiB, "4 MiB are left of it");

  b = Tensor();
  show("b dies: a hole; a letter tells blocks apart, c has the second one now");
  fact(memory::stats().largest_free == 4 * kMiB, "two free blocks of 4 MiB, which do not touch");

  Tensor small = of_mib(1);
  show("small = 1 MiB: half a page, cut from a free block (5: five tenths in use)");
  fact(memory::stats().largest_free == 4 * kMiB, "the other one stays whole");
  fact(small.data_ptr<std::uint8_t>() == a.data_ptr<std::uint8_t>() + 4 * kMiB,
       "small lies where b lay: both fit equally well, and the lower is taken");

  c = Tensor();
  show("c dies: it joins the free blocks at both its sides");
  fact(memory::stats().largest_free == 11 * kMiB, "3 + 4 + 4 MiB are one block again");

  a = small = Tensor();
  show("all die");
  fact(memory::stats().largest_free == 16 * kMiB, "one block of 16 MiB, as in the beginning");
  fact(memory::stats().device_calls == calls, "and the device was not asked once since");
  return 0;
}
