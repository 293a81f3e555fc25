// PyTorch's expandable segments: a window of address space for each pool and stream, mapped and
// unmapped by granules of 2 MiB (small blocks) or 20 MiB.
#include "taper/allocator/torch_allocator.h"

namespace taper {

// The mapped block that results covers the request and is on no shelf.
TorchBlock* TorchAllocator::grow_expandable(TorchShelf& shelf, std::size_t rounded) {
  TorchBlock* block = find_room(shelf, rounded);
  if (block == nullptr) return nullptr;
  // From here on: block, idle and perhaps unmapped; then unmapped and idle ones in turn.
  if (!block->mapped && !map_front(block, block->bytes < rounded ? block->bytes : rounded))
    return nullptr;
  while (block->bytes < rounded) {
    TorchBlock* more = block->next;  // map_front merges what is before it into it
    const std::size_t missing = rounded - block->bytes;
    if (!map_front(more, more->bytes < missing ? more->bytes : missing)) return nullptr;
    block = more;
  }
  take_off(block);
  return block;
}

// The lowest block that begins a run of idle and unmapped ones of that many bytes; a new window if
// there is none. Null: there is no address space left.
TorchBlock* TorchAllocator::find_room(TorchShelf& shelf, std::size_t rounded) {
  for (TorchBlock* unmapped : shelf.unmapped) {
    TorchBlock* start = unmapped;
    if (start->prev != nullptr && start->prev->idle()) start = start->prev;
    std::size_t room = 0;
    for (TorchBlock* b = start; b != nullptr && b->idle() && room < rounded; b = b->next)
      room += b->bytes;
    if (room >= rounded) return start;
  }
  if (rounded > window_) return nullptr;
  TorchSegment* segment = open_segment(shelf, window_, false);
  if (segment == nullptr) return nullptr;
  put(segment->first);
  return segment->first;
}

// Maps the whole granules that hold the first `bytes` of an unmapped block, which becomes them,
// merged with idle neighbours and shelved.
bool TorchAllocator::map_front(TorchBlock* block, std::size_t bytes) {
  TorchShelf& shelf = *block->shelf;
  const std::size_t granule = shelf.granule();
  const std::size_t mapped = (bytes + granule - 1) / granule * granule;
  if (!map_pages(*block->segment, block->offset, mapped)) return false;
  take_off(block);
  if (mapped < block->bytes) put(split_off(block, mapped));
  block->mapped = true;
  count_reserved(shelf, mapped, true);
  shelve(block);
  return true;
}

// Gives back the whole granules inside a free block.
void TorchAllocator::unmap_granules(TorchBlock* block) {
  TorchShelf& shelf = *block->shelf;
  TorchSegment& segment = *block->segment;
  const std::size_t bytes = releasable_part(*block), granule = shelf.granule();
  if (bytes == 0) return;
  const std::size_t from =
      segment.offset + (block->offset - segment.offset + granule - 1) / granule * granule;
  take_off(block);
  // What is before and behind them stays, as blocks of their own.
  if (from > block->offset) {
    TorchBlock* before = block;
    block = split_off(before, from - before->offset);
    put(before);
  }
  if (bytes < block->bytes) put(split_off(block, bytes));
  block->mapped = false;
  unmap_pages(segment, from, bytes, shelf.stream);
  count_reserved(shelf, bytes, false);
  shelve(block);
}

}  // namespace taper
