// Marks in the order of a device's streams: events, kept until they have happened.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include <cuda_runtime.h>

#include "taper/allocator/memory_device.h"

namespace taper::cuda {

// Note [Marks and captures]
// What a graph captures does not run, so a mark in a captured stream says nothing of what has been
// done. It is an edge for those that wait in the same capture; others have nothing to wait for, and
// after the capture it counts as reached. Where captured work waits for a mark of before, the host
// does: the graph runs later than that.

// Thread-safe. A stream's marks count up from 1; a mark without an event has been reached.
class Marks {
 public:
  explicit Marks(int device) : device_(device) {}

  StreamMark add(StreamId stream);
  void wait(StreamId stream, StreamId other, StreamMark mark);
  bool reached(StreamId stream, StreamMark mark);
  void synchronize(StreamId stream, StreamMark mark);

 private:
  struct Pending {
    StreamMark mark;
    cudaEvent_t event;
    std::uint64_t capture;  // in which it was recorded, and so never happens; 0: none
  };

  struct Order {
    StreamMark last = 0;
    std::deque<Pending> pending;  // in the stream's order
  };

  void forget_reached(Order& order, cudaStream_t stream);
  // Null: it has been reached.
  static const Pending* first_from(const Order& order, StreamMark mark);

  const int device_;
  std::mutex mutex_;
  std::map<StreamId, Order> orders_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace taper::cuda
