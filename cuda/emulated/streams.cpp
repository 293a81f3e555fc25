// Streams, events and launches of the emulated runtime: what runs after what.
#include <algorithm>
#include <mutex>
#include <utility>

#include "taper/cuda/emulated/access.h"
#include "taper/cuda/emulated/failing.h"
#include "taper/cuda/emulated/graphs.h"
#include "taper/cuda/emulated/machine.h"
#include "taper/cuda/emulated/runtime.h"

namespace taper::emulated {
namespace {

bool is_done(const Record& record) {
  std::lock_guard guard(Runtime::get().lock);
  return record.is_done;
}

void complete(Record& record) {
  std::lock_guard guard(Runtime::get().lock);
  record.is_done = true;
  record.time = std::chrono::steady_clock::now();
}

// Every earlier record of `record`'s stream is done too, so this touches each stream once at most.
void reach(const Record& record) {
  while (!is_done(record) && advance(*record.stream)) {
  }
}

void note(int device, cudaError_t status) {
  if (status != cudaSuccess) set_fault(device, status, Machine::mine().fault());
}

cudaError_t run_now(Stream& stream, const Work& work) {
  Device& device = Runtime::get().devices[static_cast<size_t>(stream.device)];
  std::unique_lock<std::shared_mutex> alone;
  std::shared_lock<std::shared_mutex> beside;
  if (stream.is_default) {
    alone = std::unique_lock(device.default_order);
  } else if (stream.waits_for_default) {
    beside = std::shared_lock(device.default_order);
  }
  std::lock_guard order(stream.order);
  const cudaError_t status = work();
  note(stream.device, status);
  return status;
}

std::vector<std::shared_ptr<Stream>> streams_of(int device) {
  Runtime& runtime = Runtime::get();
  std::lock_guard guard(runtime.lock);
  std::vector<std::shared_ptr<Stream>> found;
  found.push_back(runtime.devices[static_cast<size_t>(device)].default_stream);
  for (const auto& [name, stream] : runtime.streams) {
    if (stream->device == device) found.push_back(stream);
  }
  return found;
}

// Work of one waits for work that the other was given before.
bool keep_order(const Stream& a, const Stream& b) {
  return (a.is_default && b.waits_for_default) || (b.is_default && a.waits_for_default);
}

// What every call on an existing stream begins with.
cudaError_t look_up(cudaStream_t name, std::shared_ptr<Stream>* stream) {
  if (const cudaError_t fault = fault_of(current_device())) return fault;
  *stream = Runtime::get().stream(name);
  if (!*stream) return cudaErrorInvalidResourceHandle;
  return fault_of((*stream)->device);
}

cudaError_t look_up(cudaEvent_t name, std::shared_ptr<Event>* event) {
  if (const cudaError_t fault = fault_of(current_device())) return fault;
  *event = Runtime::get().event(name);
  return *event ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

std::shared_ptr<Record> last_record(const Event& event) {
  std::lock_guard guard(Runtime::get().lock);
  return event.last;
}

void set_last(Event& event, const std::shared_ptr<Record>& record) {
  std::lock_guard guard(Runtime::get().lock);
  event.last = record;
}

bool fits(dim3 grid, dim3 block) {
  const bool some =
      grid.x > 0 && grid.y > 0 && grid.z > 0 && block.x > 0 && block.y > 0 && block.z > 0;
  return some && grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535 &&
         block.x <= kMaxThreads && block.y <= kMaxThreads && block.z <= 64 &&
         uint64_t{block.x} * block.y * block.z <= kMaxThreads;
}

}  // namespace

cudaError_t submit(const std::shared_ptr<Stream>& stream, Work work) {
  Runtime& runtime = Runtime::get();
  if (const auto capture = capture_of(*stream))
    return capture_work(*capture, stream, std::move(work));
  if (!runtime.queues()) return run_now(*stream, work);
  std::lock_guard guard(runtime.queue_lock);
  stream->pending.push_back({++runtime.given, std::move(work)});
  stir();
  return cudaSuccess;
}

// Not from inside a piece of work, which its stream's next piece must not overtake.
void stir() {
  Runtime& runtime = Runtime::get();
  if (settings().streams != StreamOrder::kSeeded) return;
  std::lock_guard guard(runtime.queue_lock);
  while (runtime.seeded() % 2 != 0) {
    std::vector<std::shared_ptr<Stream>> waiting;
    for (size_t device = 0; device < runtime.devices.size(); ++device) {
      for (const auto& stream : streams_of(static_cast<int>(device))) {
        if (!stream->pending.empty()) waiting.push_back(stream);
      }
    }
    if (waiting.empty()) return;
    advance(*waiting[runtime.seeded() % waiting.size()]);
  }
}

bool advance(Stream& stream) {
  std::lock_guard guard(Runtime::get().queue_lock);
  if (stream.pending.empty()) return false;
  for (const auto& other : streams_of(stream.device)) {
    if (!keep_order(stream, *other)) continue;
    const uint64_t number = stream.pending.front().number;
    while (!other->pending.empty() && other->pending.front().number < number) advance(*other);
  }
  const Work work = std::move(stream.pending.front().work);
  stream.pending.pop_front();
  if (fault_of(stream.device) == cudaSuccess) note(stream.device, work());
  return true;
}

void drain(Stream& stream) {
  while (advance(stream)) {
  }
}

void drain_device(int device) {
  if (!Runtime::get().queues()) return;
  stir();
  for (const auto& stream : streams_of(device)) drain(*stream);
}

cudaError_t put_on_stream(dim3 grid,
                          dim3 block,
                          size_t shared_bytes,
                          cudaStream_t stream_name,
                          const void* kernel,
                          std::unique_ptr<const KernelLaunch> call) {
  if (const cudaError_t error = injected("cudaLaunchKernel")) return tell(error);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = look_up(stream_name, &stream)) return tell(error);
  if (stream->device != current_device()) return tell(cudaErrorInvalidResourceHandle);
  if (!fits(grid, block)) return tell(cudaErrorInvalidConfiguration);
  if (Machine::mine().is_running()) return tell(cudaErrorNotSupported);  // from inside a kernel
  if (shared_bytes > 48 << 10) {
    Runtime& runtime = Runtime::get();
    std::lock_guard guard(runtime.lock);
    const auto found = runtime.max_dynamic_shared.find(kernel);
    const int most = found == runtime.max_dynamic_shared.end() ? 48 << 10 : found->second;
    if (shared_bytes > static_cast<size_t>(most)) return tell(cudaErrorInvalidValue);
  }
  return tell(submit(
      stream, [=, call = std::shared_ptr<const KernelLaunch>(std::move(call))]() -> cudaError_t {
        const DeviceAccess access;
        return Machine::mine().run(grid, block, shared_bytes, *call);
      }));
}

cudaError_t set_max_dynamic_shared(const void* kernel, int bytes) {
  if (const cudaError_t error = injected("cudaFuncSetAttribute")) return tell(error);
  if (bytes < 0 || static_cast<size_t>(bytes) > kMaxShared) return tell(cudaErrorInvalidValue);
  Runtime& runtime = Runtime::get();
  std::lock_guard guard(runtime.lock);
  runtime.max_dynamic_shared[kernel] = bytes;
  return cudaSuccess;
}

}  // namespace taper::emulated

