// Storage: the bytes under tensors, shared by all views of them, with the history of who wrote.
#pragma once
#include <atomic>
#include <cstddef>
#include <vector>

#include "taper/allocator/block.h"
#include "taper/core/base/device.h"
#include "taper/core/base/ref.h"
#include "taper/core/base/source_loc.h"
#include "taper/core/stream.h"

namespace taper {

class Allocator;

// Keeps foreign memory (from_blob, a mapped file) alive; destroyed with the storage.
class MemoryOwner {
 public:
  virtual ~MemoryOwner() = default;
};

// One write: which op, at which line, and the version that it made.
struct Mutation {
  std::uint32_t version = 0;
  const char* op = "";
  SourceLoc loc;
};

// A counted run of bytes. Every tensor over it sees one version counter: it rises with each write
// by an op, so that backward can tell that what it saved has changed.
class Storage : public RefCounted {
 public:
  static constexpr std::size_t kWritersKept = 4;

  // Memory of `device`'s allocator, for its current stream. On meta there is none.
  static Ref<Storage> allocate(std::size_t bytes, Device device);
  // The host's memory, which CUDA devices copy from and to asynchronously. It is used again only
  // after what was told to record_stream().
  static Ref<Storage> allocate_pinned(std::size_t bytes);
  // Memory of somebody else's; `owner` is destroyed with the storage.
  static Ref<Storage> borrow(void* data,
                             std::size_t bytes,
                             Device device,
                             MemoryOwner* owner /* taken; may be null */);

  void* data() const { return data_; }

  std::size_t nbytes() const { return bytes_; }

  Device device() const { return device_; }

  // On which it was allocated, and may be used without record_stream().
  StreamId stream() const { return stream_; }

  bool is_pinned() const { return pinned_; }

  // `stream` uses the memory too: after the storage's end it goes to others only when the stream
  // has done what it has been given by then. No meaning for memory of others.
  void record_stream(const Stream& stream);

  std::uint32_t version() const { return version_.load(std::memory_order_acquire); }

  // Counts a write and remembers its author, from the thread's call site.
  void note_write(const char* op);
  // The latest writes, newest first; at most kWritersKept.
  std::vector<Mutation> last_writers() const;

  static void destroy(Storage* storage);

 private:
  friend struct DebugLayout;  // tells debuggers where things lie

  Storage() = default;
  ~Storage() = default;

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Block block_;
  Device device_;
  StreamId stream_ = 0;
  bool pinned_ = false;
  std::atomic<std::uint32_t> version_{0};
  MemoryOwner* owner_ = nullptr;
  std::atomic<std::vector<Mutation>*> writers_{nullptr};  // made by the first write
};

// The allocator that serves a device; throws where this build or machine has no such device.
Allocator& allocator_for(Device device);
// Host memory that CUDA devices copy from and to asynchronously. Its stream 0 is the host itself,
// which is not in order with any stream of a device; those are numbered by pinned_stream().
Allocator& pinned_allocator();
inline constexpr StreamId kHostStream = 0;
inline constexpr StreamId kPinnedStreams = 63;  // of each device; the others are waited for

constexpr StreamId pinned_stream(int device, StreamId id) {
  return 1 + static_cast<StreamId>(device) * kPinnedStreams + id;
}

}  // namespace taper
