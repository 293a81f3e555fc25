// Opens device memory around work, and tells who touched it at another time.
#include "taper/cuda/emulated/access.h"

#include <csignal>
#include <cstdio>
#include <mutex>

#include <unistd.h>

#include "taper/cuda/emulated/machine.h"
#include "taper/cuda/emulated/runtime.h"

namespace taper::emulated {
namespace {

std::mutex lock;
int working = 0;
struct sigaction others;  // what was done about SIGSEGV before

// The process dies in any case: what could go wrong in a handler that takes locks may.
void tell_who_touched(int, siginfo_t* info, void*) {
  int device = -1;
  const MemoryKind kind = kind_of_memory(info->si_addr, &device);
  char text[512];
  int size = 0;
  const uint3 thread = builtins.thread_index, block = builtins.block_index;
  if (Machine::mine().is_running()) {
    size = std::snprintf(text, sizeof(text),
                         "block (%u, %u, %u), thread (%u, %u, %u) touched %p, where nothing is: "
                         "freed, beyond its block, or never a device's\n",
                         block.x, block.y, block.z, thread.x, thread.y, thread.z, info->si_addr);
  } else if (kind == MemoryKind::kLive) {
    size = std::snprintf(text, sizeof(text),
                         "the host touched %p, which is memory of cuda:%d: copy it to the host "
                         "first, with Tensor::cpu() or cudaMemcpy\n",
                         info->si_addr, device);
  } else if (kind == MemoryKind::kDead) {
    size = std::snprintf(text, sizeof(text),
                         "the host touched %p, an address of device memory where nothing is: it "
                         "was freed, or lies beyond a block\n",
                         info->si_addr);
  }
  if (size > 0) static_cast<void>(!write(STDERR_FILENO, text, static_cast<size_t>(size)));
  sigaction(SIGSEGV, &others, nullptr);  // the same instruction now meets it
}

bool install() {
  if (!settings().guarded) return false;
  struct sigaction ours {};
  ours.sa_sigaction = tell_who_touched;
  ours.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &ours, &others);
  return true;
}

}  // namespace

bool access_is_guarded() {
  static const bool guarded = install();
  return guarded;
}

bool access_is_open() {
  if (!access_is_guarded()) return true;
  const std::lock_guard guard(lock);
  return working > 0;
}

DeviceAccess::DeviceAccess() {
  if (!access_is_guarded()) return;
  const std::lock_guard guard(lock);
  if (++working > 1) return;
  open_blocks(true);
  open_mappings(true);
}

DeviceAccess::~DeviceAccess() {
  if (!access_is_guarded()) return;
  const std::lock_guard guard(lock);
  if (--working > 0) return;
  open_blocks(false);
  open_mappings(false);
}

}  // namespace taper::emulated
