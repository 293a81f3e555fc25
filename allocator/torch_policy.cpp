// PyTorch's way of an allocation and of a free: shelves, best fit, splits, events, retries.
#include "taper/allocator/torch_policy.h"

#include <bit>

#include "taper/allocator/out_of_memory.h"
#include "taper/allocator/poison.h"
#include "taper/allocator/torch_allocator.h"
#include "taper/allocator/trace.h"

namespace taper {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 60;

std::size_t up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

TorchBlock* block_of(const Block& block) {
  return reinterpret_cast<TorchBlock*>(block.handle);
}

}  // namespace

std::size_t torch_rounded(std::size_t bytes, std::size_t power2_divisions) {
  if (bytes < kBlockBytes) return kBlockBytes;
  if (power2_divisions > 1 && bytes > kBlockBytes * power2_divisions)
    return up(bytes, std::bit_floor(bytes) / power2_divisions);
  return up(bytes, kBlockBytes);
}

std::size_t torch_segment_bytes(std::size_t rounded) {
  if (rounded <= kTorchSmall) return kTorchSmallSegment;
  if (rounded < kTorchOwnSegment) return kTorchLargeSegment;
  return up(rounded, kPageBytes);
}

std::unique_ptr<Allocator> make_torch_allocator(const AllocatorOptions& options,
                                                std::unique_ptr<MemoryDevice> device) {
  TAPER_CHECK(options.max_split_size == 0 || options.max_split_size > kTorchLargeSegment,
              "max_split_size must be above 20 MiB, got ", options.max_split_size, " bytes");
  TAPER_CHECK(options.roundup_power2_divisions == 0 ||
                  std::has_single_bit(options.roundup_power2_divisions),
              "roundup_power2_divisions must be a power of two, got ",
              options.roundup_power2_divisions);
  return std::make_unique<TorchAllocator>(options, std::move(device));
}

TorchAllocator::TorchAllocator(const AllocatorOptions& options,
                               std::unique_ptr<MemoryDevice> device)
    : options_(options),
      device_(std::move(device)),
      expandable_(options.policy == AllocatorPolicy::kTorchExpandable),
      limit_(options.limit),
      ring_(options.trace_events, !options.trace_file.empty()) {
  // PyTorch reserves 9/8 of the device for each segment; here all share one reservation.
  window_ = up(device_->capacity() / 8 * 9, kTorchLargeSegment);
  const std::size_t space = device_->reserve(16 * window_, 4 * kTorchLargeSegment);
  if (space / 4 < window_) window_ = space / 4 / kTorchLargeSegment * kTorchLargeSegment;
  spaces_[0] = space;
  pools_[0];
}

// Its device gives back the pages.
TorchAllocator::~TorchAllocator() {
  for (const auto& [offset, segment] : segments_) {
    TorchBlock* block = segment.first;
    while (block != nullptr) {
      TorchBlock* next = block->next;
      delete block;
      block = next;
    }
  }
}

Block TorchAllocator::allocate(std::size_t bytes, StreamId stream) {
  if (bytes == 0) return {};
  TAPER_CHECK(bytes <= kMostBytes, "cannot allocate ", bytes, " bytes: more than 1 EiB");
  const std::size_t rounded = torch_rounded(bytes, options_.roundup_power2_divisions);
  {
    const std::lock_guard lock(mutex_);
    if (TorchBlock* block = take(rounded, stream)) {
      block->live = true;
      block->requested = bytes;
      block->site = current_site();
      block->entry = static_cast<std::uint32_t>(call_site.entry_index);
      count_live(*block, true);
      ring_.record(TraceAction::kAlloc, block->offset, bytes, block->site, block->entry, stream,
                   block->shelf->pool->id);
      char* data = device_->base() + block->offset;
      if (kPoisons) device_->unpoison(data, bytes);
      return {data, block->bytes, reinterpret_cast<std::uint64_t>(block)};
    }
    ++all_.ooms;
    ring_.record(TraceAction::kOom, 0, bytes, current_site(), call_site.entry_index, stream, 0);
  }
  fail_out_of_memory(*this, bytes, rounded);
}

TorchBlock* TorchAllocator::take(std::size_t rounded, StreamId stream) {
  if (filling_.empty()) poll_events();
  TorchShelf& shelf = shelf_for(stream, rounded <= kTorchSmall);
  TorchBlock* block = best_fit(shelf, rounded);
  if (block == nullptr) {
    if (limit_ != 0 && options_.garbage_threshold > 0 && !expandable_) collect_garbage();
    block = grow(shelf, rounded);
  }
  if (block == nullptr && release_oversize(shelf, rounded)) block = grow(shelf, rounded);
  if (block == nullptr && filling_.empty()) {
    // Blocks that come back here from events are not searched, only released: so it is published.
    release_cached();
    ++all_.retries;
    block = grow(shelf, rounded);
  }
  if (block != nullptr) split(block, rounded);
  return block;
}