using namespace taper::emulated;

namespace {

cudaError_t create(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  if (stream == nullptr || flags > cudaStreamNonBlocking) return tell(cudaErrorInvalidValue);
  auto made = std::make_shared<Stream>();
  made->device = current_device();
  made->waits_for_default = flags == cudaStreamDefault;
  Runtime& runtime = Runtime::get();
  std::lock_guard guard(runtime.lock);
  *stream = reinterpret_cast<cudaStream_t>(runtime.next_name += 16);
  runtime.streams[*stream] = made;
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  return create(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  return create(stream, flags);
}

// Priorities make no difference here.
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  return create(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t name) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = look_up(name, &stream)) return tell(error);
  if (stream->is_default) return tell(cudaErrorInvalidResourceHandle);
  drain(*stream);
  Runtime& runtime = Runtime::get();
  std::lock_guard guard(runtime.lock);
  runtime.streams.erase(name);
  return cudaSuccess;
}

// Asking moves the work on, or a program that polls would never see the end.
cudaError_t cudaStreamQuery(cudaStream_t name) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = look_up(name, &stream)) return tell(error);
  if (const cudaError_t error = refuse_if_capturing(*stream)) return tell(error);
  stir();
  return advance(*stream) ? cudaErrorNotReady : fault_of(stream->device);
}

