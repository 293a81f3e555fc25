// Replays traces on a simulated device, and checks what an allocator shows of its memory.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/allocator/allocator.h"
#include "taper/allocator/options.h"
#include "taper/allocator/out_of_memory.h"
#include "taper/allocator/sim_device.h"
#include "taper/allocator/torch_policy.h"
#include "taper/allocator/trace.h"

namespace taper::testing {

inline constexpr std::size_t kMiB = std::size_t{1} << 20;
inline constexpr std::size_t kGiB = std::size_t{1} << 30;

// A policy on a device that the test can look into.
struct OnSim {
  explicit OnSim(const AllocatorOptions& options, const SimDevice::Settings& settings = {}) {
    auto owned = std::make_unique<SimDevice>(settings);
    device = owned.get();
    allocator = make_allocator(options, std::move(owned));
  }

  explicit OnSim(AllocatorPolicy policy, std::size_t capacity = std::size_t{1} << 44)
      : OnSim(with(policy), at(capacity)) {}

  static AllocatorOptions with(AllocatorPolicy policy) {
    AllocatorOptions options;
    options.policy = policy;
    return options;
  }

  static SimDevice::Settings at(std::size_t capacity, std::uint64_t fail_at = 0) {
    SimDevice::Settings settings;
    settings.capacity = capacity;
    settings.fail_at = fail_at;
    return settings;
  }

  Block allocate(std::size_t bytes, StreamId stream = 0) {
    return allocator->allocate(bytes, stream);
  }

  void free(const Block& block, std::size_t bytes = 0, StreamId stream = 0) {
    allocator->free(block, bytes, stream);
  }

  std::size_t offset(const Block& block) const {
    return static_cast<std::size_t>(static_cast<char*>(block.data) - device->base());
  }

  std::size_t reserved() const { return allocator->stats().reserved; }

  SimDevice* device;
  std::unique_ptr<Allocator> allocator;
};

using Torch = OnSim;

// Does a trace's events. What it allocates stays out when the trace does not free it.
class Replay {
 public:
  explicit Replay(OnSim& sim, bool keep_addresses = true)
      : sim_(sim), keep_addresses_(keep_addresses) {}

  // From the first event that was not done yet; false: out of memory at that event.
  bool run(const Trace& trace);
  void free_all();
  std::size_t done() const { return done_; }

  const MemoryReport& refusal() const { return refusal_; }  // that ended the run

 private:
  struct Out {
    Block block;
    std::size_t bytes = 0;
    StreamId stream = 0;
    bool out = false;
  };

  void alloc(const TraceEvent& event);

  OnSim& sim_;
  bool keep_addresses_;
  std::vector<Out> blocks_;
  std::vector<PoolId> pools_{0};
  std::size_t done_ = 0;
  MemoryReport refusal_;
};

// The first thing wrong with the memory map, the figures or the device's pages; "" if nothing is.
std::string first_wrong(const Torch& torch);

}  // namespace taper::testing
