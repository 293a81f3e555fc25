// The latest events of one stream's memory, always recorded, and the table of who asked.
#pragma once
#include <chrono>

#include "taper/allocator/allocator.h"
#include "taper/allocator/trace.h"
#include "taper/core/base/source_loc.h"

namespace taper {

// The number of the thread's call site (op, line, scope); 0 where no public call runs, or when
// 65,535 sites are known. A few nanoseconds for a site that was seen before; thread-safe.
std::uint32_t intern_site();

inline std::uint32_t current_site() {
  return call_site.active() || call_site.op != nullptr ? intern_site() : 0;
}

TraceSite site_of(std::uint32_t site);

// For fork: no thread adds a site between them.
void lock_sites();
void unlock_sites();

// The processor's clock: cheap, and the same for all threads.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t t;
  asm volatile("mrs %0, cntvct_el0" : "=r"(t));
  return t;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Keeps the last `capacity` events, or all of them. One writer at a time.
class TraceRing {
 public:
  // A power of two is used; 0 records nothing. Its memory is touched here, not by the first events.
  TraceRing(std::size_t capacity, bool keep_all);
  ~TraceRing();
  TraceRing(const TraceRing&) = delete;
  TraceRing& operator=(const TraceRing&) = delete;

  void record(TraceAction action,
              std::uint64_t offset,
              std::uint64_t bytes,
              std::uint32_t site,
              std::uint64_t entry,
              StreamId stream,
              PoolId pool) {
    if (next_ == capacity_) {
      if (capacity_ == 0) return;
      make_room();
    }
    // The clock costs as much as the rest, so eight events share its reading; not so those at which
    // pages change hands, by which the events of several rings are put in order.
    const bool common = action == TraceAction::kAlloc || action == TraceAction::kFree;
    if (!common || next_ % 8 == 0) now_ = ticks();
    TraceEvent& e = events_[next_++];
    e.time = now_;
    e.bytes = bytes;
    e.block = static_cast<std::uint32_t>(offset / kBlockBytes);
    e.site = site;
    e.entry = static_cast<std::uint32_t>(entry);
    e.stream = static_cast<std::uint16_t>(stream);
    e.action = action;
    e.pool = static_cast<std::uint8_t>(pool < 255 ? pool : 255);
  }

  // Appends its events to `out`, oldest first.
  void copy_to(std::vector<TraceEvent>& out) const;
  // The time of the oldest event, if older ones were overwritten; else 0.
  std::uint64_t complete_since() const;

 private:
  void make_room();

  TraceEvent* events_ = nullptr;
  std::size_t capacity_ = 0, next_ = 0;
  std::uint64_t now_ = 0;  // ticks
  bool wrapped_ = false, keep_all_;
};

// Makes a trace that can be replayed of the events of several rings; it begins with the blocks that
// were out before them. `map` is how memory stands after the last event.
Trace trace_of_rings(std::vector<TraceEvent> events, const std::vector<SegmentInfo>& map);

}  // namespace taper
