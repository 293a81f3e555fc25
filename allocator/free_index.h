// The free blocks of one stream, found by size: best fit, and among equals the lowest address.
#pragma once
#include <bit>
#include <list>
#include <vector>

#include "taper/allocator/block.h"
#include "taper/allocator/step_plan.h"
#include "taper/core/base/hd.h"

namespace taper {

struct BlockNode;

// A node of a pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986): free blocks of one size, by
// address.
struct FreeLinks {
  BlockNode* child;
  BlockNode* sibling;
  BlockNode* back;  // the left sibling; of a first child, the parent; of a root, null
};

struct LiveFacts {
  std::uint64_t requested;
  std::uint32_t site, entry;
  StepPlan::Name name;  // to the heap's plan, if it has one
};

// Streams, besides its own, on which a block is used, and how far in their order.
struct BlockWaits {
  struct Wait {
    StreamId stream;
    std::uint64_t mark;
  };

  std::list<Wait> list;  // two are joined without memory
};

// What an allocator knows of one block. Neighbours in memory are linked as far as their pages
// belong to the same stream without a gap. One cache line.
struct alignas(64) BlockNode {
  std::uint64_t offset;  // from the device's base, in bytes
  std::uint32_t units;   // its size / 512
  std::uint16_t heap;    // which stream of which pool
  bool live;
  BlockNode *prev, *next;
  BlockWaits* waits;  // owned; null for most
  union {
    FreeLinks links;  // while it is free
    LiveFacts facts;  // while it is out
  };

  std::uint64_t bytes() const { return std::uint64_t{units} * kBlockBytes; }

  std::uint64_t end() const { return offset + bytes(); }
};
static_assert(sizeof(BlockNode) == 64);

// Sizes below 128 MiB have a class each; a bitmap of three levels finds the next size that has a
// block. Larger ones are few, and kept in order. Not thread-safe.
class FreeIndex {
 public:
  FreeIndex();
  ~FreeIndex();
  FreeIndex(const FreeIndex&) = delete;
  FreeIndex& operator=(const FreeIndex&) = delete;

  // Sees to it that insert needs no memory while the blocks are of so many bytes together.
  void reserve(std::uint64_t bytes) { large_.reserve(bytes / (kClasses * kBlockBytes)); }

  TAPER_INLINE void insert(BlockNode* block) {
    const std::uint32_t i = block->units;
    if (i >= kClasses || heads_[i] != nullptr) return insert_beside(block);
    block->links = {nullptr, nullptr, nullptr};
    heads_[i] = block;
    low_[i >> 6] |= bit(i);
    middle_[i >> 12] |= bit(i >> 6);
    top_ |= bit(i >> 12);
  }

  TAPER_INLINE void remove(BlockNode* block) {
    const std::uint32_t i = block->units;
    if (i >= kClasses || block->links.back != nullptr || block->links.child != nullptr)
      return remove_from_many(block);
    heads_[i] = nullptr;
    if ((low_[i >> 6] &= ~bit(i)) != 0) return;
    if ((middle_[i >> 12] &= ~bit(i >> 6)) != 0) return;
    top_ &= ~bit(i >> 12);
  }

  // The smallest block of at least so many units; of several, that with the lowest address. Null:
  // there is none.
  TAPER_INLINE BlockNode* best(std::uint32_t units) const {
    if (units >= kClasses) return best_large(units);
    const std::uint32_t i = class_from(units);
    return i < kClasses ? heads_[i] : large_.empty() ? nullptr : large_.front();
  }

  BlockNode* largest() const;  // null if empty

  // Calls f(BlockNode*) for the blocks from the largest on, until f returns false. Nothing may
  // change meanwhile.
  template <class F> void from_largest(F f) const {
    for (auto it = large_.rbegin(); it != large_.rend(); ++it) {
      if (!f(*it)) return;
    }
    std::vector<BlockNode*> same;
    for (std::uint32_t units = class_below(kClasses); units != 0; units = class_below(units)) {
      same.assign(1, heads_[units]);
      while (!same.empty()) {
        BlockNode* block = same.back();
        same.pop_back();
        if (!f(block)) return;
        push_relatives(block, same);
      }
    }
  }

 private:
  static constexpr std::uint32_t kClasses = 1u << 18;

  static std::uint64_t bit(std::uint32_t i) { return std::uint64_t{1} << (i & 63); }

  static std::uint64_t above(std::uint32_t i) { return ~std::uint64_t{1} << (i & 63); }

  static std::uint32_t lowest(std::uint64_t word) {
    return static_cast<std::uint32_t>(std::countr_zero(word));
  }

  // The next class that is not empty; kClasses if there is none.
  TAPER_INLINE std::uint32_t class_from(std::uint32_t i) const {
    const std::uint64_t here = low_[i >> 6] >> (i & 63);
    if (here != 0) return i + lowest(here);
    std::uint32_t j = i >> 6;
    std::uint64_t word = middle_[j >> 6] & above(j);
    if (word == 0) {
      const std::uint64_t groups = top_ & above(j >> 6);
      if (groups == 0) return kClasses;
      j = lowest(groups) << 6;
      word = middle_[j >> 6];
    }
    j = (j & ~63u) | lowest(word);
    return (j << 6) | lowest(low_[j]);
  }

  std::uint32_t class_below(std::uint32_t units) const;  // the last one below; 0: none
  void insert_beside(BlockNode* block);                  // among others of its size, or a large one
  void remove_from_many(BlockNode* block);
  BlockNode* best_large(std::uint32_t units) const;
  static void push_relatives(BlockNode* block, std::vector<BlockNode*>& out);

  BlockNode** heads_;  // of the classes; zero pages until touched
  std::uint64_t low_[kClasses / 64] = {};
  std::uint64_t middle_[kClasses / 4096] = {};
  std::uint64_t top_ = 0;
  std::vector<BlockNode*> large_;  // by size, and among equals by offset
};

}  // namespace taper
