// How the arena finds pages: where a request needs the fewest, and from whom they come.
#include <algorithm>

#include "taper/allocator/arena_allocator.h"
#include "taper/allocator/poison.h"
#include "taper/core/base/error.h"

namespace taper {
namespace {

constexpr double kLeastSlack = 8;     // pages
constexpr double kAheadOfLoss = 0.7;  // of the bytes that are pinned

std::size_t pages_for(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes;
}

}  // namespace

// Tries what costs more and more. Another thread may free a block meanwhile, or take what was
// brought here: then once more from the beginning.
BlockNode* ArenaAllocator::take_slowly(Heap& heap, std::uint32_t units, std::size_t bytes) {
  enum Effort { kWithinSlack, kMovingAll, kAgain, kGiveUp };
  const std::lock_guard arena(arena_);
  const std::uint64_t wanted = std::uint64_t{units} * kBlockBytes;
  if (device_->wants_memory_back()) release_idle();
  for (int effort = kWithinSlack; effort != kGiveUp;) {
    if (effort == kMovingAll) {
      retries_.add(1);
      harvest_all();
    }
    Place place;
    {
      const std::lock_guard lock(heap.lock);
      if (BlockNode* block = take(heap, units, bytes)) return block;
      place = find_place(heap, wanted);
    }
    if (effort == kWithinSlack) {
      const std::size_t within = idle_.size() + free_growth(wanted);
      // Less free space may make this place a worse one: look again.
      if (place.pages > within && harvest(heap, place.pages - within) > 0) continue;
    }
    const bool filled = place.pages != 0 && provide(place.pages) && map(heap, place);
    effort = filled ? kWithinSlack : effort + 1;
  }
  ooms_.add(1);
  const std::lock_guard lock(heap.lock);
  heap.ring.record(TraceAction::kOom, 0, bytes, current_site(), 0, heap.stream, heap.pool);
  return nullptr;
}

// Free space from a hole on: the heap's free block before it, the hole, free blocks and holes
// behind it. Without pages: it ends before `wanted`.
ArenaAllocator::Place ArenaAllocator::place_from(const Heap& heap,
                                                 Holes::const_iterator hole,
                                                 std::uint64_t wanted) const {
  Place place;
  place.first = hole->first;
  place.end = hole->first * kPageBytes + wanted;
  if (hole->first > 0 && pages_[hole->first - 1].heap == heap.id) {
    const BlockNode* left = pages_[hole->first - 1].tail;
    if (!left->live) place.end -= left->bytes();
  }
  for (; hole != holes_.end(); ++hole) {
    const std::size_t hole_end = hole->first + hole->second;
    const std::size_t last = std::min(hole_end, pages_for(place.end));
    place.pages += last - hole->first;
    if (last * kPageBytes >= place.end) return place;
    if (pages_[hole_end].heap != heap.id) break;
    const BlockNode* right = pages_[hole_end].head;
    if (right->live) break;
    if (right->end() >= place.end) return place;
    if (right->next != nullptr || pages_[last_page(right)].heap != 0) break;
  }
  return {};
}

// The place that needs the fewest pages; of several, the lowest.
ArenaAllocator::Place ArenaAllocator::find_place(const Heap& heap, std::uint64_t wanted) const {
  Place best;
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    const Place place = place_from(heap, hole, wanted);
    if (place.pages != 0 && (best.pages == 0 || place.pages < best.pages)) best = place;
  }
  return best;
}

// Maps idle pages into the holes of a place. False: the device refused; what was mapped is of use.
bool ArenaAllocator::map(Heap& heap, const Place& place) {
  for (std::size_t page = place.first; page * kPageBytes < place.end;) {
    const auto hole = holes_.lower_bound(page);
    if (hole == holes_.end() || hole->first * kPageBytes >= place.end) break;
    const PageRange range{hole->first, std::min(hole->second, pages_for(place.end) - hole->first)};
    {
      const std::lock_guard lock(heap.lock);
      heap.reserve_for_pages(range.count);
    }
    const ArrayRef<PhysicalPage> pages(idle_.data() + idle_.size() - range.count, range.count);
    device_calls_.add(1);
    if (!device_->map(range.first, pages)) return false;
    pages_mapped_.add(range.count);
    if (kPoisons) device_->poison(base_ + range.first * kPageBytes, range.count * kPageBytes);
    take_hole(range);
    const std::lock_guard lock(heap.lock);
    for (std::size_t i = 0; i < range.count; ++i) pages_[range.first + i].physical = pages[i];
    heap.add_pages(range.first, range.count);
    heap.ring.record(TraceAction::kMap, range.first * kPageBytes, range.count * kPageBytes, 0, 0,
                     heap.stream, heap.pool);
    idle_.resize(idle_.size() - range.count);
    page = range.first + range.count;
  }
  return true;
}

