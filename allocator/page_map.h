// The page map: what lies in reserved memory, one character a page, for terminals and debuggers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "taper/allocator/allocator.h"

namespace taper {

// Writes a page map block by block into a buffer of the caller's. Allocates nothing and throws
// nothing, so that it can be used on a stopped process:
//
//    4.00 MiB [aaaab*7  AA     ] 30.00 MiB of stream 0, 14.00 MiB free, 1.20 MiB lost to rounding
class PageMapWriter {
 public:
  // `out` may be null where `size` is 0. Pages count from the beginning of each segment.
  PageMapWriter(char* out, std::size_t size, std::size_t page_bytes = kPageBytes);

  // A segment, and then its blocks in address order. What they leave of it is free.
  void segment(
      std::uint64_t offset, std::uint64_t bytes, StreamId stream, PoolId pool, bool small = false);
  void block(std::uint64_t bytes, std::uint64_t requested, BlockState state);

  // Ends the map with its totals. Returns how long all of it is, as snprintf does: at most `size`
  // - 1 characters and a zero were written.
  std::size_t finish();

 private:
  struct Totals {
    std::uint64_t bytes = 0, requested = 0, rounding = 0, pending = 0, free = 0;
  };

  void put(char c);
  void put(const char* text);
  void put_number(std::uint64_t n);
  void put_size(std::uint64_t bytes, std::size_t width = 0);
  void put_page();
  void fill(std::uint64_t bytes, BlockState state);
  void end_segment();

  char* out_;
  std::size_t size_, length_ = 0;
  std::uint64_t page_bytes_;
  std::uint64_t offset_ = 0, end_ = 0, at_ = 0;  // of the segment; `at_` is what is told so far
  StreamId stream_ = 0;
  PoolId pool_ = 0;
  bool small_ = false, any_ = false;
  Totals of_segment_, of_all_;
  std::uint64_t used_ = 0;  // bytes in use of the page that has begun
  char covered_ = 0;        // the letter of the block that covers all of it, if one does
  unsigned letters_ = 0, column_ = 0;
};

// The same of a whole map. Returns how long it is; see PageMapWriter::finish.
std::size_t write_page_map(char* out,
                           std::size_t size,
                           const std::vector<SegmentInfo>& segments,
                           std::size_t page_bytes = kPageBytes);

std::string page_map_text(const std::vector<SegmentInfo>& segments,
                          std::size_t page_bytes = kPageBytes);

}  // namespace taper
