// The page map: its characters, its totals, and that it keeps to the buffer it is given.
#include "taper/allocator/page_map.h"

#include <algorithm>
#include <cctype>
#include <random>

#include <gtest/gtest.h>

namespace taper {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

SegmentInfo segment(std::uint64_t offset, std::uint64_t bytes, std::vector<BlockInfo> blocks) {
  SegmentInfo s;
  s.offset = offset, s.bytes = bytes, s.stream = 3;
  for (BlockInfo& b : blocks) {
    b.offset = offset, offset += b.bytes;
    if (b.state == BlockState::kLive && b.requested == 0) b.requested = b.bytes;
  }
  s.blocks = std::move(blocks);
  return s;
}

BlockInfo block(std::uint64_t bytes, BlockState state, std::uint64_t requested = 0) {
  BlockInfo b;
  b.bytes = bytes, b.state = state, b.requested = requested;
  return b;
}

// What stands between the brackets.
std::string pages(const std::string& map) {
  std::string out;
  for (std::size_t at = 0; (at = map.find('[', at)) != std::string::npos; ++at)
    out += map.substr(at + 1, map.find(']', at) - at - 1);
  return out;
}

TEST(PageMap, Characters) {
  const SegmentInfo s =
      segment(4 * kMiB, 20 * kMiB,
              {block(4 * kMiB, BlockState::kLive),
               block(2 * kMiB, BlockState::kLive, 2 * kMiB - 100), block(kMiB, BlockState::kLive),
               block(kMiB, BlockState::kPending), block(5 * kMiB, BlockState::kFree),
               block(kMiB, BlockState::kLive), block(6 * kMiB, BlockState::kPending)});
  const std::string map = page_map_text({s}, 2 * kMiB);
  EXPECT_EQ(pages(map), "aab*  5CCC");
  EXPECT_NE(map.find("   4.00 MiB [aab*  5CCC] 20.00 MiB of stream 3, 5.00 MiB free, 100 B lost"),
            std::string::npos)
      << map;
  EXPECT_NE(
      map.find("reserved 20.00 MiB = 7.99 MiB requested + 100 B lost to rounding (internal) + "
               "7.00 MiB pending + 5.00 MiB free (external)"),
      std::string::npos)
      << map;
}

TEST(PageMap, Tenths) {
  for (std::uint64_t tenth = 0; tenth < 10; ++tenth) {
    const SegmentInfo s =
        segment(0, 1000, {block(tenth * 100 + 1, BlockState::kLive), block(1, BlockState::kFree)});
    EXPECT_EQ(pages(page_map_text({s}, 1000)), std::to_string(tenth));  // the rest is free
  }
}

TEST(PageMap, ShortLastPageAndLongSegments) {
  EXPECT_EQ(pages(page_map_text({segment(0, 2500, {block(2500, BlockState::kLive)})}, 1000)),
            "aaa");
  EXPECT_EQ(pages(page_map_text({segment(0, 2500, {block(1000, BlockState::kLive)})}, 1000)),
            "a  ");
  const std::string map =
      page_map_text({segment(0, 64 * 512, {}), segment(1 << 20, 65 * 512, {})}, 512);
  EXPECT_EQ(pages(map).size(), 129u);
  EXPECT_NE(map.find("32.00 KiB of stream 3"), std::string::npos) << map;
  EXPECT_NE(map.find("]\n   1.03 MiB [ ] 32.50 KiB"), std::string::npos) << map;
}

TEST(PageMap, LettersGoOnAfterZ) {
  std::vector<BlockInfo> blocks(27, block(10, BlockState::kLive));
  EXPECT_EQ(pages(page_map_text({segment(0, 270, blocks)}, 10)), "abcdefghijklmnopqrstuvwxyza");
}

TEST(PageMap, EveryPageAgainstCountedBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<BlockInfo> blocks;
    std::vector<int> owner;  // of each byte; -1: free
    for (int i = 0; i < 12; ++i) {
      const BlockState states[] = {BlockState::kLive, BlockState::kPending, BlockState::kFree};
      blocks.push_back(block(1 + random() % 30, states[random() % 3]));
      const bool free = blocks.back().state == BlockState::kFree;
      owner.insert(owner.end(), blocks.back().bytes, free ? -1 : i);
    }
    const std::string map = pages(page_map_text({segment(7, owner.size(), blocks)}, 10));
    ASSERT_EQ(map.size(), (owner.size() + 9) / 10);
    for (std::size_t p = 0; p < map.size(); ++p) {
      const std::size_t end = std::min(owner.size(), 10 * p + 10);
      std::size_t used = 0;
      bool one = true;
      for (std::size_t i = 10 * p; i < end; ++i) {
        used += owner[i] >= 0;
        one = one && owner[i] == owner[10 * p];
      }
      const std::size_t bytes = end - 10 * p;
      if (used == 0) EXPECT_EQ(map[p], ' ');
      else if (used < bytes) EXPECT_EQ(map[p], static_cast<char>('0' + 10 * used / bytes));
      else if (!one) EXPECT_EQ(map[p], '*');
      else EXPECT_TRUE(std::isalpha(map[p]));
    }
  }
}

TEST(PageMap, KeepsToItsBuffer) {
  const std::vector<SegmentInfo> map = {segment(0, 5000, {block(2500, BlockState::kLive)})};
  const std::string whole = page_map_text(map, 1000);
  ASSERT_EQ(write_page_map(nullptr, 0, map, 1000), whole.size());
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{50}, whole.size(),
                                 whole.size() + 1, whole.size() + 9}) {
    std::string buffer(size + 8, '#');
    EXPECT_EQ(write_page_map(buffer.data(), size, map, 1000), whole.size());
    EXPECT_EQ(std::string(buffer.c_str()), whole.substr(0, size - 1));
    EXPECT_EQ(buffer.substr(size), "########");
  }
}

TEST(PageMap, NoSegments) {
  const std::string map = page_map_text({});
  EXPECT_EQ(pages(map), "");
  EXPECT_NE(map.find("reserved 0 B = 0 B requested"), std::string::npos) << map;
}

}  // namespace
}  // namespace taper
