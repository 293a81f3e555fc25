// Which of the compiled CPU columns this machine runs.
#include "taper/cpu/dispatch.h"

#include <cstdlib>
#include <cstring>

#include "taper/core/backends.h"
#include "taper/core/base/error.h"
#include "taper/core/base/log.h"

namespace taper {
namespace cpu {

// Defined by kernels.cpp, once in the namespace of each instruction set.
namespace baseline {
extern const Kernels kColumn;
}
namespace avx2 {
extern const Kernels kColumn;
}
namespace avx512 {
extern const Kernels kColumn;
}
namespace neon {
extern const Kernels kColumn;
}

ArrayRef<Column> columns() {
  static const Column kColumns[] = {
#ifdef TAPER_HAVE_AVX512
      {"avx512",
       __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"),
       &avx512::kColumn},
#endif
#ifdef TAPER_HAVE_AVX2
      {"avx2",
       __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c"),
       &avx2::kColumn},
#endif
#ifdef TAPER_HAVE_NEON
      {"neon", true, &neon::kColumn},
#endif
#ifdef TAPER_HAVE_BASELINE
      {"baseline", true, &baseline::kColumn},
#endif
  };
  return {kColumns, sizeof(kColumns) / sizeof(kColumns[0])};
}

namespace {

const Column& choose() {
  const char* wanted = std::getenv("TAPER_ISA");
  std::string known;
  for (const Column& column : columns()) {
    if (wanted == nullptr) {
      if (column.runs) return column;
      continue;
    }
    if (std::strcmp(wanted, column.isa) == 0) {
      TAPER_CHECK(column.runs, "TAPER_ISA=", wanted, ": this machine does not have it");
      return column;
    }
    known += str(known.empty() ? "" : ", ", column.isa);
  }
  TAPER_ASSERT(wanted != nullptr);
  fail(str("TAPER_ISA=", wanted, " is none of the compiled instruction sets: ", known));
}

}  // namespace
}  // namespace cpu

namespace {

const cpu::Column& chosen() {
  static const cpu::Column& column = []() -> const cpu::Column& {
    const cpu::Column& best = cpu::choose();
    log(LogLevel::kInfo, "cpu kernels: ", best.isa);
    return best;
  }();
  return column;
}

}  // namespace

const Kernels& cpu_kernels() {
  return *chosen().kernels;
}

const char* cpu_isa() {
  return chosen().isa;
}

}  // namespace taper
