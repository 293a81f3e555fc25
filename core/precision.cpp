// The process's choice between full f32 products and tf32.
#include "taper/core/precision.h"

#include <atomic>

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

}  // namespace taper
