// A lock for a few instructions: one atomic exchange when nobody holds it, and no system call.
#pragma once
#include <atomic>

#include <sched.h>

namespace taper {

// Fits std::lock_guard. A waiter yields its processor, so a holder that was put to sleep gets on.
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) sched_yield();
  }

  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace taper
