// Which sanitizer this is compiled with, and how memory is put out of bounds under
// AddressSanitizer.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TAPER_EMULATED_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define TAPER_EMULATED_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(TAPER_EMULATED_ASAN)
#define TAPER_EMULATED_ASAN
#endif
#if defined(__SANITIZE_THREAD__) && !defined(TAPER_EMULATED_TSAN)
#define TAPER_EMULATED_TSAN
#endif

#if defined(TAPER_EMULATED_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(TAPER_EMULATED_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace taper::emulated {

// Whether a stream may still have work to do when the call that gave it returns.
bool streams_are_late();

inline void poison([[maybe_unused]] const volatile void* begin, [[maybe_unused]] size_t bytes) {
#if defined(TAPER_EMULATED_ASAN)
  __asan_poison_memory_region(begin, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const volatile void* begin, [[maybe_unused]] size_t bytes) {
#if defined(TAPER_EMULATED_ASAN)
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

}  // namespace taper::emulated
