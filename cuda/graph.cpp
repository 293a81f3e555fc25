// Captures work into graphs, and keeps their memory.
#include "taper/cuda/graph.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "taper/allocator/allocator.h"
#include "taper/core/base/error.h"
#include "taper/core/storage.h"
#include "taper/cuda/check.h"
#include "taper/cuda/runtime.h"
#include "taper/cuda/trail.h"

// Note [What a capture allows]
// A captured op must not need the host: its kernels run at each replay, and the host does not look.
// - The host waits for a captured stream: an Error that names the op (check_host_may_wait), before
//   CUDA is asked, so that the capture lives on.
// - Bounds of indices are not checked: the check's answer would come at the replay, to nobody.
// - Memory comes from a pool of the graph's; a stream that joins gets it too (note_wait).
// - Marks of the allocator are events; one that was recorded in a captured stream is good for waits
//   in the same capture alone, see Marks.
// - Counts of the host go on from replay to replay: a kernel is given the count at the capture, and
//   reads how far it has moved since from words that each replay writes first.
// - Memory that free blocks of a captured stream lie on may move to other streams at once: the
//   device was waited for when the capture began, and nothing has run on the stream since.
namespace taper::cuda {

struct CUDAGraph::State {
  Device device = kCUDA;
  PoolId pool = 0;
  std::vector<StreamId> streams;  // that take part in the capture, its first one first
  std::atomic<bool> captures{false};
  std::atomic<bool> abandoned{false};  // by a graph that another thread has destroyed meanwhile
  cudaGraphExec_t exec = nullptr;
  Event replayed;  // the latest replay

  // A count that captured work goes on from: where it stood, and how far the capture moved it.
  struct Followed {
    std::shared_ptr<ReplayCount> count;
    std::uint64_t start, stride;
  };

  static constexpr std::size_t kWords = 256;  // of one storage
  std::vector<Followed> followed;
  std::vector<Ref<Storage>> words;  // kWords counts in each, in the order of `followed`

  Allocator& memory() const { return allocator_for(device); }

  void join(StreamId stream) {
    if (std::find(streams.begin(), streams.end(), stream) != streams.end()) return;
    streams.push_back(stream);
    memory().begin_pool(pool, stream);
  }

  // Nobody allocates from the pool any more.
  void leave() {
    for (const StreamId stream : streams) memory().end_pool(stream);
    streams.clear();
  }

  MovedCount follow(const std::shared_ptr<ReplayCount>& count) {
    std::size_t i = 0;
    while (i < followed.size() && followed[i].count != count) ++i;
    if (i == followed.size()) {
      if (i % kWords == 0)
        words.push_back(Storage::allocate(kWords * sizeof(std::uint64_t), device));
      followed.push_back({count, count->load(), 0});
    }
    const Ref<Storage>& memory = words[i / kWords];
    return {static_cast<const std::uint64_t*>(memory->data()) + i % kWords, memory};
  }

  // What was captured has not run: the counts stand where they stood.
  void rewind() {
    for (Followed& f : followed) {
      f.stride = f.count->load() - f.start;
      f.count->fetch_sub(f.stride);
    }
  }

  // Gives the next replay, on `stream`, how far each count has moved, and moves it on.
  void advance(cudaStream_t stream) {
    for (std::size_t first = 0; first < followed.size(); first += kWords) {
      std::uint64_t moved[kWords];
      const std::size_t n = std::min(kWords, followed.size() - first);
      for (std::size_t i = 0; i < n; ++i) {
        const Followed& f = followed[first + i];
        moved[i] = f.count->fetch_add(f.stride) - f.start;
      }
      // The host's memory is copied before the call returns.
      TAPER_CUDA_CHECK(cudaMemcpyAsync(words[first / kWords]->data(), moved,
                                       n * sizeof(std::uint64_t), cudaMemcpyHostToDevice, stream));
    }
  }

