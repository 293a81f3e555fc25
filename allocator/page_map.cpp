// Writes page maps, without a heap.
#include "taper/allocator/page_map.h"

#include <algorithm>

namespace taper {

namespace {

constexpr unsigned kColumns = 64;  // pages in a line

}  // namespace

PageMapWriter::PageMapWriter(char* out, std::size_t size, std::size_t page_bytes)
    : out_(out), size_(size), page_bytes_(page_bytes == 0 ? kPageBytes : page_bytes) {
  put("one character: ");
  put_size(page_bytes_);
  put("\n"
      "  a-z  one block covers it      0-9  tenths in use      blank  free\n"
      "  A-Z  one that is freed but    *    all in use, by\n"
      "       waits for other streams       several blocks\n");
}

void PageMapWriter::put(char c) {
  if (length_ + 1 < size_) out_[length_] = c;
  ++length_;
}

void PageMapWriter::put(const char* text) {
  for (; *text != 0; ++text) put(*text);
}

void PageMapWriter::put_number(std::uint64_t n) {
  char digits[20];
  int count = 0;
  do digits[count++] = static_cast<char>('0' + n % 10);
  while ((n /= 10) != 0);
  while (count > 0) put(digits[--count]);
}

// "1.46 GiB", cut off and not rounded up; at least `width` characters.
void PageMapWriter::put_size(std::uint64_t bytes, std::size_t width) {
  const char* units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  int unit = 0;
  std::uint64_t whole = bytes, rest = 0;
  for (; whole >= 1024; whole >>= 10, ++unit) rest = whole & 1023;
  std::size_t length = whole < 10 ? 1 : whole < 100 ? 2 : whole < 1000 ? 3 : 4;
  length += unit == 0 ? 2 : 7;
  for (; length < width; ++length) put(' ');
  put_number(whole);
  if (unit > 0) {
    put('.');
    put(static_cast<char>('0' + rest * 10 / 1024));
    put(static_cast<char>('0' + rest * 100 / 1024 % 10));
  }
  put(units[unit]);
}

// The page that ends at `at_`, which may be a short one at the end of the segment.
void PageMapWriter::put_page() {
  const std::uint64_t begin = offset_ + (at_ - offset_ - 1) / page_bytes_ * page_bytes_;
  if (column_ == 0) {
    put_size(begin, 11);
    put(" [");
  }
  const std::uint64_t bytes = at_ - begin;
  if (covered_ != 0) put(covered_);
  else if (used_ == bytes) put('*');
  else if (used_ == 0) put(' ');
  else put(static_cast<char>('0' + used_ * 10 / bytes));
  used_ = 0, covered_ = 0;
  if (++column_ == kColumns && at_ != end_) {
    put("]\n");
    column_ = 0;
  }
}

void PageMapWriter::fill(std::uint64_t bytes, BlockState state) {
  const char letter = static_cast<char>((state == BlockState::kPending ? 'A' : 'a') +
                                        static_cast<int>(letters_ % 26));
  bool shown = false;
  while (bytes > 0) {
    const std::uint64_t into = (at_ - offset_) % page_bytes_;
    const std::uint64_t left = std::min(page_bytes_ - into, end_ - at_);
    const std::uint64_t here = std::min(bytes, left);
    if (state != BlockState::kFree) {
      used_ += here;
      if (into == 0 && here == left) covered_ = letter, shown = true;
    }
    at_ += here, bytes -= here;
    if (here == left) put_page();
  }
  if (shown) ++letters_;
}

void PageMapWriter::segment(
    std::uint64_t offset, std::uint64_t bytes, StreamId stream, PoolId pool, bool small) {
  end_segment();
  any_ = true;
  offset_ = at_ = offset, end_ = offset + bytes;
  stream_ = stream, pool_ = pool, small_ = small;
  of_segment_ = {};
  of_segment_.bytes = bytes;
  used_ = 0, covered_ = 0, column_ = 0;
}

void PageMapWriter::block(std::uint64_t bytes, std::uint64_t requested, BlockState state) {
  bytes = std::min(bytes, end_ - at_);
  requested = std::min(requested, bytes);
  switch (state) {
    case BlockState::kFree: of_segment_.free += bytes; break;
    case BlockState::kPending: of_segment_.pending += bytes; break;
    case BlockState::kLive:
      of_segment_.requested += requested, of_segment_.rounding += bytes - requested;
      break;
  }
  fill(bytes, state);
}

void PageMapWriter::end_segment() {
  if (!any_) return;
  of_segment_.free += end_ - at_;
  fill(end_ - at_, BlockState::kFree);
  put("] ");
  put_size(of_segment_.bytes);
  put(" of stream ");
  put_number(stream_);
  if (pool_ != 0) {
    put(", pool ");
    put_number(pool_);
  }
  if (small_) put(", small blocks");
  put(", ");
  put_size(of_segment_.free);
  put(" free, ");
  put_size(of_segment_.rounding);
  put(" lost to rounding\n");
  of_all_.bytes += of_segment_.bytes, of_all_.requested += of_segment_.requested;
  of_all_.rounding += of_segment_.rounding, of_all_.pending += of_segment_.pending;
  of_all_.free += of_segment_.free;
}

std::size_t PageMapWriter::finish() {
  end_segment();
  any_ = false;
  put("reserved ");
  put_size(of_all_.bytes);
  put(" = ");
  put_size(of_all_.requested);
  put(" requested + ");
  put_size(of_all_.rounding);
  put(" lost to rounding (internal) + ");
  put_size(of_all_.pending);
  put(" pending + ");
  put_size(of_all_.free);
  put(" free (external)\n");
  if (size_ > 0) out_[std::min(length_, size_ - 1)] = 0;
  return length_;
}

std::size_t write_page_map(char* out,
                           std::size_t size,
                           const std::vector<SegmentInfo>& segments,
                           std::size_t page_bytes) {
  PageMapWriter writer(out, size, page_bytes);
  for (const SegmentInfo& s : segments) {
    writer.segment(s.offset, s.bytes, s.stream, s.pool, s.small);
    for (const BlockInfo& b : s.blocks) writer.block(b.bytes, b.requested, b.state);
  }
  return writer.finish();
}

std::string page_map_text(const std::vector<SegmentInfo>& segments, std::size_t page_bytes) {
  std::string text(write_page_map(nullptr, 0, segments, page_bytes), ' ');
  write_page_map(text.data(), text.size() + 1, segments, page_bytes);
  return text;
}

}  // namespace taper