cudaError_t cudaStreamSynchronize(cudaStream_t name) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = look_up(name, &stream)) return tell(error);
  if (const cudaError_t error = refuse_if_capturing(*stream)) return tell(error);
  stir();
  drain(*stream);
  return tell(fault_of(stream->device));
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  if (const cudaError_t error = refuse_if_capturing(current_device())) return tell(error);
  drain_device(current_device());
  return tell(fault_of(current_device()));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_name, cudaEvent_t event_name, unsigned flags) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Event> event;
  if (const cudaError_t error = look_up(stream_name, &stream)) return tell(error);
  if (const cudaError_t error = look_up(event_name, &event)) return tell(error);
  if (flags != 0) return tell(cudaErrorInvalidValue);
  const std::shared_ptr<Record> record = last_record(*event);
  if (record == nullptr) return cudaSuccess;  // never recorded: nothing to wait for
  if (record->capture || capture_of(*stream)) return tell(capture_wait(stream, *record));
  return tell(submit(stream, [record] {
    reach(*record);
    return cudaSuccess;
  }));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t name, cudaHostFn_t function, void* argument) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = look_up(name, &stream)) return tell(error);
  if (function == nullptr) return tell(cudaErrorInvalidValue);
  return tell(submit(stream, [=] {
    function(argument);
    return cudaSuccess;
  }));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  if (const cudaError_t fault = fault_of(current_device())) return tell(fault);
  if (event == nullptr || flags > 3) return tell(cudaErrorInvalidValue);
  auto made = std::make_shared<Event>();
  made->device = current_device();
  made->has_timing = (flags & cudaEventDisableTiming) == 0;
  Runtime& runtime = Runtime::get();
  std::lock_guard guard(runtime.lock);
  *event = reinterpret_cast<cudaEvent_t>(runtime.next_name += 16);
  runtime.events[*event] = made;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t name) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Event> event;
  if (const cudaError_t error = look_up(name, &event)) return tell(error);
  Runtime& runtime = Runtime::get();
  std::lock_guard guard(runtime.lock);
  runtime.events.erase(name);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event_name, cudaStream_t stream_name) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Event> event;
  if (const cudaError_t error = look_up(event_name, &event)) return tell(error);
  if (const cudaError_t error = look_up(stream_name, &stream)) return tell(error);
  if (event->device != stream->device) return tell(cudaErrorInvalidResourceHandle);
  auto record = std::make_shared<Record>();
  record->stream = stream;
  if (const auto capture = capture_of(*stream)) {
    capture_record(*capture, stream, record.get());
    set_last(*event, record);
    return cudaSuccess;
  }
  Runtime& runtime = Runtime::get();
  std::unique_lock<std::recursive_mutex> queueing;
  if (runtime.queues()) {
    queueing = std::unique_lock(runtime.queue_lock);
    set_last(*event, record);
  }
  return tell(submit(stream, [event, record, queued = runtime.queues()] {
    complete(*record);
    if (!queued) set_last(*event, record);  // so that nobody ever sees one that is not done
    return cudaSuccess;
  }));
}

cudaError_t cudaEventQuery(cudaEvent_t name) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Event> event;
  if (const cudaError_t error = look_up(name, &event)) return tell(error);
  const std::shared_ptr<Record> record = last_record(*event);
  if (record != nullptr) {
    if (const cudaError_t error = refuse_if_captured(*record)) return tell(error);
  }
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  if (record == nullptr || is_done(*record)) return fault_of(event->device);
  advance(*record->stream);
  stir();
  return cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t name) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Event> event;
  if (const cudaError_t error = look_up(name, &event)) return tell(error);
  const std::shared_ptr<Record> record = last_record(*event);
  if (record != nullptr) {
    if (const cudaError_t error = refuse_if_captured(*record)) return tell(error);
  }
  if (const cudaError_t error = refuse_unsafe_call()) return tell(error);
  stir();
  if (record != nullptr) reach(*record);
  return tell(fault_of(event->device));
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (const cudaError_t error = injected(__func__)) return tell(error);
  std::shared_ptr<Event> first, second;
  if (const cudaError_t error = look_up(start, &first)) return tell(error);
  if (const cudaError_t error = look_up(stop, &second)) return tell(error);
  if (milliseconds == nullptr) return tell(cudaErrorInvalidValue);
  const auto begin = last_record(*first), end = last_record(*second);
  const bool timed = first->has_timing && second->has_timing && first->device == second->device;
  if (!timed || !begin || !end) return tell(cudaErrorInvalidResourceHandle);
  if (!is_done(*begin) || !is_done(*end)) return tell(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return cudaSuccess;
}
