// The jump itself, on raw fcontext: a plain Boost.Context has no sanitizer support, so we add it.
#include "taper/cuda/emulated/fiber.h"

#include <new>

#include <sys/mman.h>

namespace taper::emulated {
namespace {

using boost::context::detail::transfer_t;

constexpr size_t kPage = 4096;
#if defined(TAPER_EMULATED_ASAN) || defined(TAPER_EMULATED_TSAN)
constexpr size_t kStack = 256 << 10;  // frames are several times larger there
#else
constexpr size_t kStack = 64 << 10;
#endif
constexpr size_t kColour = 192;  // bytes between the tops of neighbours, modulo a page

}  // namespace

Fiber::Fiber() {
#if defined(TAPER_EMULATED_TSAN)
  thread_state_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*body)(void*), void* argument, unsigned number)
    : size_(kStack), body_(body), argument_(argument) {
  void* mapping = mmap(nullptr, kPage + kStack, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<char*>(mapping);
  mprotect(mapping_, kPage, PROT_NONE);
  bottom_ = mapping_ + kPage;
  const size_t colour = (number * kColour) % kPage / 64 * 64;
  context_ = boost::context::detail::make_fcontext(mapping_ + kPage + kStack - colour,
                                                   kStack - colour, &Fiber::enter);
#if defined(TAPER_EMULATED_TSAN)
  thread_state_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  if (mapping_ == nullptr) return;
  unpoison(mapping_, kPage + kStack);
#if defined(TAPER_EMULATED_TSAN)
  __tsan_destroy_fiber(thread_state_);
#endif
  munmap(mapping_, kPage + kStack);
}

void Fiber::enter(transfer_t from) {
  Fiber& self = *static_cast<Fiber*>(from.data)->next_;
  self.arrive(from);
  self.body_(self.argument_);
}

}  // namespace taper::emulated
