// parallel_for: one loop cut into fixed chunks, which the threads of a small pool take as they
// come.
#pragma once
#include <cstdint>

#include "taper/core/base/hd.h"
#include "taper/core/threads.h"

namespace taper::cpu {

// Work below this many elements is not worth waking a thread for.
inline constexpr std::int64_t kGrain = 32768;

// Calls body(arg, begin, end) for each chunk of [0, n), on this thread and on those of the pool
// that are awake; returns when all are done. What a chunk throws is thrown here, once.
void parallel_run(std::int64_t n,
                  std::int64_t chunk,
                  void (*body)(const void* arg, std::int64_t begin, std::int64_t end),
                  const void* arg);

inline namespace TAPER_ISA {

// How many items make a chunk, when one item is as much work as `elements` elements.
TAPER_INLINE std::int64_t grain_of(std::int64_t elements) {
  return elements >= kGrain ? 1 : kGrain / (elements > 0 ? elements : 1);
}

// body(begin, end) over [0, n) in chunks of `chunk`. The cut depends on n and chunk alone, never on
// the number of threads. One chunk, and any call from inside a chunk, runs right here.
template <class Body>
TAPER_INLINE void parallel_for(std::int64_t n, std::int64_t chunk, const Body& body) {
  if (n <= 0) return;
  if (n <= chunk) return body(std::int64_t{0}, n);
  struct Call {
    static void run(const void* arg, std::int64_t begin, std::int64_t end) {
      (*static_cast<const Body*>(arg))(begin, end);
    }
  };
  parallel_run(n, chunk, Call::run, &body);
}

}  // namespace TAPER_ISA
}  // namespace taper::cpu
