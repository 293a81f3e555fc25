// One stack and how to jump to it, with the sanitizers told of every jump.
#pragma once

#include <cstddef>

#include <boost/context/detail/fcontext.hpp>

#include "taper/cuda/emulated/sanitizer.h"

namespace taper::emulated {

class Fiber {
 public:
  Fiber();  // the stack that the OS thread already runs on
  // A stack of its own, which enters `body(argument)` on the first jump; body never returns.
  // `number` spreads the tops of the stacks over the cache's sets.
  Fiber(void (*body)(void*), void* argument, unsigned number);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Leaves this fiber, which must be the one that runs; returns when somebody jumps back to it.
  [[gnu::always_inline]] void jump_to(Fiber& next) { leave_for(next, &fake_stack_); }

  // The same for good: what a sanitizer keeps for this stack is given back.
  void end_in(Fiber& next) { leave_for(next, nullptr); }

 private:
  static void enter(boost::context::detail::transfer_t from);
  void leave_for(Fiber& next, void** fake_stack);
  void arrive(boost::context::detail::transfer_t from);

  boost::context::detail::fcontext_t context_ = nullptr;
  char* mapping_ = nullptr;  // guard page and stack; null for the thread's own
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  void* fake_stack_ = nullptr;    // AddressSanitizer's, while this fiber is left
  void* thread_state_ = nullptr;  // ThreadSanitizer's
  Fiber* next_ = nullptr;         // where the last jump from here went
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
};

// Note [Returns after a jump]
// The processor predicts each return by a stack of its own, which a jump to another stack makes
// wrong: every return between a jump and the kernel's next instruction costs a misprediction. So
// all that stands between them is inlined.
[[gnu::always_inline]] inline void Fiber::leave_for(Fiber& next,
                                                    [[maybe_unused]] void** fake_stack) {
  next_ = &next;
#if defined(TAPER_EMULATED_ASAN)
  __sanitizer_start_switch_fiber(fake_stack, next.bottom_, next.size_);
#endif
#if defined(TAPER_EMULATED_TSAN)
  __tsan_switch_to_fiber(next.thread_state_, 0);
#endif
  arrive(boost::context::detail::jump_fcontext(next.context_, this));
}

[[gnu::always_inline]] inline void Fiber::arrive(boost::context::detail::transfer_t from) {
  Fiber& left = *static_cast<Fiber*>(from.data);
  left.context_ = from.fctx;
#if defined(TAPER_EMULATED_ASAN)
  const void* bottom = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &size);
  if (left.mapping_ == nullptr) {  // only now do we learn where the OS thread's stack is
    left.bottom_ = bottom;
    left.size_ = size;
  }
#endif
}

}  // namespace taper::emulated
