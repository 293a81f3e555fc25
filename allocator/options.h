// How an allocator behaves: its policy and that policy's settings, as TAPER_ALLOC spells them.
#pragma once
#include <string>
#include <string_view>

#include "taper/allocator/block.h"

namespace taper {

enum class AllocatorPolicy : std::uint8_t { kTaper, kTorchNative, kTorchExpandable, kMalloc };

// Written "key:value,key:value", sizes as 512, 64K, 2M, 80G. A key that is unknown, given twice, or
// without effect under the policy is an error.
struct AllocatorOptions {
  AllocatorPolicy policy = AllocatorPolicy::kTaper;
  std::size_t limit = 0;  // limit:80G, of reserved bytes; 0: the device's capacity
  double garbage_threshold =
      0;  // garbage_threshold:0.8, gives back above this share of the limit; 0: never

  // Taper's own.
  double slack = 0.001;  // slack:0.001, reserved may exceed the allocated peak so far by this share
                         // before free pages are moved
  bool plan = false;     // plan:on|off, a step that repeats is planned offline and then followed
  bool huge_pages = true;  // huge_pages:on|off, on the host

  // torch's, by its names.
  std::size_t max_split_size = 0;            // max_split_size:512M; 0: no limit
  std::size_t roundup_power2_divisions = 0;  // roundup_power2_divisions:4; 0: off

  std::size_t trace_events = std::size_t{1}
                             << 14;  // trace_events:16K, kept for each stream; 0: none
  std::string trace_file;            // trace:FILE, written when the process ends

  friend bool operator==(const AllocatorOptions&, const AllocatorOptions&) = default;
};

// Throws taper::Error that names the key and lists those that there are.
AllocatorOptions parse_allocator_options(std::string_view text);
AllocatorOptions environment_allocator_options();  // TAPER_ALLOC's
// What differs from the defaults, in the form that is parsed; "policy:taper" at least.
std::string to_string(const AllocatorOptions& options);
const char* to_string(AllocatorPolicy policy);

// "80G", "1.5M", "512": a size. Throws taper::Error.
std::size_t parse_size(std::string_view text);

}  // namespace taper
