// Captures, and the graphs that come of them.
#include "taper/cuda/emulated/graphs.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "taper/cuda/emulated/failing.h"

struct CUgraph_st {
  std::vector<taper::emulated::Work> work;
};

struct CUgraphExec_st {
  std::shared_ptr<const std::vector<taper::emulated::Work>> work;
};

namespace taper::emulated {
namespace {

std::mutex lock;  // for all captures
std::vector<std::shared_ptr<Capture>> ongoing;
std::atomic<int> count_ongoing{0};
unsigned long long begun = 0;
thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

bool none() {
  return count_ongoing.load(std::memory_order_relaxed) == 0;
}

std::shared_ptr<Capture> find(const Stream& stream) {
  for (const auto& capture : ongoing) {
    for (const auto& [member, clock] : capture->streams) {
      if (member.get() == &stream) return capture;
    }
  }
  return nullptr;
}

cudaError_t break_it(Capture& capture, cudaError_t why) {
  return std::exchange(capture.broken, true) ? cudaErrorStreamCaptureInvalidated : why;
}

bool is_ongoing(const Capture& capture) {
  return std::any_of(ongoing.begin(), ongoing.end(),
                     [&](const auto& one) { return one.get() == &capture; });
}

// Whether `capture` forbids this thread calls that CUDA holds to be unsafe.
bool forbids(const Capture& capture) {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return false;
  if (capture.thread == std::this_thread::get_id())
    return capture.mode != cudaStreamCaptureModeRelaxed;
  return thread_mode == cudaStreamCaptureModeGlobal && capture.mode == cudaStreamCaptureModeGlobal;
}

bool all_joined(const Capture& capture) {
  const Clock& seen = capture.streams.at(capture.origin);
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const auto& entry) {
    const Stream* stream = entry.first.get();
    const auto own = entry.second.find(stream);
    if (own == entry.second.end()) return true;
    const auto known = seen.find(stream);
    return known != seen.end() && known->second == own->second;
  });
}

cudaError_t end(const std::shared_ptr<Stream>& stream, cudaGraph_t* graph) {
  const std::lock_guard guard(lock);
  const std::shared_ptr<Capture> capture = find(*stream);
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != stream) return break_it(*capture, cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return break_it(*capture, cudaErrorStreamCaptureWrongThread);
  ongoing.erase(std::find(ongoing.begin(), ongoing.end(), capture));
  --count_ongoing;
  if (capture->broken) return cudaErrorStreamCaptureInvalidated;
  if (!all_joined(*capture)) return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st{std::move(capture->work)};
  return cudaSuccess;
}

}  // namespace

std::shared_ptr<Capture> capture_of(const Stream& stream) {
  if (none()) return nullptr;
  const std::lock_guard guard(lock);
  return find(stream);
}

cudaError_t capture_work(Capture& capture, const std::shared_ptr<Stream>& stream, Work work) {
  const std::lock_guard guard(lock);
  if (capture.broken) return cudaErrorStreamCaptureInvalidated;
  ++capture.streams[stream][stream.get()];
  capture.work.push_back(std::move(work));
  return cudaSuccess;
}

void capture_record(Capture& capture, const std::shared_ptr<Stream>& stream, Record* record) {
  const std::lock_guard guard(lock);
  record->capture = capture.shared_from_this();
  record->seen = capture.streams[stream];
}

cudaError_t capture_wait(const std::shared_ptr<Stream>& stream, const Record& record) {
  const std::lock_guard guard(lock);
  const std::shared_ptr<Capture> here = find(*stream);
  const std::shared_ptr<Capture> there = record.capture;
  if (!there) return break_it(*here, cudaErrorStreamCaptureIsolation);
  if (!is_ongoing(*there)) return cudaErrorCapturedEvent;
  if (here && here != there) {
    break_it(*here, cudaErrorStreamCaptureMerge);
    break_it(*there, cudaErrorStreamCaptureMerge);
    return cudaErrorStreamCaptureMerge;
  }
  if (there->broken) return cudaErrorStreamCaptureInvalidated;
  if (stream->is_default) return break_it(*there, cudaErrorStreamCaptureImplicit);
  Clock& clock = there->streams[stream];  // from now on it takes part
  for (const auto& [other, work] : record.seen) clock[other] = std::max(clock[other], work);
  return cudaSuccess;
}

cudaError_t refuse_if_capturing(const Stream& stream) {
  if (none()) return cudaSuccess;
  const std::lock_guard guard(lock);
  const std::shared_ptr<Capture> capture = find(stream);
  return capture ? break_it(*capture, cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

cudaError_t refuse_if_capturing(int device) {
  if (none()) return cudaSuccess;
  const std::lock_guard guard(lock);
  cudaError_t error = cudaSuccess;
  for (const auto& capture : ongoing) {
    if (std::any_of(capture->streams.begin(), capture->streams.end(),
                    [&](const auto& entry) { return entry.first->device == device; }))
      error = break_it(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return error;
}

cudaError_t refuse_if_captured(const Record& record) {
  if (!record.capture) return cudaSuccess;
  const std::lock_guard guard(lock);
  if (is_ongoing(*record.capture)) record.capture->broken = true;
  return cudaErrorCapturedEvent;
}

cudaError_t refuse_unsafe_call() {
  if (none()) return cudaSuccess;
  const std::lock_guard guard(lock);
  cudaError_t error = cudaSuccess;
  for (const auto& capture : ongoing) {
    if (forbids(*capture)) error = break_it(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return error;
}

}  // namespace taper::emulated

using namespace taper::emulated;

cudaError_t cudaStreamBeginCapture(cudaStream_t name, cudaStreamCaptureMode mode) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  const std::shared_ptr<Stream> stream = Runtime::get().stream(name);
  if (!stream) return tell(cudaErrorInvalidResourceHandle);
  if (stream->is_default) return tell(cudaErrorStreamCaptureUnsupported);
  const std::lock_guard guard(lock);
  if (find(*stream)) return tell(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->number = ++begun;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream;
  capture->streams[stream];
  ongoing.push_back(capture);
  ++count_ongoing;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t name, cudaGraph_t* graph) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  *graph = nullptr;
  const std::shared_ptr<Stream> stream = Runtime::get().stream(name);
  return tell(stream ? end(stream, graph) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t name,
                                     cudaStreamCaptureStatus* status,
                                     unsigned long long* number) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  const std::shared_ptr<Stream> stream = Runtime::get().stream(name);
  if (!stream) return tell(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Capture> capture = capture_of(*stream);
  *status = !capture          ? cudaStreamCaptureStatusNone
            : capture->broken ? cudaStreamCaptureStatusInvalidated
                              : cudaStreamCaptureStatusActive;
  if (number != nullptr && capture) *number = capture->number;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (graph == nullptr) return tell(cudaErrorInvalidValue);
  *exec = new CUgraphExec_st{std::make_shared<const std::vector<Work>>(graph->work)};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t name) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  const std::shared_ptr<Stream> stream = Runtime::get().stream(name);
  if (!stream) return tell(cudaErrorInvalidResourceHandle);
  return tell(submit(stream, [work = exec->work] {
    for (const Work& piece : *work) {
      if (const cudaError_t error = piece()) return error;
    }
    return cudaSuccess;
  }));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  delete exec;
  return cudaSuccess;
}
