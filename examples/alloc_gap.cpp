// The gap between reserved and allocated: what lies in it, and what empty_cache can do about it.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

namespace {

void fact(bool holds, const char* text) {
  TAPER_CHECK(holds, "not so: ", text);
  std::printf("  %s\n", text);
}

constexpr std::uint64_t kMiB = 1 << 20;

std::vector<Tensor> tensors(int count, std::int64_t mib) {
  std::vector<Tensor> out;
  for (int i = 0; i < count; ++i) out.push_back(empty({mib * std::int64_t{kMiB}}, kUInt8));
  return out;
}

void free_every_second(std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); i += 2) tensors[i] = Tensor();
}

void show(const char* when) {
  const AllocatorStats s = memory::stats();
  const auto mib = [](std::uint64_t bytes) { return static_cast<std::size_t>(bytes / kMiB); };
  std::printf("%-34s reserved %3zu = allocated %3zu + releasable %3zu + split %3zu MiB\n", when,
              mib(s.reserved), mib(s.allocated), mib(s.releasable), mib(s.inactive_split));
  TAPER_CHECK(s.reserved == s.allocated + s.pending + s.releasable + s.inactive_split,
              "these are all of it");
}

// 16 tensors of 1 MiB, two on each page; half of them die.
void holes_in_pages() {
  std::vector<Tensor> kept = tensors(16, 1);
  show("16 tensors of 1 MiB");
  free_every_second(kept);
  show("every second one dies");
  fact(memory::stats().inactive_split == 8 * kMiB, "half of each page is held by the other half");
  memory::empty_cache();
  show("empty_cache()");
  fact(memory::stats().reserved == 16 * kMiB, "it can do nothing: no page is free as a whole");
  {
    const std::vector<Tensor> more = tensors(8, 1);
    show("8 more of 1 MiB");
    fact(memory::stats().reserved == 16 * kMiB, "but what fits the holes costs nothing");
  }
  const std::vector<Tensor> large = tensors(1, 8);
  show("one of 8 MiB instead");
  fact(memory::stats().reserved == 24 * kMiB,
       "8 MiB are free, none of them together: this is fragmentation");
}

// 16 tensors of 4 MiB, two pages each; half of them die. Free pages can be moved.
void holes_of_pages() {
  std::vector<Tensor> kept = tensors(16, 4);
  free_every_second(kept);
  show("16 of 4 MiB, every second one dies");
  fact(memory::stats().largest_free == 4 * kMiB, "no free block is larger than 4 MiB");
  const std::vector<Tensor> large = tensors(1, 32);
  show("one of 32 MiB");
  fact(memory::stats().reserved <= (64 + 16) * kMiB,
       "fits: free pages were unmapped where they lay and mapped in a row");
}

// What is said here is so of the arena alone. TAPER_ALLOC may have put another policy in force.
bool is_the_arena() {
  const std::string summary = memory::summary(), which = summary.substr(0, summary.find('\n'));
  if (which.find("policy:taper") == std::string::npos) {
    std::fprintf(stderr,
                 "alloc_gap shows the arena; it runs with the %s, whose blocks differ: run it "
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
  {
    const std::vector<Tensor> held = tensors(1, 32);
    show("one tensor of 32 MiB");
  }
  show("it dies");
  fact(memory::stats().reserved == 32 * kMiB,
       "its pages stay with the allocator, for the next one");
  memory::empty_cache();
  show("empty_cache()");
  fact(memory::stats().reserved == 0, "gives whole free pages back to the system");
  std::printf("\n");
  holes_in_pages();
  memory::empty_cache();
  std::printf("\n");
  holes_of_pages();
  std::printf(
      "\nSo empty_cache() is for others on the machine. This program's own next tensor does not\n"
      "need it: pages are moved before memory runs out.\n");
  return 0;
}
