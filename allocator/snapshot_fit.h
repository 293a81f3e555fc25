// Brings a device's trace and its memory map together, as PyTorch's viewer needs them.
#pragma once
#include <cstdint>
#include <vector>

#include "taper/allocator/snapshot.h"

namespace taper {

// The viewer starts from the final segments and undoes the events, the last first. It fails where
// an undone map is not in one segment, or where a block is in none.
enum class Fit : std::uint8_t {
  kKeep,
  kDrop,  // must not be written
  kAlone  // of a block in no segment: map its own bytes before it comes, unmap them after it goes
};

struct FittedTrace {
  std::vector<std::uint64_t> offsets;  // by block
  std::vector<std::uint64_t> bytes;    // by block, as asked for
  // Those of the snapshot; one made of the trace if there are none or the offsets are not known.
  std::vector<SegmentInfo> segments;
  std::vector<Fit> fits;  // by event
};

// Linear in the events, but for logarithms. `d.trace` must be without faults.
FittedTrace fit_for_viewer(const DeviceSnapshot& d);

}  // namespace taper
