// Streams: queues in which a device does its work in order; events: places in them.
#pragma once
#include <atomic>
#include <cstddef>
#include <new>

#include "taper/allocator/block.h"
#include "taper/core/base/device.h"
#include "taper/core/base/source_loc.h"

namespace taper {

inline constexpr int kMaxDevices = 64;  // of one type

// A stream of a device: a name to copy about. Number 0 is the device's default stream. On the CPU
// there is no other, and it runs each call at once.
//
// Work on one stream runs in order; between streams there is no order but by an Event. Each thread
// has a current stream for each device, on which ops run (StreamGuard changes it); backward runs
// each op on the stream of its forward, and waits where gradients come from another.
class Stream {
 public:
  explicit Stream(Device device = kCUDA, StreamId id = 0) : device_(device), id_(id) {}

  Device device() const { return device_; }

  StreamId id() const { return id_; }

  // Waits for all work given to it so far. What went wrong there is thrown here.
  void synchronize(SourceLoc loc = SourceLoc::current()) const;
  // Whether all work given to it so far is done.
  bool query(SourceLoc loc = SourceLoc::current()) const;

  friend bool operator==(const Stream& a, const Stream& b) {
    return a.device_ == b.device_ && a.id_ == b.id_;
  }

 private:
  Device device_;
  StreamId id_;
};

// A stream of its own, which lives as long as the process; 0 is the usual priority, -1 a higher
// one, as in CUDA. Throws Error on the CPU, which has one stream.
Stream make_stream(Device device = kCUDA, int priority = 0, SourceLoc loc = SourceLoc::current());

// On which this thread's ops on the device run.
Stream current_stream(Device device = kCUDA, SourceLoc loc = SourceLoc::current());

// Makes the stream current on its device, for this thread and as long as the guard lives. Nests.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream, SourceLoc loc = SourceLoc::current());
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

  Stream stream() const { return stream_; }

 private:
  Stream stream_, before_;
};

// A place in a stream: all that the stream was given before record(). Before the first record()
// an event has happened.
class Event {
 public:
  explicit Event(bool enable_timing = false) : timing_(enable_timing) {}
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  void record(Stream stream = current_stream(), SourceLoc loc = SourceLoc::current());
  // What the stream is given from now on waits for the event; the host does not.
  void block(Stream stream, SourceLoc loc = SourceLoc::current()) const;
  bool query(SourceLoc loc = SourceLoc::current()) const;
  void synchronize(SourceLoc loc = SourceLoc::current()) const;  // the host waits
  // Milliseconds from this event to a later one; both with timing, and happened.
  double elapsed_time(const Event& later, SourceLoc loc = SourceLoc::current()) const;

 private:
  void destroy() noexcept;

  void* handle_ = nullptr;  // the device's event; null on the CPU
  Device device_ = kCPU;
  bool timing_ = false;
  double time_ = 0;  // on the CPU: milliseconds
};

// What `waiter` is given from now on runs after what `done` has been given so far.
void wait_for(Stream waiter, Stream done, SourceLoc loc = SourceLoc::current());

// A place in the order of a stream that others wait for: an event, or a mark, which an allocator
// counts for each stream.
struct StreamPlace {
  const void* of = nullptr;
  std::uint64_t number = 0;  // of a mark; those of one stream rise
};

// Is told of every order that is made between streams, and between streams and the host, right
// after it was made, on all threads. "Reached" means that the host knows so.
class StreamObserver {
 public:
  virtual void recorded(const StreamPlace& place, const Stream& stream) = 0;
  virtual void blocked(const Stream& waiter, const StreamPlace& place) = 0;
  virtual void reached(const StreamPlace& place) = 0;
  virtual void reached(const Stream& stream) = 0;  // all that it was given
  virtual void reached(Device device) = 0;         // all that its streams were given
  virtual void forgotten(const StreamPlace& place) noexcept = 0;

 protected:
  ~StreamObserver() = default;
};

// Null unless somebody wants to know. One that was here is never destroyed: another thread may
// still be calling it.
extern std::atomic<StreamObserver*> stream_observer;

inline StreamObserver* observer() {
  return stream_observer.load(std::memory_order_acquire);
}

namespace cuda {

// Waits for all streams of the device.
void synchronize(int device = 0, SourceLoc loc = SourceLoc::current());

// Bytes of the device, all programs counted.
struct MemoryInfo {
  std::size_t free = 0, total = 0;
};

MemoryInfo memory_info(int device = 0, SourceLoc loc = SourceLoc::current());

// Makes a device current for CUDA calls of the user's own. Taper's ops run where their tensors
// lie, whatever device is current.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device, SourceLoc loc = SourceLoc::current());
  DeviceGuard(int device, std::nothrow_t) noexcept;  // is_set() tells whether it could
  ~DeviceGuard() noexcept(false);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

  bool is_set() const { return set_; }

 private:
  int before_ = 0;
  bool set_ = false, changed_ = false, throws_ = true;
  int exceptions_;
};

}  // namespace cuda

// Current streams of CUDA devices by index, on this thread; for Exec.
extern thread_local constinit StreamId current_cuda_streams[kMaxDevices]
    __attribute__((tls_model("initial-exec")));

}  // namespace taper
