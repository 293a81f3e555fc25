// Finds out which format a file has, and reads it.
#include "taper/tools/alloc/trace_file.h"

#include "taper/allocator/snapshot_binary.h"
#include "taper/tools/alloc/trace_input.h"

namespace taper::tools {
namespace {

constexpr std::size_t kLooksAt = 128;  // bytes

std::vector<Trace> read_known(TraceInput& input) {
  const std::string_view start = input.peek(kLooksAt);
  if (start.starts_with(binary::kMagic)) return read_binary(input);
  if (start.starts_with("\x80")) return read_pickle(input);
  if (start.starts_with("Thread,Time,Action,Pointer,Size,Stream")) return read_rmm(input);
  if (start.starts_with("id,lower,upper,size")) return read_lifetimes(input);
  if (start.starts_with("0 ") || start.starts_with("1 ")) return read_stalloc(input);
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && start[first] == '{') return read_json(input);
  input.refuse_at(0, str("expected a trace of Taper, PyTorch, RMM, STAlloc, MiniMalloc or idealloc,"
                         " got ",
                         start.empty() ? "an empty file" : shown(start.substr(0, 20))));
}

std::vector<Trace> read_all(TraceInput& input) {
  std::vector<Trace> traces = read_known(input);
  for (Trace& t : traces) {
    const std::string fault = first_fault(t);
    if (!fault.empty()) input.refuse(fault);
    if (t.source.empty()) t.source = input.name();
  }
  return traces;
}

}  // namespace

TraceFileError::TraceFileError(std::string file,
                               const char* unit,
                               std::uint64_t at,
                               const std::string& problem)
    : Error(str(file, ": ", unit, " ", at, ": ", problem), "", SourceLoc(), ""),
      file_(std::move(file)),
      unit_(unit),
      at_(at) {}

std::vector<Trace> read_trace_file(const std::string& path) {
  TraceInput input(path);
  return read_all(input);
}

std::vector<Trace> read_trace(const void* data, std::size_t bytes, const std::string& name) {
  TraceInput input(data, bytes, name);
  return read_all(input);
}

}  // namespace taper::tools
