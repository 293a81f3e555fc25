// What must hold of Taper's own policy at every moment, computed anew from the memory map.
#pragma once
#include <string>
#include <vector>

#include "taper/core/base/array_ref.h"
#include "taper/tests/allocator/replaying.h"

namespace taper::testing {

// The first thing wrong with the map, the figures or the device's pages; "" if nothing is.
std::string first_wrong_in_arena(const OnSim& sim);

// The pages that live blocks touch; a page with blocks of several heaps does not exist.
std::uint64_t pages_touched(const std::vector<SegmentInfo>& map);

inline std::uint64_t pages_of(std::uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes;
}

// All blocks being freed: empties the cache. "" if the device is then as it was at first.
std::string first_left_over(OnSim& sim);

// The workloads T1 to T9, after users' reports.
ArrayRef<const char*> report_names();

// The trace `times` times, a step after each.
Trace repeated(const Trace& trace, int times);

}  // namespace taper::testing