TorchBlock* TorchAllocator::best_fit(TorchShelf& shelf, std::size_t rounded) {
  ++shelf.pool->searches[shelf.small ? 0 : 1];
  TorchBlock key;
  key.bytes = rounded;
  auto it = shelf.free.lower_bound(&key);
  if (it == shelf.free.end()) return nullptr;
  if (expandable_) {
    // A block before unmapped space counts with it, so that growing comes last.
    const auto reach = [](const TorchBlock* b) {
      return b->bytes + (b->next != nullptr && !b->next->mapped ? b->next->bytes : 0);
    };
    for (auto next = std::next(it); next != shelf.free.end() && reach(*next) < reach(*it); ++next)
      it = next;
  } else if (options_.max_split_size != 0) {
    const std::size_t most = options_.max_split_size;
    const std::size_t found = (*it)->bytes;
    if (rounded < most ? found >= most : found >= rounded + kTorchLargeSegment) return nullptr;
  }
  TorchBlock* block = *it;
  take_off(block);
  return block;
}

TorchBlock* TorchAllocator::grow(TorchShelf& shelf, std::size_t rounded) {
  if (limit_ != 0 && all_.reserved + torch_segment_bytes(rounded) > limit_) return nullptr;
  return expandable_ ? grow_expandable(shelf, rounded) : grow_native(shelf, rounded);
}

// Cuts off and shelves what is left behind the first `rounded` bytes, if PyTorch would.
void TorchAllocator::split(TorchBlock* block, std::size_t rounded) {
  const std::size_t rest = block->bytes - rounded;
  const bool splits = block->shelf->small || expandable_
                          ? rest >= kBlockBytes
                          : rest > kTorchSmall &&
                                (options_.max_split_size == 0 || rounded < options_.max_split_size);
  if (splits) put(split_off(block, rounded));
}

// Cuts a block, which is on no shelf, to its first `bytes`. Returns the rest, on no shelf either.
TorchBlock* TorchAllocator::split_off(TorchBlock* block, std::size_t bytes) {
  auto* rest = new TorchBlock;
  rest->offset = block->offset + bytes;
  rest->bytes = block->bytes - bytes;
  rest->mapped = block->mapped;
  rest->segment = block->segment;
  rest->shelf = block->shelf;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->prev = rest;
  block->next = rest;
  block->bytes = bytes;
  return rest;
}

// Takes in a neighbour that is idle and as mapped as the block, which is on no shelf.
void TorchAllocator::merge(TorchBlock* block, TorchBlock* neighbour) {
  if (neighbour == nullptr || !neighbour->idle() || neighbour->mapped != block->mapped) return;
  take_off(neighbour);
  if (neighbour == block->prev) {
    block->offset = neighbour->offset;
    block->prev = neighbour->prev;
    if (block->prev != nullptr) block->prev->next = block;
    else block->segment->first = block;
  } else {
    block->next = neighbour->next;
    if (block->next != nullptr) block->next->prev = block;
  }
  block->bytes += neighbour->bytes;
  delete neighbour;
}

void TorchAllocator::shelve(TorchBlock* block) {
  merge(block, block->prev);
  merge(block, block->next);
  put(block);
}

// A block that was on a shelf before needs no memory to get there again.
void TorchAllocator::put(TorchBlock* block) {
  TorchShelf& shelf = *block->shelf;
  const auto insert = [&](auto& set) {
    if (block->place.empty()) set.insert(block);
    else set.insert(std::move(block->place));
  };
  if (!block->mapped) return insert(shelf.unmapped);
  block->shelved_at = shelf.pool->searches[shelf.small ? 0 : 1];
  insert(shelf.free);
  count_idle(*block, true);
}

void TorchAllocator::take_off(TorchBlock* block) {
  if (!block->mapped) {
    block->place = block->shelf->unmapped.extract(block);
    return;
  }
  count_idle(*block, false);
  block->place = block->shelf->free.extract(block);
}

void TorchAllocator::free(const Block& given, std::size_t, StreamId) noexcept {
  if (given.handle == 0) return;
  if (kPoisons) device_->poison(given.data, given.bytes);
  const std::lock_guard lock(mutex_);
  TorchBlock* block = block_of(given);
  TAPER_ASSERT(block->live);
  block->live = false;
  ring_.record(TraceAction::kFree, block->offset, block->requested, block->site, block->entry,
               block->shelf->stream, block->shelf->pool->id);
  count_live(*block, false);
  if (block->used_on.empty()) {
    shelve(block);
    return;
  }
  count_pending(*block, true);
  if (filling_.empty()) mark_uses(block);
  else unmarked_.push_back(block);
}

void TorchAllocator::record_stream(const Block& given, StreamId stream) {
  if (given.handle == 0) return;
  const std::lock_guard lock(mutex_);
  TorchBlock* block = block_of(given);
  if (stream == block->shelf->stream) return;
  for (const StreamId used : block->used_on) {
    if (used == stream) return;
  }
  block->used_on.push_back(stream);
  ring_.record(TraceAction::kRecordStream, block->offset, 0, 0, 0, stream, block->shelf->pool->id);
}