// How many pages may be created for a request before free ones are moved to it. Moving scatters
// blocks, and where they are scattered parts of pages are lost: so growth goes ahead of the peak by
// most of what is lost now, and, as the peak nears the limit, into the room that only this
// allocator will use.
std::size_t ArenaAllocator::free_growth(std::uint64_t bytes) const {
  std::uint64_t allocated = 0, lost = 0, peak = total_peak_[0].load(std::memory_order_relaxed);
  for (std::uint32_t id = 1; id <= heap_count_.load(); ++id) {
    const HeapCounters& count = heaps_[id].load()->count;
    allocated += count.allocated.get();
    lost += count.pinned.get();
    if (heap_count_.load() == 1) peak = count.allocated.peak();
  }
  const auto most = static_cast<double>(std::max(peak, allocated + bytes)) / kPageBytes;
  const auto limit = static_cast<double>(limit_);
  const double full = std::min(1.0, most / limit);
  const double reserved = static_cast<double>(reserved_.get());
  double pages = std::max(most * (1 + options_.slack), most + kLeastSlack);
  pages += kAheadOfLoss * static_cast<double>(lost) / kPageBytes;
  pages = std::max(pages, most + (limit - most) * full * full * full);
  if (options_.garbage_threshold > 0) pages = std::min(pages, options_.garbage_threshold * limit);
  pages = std::min(pages, reserved + static_cast<double>(device_->available()) / kPageBytes);
  return pages > reserved ? static_cast<std::size_t>(pages - reserved) : 0;
}

// Sees to it that there are so many idle pages. False: not without going beyond the limit, or the
// device refused.
bool ArenaAllocator::provide(std::size_t count) {
  if (idle_.size() >= count) return true;
  const std::size_t fresh = count - idle_.size();
  if (reserved_.get() + fresh > limit_) return false;
  idle_.resize(count);
  device_calls_.add(1);
  if (!device_->create(fresh, idle_.data() + count - fresh)) {
    idle_.resize(count - fresh);
    return false;
  }
  reserved_.set(reserved_.get() + fresh);
  return true;
}

void ArenaAllocator::empty_cache() {
  const std::lock_guard arena(arena_);
  release_idle();
}

void ArenaAllocator::release_idle() {
  harvest_all();
  if (idle_.empty()) return;
  device_calls_.add(1);
  device_->destroy(idle_);
  reserved_.set(reserved_.get() - idle_.size());
  idle_.clear();
}

void ArenaAllocator::harvest_all() {
  for (std::uint32_t id = 1; id <= heap_count_.load(); ++id) harvest(*heaps_[id].load(), window_);
}

// Makes up to `want` whole pages in a heap's free blocks idle, the lowest first. Returns how many.
std::size_t ArenaAllocator::harvest(Heap& heap, std::size_t want) {
  const std::size_t before = idle_.size(), before_want = want;
  std::vector<PageRange> ranges;
  {
    const std::lock_guard lock(heap.lock);
    // Of a pool that keeps its addresses, none: a graph runs there.
    if (heap.count.free_pages.get() == 0 || heap.keeps_pages()) return 0;
    std::vector<BlockNode*> blocks;
    heap.free.from_largest([&](BlockNode* block) {
      if (whole_pages(block) > 0) blocks.push_back(block);
      return block->bytes() >= kPageBytes;
    });
    std::sort(blocks.begin(), blocks.end(),
              [](const BlockNode* a, const BlockNode* b) { return a->offset < b->offset; });
    for (BlockNode* block : blocks) {
      const PageRange range{first_page(block), std::min(whole_pages(block), want)};
      if (range.count == 0) break;
      want -= range.count;
      ranges.push_back(range);
      heap.wait_for_users(block, *device_);
    }
    blocks.resize(ranges.size());
    heap.reserve_nodes(2 * blocks.size());
    // The stream's work may still use them. What can fail comes before any page changes hands.
    device_->synchronize(heap.stream, device_->mark(heap.stream));
    idle_.reserve(idle_.size() + before_want - want);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const PageRange range = ranges[i];
      heap.cut_pages(blocks[i], range.first, range.count);
      heap.ring.record(TraceAction::kUnmap, range.first * kPageBytes, range.count * kPageBytes, 0,
                       0, heap.stream, heap.pool);
    }
  }
  for (const PageRange& range : ranges) unmap(range);
  return idle_.size() - before;
}

void ArenaAllocator::unmap(PageRange range) {
  const std::size_t before = idle_.size();
  for (std::size_t p = range.first; p < range.first + range.count; ++p)
    idle_.push_back(pages_[p].physical);
  device_calls_.add(1);
  device_->unmap(range.first, {idle_.data() + before, range.count});
  pages_unmapped_.add(range.count);
  add_hole(range);
}

void ArenaAllocator::add_hole(PageRange range) {
  auto next = holes_.lower_bound(range.first);
  if (next != holes_.end() && next->first == range.first + range.count) {
    range.count += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    const auto prev = std::prev(next);
    if (prev->first + prev->second == range.first) {
      prev->second += range.count;
      return;
    }
  }
  holes_.emplace_hint(next, range.first, range.count);
}

void ArenaAllocator::take_hole(PageRange range) {
  const auto it = std::prev(holes_.upper_bound(range.first));
  const std::size_t first = it->first, end = it->first + it->second;
  TAPER_ASSERT(first <= range.first && range.first + range.count <= end);
  holes_.erase(it);
  if (first < range.first) holes_[first] = range.first - first;
  if (range.first + range.count < end)
    holes_[range.first + range.count] = end - range.first - range.count;
}

}  // namespace taper
