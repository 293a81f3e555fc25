// Taper's log: lines on stderr, of the levels that TAPER_LOG lets through.
#pragma once
#include <cstdint>
#include <string>

#include "taper/core/base/error.h"

namespace taper {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning };

// TAPER_LOG is debug, info, warning (when unset) or off; another word throws Error at first use.
bool log_enabled(LogLevel level);

// One whole line, from any thread: "[taper info] cpu kernels: avx2".
void log_line(LogLevel level, const std::string& text);

// log(LogLevel::kInfo, "cpu kernels: ", isa). Nothing is put together when the level is off.
template <class... Parts> void log(LogLevel level, const Parts&... parts) {
  if (log_enabled(level)) log_line(level, str(parts...));
}

}  // namespace taper
