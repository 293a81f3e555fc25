// Reads allocation traces from files, ours and others'.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "taper/allocator/trace.h"
#include "taper/core/base/error.h"

namespace taper::tools {

// A file that is not what it should be: "run.pickle: byte 17: expected a dict, got ...".
class TraceFileError : public Error {
 public:
  // `unit` is "byte" or "line"; bytes count from 0, lines from 1.
  TraceFileError(std::string file, const char* unit, std::uint64_t at, const std::string& problem);

  const std::string& file() const { return file_; }

  const std::string& unit() const { return unit_; }

  std::uint64_t at() const { return at_; }

 private:
  std::string file_, unit_;
  std::uint64_t at_;
};

// One trace for each device that has events or live blocks; all are without faults (first_fault).
// The format is known by the content:
//
//   Taper's binary and JSON
//   PyTorch's snapshot, pickled by protocol 2 to 5, also without traces: the live blocks alone
//   RMM's log, CSV          Thread,Time,Action,Pointer,Size,Stream
//   STAlloc's trace, text   1|0 pointer size stream
//   MiniMalloc's and idealloc's lifetimes, CSV   id,lower,upper,size   (lower <= time < upper)
//
// Formats that name blocks by address: a block that is freed without having been allocated was out
// before, and is allocated first. Times of lifetimes are kept as they are, as nanoseconds.
//
// Throws TraceFileError, or taper::Error where the file cannot be read. Nothing in a file is
// executed. Besides the traces that are returned it takes at most 100 bytes for each block, and
// for all else 2 times the file and 300 MiB.
std::vector<Trace> read_trace_file(const std::string& path);

// The same of bytes in memory; `name` is what errors call them.
std::vector<Trace> read_trace(const void* data, std::size_t bytes, const std::string& name);

}  // namespace taper::tools
