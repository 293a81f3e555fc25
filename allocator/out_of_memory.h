// What is said when a device is full: the sums, who holds the memory, and what would have fit.
#pragma once
#include <string>
#include <vector>

#include "taper/core/base/error.h"

namespace taper {

class Allocator;

// The live blocks of one call site: what they hold, and the cached memory of their pages that
// cannot be given back while they live.
struct Pinner {
  std::uint64_t bytes = 0;
  std::uint64_t pinned = 0;
  std::uint64_t count = 0;
  std::string op, scope;
  std::string file, function;
  std::uint32_t line = 0;  // 0: not known
};

// Bytes. capacity = live + pending + releasable + pinned + others + unused.
struct MemoryReport {
  std::string device, options;
  std::uint64_t asked = 0, rounded = 0;
  std::uint64_t capacity = 0;  // of the device, or the limit that was set, if that is less
  std::uint64_t live = 0, pending = 0;
  std::uint64_t releasable = 0;        // cached in whole pages; tried before failing
  std::uint64_t pinned = 0;            // cached beside live blocks
  std::uint64_t others = 0;            // held by other programs or by other allocators of this one
  std::uint64_t unused = 0;            // never reserved
  std::uint64_t largest_free = 0;      // cached, in one piece; pages that lie nowhere can be one
  double fragmentation = 0;            // 1 - largest_free / all that is free, 0 to 1
  std::vector<Pinner> pinners;         // the five sites that pin most
  std::vector<Pinner> holders;         // the five sites that hold most
  std::vector<std::string> would_fit;  // "an offline plan of these events needs 1.2 GiB"

  std::string text() const;
};

class OutOfMemory : public Error {
 public:
  OutOfMemory(MemoryReport report, std::string op, SourceLoc loc, std::string scope);

  const MemoryReport& report() const { return report_; }

 private:
  MemoryReport report_;
};

// Throws OutOfMemory with all of it. Called without locks held: it reads maps and events.
[[noreturn]] void fail_out_of_memory(const Allocator& allocator,
                                     std::size_t asked,
                                     std::size_t rounded);

}  // namespace taper
