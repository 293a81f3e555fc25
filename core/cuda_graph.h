// CUDA graphs: a stretch of work, captured once and given to the device again by one call.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "taper/allocator/block.h"
#include "taper/core/base/device.h"
#include "taper/core/base/source_loc.h"
#include "taper/core/storage.h"

namespace taper::cuda {

// Between capture_begin and capture_end what this thread gives to the current stream of the device
// is written down, and not run; so is what it gives to streams that wait for that one. replay()
// runs it all, in the time of one launch:
//
//   const StreamGuard on(make_stream());
//   step();  // a few times first: optimizers and cuBLAS make what they need
//   cuda::CUDAGraph graph;
//   graph.capture_begin();
//   step();
//   graph.capture_end();
//   for (...) { x.copy_(batch); graph.replay(); }
//
// A replay reads and writes the memory of the capture. What was allocated between begin and end
// lies in a pool of the graph's own, which nobody else is given before reset(); what was there
// before must live as long as the graph. Numbers are those of the capture, such as lr; but random
// ops draw on and Adam counts on, as the step itself would. The host cannot look at a result while
// it is being captured: item(), cpu(), nonzero() and the like throw Error, and the range of indices
// and labels is not checked.
//
// Not thread-safe. Replays of one graph must not overlap, whatever streams they are on.
class CUDAGraph {
 public:
  CUDAGraph();
  ~CUDAGraph();  // as reset()
  CUDAGraph(const CUDAGraph&) = delete;
  CUDAGraph& operator=(const CUDAGraph&) = delete;

  // Waits for the device first. Throws Error on the default stream, which CUDA does not capture.
  void capture_begin(Device device = kCUDA, SourceLoc loc = SourceLoc::current());
  // Throws Error if something that was called meanwhile has broken the capture, or if a stream that
  // took part was not joined; the graph is then as new.
  void capture_end(SourceLoc loc = SourceLoc::current());
  // On the current stream of the graph's device.
  void replay(SourceLoc loc = SourceLoc::current());
  // Waits for replays, forgets the graph and gives its pool back.
  void reset(SourceLoc loc = SourceLoc::current());

  PoolId pool() const;  // in allocator_for(device); 0: none

  struct State;  // cuda/graph.cpp

 private:
  State* state_;
};

}  // namespace taper::cuda

namespace taper {

// Whether what this thread's ops do on the device is being captured: the host then must not ask for
// results.
bool is_current_stream_capturing(Device device = kCUDA);

// A number of the host that each step moves on: a generator's offset, an optimizer's count. What is
// captured has not run, so a capture leaves it where it was; each replay moves it as far as the
// capture did.
using ReplayCount = std::atomic<std::uint64_t>;

// Where kernels that are captured find how far a count has moved since the capture.
struct MovedCount {
  const std::uint64_t* at = nullptr;
  Ref<Storage> memory;  // in which that lies
};

// Of the capture that this thread makes on the device; null when it makes none. To be called before
// the count is moved.
MovedCount moved_since_capture(Device device, const std::shared_ptr<ReplayCount>& count);

}  // namespace taper
