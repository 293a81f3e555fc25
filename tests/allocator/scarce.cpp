// The operator new of this program, which can be told to refuse.
#include "taper/tests/allocator/scarce.h"

#include <cstdlib>
#include <limits>
#include <new>

namespace {

thread_local constinit std::size_t most = std::numeric_limits<std::size_t>::max();

}  // namespace

// All forms: in a sanitizer's runtime they do not call each other, as libstdc++'s do.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return bytes <= most ? std::malloc(bytes == 0 ? 1 : bytes) : nullptr;
}

void* operator new(std::size_t bytes) {
  void* p = operator new(bytes, std::nothrow);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}

void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}

void operator delete(void* p) noexcept {
  std::free(p);
}

void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

void operator delete[](void* p) noexcept {
  std::free(p);
}

void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}

namespace taper::testing {

Scarce::Scarce(std::size_t largest) {
  most = largest;
}

Scarce::~Scarce() {
  most = std::numeric_limits<std::size_t>::max();
}

}  // namespace taper::testing