void TorchAllocator::mark_uses(TorchBlock* block) {
  for (const StreamId stream : block->used_on) {
    events_[stream].push_back({device_->mark(stream), block});
    ++block->marks;
  }
  block->used_on.clear();
}

// Settles the blocks whose streams have got far enough. A stream's events are asked in its order,
// up to the first that has not happened.
void TorchAllocator::poll_events() {
  for (TorchBlock* block : unmarked_) mark_uses(block);
  unmarked_.clear();
  for (auto& [stream, queue] : events_) {
    while (!queue.empty() && device_->reached(stream, queue.front().mark)) {
      TorchBlock* block = queue.front().block;
      queue.pop_front();
      settle(block);
    }
  }
}

void TorchAllocator::synchronize_events() {
  for (TorchBlock* block : unmarked_) mark_uses(block);
  unmarked_.clear();
  for (auto& [stream, queue] : events_) {
    for (const Event& event : queue) {
      device_->synchronize(stream, event.mark);
      settle(event.block);
    }
    queue.clear();
  }
}

void TorchAllocator::settle(TorchBlock* block) {
  if (--block->marks != 0) return;
  count_pending(*block, false);
  shelve(block);
}

void TorchAllocator::empty_cache() {
  const std::lock_guard lock(mutex_);
  if (filling_.empty()) release_cached();
}

void TorchAllocator::release_cached() {
  synchronize_events();
  for (auto it = pools_.begin(); it != pools_.end();) {
    TorchPool& pool = it->second;
    if (pool.gives_back()) {
      for (auto& [key, shelf] : pool.shelves) release_shelf(shelf);
    }
    // A released pool ends with its last memory.
    if (pool.released && pool.stats.reserved == 0) it = pools_.erase(it);
    else ++it;
  }
}

void TorchAllocator::release_shelf(TorchShelf& shelf) {
  const std::vector<TorchBlock*> blocks(shelf.free.begin(), shelf.free.end());
  for (TorchBlock* block : blocks) {
    if (expandable_) unmap_granules(block);
    else if (block->prev == nullptr && block->next == nullptr) release_block(block);
  }
  const std::vector<TorchBlock*> unmapped(shelf.unmapped.begin(), shelf.unmapped.end());
  for (TorchBlock* block : unmapped) {
    if (block->bytes != block->segment->bytes) continue;
    take_off(block);
    close_segment(block->segment);  // a window without memory
  }
}

TorchShelf& TorchAllocator::shelf_for(StreamId stream, bool small) {
  const auto filled = filling_.find(stream);
  TorchPool& pool = filled == filling_.end() ? pools_[0] : *filled->second;
  TorchShelf& shelf = pool.shelves[{small, stream}];
  if (shelf.pool == nullptr) {
    shelf.pool = &pool;
    shelf.small = small;
    shelf.stream = stream;
    shelf.of_stream = &by_stream_[stream];
  }
  return shelf;
}

PoolId TorchAllocator::make_pool(bool) {
  const std::lock_guard lock(mutex_);
  const PoolId id = next_pool_++;
  pools_[id].id = id;
  return id;
}

void TorchAllocator::begin_pool(PoolId pool, StreamId stream) {
  const std::lock_guard lock(mutex_);
  const auto it = pools_.find(pool);
  TAPER_CHECK(pool != 0 && it != pools_.end() && !it->second.released, "there is no pool ", pool);
  TAPER_CHECK(filling_.count(stream) == 0, "stream ", stream, " fills a pool already");
  filling_[stream] = &it->second;
}

void TorchAllocator::end_pool(StreamId stream) {
  const std::lock_guard lock(mutex_);
  TAPER_CHECK(filling_.erase(stream) == 1, "stream ", stream, " fills no pool");
}

void TorchAllocator::release_pool(PoolId id) {
  const std::lock_guard lock(mutex_);
  const auto it = pools_.find(id);
  TAPER_CHECK(id != 0 && it != pools_.end() && !it->second.released, "there is no pool ", id);
  TorchPool& pool = it->second;
  for (const auto& [stream, filled] : filling_)
    TAPER_CHECK(filled != &pool, "pool ", id, " is being filled by stream ", stream);
  // What was kept can now be given back: it is counted anew.
  for (const bool released : {false, true}) {
    pool.released = released;
    for (const auto& [key, shelf] : pool.shelves) {
      for (const TorchBlock* block : shelf.free) count_idle(*block, released);
    }
  }
}

void TorchAllocator::note_step() {
  const std::lock_guard lock(mutex_);
  ring_.record(TraceAction::kStep, 0, 0, 0, 0, 0, 0);
}

Trace TorchAllocator::recent_events() const {
  std::vector<TraceEvent> events;
  std::vector<SegmentInfo> map;
  {
    const std::lock_guard lock(mutex_);
    ring_.copy_to(events);
    map = segments();
  }
  Trace trace = trace_of_rings(std::move(events), map);
  trace.device = device_->name();
  return trace;
}

}  // namespace taper
