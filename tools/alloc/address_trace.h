// Makes a trace of events that name blocks by address.
#pragma once
#include <map>
#include <vector>

#include "taper/tools/alloc/trace_input.h"

namespace taper::tools {

// Address -> 32 bits. The hash is seeded, so that a file cannot make it slow.
class AddressMap {
 public:
  AddressMap();

  // The value of the address; `fresh`, and 0, where it was not there. Valid until the next call.
  std::uint32_t& at(std::uint64_t address, bool& fresh);

 private:
  struct Slot {
    std::uint64_t address = 0;
    std::uint32_t value = 0;
    bool used = false;
  };

  std::size_t slot_of(std::uint64_t address) const;

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::uint64_t seed_;
};

// Events come in their order. Problems are refused at the place where the input stands. A block
// that is freed and was never allocated was out before the first event.
class AddressTrace {
 public:
  struct Event {
    std::uint64_t address = 0, bytes = 0, stream = 0;
    std::uint64_t time = 0;  // nanoseconds, from anywhere
    std::uint32_t site = 0;  // of the caller's
  };

  explicit AddressTrace(TraceInput& input) : input_(input) {}

  bool empty() const { return trace_.events.empty() && before_.empty(); }

  void alloc(const Event& e);
  void free(const Event& e);
  // The memory can be used again: says something new only of a block whose free was not seen.
  void completed(const Event& e);
  void told(TraceAction action, const Event& e);  // kMap, kUnmap, kOom
  // After all events: a block that is out now. Without `allocated` before, it was out from the
  // start.
  void live(const Event& e);

  // The events still name the caller's sites.
  Trace finish();

 private:
  void add(TraceAction action, const Event& e, std::uint64_t bytes, std::uint32_t block);
  std::uint32_t add_before(const Event& e);
  std::uint16_t stream_number(std::uint64_t stream);
  void put_before_first();

  TraceInput& input_;
  Trace trace_;
  AddressMap blocks_;
  std::vector<Event> before_;                                // out before the first event
  std::vector<std::uint64_t> addresses_;                     // by block
  std::vector<std::pair<std::size_t, std::uint64_t>> maps_;  // index of event, address
  std::map<std::uint64_t, std::uint16_t> streams_{{0, 0}};
  std::uint64_t last_stream_ = 0, first_time_ = 0;
  std::uint16_t last_number_ = 0;
  bool started_ = false;
};

}  // namespace taper::tools
