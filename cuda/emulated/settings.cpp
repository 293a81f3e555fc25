// Reads the variables TAPER_EMULATED_..., and refuses what they cannot say.
#include "taper/cuda/emulated/settings.h"

#include <charconv>
#include <string_view>

#include <unistd.h>

#include "taper/allocator/options.h"
#include "taper/core/base/error.h"
#include "taper/cuda/emulated/failing.h"

namespace taper::emulated {
namespace {

constexpr std::string_view kPrefix = "TAPER_EMULATED_";

struct Variable {
  std::string_view name, value;

  [[noreturn]] void refuse(std::string_view allowed) const {
    fail(str(kPrefix, name, "=", value, ": say ", allowed));
  }
};

// A whole number that takes up all of the text.
template <class N> bool read(std::string_view text, N* out) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return code == std::errc() && end == text.data() + text.size();
}

// What stands before the mark, which goes from the text with it; false if there is no mark.
bool cut(std::string_view* text, char mark, std::string_view* before) {
  const std::size_t at = text->find(mark);
  if (at == std::string_view::npos) return false;
  *before = text->substr(0, at);
  text->remove_prefix(at + 1);
  return true;
}

void read_memory(const Variable& v, Settings& s) {
  try {
    s.memory = parse_size(v.value);
  } catch (const Error&) {
    v.refuse("a size, as in 512M or 8G");
  }
}

void read_driver(const Variable& v, Settings& s) {
  std::string_view minor = v.value, major;
  int whole = 0, part = 0;
  if (v.value == "none") s.driver = 0;
  else if (cut(&minor, '.', &major) && read(major, &whole) && read(minor, &part))
    s.driver = whole * 1000 + part * 10;
  else v.refuse("none, or the CUDA version that it supports, as in 12.4");
}

void read_streams(const Variable& v, Settings& s) {
  std::string_view seed = v.value, kind;
  if (v.value == "late") s.streams = StreamOrder::kLate;
  else if (cut(&seed, ':', &kind) && kind == "seeded" && read(seed, &s.seed))
    s.streams = StreamOrder::kSeeded;
  else v.refuse("late, or seeded:n with a number n");
}

void read_fail(const Variable& v, Settings& s) {
  std::string_view rest = v.value, name, number;
  if (!cut(&rest, ':', &name) || !cut(&rest, '=', &number) || !read(number, &s.number) ||
      !read(rest, &s.error))
    v.refuse("name:n=e, the n-th call of a name returns error e, as in cudaMemcpyAsync:3=2");
  if (!is_call(name)) v.refuse(str("the name of a call; there are ", all_calls()));
  s.failing = name;
}

void read(const Variable& v, Settings& s) {
  if (v.name == "DEVICES") {
    if (!read(v.value, &s.devices) || s.devices < 0 || s.devices > 64)
      v.refuse("a number from 0 to 64");
  } else if (v.name == "MEMORY") {
    read_memory(v, s);
  } else if (v.name == "DRIVER") {
    read_driver(v, s);
  } else if (v.name == "ORDER") {
    if (v.value != "reverse") v.refuse("reverse");
    s.reverse = true;
  } else if (v.name == "STREAMS") {
    read_streams(v, s);
  } else if (v.name == "ACCESS") {
    if (v.value != "guarded") v.refuse("guarded");
    s.guarded = true;
  } else if (v.name == "FAIL") {
    read_fail(v, s);
  } else {
    fail(str("there is no variable ", kPrefix, v.name, "; there are ", kPrefix,
             "DEVICES, MEMORY, DRIVER, ORDER, STREAMS, ACCESS and FAIL"));
  }
}

Settings read_environment() {
  Settings s;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view value = *entry, name;
    if (!value.starts_with(kPrefix) || !cut(&value, '=', &name) || value.empty()) continue;
    read({name.substr(kPrefix.size()), value}, s);
  }
  return s;
}

}  // namespace

const Settings& settings() {
  static const auto* read = new Settings(read_environment());  // never destroyed, as the runtime
  return *read;
}

}  // namespace taper::emulated
