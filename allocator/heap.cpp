// One stream's blocks: cut from the best-fitting free block, joined with free neighbours when
// freed.
#include "taper/allocator/heap.h"

#include <algorithm>

#include "taper/core/base/error.h"
#include "taper/core/base/source_loc.h"

namespace taper {
namespace {

constexpr std::size_t kSlabNodes = 1024;

// Adds to `to` what must be waited for, the later mark where both wait for a stream.
void merge_waits(BlockWaits& to, BlockWaits& from) {
  while (!from.list.empty()) {
    const auto w = from.list.begin();
    const auto same = std::find_if(to.list.begin(), to.list.end(),
                                   [&](const auto& x) { return x.stream == w->stream; });
    if (same == to.list.end()) {
      to.list.splice(to.list.end(), from.list, w);
    } else {
      same->mark = std::max(same->mark, w->mark);
      from.list.erase(w);
    }
  }
}

// Freeing cannot fail. A device that can give no mark is broken, and its next call says so.
StreamMark mark_or_none(MemoryDevice& device, StreamId stream) noexcept {
  try {
    return device.mark(stream);
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace

Heap::Heap(std::uint16_t heap_id,
           StreamId of_stream,
           PoolId of_pool,
           bool keeps_pages,
           ArenaPage* pages,
           std::size_t trace_events,
           bool keep_all_events)
    : id(heap_id),
      stream(of_stream),
      pool(of_pool),
      ring(trace_events, keep_all_events),
      keeps_pages_(keeps_pages),
      pages_(pages) {}

Heap::~Heap() {
  for (const auto& slab : slabs_) {
    for (std::size_t i = 0; i < kSlabNodes; ++i) delete slab[i].waits;
  }
}

BlockNode* Heap::take(std::uint32_t units, std::uint64_t requested, MemoryDevice& device) {
  BlockNode* block = free.best(units);
  if (block == nullptr) return nullptr;
  // What may fail comes before any change.
  reserve_nodes(1);
  wait_for_users(block, device);
  remove(block);
  if (block->units > units) insert(split_off(block, units));
  count_pinned();
  block->live = true;
  const CallSite& here = call_site;
  block->facts = {requested, current_site(), static_cast<std::uint32_t>(here.entry_index), {}};
  if (plan != nullptr) block->facts.name = plan->name();
  count.allocated.set(count.allocated.get() + block->bytes());
  count.requested.set(count.requested.get() + requested);
  count.blocks.add(1);
  count.allocations.add(1);
  if (requested != 0) {  // the region of a plan is told by the blocks in it
    ring.record(TraceAction::kAlloc, block->offset, requested, block->facts.site, here.entry_index,
                stream, pool);
  }
  return block;
}

void Heap::put(BlockNode* block, MemoryDevice& device) {
  const LiveFacts facts = block->facts;
  if (plan != nullptr) plan->free(facts.name);
  if (facts.requested != 0) {
    ring.record(TraceAction::kFree, block->offset, facts.requested, facts.site, facts.entry, stream,
                pool);
  }
  count.allocated.set(count.allocated.get() - block->bytes());
  count.requested.set(count.requested.get() - facts.requested);
  count.blocks.subtract(1);
  count.frees.add(1);
  block->live = false;
  if (block->waits != nullptr) {
    for (BlockWaits::Wait& w : block->waits->list) w.mark = mark_or_none(device, w.stream);
  }
  absorb(block);
  count_pinned();
}

void Heap::record_stream(BlockNode* block, StreamId user) {
  if (user == stream) return;
  if (plan != nullptr) plan->record_stream(block->facts.name);
  ring.record(TraceAction::kRecordStream, block->offset, 0, 0, 0, user, pool);
  if (block->waits == nullptr) block->waits = new BlockWaits;
  for (const BlockWaits::Wait& w : block->waits->list) {
    if (w.stream == user) return;
  }
  block->waits->list.push_back({user, 0});
}

void Heap::wait_and_forget(BlockNode* block, MemoryDevice& device) {
  for (BlockWaits::Wait& w : block->waits->list) {
    if (block->live) w.mark = device.mark(w.stream);
    device.wait(stream, w.stream, w.mark);
  }
  count.stream_waits.add(block->waits->list.size());
  if (!block->live) uncount_pending(block);
  delete block->waits;
  block->waits = nullptr;
}

void Heap::reserve_for_pages(std::size_t n) {
  reserve_nodes(1);
  free.reserve(count.reserved.get() + n * kPageBytes);
}

void Heap::add_pages(std::size_t first, std::size_t n) {
  BlockNode* block = new_node();
  block->offset = first * kPageBytes;
  block->units = static_cast<std::uint32_t>(n * (kPageBytes / kBlockBytes));
  const bool after = first > 0 && pages_[first - 1].heap == id;
  block->prev = after ? pages_[first - 1].tail : nullptr;
  block->next = pages_[first + n].heap == id ? pages_[first + n].head : nullptr;
  if (block->prev != nullptr) block->prev->next = block;
  else pages_[first].head = block;
  if (block->next != nullptr) block->next->prev = block;
  for (std::size_t p = first; p < first + n; ++p) pages_[p].heap = id;
  count.reserved.set(count.reserved.get() + n * kPageBytes);
  absorb(block);
  count_pinned();
}

void Heap::cut_pages(BlockNode* block, std::size_t first, std::size_t n) {
  const std::uint64_t begin = first * kPageBytes, end = (first + n) * kPageBytes;
  TAPER_ASSERT(!block->live && block->waits == nullptr && block->offset <= begin &&
               end <= block->end());
  remove(block);
  const auto units_to = [&](std::uint64_t offset) {
    return static_cast<std::uint32_t>((offset - block->offset) / kBlockBytes);
  };
  if (end < block->end()) insert(split_off(block, units_to(end)));
  if (block->offset < begin) {
    BlockNode* pages = split_off(block, units_to(begin));
    insert(block);
    block = pages;
  }
  if (BlockNode* left = block->prev; left != nullptr) {
    left->next = nullptr;
    pages_[first - 1].tail = left;
  }
  if (BlockNode* right = block->next; right != nullptr) {
    right->prev = nullptr;
    pages_[first + n].head = right;
  }
  recycle(block);
  for (std::size_t p = first; p < first + n; ++p) pages_[p].heap = 0;
  count.reserved.set(count.reserved.get() - n * kPageBytes);
  count_pinned();
}

std::uint64_t Heap::largest_free() const {
  const BlockNode* block = free.largest();
  return block == nullptr ? 0 : block->bytes();
}

void Heap::reserve_nodes(std::size_t n) {
  while (spares_ < n) {
    slabs_.push_back(std::make_unique<BlockNode[]>(kSlabNodes));  // zeros
    for (std::size_t i = kSlabNodes; i-- > 0;) recycle(&slabs_.back()[i]);
  }
}

BlockNode* Heap::new_node() {
  reserve_nodes(1);
  BlockNode* node = spare_;
  spare_ = node->next;
  --spares_;
  node->heap = id;
  node->live = false;
  node->prev = node->next = nullptr;
  node->waits = nullptr;
  return node;
}

void Heap::recycle(BlockNode* node) {
  node->waits = nullptr;
  node->next = spare_;
  spare_ = node;
  ++spares_;
}

BlockNode* Heap::split_off(BlockNode* block, std::uint32_t units) {
  BlockNode* rest = new_node();
  rest->offset = block->offset + std::uint64_t{units} * kBlockBytes;
  rest->units = block->units - units;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->prev = rest;
  block->next = rest;
  block->units = units;
  end_of_run(rest);
  return rest;
}

void Heap::insert(BlockNode* block) {
  free.insert(block);
  free_bytes_ += block->bytes();
  const std::size_t pages = whole_pages(block);
  if (pages != 0) count.free_pages.add(pages);
  if (block->waits == nullptr) return;
  count.pending.set(count.pending.get() + block->bytes());
  count.pending_pages.add(pages);
}

void Heap::remove(BlockNode* block) {
  free.remove(block);
  free_bytes_ -= block->bytes();
  const std::size_t pages = whole_pages(block);
  if (pages != 0) count.free_pages.subtract(pages);
  if (block->waits != nullptr) uncount_pending(block);
}

void Heap::uncount_pending(const BlockNode* block) {
  count.pending.set(count.pending.get() - block->bytes());
  count.pending_pages.subtract(whole_pages(block));
}

void Heap::absorb(BlockNode* block) {
  if (BlockNode* next = block->next; next != nullptr && !next->live) {
    remove(next);
    join(block, next);
  }
  if (BlockNode* prev = block->prev; prev != nullptr && !prev->live) {
    remove(prev);
    join(prev, block);
    block = prev;
  }
  insert(block);
  end_of_run(block);
}

void Heap::join(BlockNode* low, BlockNode* high) {
  low->units += high->units;
  low->next = high->next;
  if (low->next != nullptr) low->next->prev = low;
  if (high->waits != nullptr) {
    if (low->waits == nullptr) {
      low->waits = high->waits;
    } else {
      merge_waits(*low->waits, *high->waits);
      delete high->waits;
    }
  }
  recycle(high);
}

void Heap::end_of_run(BlockNode* block) {
  if (block->next == nullptr) pages_[block->end() / kPageBytes - 1].tail = block;
}

void Heap::release_pages() {
  keeps_pages_ = false;
  count_pinned();
}

void Heap::serve(PoolId of_pool, bool keeps_pages) {
  TAPER_ASSERT(count.reserved.get() == 0);
  pool = of_pool;
  keeps_pages_ = keeps_pages;
  for (Counter* c : {&count.allocations, &count.frees, &count.stream_waits}) c->set(0);
  count.reset_peaks();
  if (plan != nullptr) *plan = StepPlan();
}

// Runs end on pages' borders, so free bytes outside whole pages lie beside live blocks.
void Heap::count_pinned() {
  const std::uint64_t whole = keeps_pages_ ? 0 : count.free_pages.get() - count.pending_pages.get();
  count.releasable_pages.set(whole);
  count.pinned.set(free_bytes_ - count.pending.get() - whole * kPageBytes);
}

}  // namespace taper
