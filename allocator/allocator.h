// Where tensor memory comes from: one allocator per device, what it counts, and what it can show.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/allocator/block.h"

namespace taper {

class MemoryDevice;
class PageMapWriter;
struct AllocatorOptions;
struct Trace;

// Bytes, unless said otherwise; read in a time that does not depend on how many blocks there are.
// reserved = allocated + pending + releasable + inactive_split. Peaks are exact for one stream;
// those of several together may be off by 1 MiB for each, since each counts by itself.
struct AllocatorStats {
  std::uint64_t allocated = 0;  // in blocks that are out
  std::uint64_t allocated_peak = 0;
  std::uint64_t requested = 0;  // what callers asked for, before rounding
  std::uint64_t requested_peak = 0;
  // What may be reserved, by the device, the options and the address space; 0: see the options.
  std::uint64_t limit = 0;
  std::uint64_t reserved = 0;  // taken from the device
  std::uint64_t reserved_peak = 0;
  std::uint64_t pending = 0;  // free blocks whose next user must wait for other streams
  std::uint64_t pending_peak = 0;
  std::uint64_t releasable = 0;  // cached in whole pages that the device could have back
  // Cached beside live blocks of the same page or segment, or in a pool that gives nothing back.
  std::uint64_t inactive_split = 0;
  std::uint64_t inactive_split_peak = 0;
  std::uint64_t largest_free = 0;  // the largest cached block

  std::uint64_t blocks = 0;       // that are out
  std::uint64_t allocations = 0;  // calls that gave a block
  std::uint64_t frees = 0;
  std::uint64_t device_calls = 0;    // batches of pages created, mapped, unmapped or destroyed
  std::uint64_t pages_mapped = 0;    // in all
  std::uint64_t pages_unmapped = 0;  // in all
  std::uint64_t stream_waits = 0;    // one stream told to wait for another
  std::uint64_t retries = 0;         // allocations that first had to give cached memory back
  std::uint64_t ooms = 0;

  std::uint64_t active() const { return allocated + pending; }

  std::uint64_t cached() const { return reserved - allocated; }

  // Shares of what is reserved: lost to rounding; lying free.
  double internal_fragmentation() const;
  double external_fragmentation() const;
};

enum class BlockState : std::uint8_t { kLive, kPending, kFree };

// One block of a memory map. Offsets count from the device's base.
struct BlockInfo {
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t requested = 0;  // of a live block; 0: the region of a plan
  BlockState state = BlockState::kFree;
  std::uint32_t site = 0;        // who asked, for site_of; 0: not known
  std::uint32_t entry = 0;       // low half of the tape entry's index; 0: none
  std::uint64_t releasable = 0;  // of a free one: what the device could have back
};

// Neighbouring memory that was reserved for one stream of one pool; blocks in address order,
// without gaps.
struct SegmentInfo {
  std::uint64_t offset = 0, bytes = 0;
  StreamId stream = 0;
  PoolId pool = 0;
  bool small = false;  // of torch's pool for small blocks
  std::vector<BlockInfo> blocks;
};

// One per device. Thread-safe. Memory freed on a stream is reused on it in order, without waiting;
// on other streams after a wait of that stream. The host waits where pages are taken from a stream.
class Allocator {
 public:
  virtual ~Allocator() = default;
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // At least `bytes` (0 gives a block without memory). Throws taper::OutOfMemory when the device is
  // full.
  virtual Block allocate(std::size_t bytes, StreamId stream) = 0;
  // `requested` and `stream` are what allocate was given. Never throws.
  virtual void free(const Block& block, std::size_t requested, StreamId stream) noexcept = 0;
  // The block is used on `stream` too: its memory is used again only after that work.
  virtual void record_stream(const Block& block, StreamId stream) = 0;
  // Gives cached memory that nobody uses back to the device.
  virtual void empty_cache() = 0;

  // Private pools. Between begin_pool and end_pool what `stream` allocates comes from `pool`; with
  // `keep_addresses` (a captured graph will run there again) its pages stay until release_pool.
  virtual PoolId make_pool(bool keep_addresses) = 0;
  virtual void begin_pool(PoolId pool, StreamId stream) = 0;
  virtual void end_pool(StreamId stream) = 0;
  virtual void release_pool(PoolId pool) = 0;  // blocks that are out stay good until freed

  virtual void note_step() = 0;  // a training step ends here; for traces and plans

  virtual AllocatorStats stats() const = 0;
  virtual AllocatorStats stream_stats(StreamId stream) const = 0;  // of all its pools
  // Of all its streams. What a released pool counted is the common pool's in the end.
  virtual AllocatorStats pool_stats(PoolId pool) const = 0;
  virtual void reset_peaks() = 0;

  // All that is reserved, in address order. Takes every lock; a millisecond for 10,000 blocks.
  virtual std::vector<SegmentInfo> memory_map() const = 0;
  // The same to a writer, without locks and without allocating: for a debugger, while the process
  // stands.
  virtual void write_map(PageMapWriter& out) const = 0;
  // The latest events, oldest first, as a trace that can be replayed: it begins with the blocks
  // that were out before them.
  virtual Trace recent_events() const = 0;

  // For fork: no other thread is inside between them.
  virtual void lock_all() const = 0;
  virtual void unlock_all() const = 0;

  virtual const AllocatorOptions& options() const = 0;
  virtual const MemoryDevice& device() const = 0;
};

// The policy that the options name, over a device.
std::unique_ptr<Allocator> make_allocator(const AllocatorOptions& options,
                                          std::unique_ptr<MemoryDevice> device);

// The process's allocators, for snapshots: the host's first, then the others as they were made.
// Those that are entered live as long as the process.
void register_allocator(Allocator& allocator);
std::vector<const Allocator*> all_allocators();

// The allocator of the host's memory; lives as long as the process. TAPER_ALLOC sets its options.
Allocator& cpu_allocator();

}  // namespace taper
