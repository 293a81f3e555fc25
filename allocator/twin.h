// The twin of a real run: replays a trace on a simulated device and measures what the policy did.
#pragma once
#include <string>
#include <vector>

#include "taper/allocator/allocator.h"
#include "taper/allocator/options.h"
#include "taper/allocator/trace.h"

namespace taper {

struct TwinSettings {
  AllocatorOptions options;
  std::size_t capacity = std::size_t{1}
                         << 44;   // bytes of the device; this is "as much as it takes"
  std::uint64_t timing_seed = 0;  // see SimDevice::Settings
  std::uint64_t fail_at = 0;
  int threads = 1;  // that take turns, each for its streams: what is done does not depend on it
};

// What all is measured in. Bytes unless said otherwise; curves by event.
struct TwinResult {
  bool finished = false;       // false: out of memory at event `stopped`
  std::size_t stopped = 0;     // events done
  std::string failure;         // the message of the OutOfMemory
  std::uint64_t max_load = 0;  // peak of requested: the least that any allocator needs
  AllocatorStats stats;        // at the end; its peaks are those of the whole run
  std::uint64_t steps = 0;     // kStep events
  std::uint64_t mapped_after_warmup =
      0;                     // pages mapped after the first quarter of the steps, rounded up
  double maps_per_step = 0;  // of those, for each step
  std::uint64_t placement_hash = 0;      // over (event, offset, bytes) of each allocation
  std::uint64_t device_nanoseconds = 0;  // when the last stream was done
  double seconds = 0;                    // that the replay took

  double peak_ratio() const;  // reserved_peak / max_load
};

// What the twin shows after each event, for curves and address maps.
class TwinObserver {
 public:
  virtual ~TwinObserver() = default;
  virtual void after(std::size_t event, const Allocator& allocator) = 0;
  virtual void placed(std::size_t event, std::uint64_t offset, std::uint64_t bytes) = 0;
};

// `trace` must be without faults (first_fault). Throws taper::Error for bad options.
TwinResult run_twin(const Trace& trace,
                    const TwinSettings& settings,
                    TwinObserver* observer = nullptr);

// A capacity, in whole pages, at which the trace finishes: the smallest, where all above it do too.
// With one page less it does not.
std::size_t min_capacity(const Trace& trace, const TwinSettings& settings);

}  // namespace taper
