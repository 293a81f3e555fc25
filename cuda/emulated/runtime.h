// What the emulated runtime remembers: devices, streams, events, ranges of memory.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include <cuda_runtime.h>

namespace taper::emulated {

using Work = std::function<cudaError_t()>;

struct Stream {
  int device = 0;
  bool is_default = false;
  bool waits_for_default = true;  // and the default stream for it
  std::mutex order;               // held while a piece of its work runs
  std::deque<Work> pending;       // late streams only; guarded by Runtime::late_lock
};

// One cudaEventRecord: what a wait waits for, even if the event is recorded again meanwhile.
struct Record {
  std::shared_ptr<Stream> stream;
  bool is_done = false;
  std::chrono::steady_clock::time_point time;
};

struct Event {
  int device = 0;
  bool has_timing = true;
  std::shared_ptr<Record> last;  // null until recorded
};

struct Device {
  std::shared_ptr<Stream> default_stream;
  std::shared_mutex default_order;  // its default stream excludes those that wait for it
  cudaError_t fault = cudaSuccess;  // sticky: every later call on the device returns it
  std::string fault_text;
};

class Runtime {
 public:
  static Runtime& get();

  const bool late;  // TAPER_EMULATED_STREAMS=late
  std::recursive_mutex late_lock;

  std::mutex lock;  // for all below, and for Event::last
  std::deque<Device> devices;
  std::map<cudaStream_t, std::shared_ptr<Stream>> streams;
  std::map<cudaEvent_t, std::shared_ptr<Event>> events;
  std::map<const void*, int> max_dynamic_shared;
  uintptr_t next_name = 4096;  // a stream's or event's, never given twice

  std::shared_ptr<Stream> stream(cudaStream_t name);  // null if there is none
  std::shared_ptr<Event> event(cudaEvent_t name);

 private:
  Runtime();
};

int& current_device();  // the calling thread's

// Keeps the error for cudaGetLastError and gives it back.
cudaError_t tell(cudaError_t error);
// The fault that the current device, or this one, has met; cudaErrorNoDevice without devices.
cudaError_t fault_of(int device);
void set_fault(int device, cudaError_t fault, const std::string& text);

// Puts work on the stream: done before this returns, or, on a late stream, when somebody waits.
cudaError_t submit(const std::shared_ptr<Stream>& stream, Work work);
// Does the stream's pending work. Nothing is pending except on late streams.
void drain(Stream& stream);
bool advance(Stream& stream);  // does one piece; false if there was none
void drain_device(int device);

// Memory (memory.cpp)
void release_memory(int device);  // all of it
size_t cuda_malloc_used(int device);

// Virtual memory (vmm.cpp)
size_t vmm_used(int device);
enum class VmmPlace { kElsewhere, kUnmapped, kMapped };
VmmPlace vmm_place(const void* pointer, size_t bytes, int* device);  // device may be null

// Bytes that a simulated device has, from TAPER_EMULATED_MEMORY.
size_t device_memory();
long environment_number(const char* name, long fallback);

}  // namespace taper::emulated
