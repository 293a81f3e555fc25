// The process's choices for matrix products: f32 in full or tf32, and whose code.
#include "taper/core/precision.h"

#include <atomic>
#include <cstdlib>

#include "taper/core/base/error.h"

namespace taper {
namespace {

std::atomic<bool> tf32{false};

}  // namespace

void set_float32_matmul_precision(std::string_view precision) {
  TAPER_CHECK(precision == "highest" || precision == "high" || precision == "medium",
              "set_float32_matmul_precision: say \"highest\", \"high\" or \"medium\", not \"",
              precision, "\"");
  tf32 = precision != "highest";
}

std::string_view get_float32_matmul_precision() {
  return matmul_rounds_to_tf32() ? "high" : "highest";
}

bool matmul_rounds_to_tf32() {
  return tf32.load(std::memory_order_relaxed);
}

std::string_view gemm_choice() {
  static const std::string_view choice = [] {
    const char* setting = std::getenv("TAPER_GEMM");
    const std::string_view said = setting == nullptr ? "" : setting;
    TAPER_CHECK(said.empty() || said == "own" || said == "openblas" || said == "cublas",
                "TAPER_GEMM=", said,
                ": say own, openblas (on the CPU) or cublas (on a CUDA device)");
    return said;
  }();
  return choice;
}

}  // namespace taper
