// Counts what operator new has given out, and the most of it. Include it in one file of a program:
// it replaces the operators of all of it.
#pragma once
#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

namespace taper::testing {

inline std::atomic<std::size_t> heap_now{0}, heap_peak{0};  // bytes

// The peak of the heap above where it stood, while f runs.
template <class F> std::size_t heap_used_by(const F& f) {
  const std::size_t before = heap_now;
  heap_peak = before;
  f();
  return heap_peak - before;
}

}  // namespace taper::testing

void* operator new(std::size_t bytes) {
  using namespace taper::testing;
  void* p = std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) throw std::bad_alloc();
  const std::size_t now = heap_now.fetch_add(malloc_usable_size(p)) + malloc_usable_size(p);
  std::size_t peak = heap_peak.load();
  while (now > peak && !heap_peak.compare_exchange_weak(peak, now)) {
  }
  return p;
}

void operator delete(void* p) noexcept {
  if (p == nullptr) return;
  taper::testing::heap_now.fetch_sub(malloc_usable_size(p));
  std::free(p);
}

// The other forms call those two in libstdc++, but not in a sanitizer's runtime.
void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return operator new(bytes);
}

void operator delete[](void* p) noexcept {
  operator delete(p);
}

void operator delete(void* p, std::size_t) noexcept {
  operator delete(p);
}

void operator delete[](void* p, std::size_t) noexcept {
  operator delete(p);
}
