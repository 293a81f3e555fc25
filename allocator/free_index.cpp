// Finds free blocks: a bitmap over exact sizes, and a pairing heap by address in each of them.
#include "taper/allocator/free_index.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

namespace taper {
namespace {

// Joins two heaps that have no siblings.
BlockNode* meld(BlockNode* a, BlockNode* b) {
  if (b->offset < a->offset) {
    BlockNode* t = a;
    a = b;
    b = t;
  }
  b->links.back = a;
  b->links.sibling = a->links.child;
  if (a->links.child != nullptr) a->links.child->links.back = b;
  a->links.child = b;
  return a;
}

// Joins the children of a heap that lost its root: in pairs, then the pairs from last to first.
BlockNode* meld_children(BlockNode* first) {
  BlockNode* pairs = nullptr;  // chained by sibling, the last one first
  while (first != nullptr) {
    BlockNode* a = first;
    BlockNode* b = a->links.sibling;
    first = b == nullptr ? nullptr : b->links.sibling;
    a->links.sibling = nullptr;
    a->links.back = nullptr;
    if (b != nullptr) {
      b->links.sibling = nullptr;
      b->links.back = nullptr;
      a = meld(a, b);
    }
    a->links.sibling = pairs;
    pairs = a;
  }
  BlockNode* root = nullptr;
  while (pairs != nullptr) {
    BlockNode* next = pairs->links.sibling;
    pairs->links.sibling = nullptr;
    root = root == nullptr ? pairs : meld(root, pairs);
    pairs = next;
  }
  return root;
}

// `root` without `block`, which is in it.
BlockNode* without(BlockNode* root, BlockNode* block) {
  BlockNode* rest = meld_children(block->links.child);
  if (block == root) return rest;
  BlockNode* back = block->links.back;
  BlockNode* sibling = block->links.sibling;
  if (back->links.child == block) back->links.child = sibling;
  else back->links.sibling = sibling;
  if (sibling != nullptr) sibling->links.back = back;
  return rest == nullptr ? root : meld(root, rest);
}

bool is_less(const BlockNode* a, const BlockNode* b) {
  return a->units != b->units ? a->units < b->units : a->offset < b->offset;
}

std::uint32_t highest(std::uint64_t word) {
  return 63 - static_cast<std::uint32_t>(std::countl_zero(word));
}

}  // namespace

FreeIndex::FreeIndex()
    : heads_(static_cast<BlockNode**>(std::calloc(kClasses, sizeof(BlockNode*)))) {
  if (heads_ == nullptr) throw std::bad_alloc();
}

FreeIndex::~FreeIndex() {
  std::free(heads_);
}

void FreeIndex::insert_beside(BlockNode* block) {
  if (block->units >= kClasses) {
    large_.insert(std::lower_bound(large_.begin(), large_.end(), block, is_less), block);
    return;
  }
  block->links = {nullptr, nullptr, nullptr};
  heads_[block->units] = meld(heads_[block->units], block);
}

void FreeIndex::remove_from_many(BlockNode* block) {
  if (block->units >= kClasses) {
    large_.erase(std::lower_bound(large_.begin(), large_.end(), block, is_less));
    return;
  }
  heads_[block->units] = without(heads_[block->units], block);  // not the last one
}

std::uint32_t FreeIndex::class_below(std::uint32_t units) const {
  if (units == 0) return 0;
  const std::uint32_t i = units - 1;
  const auto below = [](std::uint32_t n) { return bit(n) - 1; };
  const auto up_to = [&](std::uint32_t n) { return below(n) | bit(n); };
  if (const std::uint64_t word = low_[i >> 6] & up_to(i)) return (i & ~63u) | highest(word);
  std::uint32_t j = i >> 6;
  std::uint64_t word = middle_[j >> 6] & below(j);
  if (word == 0) {
    const std::uint64_t groups = top_ & below(j >> 6);
    if (groups == 0) return 0;
    j = highest(groups) << 6;
    word = middle_[j >> 6];
  }
  j = (j & ~63u) | highest(word);
  return (j << 6) | highest(low_[j]);
}

BlockNode* FreeIndex::best_large(std::uint32_t units) const {
  const auto it =
      std::lower_bound(large_.begin(), large_.end(), units,
                       [](const BlockNode* b, std::uint32_t n) { return b->units < n; });
  return it == large_.end() ? nullptr : *it;
}

BlockNode* FreeIndex::largest() const {
  if (!large_.empty()) return large_.back();
  const std::uint32_t i = class_below(kClasses);
  return i == 0 ? nullptr : heads_[i];
}

void FreeIndex::push_relatives(BlockNode* block, std::vector<BlockNode*>& out) {
  if (block->links.child != nullptr) out.push_back(block->links.child);
  if (block->links.sibling != nullptr) out.push_back(block->links.sibling);
}

}  // namespace taper
