// Capture: work that is written down instead of done, and what may not be called meanwhile.
#pragma once

#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "taper/cuda/emulated/runtime.h"

namespace taper::emulated {

// Note [Capture]
// What streams that take part in a capture are given is kept in the order of the calls, which is
// an order that keeps all their waits; a graph does it in that order, each time it is launched. A
// stream takes part from when it waits for an event of one that does. Clocks tell which work of
// each stream comes before a place in another, so that a stream that was never joined is found.
// Calls that a capture cannot hold return CUDA's error and break it, as CUDA does; what CUDA calls
// "potentially unsafe" (cudaMalloc, cudaEventQuery, ...) by the rules of its capture modes.
using Clock = std::map<const Stream*, uint64_t>;

struct Capture : std::enable_shared_from_this<Capture> {
  unsigned long long number = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;  // that began it
  std::shared_ptr<Stream> origin;
  std::map<std::shared_ptr<Stream>, Clock> streams;
  std::vector<Work> work;
  bool broken = false;
};

// The capture that the stream takes part in, or null.
std::shared_ptr<Capture> capture_of(const Stream& stream);

// Adds the stream's next piece of work.
cudaError_t capture_work(Capture& capture, const std::shared_ptr<Stream>& stream, Work work);

// For an event: a place in a stream that takes part, and what waits for it.
void capture_record(Capture& capture, const std::shared_ptr<Stream>& stream, Record* record);
cudaError_t capture_wait(const std::shared_ptr<Stream>& stream, const Record& record);

// What a call begins with that would break the stream's capture, or that of a stream of the device;
// that asks an event; that this thread may not make while it captures. Success: it may go on.
cudaError_t refuse_if_capturing(const Stream& stream);
cudaError_t refuse_if_capturing(int device);
cudaError_t refuse_if_captured(const Record& record);
cudaError_t refuse_unsafe_call();

}  // namespace taper::emulated
