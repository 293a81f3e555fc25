// Counts calls by their names, and fails one.
#include "taper/cuda/emulated/failing.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace taper::emulated {
namespace {

struct Calls {
  std::atomic<bool> watched{false};  // until then a call costs one load
  std::mutex lock;
  std::map<std::string, long> counts;
  std::string failing;
  long number = 0;
  int error = 0;

  Calls() {
    const char* text = std::getenv("TAPER_EMULATED_FAIL");
    if (text == nullptr) return;
    char name[64];
    if (std::sscanf(text, "%63[^:]:%ld=%d", name, &number, &error) != 3) {
      std::fprintf(stderr, "TAPER_EMULATED_FAIL=%s: say name:number=error\n", text);
      std::abort();
    }
    failing = name;
    watched = true;
  }
};

Calls& all_calls() {
  static Calls* calls = new Calls;
  return *calls;
}

}  // namespace

void count_calls() {
  Calls& calls = all_calls();
  const std::lock_guard guard(calls.lock);
  calls.counts.clear();
  calls.failing.clear();
  calls.watched = true;
}

std::map<std::string, long> counted_calls() {
  Calls& calls = all_calls();
  const std::lock_guard guard(calls.lock);
  return calls.counts;
}

void fail_call(const std::string& name, long number, int error) {
  count_calls();
  Calls& calls = all_calls();
  const std::lock_guard guard(calls.lock);
  calls.failing = name;
  calls.number = number;
  calls.error = error;
}

cudaError_t injected(const char* name) {
  Calls& calls = all_calls();
  if (!calls.watched.load(std::memory_order_relaxed)) return cudaSuccess;
  const std::lock_guard guard(calls.lock);
  const long count = ++calls.counts[name];
  const bool fails = calls.failing == name && calls.number == count;
  return fails ? static_cast<cudaError_t>(calls.error) : cudaSuccess;
}

}  // namespace taper::emulated
