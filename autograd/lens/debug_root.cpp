// The list of backward passes, and the struct that a debugger finds by name.
#include "taper/autograd/lens/debug_root.h"

#include <mutex>

#include <unistd.h>

#include "taper/core/base/spin_lock.h"

namespace taper {

extern "C" {
DebugRoot taper_debug_v1 = {
    {'T', 'A', 'P', 'E', 'R', 'D', 'B', 'G'}, 1, sizeof(DebugRoot), nullptr, 0, 0, -1};
}

namespace {

constinit SpinLock passes_lock;

std::int64_t this_thread() {
  static thread_local const std::int64_t id = gettid();
  return id;
}

}  // namespace

DebugPass::DebugPass() : thread(this_thread()) {
  const std::lock_guard lock(passes_lock);
  next = taper_debug_v1.passes;
  taper_debug_v1.passes = this;
}

DebugPass::~DebugPass() {
  const std::lock_guard lock(passes_lock);
  DebugPass** at = &taper_debug_v1.passes;
  while (*at != this) at = &(*at)->next;
  *at = next;
}

}  // namespace taper
