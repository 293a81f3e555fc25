// PyTorch's native segments: each is one request of the device and goes back as a whole.
#include "taper/allocator/poison.h"
#include "taper/allocator/torch_allocator.h"

namespace taper {

// Address space at the lowest place that has enough, as one block. Null when there is none.
TorchSegment* TorchAllocator::open_segment(TorchShelf& shelf, std::size_t bytes, bool mapped) {
  auto space = spaces_.begin();
  while (space != spaces_.end() && space->second < bytes) ++space;
  if (space == spaces_.end()) return nullptr;
  const auto [offset, room] = *space;
  spaces_.erase(space);
  if (room > bytes) spaces_[offset + bytes] = room - bytes;

  TorchSegment& segment = segments_[offset];
  segment.offset = offset;
  segment.bytes = bytes;
  segment.first = new TorchBlock;
  segment.first->offset = offset;
  segment.first->bytes = bytes;
  segment.first->mapped = mapped;
  segment.first->segment = &segment;
  segment.first->shelf = &shelf;
  return &segment;
}

void TorchAllocator::close_segment(TorchSegment* segment) {
  std::size_t offset = segment->offset, bytes = segment->bytes;
  delete segment->first;
  segments_.erase(offset);
  auto after = spaces_.lower_bound(offset);
  if (after != spaces_.end() && after->first == offset + bytes) {
    bytes += after->second;
    after = spaces_.erase(after);
  }
  if (after != spaces_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
    }
  }
  spaces_[offset] = bytes;
}

// Makes pages and maps them; all or none. Offsets count from the device's base.
bool TorchAllocator::map_pages(TorchSegment& segment, std::size_t from, std::size_t bytes) {
  const std::size_t first = (from - segment.offset) / kPageBytes, count = bytes / kPageBytes;
  if (segment.pages.size() < first + count) segment.pages.resize(first + count);
  PhysicalPage* pages = segment.pages.data() + first;
  ++all_.device_calls;
  if (!device_->create(count, pages)) return false;
  ++all_.device_calls;
  if (!device_->map(from / kPageBytes, {pages, count})) {
    ++all_.device_calls;
    device_->destroy({pages, count});
    return false;
  }
  all_.pages_mapped += count;
  ring_.record(TraceAction::kMap, from, bytes, 0, 0, 0, 0);
  if (kPoisons) device_->poison(device_->base() + from, bytes);
  return true;
}

// cudaFree waits for the device, and so do we for the one stream that may still use the memory: of
// others, events have told already.
void TorchAllocator::unmap_pages(TorchSegment& segment,
                                 std::size_t from,
                                 std::size_t bytes,
                                 StreamId stream) {
  const std::size_t first = (from - segment.offset) / kPageBytes, count = bytes / kPageBytes;
  const ArrayRef<PhysicalPage> pages(segment.pages.data() + first, count);
  device_->synchronize(stream, device_->mark(stream));
  device_->unmap(from / kPageBytes, pages);
  ring_.record(TraceAction::kUnmap, from, bytes, 0, 0, stream, 0);
  device_->destroy(pages);
  all_.device_calls += 2;
  all_.pages_unmapped += count;
}

TorchBlock* TorchAllocator::grow_native(TorchShelf& shelf, std::size_t rounded) {
  const std::size_t bytes = torch_segment_bytes(rounded);
  TorchSegment* segment = open_segment(shelf, bytes, true);
  if (segment == nullptr) return nullptr;
  if (!map_pages(*segment, segment->offset, bytes)) {
    close_segment(segment);
    return nullptr;
  }
  count_reserved(shelf, bytes, true);
  put(segment->first);  // gives it a place there for when it is freed
  take_off(segment->first);
  return segment->first;
}

void TorchAllocator::release_block(TorchBlock* block) {
  TorchSegment* segment = block->segment;
  take_off(block);
  unmap_pages(*segment, segment->offset, segment->bytes, block->shelf->stream);
  count_reserved(*block->shelf, segment->bytes, false);
  close_segment(segment);
}

// Gives back blocks that are too large to be split, just enough for the request: the smallest that
// suffices alone, or else the largest until they suffice together. False: they do not.
bool TorchAllocator::release_oversize(TorchShelf& shelf, std::size_t rounded) {
  const std::size_t least = options_.max_split_size;
  if (least == 0 || expandable_) return false;
  TorchBlock key;
  key.bytes = rounded < least ? least : rounded;
  const auto enough = shelf.free.lower_bound(&key);
  if (enough != shelf.free.end()) {
    release_block(*enough);
    return true;
  }
  std::size_t released = 0;
  while (released < key.bytes && !shelf.free.empty()) {
    TorchBlock* largest = *shelf.free.rbegin();
    if (largest->bytes < least) break;
    released += largest->bytes;
    release_block(largest);
  }
  return released >= key.bytes;
}

// Above the threshold, gives back whole segments that have lain as long as the mean or longer,
// until there is enough or nothing more. The age of a block is how many requests came since.
void TorchAllocator::collect_garbage() {
  const auto threshold =
      static_cast<std::size_t>(options_.garbage_threshold * static_cast<double>(limit_));
  if (all_.reserved <= threshold) return;
  const std::size_t target = all_.reserved - threshold;
  TorchPool& pool = pools_[0];
  const auto age = [&](const TorchBlock* b) { return pool.searches[1] - b->shelved_at; };

  std::vector<TorchBlock*> blocks;
  std::uint64_t ages = 0;
  for (const auto& [key, shelf] : pool.shelves) {
    if (shelf.small) continue;
    for (TorchBlock* block : shelf.free) {
      if (block->prev != nullptr || block->next != nullptr) continue;
      blocks.push_back(block);
      ages += age(block);
    }
  }
  std::size_t reclaimed = 0;
  while (reclaimed < target && !blocks.empty()) {
    const double mean = static_cast<double>(ages) / static_cast<double>(blocks.size());
    std::vector<TorchBlock*> younger;
    for (TorchBlock* block : blocks) {
      const std::uint64_t its_age = age(block);
      if (static_cast<double>(its_age) < mean) {
        younger.push_back(block);
        continue;
      }
      reclaimed += block->bytes;
      ages -= its_age;
      release_block(block);
    }
    if (younger.size() == blocks.size()) break;  // cannot be: the oldest is not below the mean
    blocks = std::move(younger);
  }
}

}  // namespace taper
