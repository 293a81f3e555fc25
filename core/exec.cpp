// Scratch memory of kernels, and the probes that watch their calls.
#include "taper/core/exec.h"

#include <atomic>
#include <mutex>

#include "taper/allocator/allocator.h"
#include "taper/core/base/spin_lock.h"
#include "taper/core/kernels.h"
#include "taper/core/storage.h"

namespace taper {

constinit std::atomic<Probe*> probe{nullptr};
thread_local constinit FiniteWatch* finite_watch = nullptr;

namespace {

constinit std::atomic<bool> atomic_adds{false};

// Who changes the list waits for the kernels that are being watched; new ones wait for him, so they
// cannot keep him for ever by taking over from one another.
constinit SpinLock changing_lock;
constinit std::atomic<bool> changing{false};
constinit std::atomic<int> watched{0};
constinit thread_local bool watching = false;

void enter() {
  for (;;) {
    watched.fetch_add(1);
    if (!changing.load()) return;
    watched.fetch_sub(1);
    while (changing.load()) sched_yield();
  }
}

// While it lives no kernel is being watched.
class Change {
 public:
  Change() : lock_(changing_lock) {
    changing.store(true);
    while (watched.load() != 0) sched_yield();
  }

  ~Change() { changing.store(false); }

  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  std::lock_guard<SpinLock> lock_;
};

}  // namespace

void allow_atomic_adds(bool on) {
  atomic_adds.store(on, std::memory_order_relaxed);
}

bool atomic_adds_allowed() {
  return atomic_adds.load(std::memory_order_relaxed);
}

void install(Probe& added) {
  const Change change;
  added.next_ = probe.load(std::memory_order_relaxed);
  probe.store(&added, std::memory_order_relaxed);
}

void remove(Probe& removed) noexcept {
  const Change change;
  Probe* at = probe.load(std::memory_order_relaxed);
  if (at == &removed) return probe.store(removed.next_, std::memory_order_relaxed);
  while (at->next_ != &removed) at = at->next_;
  at->next_ = removed.next_;
}

Watch::Watch(const KernelCall& call) : call_(call), nested_(watching) {
  if (nested_) return;
  enter();
  watching = true;
  for (Probe* p = probe.load(std::memory_order_relaxed); p != nullptr; p = p->next_)
    p->before(call_);
}

Watch::~Watch() {
  if (nested_) return;
  watching = false;
  finite_watch = nullptr;
  watched.fetch_sub(1);
}

void Watch::finish() const {
  if (nested_) return;
  for (Probe* p = probe.load(std::memory_order_relaxed); p != nullptr; p = p->next_)
    p->after(call_);
}

Exec::~Exec() {
  for (const Piece& p : pieces_) allocator_for(device).free(p.block, p.requested, stream);
}

void* Exec::scratch(std::size_t bytes) const {
  pieces_.push_back({allocator_for(device).allocate(bytes, stream), bytes});
  return pieces_.back().block.data;
}

}  // namespace taper
