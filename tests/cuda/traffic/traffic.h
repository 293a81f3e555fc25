// Which sectors of memory the warps of a kernel touch, by line of its source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taper::traffic {

// Note [Sectors of a warp's access]
// A device moves memory in sectors of 32 bytes: a warp that loads 32 neighbouring floats costs
// four, one that loads 32 floats far apart costs 32. The kernels of this program are compiled so
// that each load and store calls us first (the calls that GCC makes for the kernel's
// AddressSanitizer). Threads run one after another, so the n-th time that the lanes of a warp come
// by an instruction is taken for one access of the warp. What the device's caches save is not
// counted, and a store to an address that the same thread has just loaded from may not be.
struct Line {
  std::string kernel;          // "taper::cuda::copy_walk<unsigned int>"
  std::string place;           // "copy.cu:42 load"
  std::uint64_t accesses = 0;  // of warps
  std::uint64_t sectors = 0;
  std::uint64_t least = 0;  // sectors that the bytes touched would fill without gaps
};

// Forgets what was counted; and what has been counted since, most sectors first.
void start();
std::vector<Line> lines();
std::string table(const std::vector<Line>& lines);

}  // namespace taper::traffic
