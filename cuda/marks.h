// Marks in the order of a device's streams: events, kept until they have happened.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include <cuda_runtime.h>

#include "taper/allocator/memory_device.h"

namespace taper::cuda {

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
  };

  struct Order {
    StreamMark last = 0;
    std::deque<Pending> pending;  // in the stream's order
  };

  void forget_reached(Order& order);
  static cudaEvent_t first_from(const Order& order,
                                StreamMark mark);  // null: it has been reached

  const int device_;
  std::mutex mutex_;
  std::map<StreamId, Order> orders_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace taper::cuda
