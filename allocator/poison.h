// Whether this build watches memory with AddressSanitizer, and how bytes are closed to it.
#pragma once
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace taper {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kPoisons = true;
#else
inline constexpr bool kPoisons = false;
#endif

// For memory that the host sees: an access of poisoned bytes is reported.
inline void poison_host([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, bytes);
#endif
}

inline void unpoison_host([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, bytes);
#endif
}

}  // namespace taper
