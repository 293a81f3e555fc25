// How the arena follows a plan: planned blocks lie in one region, a block like any other.
#include "taper/allocator/arena_allocator.h"
#include "taper/allocator/poison.h"
#include "taper/core/base/source_loc.h"

namespace taper {
namespace {

// A planned block has no node: its handle names the heap and the offset in the region, in units.
// The lowest bit, 0 in an address, tells them apart.
std::uint64_t planned_handle(std::uint16_t heap, std::uint64_t number) {
  return std::uint64_t{heap} << 48 | number << 1 | 1;
}

}  // namespace

Heap& ArenaAllocator::heap_of_planned(const Block& block) const {
  return *heaps_[block.handle >> 48].load(std::memory_order_relaxed);
}

Block ArenaAllocator::take_planned(Heap& heap, std::size_t bytes, std::size_t rounded) {
  const std::uint64_t at = heap.plan->allocate(bytes);
  if (at == StepPlan::kNotPlanned) {
    give_region_back(heap);
    return {};
  }
  const std::uint64_t offset = heap.region->offset + at;
  heap.count.allocations.add(1);
  heap.count.blocks.add(1);
  heap.count.requested.set(heap.count.requested.get() + bytes);
  publish(heap);
  heap.ring.record(TraceAction::kAlloc, offset, bytes, current_site(), call_site.entry_index,
                   heap.stream, heap.pool);
  char* data = base_ + offset;
  if (kPoisons) device_->unpoison(data, bytes);
  return {data, rounded, planned_handle(heap.id, heap.plan->name().number)};
}

void ArenaAllocator::free_planned(const Block& block, std::size_t bytes) noexcept {
  Heap& heap = heap_of_planned(block);
  const std::lock_guard lock(heap.lock);
  heap.plan->free_planned(static_cast<std::uint32_t>(block.handle >> 1));
  heap.count.frees.add(1);
  heap.count.blocks.subtract(1);
  heap.count.requested.set(heap.count.requested.get() - bytes);
  publish(heap);
  const auto offset = static_cast<std::uint64_t>(static_cast<char*>(block.data) - base_);
  heap.ring.record(TraceAction::kFree, offset, bytes, 0, 0, heap.stream, heap.pool);
  give_region_back(heap);
}

// Once a step differs and nothing planned is out, the region is memory like any other.
void ArenaAllocator::give_region_back(Heap& heap) {
  if (heap.region == nullptr || heap.plan->is_followed() || heap.plan->planned_blocks() != 0)
    return;
  std::unique_ptr<StepPlan> plan = std::move(heap.plan);  // it is not one of the step's blocks
  heap.put(heap.region, *device_);
  heap.region = nullptr;
  heap.plan = std::move(plan);
}

void ArenaAllocator::record_stream_planned(const Block& block, StreamId stream) {
  Heap& heap = heap_of_planned(block);
  const std::lock_guard lock(heap.lock);
  if (stream == heap.stream) return;
  heap.plan->record_stream_planned();
  heap.record_stream(heap.region, stream);
}

void ArenaAllocator::note_step() {
  const std::lock_guard one_at_a_time(step_mutex_);
  Heap& heap = heap_of(0);
  bool due = false;
  {
    const std::lock_guard lock(heap.lock);
    heap.ring.record(TraceAction::kStep, 0, 0, 0, 0, 0, 0);
    if (heap.plan == nullptr) return;
    due = heap.plan->end_step();
    // Before the region's memory is used again. While planned blocks are out, more may be to wait
    // for.
    if (heap.region != nullptr && heap.plan->planned_blocks() == 0)
      heap.wait_for_users(heap.region, *device_);
    if (!due && heap.region == nullptr && heap.plan->is_followed()) take_region(heap);
  }
  if (due) replan(heap);
}

// No planned block is out. The heap has no plan meanwhile: the region is not one of the step's
// blocks. Without memory for it the heap begins to learn anew.
void ArenaAllocator::replan(Heap& heap) {
  std::unique_ptr<StepPlan> plan;
  {
    const std::lock_guard lock(heap.lock);
    plan = std::move(heap.plan);
    if (heap.region != nullptr) heap.put(heap.region, *device_);
    publish(heap);
    heap.region = nullptr;
  }
  plan->make_plan();
  const auto units = static_cast<std::uint32_t>(plan->region_bytes() / kBlockBytes);
  BlockNode* region = nullptr;
  if (units != 0) {
    {
      const std::lock_guard lock(heap.lock);
      region = take(heap, units, 0);
    }
    if (region == nullptr) region = take_slowly(heap, units, 0);
    if (region == nullptr) plan->forget();
  }
  const std::lock_guard lock(heap.lock);
  heap.region = region;
  heap.plan = std::move(plan);
}

// For a plan that is followed again: where no free block holds it, not in this step. With heap.lock
// held.
void ArenaAllocator::take_region(Heap& heap) {
  std::unique_ptr<StepPlan> plan =
      std::move(heap.plan);  // the region is not one of the step's blocks
  heap.region = take(heap, static_cast<std::uint32_t>(plan->region_bytes() / kBlockBytes), 0);
  if (heap.region == nullptr) plan->pause();
  heap.plan = std::move(plan);
}

}  // namespace taper
