// What happened to memory, event by event: the form in which it is recorded, replayed and
// exchanged.
#pragma once
#include <string>
#include <vector>

#include "taper/allocator/block.h"

namespace taper {

enum class TraceAction : std::uint8_t {
  // A replay does these.
  kAlloc,         // `bytes` were asked for
  kFree,          // of block `block`
  kRecordStream,  // block `block` is used on `stream`
  kWork,          // `stream` is given work that takes `bytes` nanoseconds on the device
  kWait,          // `stream` waits for all that stream number `block` has been given
  kSynchronize,   // the host waits for all streams
  kEmptyCache,
  kStep,  // a training step ends here
  // These are told only: the policy decides them anew.
  kMap,    // `bytes` at offset `block` were mapped
  kUnmap,  // and unmapped
  kOom,    // `bytes` could not be had
};

// 32 bytes. `block` numbers the allocations of a trace from 0; in a ring it is the offset from the
// device's base in units of 512 bytes.
struct TraceEvent {
  // Nanoseconds from the trace's beginning; in a ring, ticks. Eight allocations and frees in a row
  // of a ring share a reading of the clock: events of several rings are ordered no finer.
  std::uint64_t time = 0;
  std::uint64_t bytes = 0;  // as asked for, not rounded
  std::uint32_t block = 0;
  std::uint32_t site = 0;    // index into sites; 0: not known
  std::uint32_t entry = 0;   // low half of the tape entry's index; 0: none
  std::uint16_t stream = 0;  // index into streams
  TraceAction action = TraceAction::kAlloc;
  std::uint8_t pool = 0;  // of an allocation; 0: the common one

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};
static_assert(sizeof(TraceEvent) == 32);

struct TraceFrame {
  std::string file, function;
  std::uint32_t line = 0;

  friend bool operator==(const TraceFrame&, const TraceFrame&) = default;
};

// Who asked: the op, the module's scope, and the frames of the call, innermost first.
struct TraceSite {
  std::string op, scope;
  std::vector<TraceFrame> frames;

  friend bool operator==(const TraceSite&, const TraceSite&) = default;
};

// The events of one device. Every kFree and kRecordStream names an earlier kAlloc that is out.
struct Trace {
  std::string device;  // "cuda:0"
  std::string source;  // which program or file it comes from
  std::vector<TraceEvent> events;
  std::vector<TraceSite> sites{1};        // [0] is "not known"
  std::vector<std::uint64_t> streams{0};  // what each stream is called where it comes from
  std::uint32_t allocations = 0;          // how many kAlloc there are
  // Where each block lay in the run that was recorded, from the device's base, in bytes; by block
  // number. Empty if that is not known. A replay does not look at it.
  std::vector<std::uint64_t> offsets;

  friend bool operator==(const Trace&, const Trace&) = default;
};

// Appends to a trace; numbers the blocks. For generators and readers.
class TraceBuilder {
 public:
  explicit TraceBuilder(std::string source) { trace.source = std::move(source); }

  // Returns the block's number.
  std::uint32_t alloc(std::uint64_t bytes, std::uint16_t stream = 0, std::uint32_t site = 0);
  void free(std::uint32_t block);
  void record_stream(std::uint32_t block, std::uint16_t stream);
  void work(std::uint16_t stream, std::uint64_t nanoseconds);
  void wait(std::uint16_t stream, std::uint16_t for_stream);
  void synchronize();
  void empty_cache();
  void step();

  Trace trace;
  std::uint64_t now = 0;  // the host's clock, the time of what is appended
};

// What a check of a trace found: nothing, or "event 17 frees block 3, which is not out".
std::string first_fault(const Trace& trace);

}  // namespace taper
