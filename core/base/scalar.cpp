// The conversion of a number that can fail.
#include "taper/core/base/scalar.h"

namespace taper {

std::int64_t Scalar::truncated(double real) {
  TAPER_CHECK(real >= -0x1p63 && real < 0x1p63, "the number ", real, " has no i64");
  return static_cast<std::int64_t>(real);
}

}  // namespace taper
