// Fuzzes the files of `taper alloc`: of each format, a good trace or TraceFileError.
#include "taper/tools/alloc/trace_file.h"

#include <cstdlib>

#include "taper/tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  try {
    for (const taper::Trace& t : taper::tools::read_trace(data, bytes, "fuzz")) {
      if (!taper::first_fault(t).empty()) std::abort();
    }
  } catch (const taper::tools::TraceFileError&) {
  } catch (...) {
    std::abort();
  }
  return 0;
}
