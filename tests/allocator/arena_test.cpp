// The host's arena: sizes, reuse, statistics, limits, threads, and what sanitizers see of it.
#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "taper/allocator/allocator.h"
#include "taper/core/base/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace taper {
namespace {

Allocator& arena() {
  return cpu_allocator();
}

std::size_t rounded(std::size_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

TEST(Arena, BlocksAreRoundedAndAligned) {
  for (const std::size_t bytes : {1u, 511u, 512u, 513u, 4096u, 100'000u, 3'000'000u}) {
    const Block block = arena().allocate(bytes, 0);
    EXPECT_EQ(block.bytes, rounded(bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % kBlockBytes, 0u);
    std::memset(block.data, 0x5a, bytes);
    arena().free(block, bytes, 0);
  }
}

TEST(Arena, NothingTakesNoMemory) {
  const AllocatorStats before = arena().stats();
  const Block block = arena().allocate(0, 0);
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(block.bytes, 0u);
  arena().free(block, 0, 0);
  EXPECT_EQ(arena().stats().allocated, before.allocated);
}

TEST(Arena, OfEqualFreeBlocksTheLowestIsUsedFirst) {
  // Live blocks between them keep the free ones apart.
  std::vector<Block> blocks;
  for (int i = 0; i < 9; ++i) blocks.push_back(arena().allocate(7'168, 0));
  for (int i = 1; i < 9; ++i) ASSERT_NE(blocks[0].data, blocks[static_cast<std::size_t>(i)].data);
  for (const std::size_t i : {5u, 1u, 3u, 7u}) arena().free(blocks[i], 7'168, 0);
  std::vector<char*> freed;
  for (const std::size_t i : {1u, 3u, 5u, 7u}) freed.push_back(static_cast<char*>(blocks[i].data));
  std::sort(freed.begin(), freed.end());
  std::vector<Block> again;
  for (int i = 0; i < 4; ++i) again.push_back(arena().allocate(7'000, 0));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(again[i].data, freed[i]);
  for (const std::size_t i : {0u, 2u, 4u, 6u, 8u}) arena().free(blocks[i], 7'168, 0);
  for (const Block& b : again) arena().free(b, 7'000, 0);
}

TEST(Arena, StatisticsCountWhatIsOut) {
  const AllocatorStats before = arena().stats();
  const Block a = arena().allocate(1'000, 0), b = arena().allocate(2'000, 0);
  AllocatorStats now = arena().stats();
  EXPECT_EQ(now.allocated, before.allocated + 1'024 + 2'048);
  EXPECT_EQ(now.requested, before.requested + 3'000);
  EXPECT_EQ(now.allocations, before.allocations + 2);
  EXPECT_GE(now.allocated_peak, now.allocated);
  EXPECT_GE(now.reserved, now.allocated);
  EXPECT_GE(now.reserved_peak, now.reserved);
  arena().free(a, 1'000, 0);
  arena().free(b, 2'000, 0);
  now = arena().stats();
  EXPECT_EQ(now.allocated, before.allocated);
  EXPECT_EQ(now.requested, before.requested);
  EXPECT_GE(now.allocated_peak, before.allocated + 1'024 + 2'048);
}

TEST(Arena, ReuseTakesNothingFromTheSystem) {
  const auto round = [] {
    std::vector<Block> blocks;
    for (std::size_t i = 1; i <= 64; ++i) blocks.push_back(arena().allocate(i * 10'000, 0));
    for (std::size_t i = 1; i <= 64; ++i) arena().free(blocks[i - 1], i * 10'000, 0);
  };
  round();
  const AllocatorStats before = arena().stats();
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(arena().stats().reserved, before.reserved);
  EXPECT_EQ(arena().stats().device_calls, before.device_calls);
}

TEST(Arena, EmptiedCachesReadAsZerosAndServeAgain) {
  const std::size_t bytes = std::size_t{8} << 20;
  const Block block = arena().allocate(bytes, 0);
  std::memset(block.data, 1, bytes);
  arena().free(block, bytes, 0);
  const std::uint64_t calls = arena().stats().device_calls;
  arena().empty_cache();
  EXPECT_GT(arena().stats().device_calls, calls);
  const Block again = arena().allocate(bytes, 0);
  ASSERT_EQ(again.data, block.data);
  EXPECT_EQ(static_cast<char*>(again.data)[bytes / 2], 0);  // the system took the pages
  arena().free(again, bytes, 0);
}

TEST(Arena, TooMuchIsAnErrorThatSaysHowMuch) {
  const AllocatorStats before = arena().stats();
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {most, most / 2, most - kBlockBytes, std::size_t{1} << 50}) {
    try {
      arena().allocate(bytes, 0);
      ADD_FAILURE() << bytes << " bytes were given";
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("out of memory on cpu"), std::string::npos) << text;
      EXPECT_NE(text.find(std::to_string(bytes)), std::string::npos) << text;
    }
  }
  EXPECT_EQ(arena().stats().allocated, before.allocated);
  EXPECT_EQ(arena().stats().requested, before.requested);
  const Block block = arena().allocate(100, 0);  // it still works
  arena().free(block, 100, 0);
}

// Each thread fills its blocks with its own mark and finds it there later.
void fill_and_look(int mark) {
  struct Held {
    Block block;
    std::size_t bytes;
  };
  std::mt19937 random(static_cast<unsigned>(mark));
  std::vector<Held> held;
  for (int i = 0; i < 5'000; ++i) {
    if (held.size() < 32 && random() % 3 != 0) {
      const std::size_t bytes = 1 + random() % 20'000;
      held.push_back({arena().allocate(bytes, 0), bytes});
      std::memset(held.back().block.data, mark, bytes);
    } else if (!held.empty()) {
      const std::size_t k = random() % held.size();
      const auto* bytes = static_cast<const unsigned char*>(held[k].block.data);
      EXPECT_EQ(bytes[0], mark);
      EXPECT_EQ(bytes[held[k].bytes - 1], mark);
      arena().free(held[k].block, held[k].bytes, 0);
      held[k] = held.back();
      held.pop_back();
    }
  }
  for (const Held& h : held) arena().free(h.block, h.bytes, 0);
}

TEST(Arena, ThreadsShareIt) {
  const AllocatorStats before = arena().stats();
  std::vector<std::thread> threads;
  for (int mark = 1; mark <= 8; ++mark) threads.emplace_back(fill_and_look, mark);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(arena().stats().allocated, before.allocated);
  EXPECT_EQ(arena().stats().requested, before.requested);
}

TEST(Arena, FreedAndPaddingBytesArePoisoned) {
#if defined(__SANITIZE_ADDRESS__)
  const Block block = arena().allocate(700, 0);
  auto* bytes = static_cast<char*>(block.data);
  EXPECT_EQ(__asan_address_is_poisoned(bytes), 0);
  EXPECT_EQ(__asan_address_is_poisoned(bytes + 699), 0);
  EXPECT_EQ(__asan_address_is_poisoned(bytes + 704), 1);  // it counts in steps of 8
  EXPECT_EQ(__asan_address_is_poisoned(bytes + 1'023), 1);
  EXPECT_DEATH(bytes[704] = 1, "use-after-poison");
  arena().free(block, 700, 0);
  EXPECT_DEATH(bytes[0] = 1, "use-after-poison");
  EXPECT_EQ(__asan_address_is_poisoned(bytes), 1);
  EXPECT_EQ(__asan_address_is_poisoned(bytes + 699), 1);
  const Block again = arena().allocate(1'024, 0);
  ASSERT_EQ(again.data, block.data);
  EXPECT_EQ(__asan_address_is_poisoned(bytes + 1'023), 0);
  arena().free(again, 1'024, 0);
#else
  GTEST_SKIP() << "needs AddressSanitizer, the preset asan";
#endif
}

}  // namespace
}  // namespace taper
