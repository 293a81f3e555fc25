// The only file that sees spdlog.
#include "taper/core/base/log.h"

#include <cstdlib>
#include <cstring>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace taper {
namespace {

struct Choice {
  const char* word;
  spdlog::level::level_enum level;
};

constexpr Choice kChoices[] = {{"debug", spdlog::level::debug},
                               {"info", spdlog::level::info},
                               {"warning", spdlog::level::warn},
                               {"off", spdlog::level::off}};

spdlog::level::level_enum chosen_level() {
  const char* wanted = std::getenv("TAPER_LOG");
  if (wanted == nullptr) return spdlog::level::warn;
  for (const Choice& choice : kChoices) {
    if (std::strcmp(wanted, choice.word) == 0) return choice.level;
  }
  fail(str("TAPER_LOG=", wanted, ": say debug, info, warning or off"));
}

// Of our own, not in spdlog's registry: the host program's loggers stay as they are. Never freed,
// so that destructors of static objects may still log.
spdlog::logger& logger() {
  static spdlog::logger* const ours = [] {
    auto* l = new spdlog::logger("taper", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    l->set_pattern("[%n %l] %v");
    l->set_level(chosen_level());
    return l;
  }();
  return *ours;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
  }
  return spdlog::level::warn;
}

}  // namespace

bool log_enabled(LogLevel level) {
  return logger().should_log(spdlog_level(level));
}

void log_line(LogLevel level, const std::string& text) {
  logger().log(spdlog_level(level), spdlog::string_view_t(text));
}

}  // namespace taper
