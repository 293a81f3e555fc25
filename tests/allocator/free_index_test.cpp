// The index of free blocks against a std::set: the best, the largest, and all from the largest on.
#include "taper/allocator/free_index.h"

#include <algorithm>
#include <memory>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

namespace taper {
namespace {

constexpr std::uint32_t kOwnClass = 1u << 18;  // sizes from here on share a tree
constexpr int kKinds = 6;

struct Smaller {
  bool operator()(const BlockNode* a, const BlockNode* b) const {
    return std::tie(a->units, a->offset) < std::tie(b->units, b->offset);
  }
};

// Sizes as they come in practice, and around the borders of the bitmap's words and of the tree.
std::uint32_t some_units(std::mt19937_64& random, int kind) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  switch (kind) {
    case 0: return 7;  // all of one size
    case 1: return 1 + below(100);
    case 2: return 1 + below(std::uint64_t{1} << (1 + below(22)));
    case 3: return kOwnClass - 2 + below(5);
    case 4: {
      const std::uint32_t border = (1u << (6 * below(4))) * (1 + below(3));
      return std::max(1u, border - 1 + below(3));
    }
    default: return kOwnClass + below(3u << 30);
  }
}

// The index and the set, changed alike.
class Both {
 public:
  explicit Both(std::uint64_t seed) : random_(seed), blocks_(2048) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) spare_.push_back(&blocks_[i]);
    std::shuffle(spare_.begin(), spare_.end(), random_);
  }

  void insert(std::uint32_t units) {
    BlockNode* block = spare_.back();
    spare_.pop_back();
    block->units = units;
    block->offset = static_cast<std::uint64_t>(block - blocks_.data()) * kBlockBytes;
    set_.insert(block);
    index_.insert(block);
    in_.push_back(block);
  }

  void remove_one() {
    std::swap(in_[random_() % in_.size()], in_.back());
    BlockNode* block = in_.back();
    in_.pop_back();
    set_.erase(block);
    index_.remove(block);
    spare_.push_back(block);
  }

  void compare(std::uint32_t units) {
    BlockNode key{};
    key.units = units;
    const auto best = set_.lower_bound(&key);
    ASSERT_EQ(index_.best(units), best == set_.end() ? nullptr : *best) << units;
    const BlockNode* largest = index_.largest();
    ASSERT_EQ(largest == nullptr ? 0 : largest->units, set_.empty() ? 0 : (*set_.rbegin())->units);
  }

  void compare_order() {
    std::vector<BlockNode*> seen;
    index_.from_largest([&](BlockNode* block) {
      seen.push_back(block);
      return true;
    });
    ASSERT_EQ(seen.size(), set_.size());
    for (std::size_t i = 1; i < seen.size(); ++i) ASSERT_GE(seen[i - 1]->units, seen[i]->units);
    std::sort(seen.begin(), seen.end(), Smaller());
    ASSERT_TRUE(std::equal(seen.begin(), seen.end(), set_.begin()));
    std::size_t calls = 0;
    index_.from_largest([&](BlockNode*) { return ++calls < 3; });
    ASSERT_EQ(calls, std::min<std::size_t>(3, set_.size()));
  }

  bool full() const { return spare_.empty(); }

  bool empty() const { return in_.empty(); }

 private:
  std::mt19937_64 random_;
  std::vector<BlockNode> blocks_;
  std::vector<BlockNode*> spare_, in_;
  FreeIndex index_;
  std::set<BlockNode*, Smaller> set_;
};

TEST(FreeIndex, DoesAsASetDoes) {
  for (int kind = 0; kind < kKinds; ++kind) {
    SCOPED_TRACE(kind);
    std::mt19937_64 random(static_cast<std::uint64_t>(kind));
    Both both(static_cast<std::uint64_t>(kind));
    for (int i = 0; i < 60'000; ++i) {
      // Fills up and drains in turn.
      const bool grows = random() % 1000 < (i / 4000 % 2 == 0 ? 650u : 350u);
      if (grows ? !both.full() : both.empty()) both.insert(some_units(random, kind));
      else both.remove_one();
      both.compare(some_units(random, kind));
      if (i % 1000 == 0) both.compare_order();
      if (HasFatalFailure()) return;
    }
    while (!both.empty()) both.remove_one();
    both.compare(1);
    both.compare_order();
  }
}

TEST(FreeIndex, LargestSizeOfAll) {
  const auto owned = std::make_unique<FreeIndex>();
  BlockNode block{};
  block.units = ~0u;
  owned->insert(&block);
  EXPECT_EQ(owned->best(1), &block);
  EXPECT_EQ(owned->best(~0u), &block);
  EXPECT_EQ(owned->largest(), &block);
  owned->remove(&block);
  EXPECT_EQ(owned->best(1), nullptr);
  EXPECT_EQ(owned->largest(), nullptr);
}

}  // namespace
}  // namespace taper
