// The bytes of a trace file, read in pieces and in order, and what may be made of them.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "taper/tools/alloc/trace_file.h"

namespace taper {
class File;
}

namespace taper::tools {

// Holds a piece of the file at a time: a large file is never in memory as a whole.
class TraceInput {
 public:
  explicit TraceInput(const std::string& path);
  // Borrows the bytes.
  TraceInput(const void* data, std::size_t bytes, std::string name);
  ~TraceInput();
  TraceInput(const TraceInput&) = delete;
  TraceInput& operator=(const TraceInput&) = delete;

  const std::string& name() const { return name_; }

  std::uint64_t size() const { return size_; }

  std::uint64_t offset() const { return window_end_ - static_cast<std::uint64_t>(end_ - at_); }

  std::uint64_t remaining() const { return size_ - offset(); }

  // The first bytes, at most `bytes` <= 4096; only before anything else is read.
  std::string_view peek(std::size_t bytes);

  unsigned char byte() {
    if (at_ == end_) refill(1);
    return *at_++;
  }

  // The next `bytes` <= 4096, valid until the next call.
  const unsigned char* take(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes) refill(bytes);
    const unsigned char* p = at_;
    at_ += bytes;
    return p;
  }

  // The next `bytes`, lowest first; at most 8.
  std::uint64_t little(std::size_t bytes) {
    const unsigned char* p = take(bytes);
    std::uint64_t n = 0;
    for (std::size_t i = bytes; i-- > 0;) n = n << 8 | p[i];
    return n;
  }

  // Refuse more than what remains.
  std::string text(std::uint64_t bytes);
  void skip(std::uint64_t bytes);

  // The next line without its end; false at the end of the file. Counts.
  bool line(std::string_view& out);

  // Sites and texts of a small file may describe large ones: their memory is bounded, by the file's
  // size and 64 MiB.
  void charge(std::uint64_t bytes);

  [[noreturn]] void refuse(const std::string& problem) const;  // at this byte, or at this line
  [[noreturn]] void refuse_at(std::uint64_t byte, const std::string& problem) const;

 private:
  void refill(std::size_t least);

  std::string name_;
  std::uint64_t size_ = 0, window_end_ = 0, line_ = 0, charged_ = 0;
  std::unique_ptr<File> file_;
  std::unique_ptr<unsigned char[]> window_;
  const unsigned char *at_ = nullptr, *end_ = nullptr;
};

// A text of the file as a message may show it.
std::string shown(std::string_view text);

// The readers; each leaves the file's end to its format. They may return traces with faults.
std::vector<Trace> read_binary(TraceInput& input);
std::vector<Trace> read_json(TraceInput& input);
std::vector<Trace> read_pickle(TraceInput& input);
std::vector<Trace> read_rmm(TraceInput& input);
std::vector<Trace> read_stalloc(TraceInput& input);
std::vector<Trace> read_lifetimes(TraceInput& input);

}  // namespace taper::tools
