// Makes the allocator that options name, and derives figures from what it counts.
#include "taper/allocator/allocator.h"

#include <mutex>

#include "taper/allocator/arena_allocator.h"
#include "taper/allocator/malloc_allocator.h"
#include "taper/allocator/options.h"
#include "taper/allocator/torch_policy.h"

namespace taper {
namespace {

std::mutex registry_mutex;

std::vector<const Allocator*>& registry() {
  static auto* all = new std::vector<const Allocator*>;
  return *all;
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double AllocatorStats::internal_fragmentation() const {
  return share(allocated - requested, reserved);
}

double AllocatorStats::external_fragmentation() const {
  return share(reserved - allocated - pending, reserved);
}

std::unique_ptr<Allocator> make_allocator(const AllocatorOptions& options,
                                          std::unique_ptr<MemoryDevice> device) {
  switch (options.policy) {
    case AllocatorPolicy::kMalloc: return make_malloc_allocator(options, std::move(device));
    case AllocatorPolicy::kTorchNative:
    case AllocatorPolicy::kTorchExpandable: return make_torch_allocator(options, std::move(device));
    case AllocatorPolicy::kTaper: break;
  }
  return std::make_unique<ArenaAllocator>(options, std::move(device));
}

void register_allocator(Allocator& allocator) {
  const std::lock_guard lock(registry_mutex);
  registry().push_back(&allocator);
}

std::vector<const Allocator*> all_allocators() {
  const std::lock_guard lock(registry_mutex);
  return registry();
}

}  // namespace taper
