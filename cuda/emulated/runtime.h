// What the emulated runtime remembers: devices, streams, events, ranges of memory.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "taper/cuda/emulated/settings.h"

namespace taper::emulated {

using Work = std::function<cudaError_t()>;

struct Pending {
  uint64_t number;  // counts what the process has given to all streams
  Work work;
};

struct Stream {
  int device = 0;
  bool is_default = false;
  bool waits_for_default = true;  // and the default stream for it
  std::mutex order;               // held while a piece of its work runs
  std::deque<Pending> pending;    // guarded by Runtime::queue_lock; empty where work runs at once
};

struct Capture;  // graphs.h

// One cudaEventRecord: what a wait waits for, even if the event is recorded again meanwhile.
struct Record {
  std::shared_ptr<Stream> stream;
  bool is_done = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Capture> capture;  // where the stream took part in one; then it is never done
  std::map<const Stream*, uint64_t> seen;
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

  std::recursive_mutex queue_lock;  // for Stream::pending and the two below
  uint64_t given = 0;
  std::mt19937_64 seeded;

  // See Note [When streams work].
  bool queues() const { return settings().streams != StreamOrder::kAtOnce; }

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
// The fault that the device has met; without devices, why there are none.
cudaError_t fault_of(int device);
void set_fault(int device, cudaError_t fault, const std::string& text);

// Note [When streams work]
// As things are, a call does its work before it returns. That hides a wait that the program lacks,
// so TAPER_EMULATED_STREAMS picks another order, one that a device could have picked as well:
//   late      work is done when somebody waits for it, and no earlier;
//   seeded:n  after each call that gives work, and before each wait, some pieces of work of some
//             streams are done, drawn by the seed: early for one program, late for another, and the
//             same each time while one host thread gives the work.
// Either way pieces of one stream run in order, an event's waiters after it, and the default stream
// in order with the streams that wait for it. Work runs on the host's thread, one piece at a time.
cudaError_t submit(const std::shared_ptr<Stream>& stream, Work work);
void stir();  // does what the seed draws
// Does the stream's pending work, and what that waits for.
void drain(Stream& stream);
bool advance(Stream& stream);  // does one piece; false if there was none
void drain_device(int device);

// Memory (memory.cpp)
void release_memory(int device);  // all of it
size_t cuda_malloc_used(int device);

// Whether an address is a device's: in something allocated, or where that could be.
enum class MemoryKind { kHost, kLive, kDead };
MemoryKind kind_of_memory(const void* pointer, int* device);

// Virtual memory (vmm.cpp)
size_t vmm_used(int device);
enum class VmmPlace { kElsewhere, kUnmapped, kMapped };
VmmPlace vmm_place(const void* pointer, size_t bytes, int* device);  // device may be null
// False for mapped memory that the device was not given access to, be it its own.
bool vmm_reaches(int device, const void* pointer, size_t bytes);

}  // namespace taper::emulated