  void release_pool() {
    followed.clear();
    words.clear();
    if (pool != 0) memory().release_pool(std::exchange(pool, PoolId{0}));
  }
};

namespace {

thread_local CUDAGraph::State* capturing = nullptr;  // this thread's; see current_capture()

// Ends the capture whether or not it went well; `graph` is null if not.
cudaError_t end_capture(CUDAGraph::State& state, cudaGraph_t* graph) {
  const DeviceGuard guard(state.device.index(), std::nothrow);
  const cudaStream_t stream = stream_of(state.device, state.streams.front());
  const cudaError_t status = cudaStreamEndCapture(stream, graph);
  for (const StreamId joined : state.streams) {  // what was written down has not run
    note_success(state.device.index(), launches_noted(state.device.index()),
                 stream_of(state.device, joined));
  }
  state.rewind();
  state.leave();
  state.captures = false;
  capturing = nullptr;
  return status;
}

// Ends it for nothing.
void drop_capture(CUDAGraph::State& state) {
  cudaGraph_t graph = nullptr;
  static_cast<void>(end_capture(state, &graph));
  static_cast<void>(cudaGetLastError());
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
}

// What this thread captures; null: nothing.
CUDAGraph::State* current_capture() {
  if (capturing != nullptr && capturing->abandoned) {
    const std::unique_ptr<CUDAGraph::State> left(capturing);
    drop_capture(*left);
    left->release_pool();
  }
  return capturing;
}

}  // namespace

CUDAGraph::CUDAGraph() : state_(new State) {}

CUDAGraph::~CUDAGraph() {
  if (state_->captures && capturing != state_) {
    state_->abandoned = true;  // another thread captures it, and lets go when it notices
    return;
  }
  try {
    reset();
  } catch (const std::exception&) {
    // The device is broken, and each call on it says so.
  }
  delete state_;
}

void CUDAGraph::capture_begin(Device device, SourceLoc loc) {
  const Call call(loc);
  State& s = *state_;
  TAPER_CHECK(s.pool == 0, "this graph has been captured; reset() it first, or make another");
  TAPER_CHECK(current_capture() == nullptr, "this thread captures another graph");
  const Stream stream = current_stream(device);
  TAPER_CHECK(stream.id() != 0,
              "the default stream cannot be captured; make another one current first: const "
              "StreamGuard on(make_stream())");
  synchronize(device.index(), loc);
  s.device = device;
  s.pool = s.memory().make_pool(true);
  s.join(stream.id());
  const DeviceGuard guard(device.index(), std::nothrow);
  const cudaError_t status =
      cudaStreamBeginCapture(stream_of(device, stream.id()), cudaStreamCaptureModeThreadLocal);
  if (status == cudaSuccess) {
    s.captures = true;
    capturing = &s;
    return;
  }
  s.leave();
  s.release_pool();
  throw_cuda_error(status, "cudaStreamBeginCapture");
}

void CUDAGraph::capture_end(SourceLoc loc) {
  const Call call(loc);
  State& s = *state_;
  TAPER_CHECK(s.captures && capturing == &s, "this thread has not begun to capture this graph");
  cudaGraph_t graph = nullptr;
  cudaError_t status = end_capture(s, &graph);
  const char* name = "cudaStreamEndCapture";
  if (status == cudaSuccess) {
    const DeviceGuard guard(s.device.index());
    status = cudaGraphInstantiate(&s.exec, graph, 0);
    name = "cudaGraphInstantiate";
  }
  if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  if (status == cudaSuccess) return;
  s.exec = nullptr;
  s.release_pool();
  throw_cuda_error(status, name);
}

void CUDAGraph::replay(SourceLoc loc) {
  const Call call(loc);
  State& s = *state_;
  TAPER_CHECK(s.exec != nullptr, "there is nothing to replay; capture something first");
  const Stream stream = current_stream(s.device);
  const DeviceGuard guard(s.device.index());
  const cudaStream_t there = stream_of(s.device, stream.id());
  s.advance(there);
  note_launch(s.device.index(), there);
  TAPER_CUDA_CHECK(cudaGraphLaunch(s.exec, there));
  s.replayed.record(stream, loc);
}

void CUDAGraph::reset(SourceLoc loc) {
  const Call call(loc);
  State& s = *state_;
  TAPER_CHECK(!s.captures || capturing == &s,
              "another thread captures this graph; call capture_end() there first");
  if (s.captures) drop_capture(s);
  if (s.exec != nullptr) {
    s.replayed.synchronize(loc);
    TAPER_CUDA_CHECK(cudaGraphExecDestroy(std::exchange(s.exec, nullptr)));
  }
  s.release_pool();
}

PoolId CUDAGraph::pool() const {
  return state_->pool;
}

std::uint64_t capture_of(cudaStream_t stream) {
  if (stream == nullptr) return 0;  // the default one never is captured
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  TAPER_CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, &number));
  return status == cudaStreamCaptureStatusNone ? 0 : number;
}

void check_host_may_wait(Device device, cudaStream_t stream) {
  TAPER_CHECK(capture_of(stream) == 0, "this needs a result on the host, and stream ",
              number_of(device.index(), stream), " of ", device,
              " is being captured: nothing runs before replay(). Do this before capture_begin or "
              "after capture_end, or keep the result on the device");
}

void check_host_may_wait(int device) {
  const CUDAGraph::State* capture = current_capture();
  TAPER_CHECK(capture == nullptr || capture->device.index() != device,
              "the host cannot wait for cuda:", device,
              " while this thread captures a graph there; do this before capture_begin or after "
              "capture_end");
}

void note_wait(const Stream& stream) {
  CUDAGraph::State* capture = current_capture();
  if (capture == nullptr || capture_of(stream_of(stream.device(), stream.id())) == 0) return;
  TAPER_CHECK(stream.device() == capture->device,
              "a graph holds the work of one device: ", stream.device(),
              " cannot wait for a stream of ", capture->device, " that is being captured");
  capture->join(stream.id());
}

UncapturedCalls::UncapturedCalls() noexcept
    : set_(cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess) {}

UncapturedCalls::~UncapturedCalls() {
  if (set_) static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
}

}  // namespace taper::cuda

namespace taper {

bool is_current_stream_capturing(Device device) {
  if (!device.is_cuda()) return false;
  return cuda::capture_of(cuda::stream_of(device, current_stream(device).id())) != 0;
}

MovedCount moved_since_capture(Device device, const std::shared_ptr<ReplayCount>& count) {
  cuda::CUDAGraph::State* capture = cuda::current_capture();
  if (capture == nullptr || capture->device != device) return {};
  return is_current_stream_capturing(device) ? capture->follow(count) : MovedCount{};
}

}  // namespace taper
