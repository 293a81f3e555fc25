// Reads TAPER_ALLOC, and writes options in the same form.
#include "taper/allocator/options.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "taper/core/base/error.h"

namespace taper {
namespace {

struct Key {
  const char* name;
  const char* example;
  bool taper, torch_native, torch_expandable, malloc;  // the policies on which it has an effect
};

constexpr Key kKeys[] = {
    {"policy", "policy:taper|torch_native|torch_expandable|malloc", true, true, true, true},
    {"limit", "limit:80G", true, true, true, false},
    {"garbage_threshold", "garbage_threshold:0.8", true, true, false, false},
    {"slack", "slack:0.02", true, false, false, false},
    {"plan", "plan:on|off", true, false, false, false},
    {"huge_pages", "huge_pages:on|off", true, true, true, false},
    {"max_split_size", "max_split_size:512M", false, true, false, false},
    {"roundup_power2_divisions", "roundup_power2_divisions:4", false, true, true, false},
    {"trace_events", "trace_events:16K", true, true, true, false},
    {"trace", "trace:FILE", true, true, true, false},
};

bool works_with(const Key& key, AllocatorPolicy policy) {
  switch (policy) {
    case AllocatorPolicy::kTaper: return key.taper;
    case AllocatorPolicy::kTorchNative: return key.torch_native;
    case AllocatorPolicy::kTorchExpandable: return key.torch_expandable;
    case AllocatorPolicy::kMalloc: return key.malloc;
  }
  return false;
}

std::string all_keys() {
  std::string text;
  for (const Key& key : kKeys) text += (text.empty() ? "" : ", ") + std::string(key.example);
  return text;
}

const Key& key_named(std::string_view name) {
  for (const Key& key : kKeys) {
    if (name == key.name) return key;
  }
  fail(str("TAPER_ALLOC has no key '", name, "'; there are ", all_keys()));
}

AllocatorPolicy parse_policy(std::string_view text) {
  for (const AllocatorPolicy p : {AllocatorPolicy::kTaper, AllocatorPolicy::kTorchNative,
                                  AllocatorPolicy::kTorchExpandable, AllocatorPolicy::kMalloc}) {
    if (text == to_string(p)) return p;
  }
  fail(str("TAPER_ALLOC: there is no policy '", text, "'; there are ", kKeys[0].example));
}

double parse_share(const Key& key, std::string_view text, double most) {
  double x = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  TAPER_CHECK(code == std::errc() && end == text.data() + text.size() && x >= 0 && x <= most,
              "TAPER_ALLOC: ", key.name, " is a share from 0 to ", most, ", as in ", key.example,
              "; got '", text, "'");
  return x;
}

bool parse_switch(const Key& key, std::string_view text) {
  TAPER_CHECK(text == "on" || text == "off", "TAPER_ALLOC: ", key.name, " is on or off; got '",
              text, "'");
  return text == "on";
}

std::size_t parse_divisions(std::string_view text) {
  const std::size_t n = parse_size(text);
  TAPER_CHECK(n >= 1 && n <= 64 && (n & (n - 1)) == 0,
              "TAPER_ALLOC: roundup_power2_divisions is a power of two up to 64; got '", text, "'");
  return n;
}

void set(AllocatorOptions& o, const Key& key, std::string_view value) {
  const std::string_view name = key.name;
  if (name == "policy") o.policy = parse_policy(value);
  else if (name == "limit") o.limit = parse_size(value);
  else if (name == "garbage_threshold") o.garbage_threshold = parse_share(key, value, 1);
  else if (name == "slack") o.slack = parse_share(key, value, 1000);
  else if (name == "plan") o.plan = parse_switch(key, value);
  else if (name == "huge_pages") o.huge_pages = parse_switch(key, value);
  else if (name == "max_split_size") o.max_split_size = parse_size(value);
  else if (name == "roundup_power2_divisions") o.roundup_power2_divisions = parse_divisions(value);
  else if (name == "trace_events") o.trace_events = parse_size(value);
  else o.trace_file = value;
}

void check_together(const AllocatorOptions& o) {
  TAPER_CHECK(o.limit == 0 || o.limit >= kPageBytes, "TAPER_ALLOC: a limit of ", o.limit,
              " bytes is less than a page of ", kPageBytes);
  // As in torch: below this the large pool could not even hold its own segments.
  TAPER_CHECK(o.max_split_size == 0 || o.max_split_size > (std::size_t{20} << 20),
              "TAPER_ALLOC: max_split_size must be above 20M; got ", o.max_split_size);
  TAPER_CHECK(o.policy != AllocatorPolicy::kTorchNative || o.garbage_threshold == 0 || o.limit != 0,
              "TAPER_ALLOC: garbage_threshold has no effect under torch_native without a limit");
  TAPER_CHECK(o.trace_events <= std::size_t{1} << 28, "TAPER_ALLOC: trace_events is at most 256M");
  TAPER_CHECK(o.trace_file.empty() || o.trace_events > 0,
              "TAPER_ALLOC: trace has no effect with trace_events:0");
}

}  // namespace

AllocatorOptions parse_allocator_options(std::string_view text) {
  AllocatorOptions options;
  struct Given {
    const Key* key;
    std::string_view value;
  };
  Given given[std::size(kKeys)];
  std::size_t count = 0;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
    const std::size_t colon = item.find(':');
    TAPER_CHECK(colon != std::string_view::npos && colon + 1 < item.size(),
                "TAPER_ALLOC is written key:value,key:value; got '", item, "'. There are ",
                all_keys());
    const Key& key = key_named(item.substr(0, colon));
    for (std::size_t i = 0; i < count; ++i) {
      TAPER_CHECK(given[i].key != &key, "TAPER_ALLOC gives ", key.name, " twice");
    }
    given[count++] = {&key, item.substr(colon + 1)};
    set(options, key, item.substr(colon + 1));
  }
  for (std::size_t i = 0; i < count; ++i) {
    TAPER_CHECK(works_with(*given[i].key, options.policy), "TAPER_ALLOC: ", given[i].key->name,
                " has no effect under policy:", to_string(options.policy));
  }
  check_together(options);
  return options;
}

AllocatorOptions environment_allocator_options() {
  const char* text = std::getenv("TAPER_ALLOC");
  return parse_allocator_options(text == nullptr ? "" : text);
}

std::string to_string(const AllocatorOptions& o) {
  const AllocatorOptions standard;
  std::string text = str("policy:", to_string(o.policy));
  const auto add = [&](const char* name, const std::string& value) {
    text += str(",", name, ":", value);
  };
  if (o.limit != standard.limit) add("limit", str(o.limit));
  if (o.garbage_threshold != standard.garbage_threshold)
    add("garbage_threshold", str(o.garbage_threshold));
  if (o.slack != standard.slack) add("slack", str(o.slack));
  if (o.plan != standard.plan) add("plan", o.plan ? "on" : "off");
  if (o.huge_pages != standard.huge_pages) add("huge_pages", o.huge_pages ? "on" : "off");
  if (o.max_split_size != standard.max_split_size) add("max_split_size", str(o.max_split_size));
  if (o.roundup_power2_divisions != standard.roundup_power2_divisions)
    add("roundup_power2_divisions", str(o.roundup_power2_divisions));
  if (o.trace_events != standard.trace_events) add("trace_events", str(o.trace_events));
  if (!o.trace_file.empty()) add("trace", o.trace_file);
  return text;
}

const char* to_string(AllocatorPolicy policy) {
  switch (policy) {
    case AllocatorPolicy::kTaper: return "taper";
    case AllocatorPolicy::kTorchNative: return "torch_native";
    case AllocatorPolicy::kTorchExpandable: return "torch_expandable";
    case AllocatorPolicy::kMalloc: return "malloc";
  }
  return "?";
}

std::size_t parse_size(std::string_view text) {
  double x = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), x);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  constexpr std::string_view kUnits = "KMGT";
  double scale = 1;
  const bool has_unit = !unit.empty() && kUnits.find(unit[0]) != std::string_view::npos;
  if (has_unit) {
    scale = std::ldexp(1.0, 10 * (static_cast<int>(kUnits.find(unit[0])) + 1));
    unit.remove_prefix(1);
    if (unit == "B" || unit == "iB") unit = {};  // 80GB and 80GiB are 80G too
  }
  const double bytes = x * scale;
  TAPER_CHECK(code == std::errc() && unit.empty() && bytes >= 0 && bytes < 0x1p60 &&
                  bytes == std::floor(bytes),
              "a size is written 512, 64K, 2M, 1.5G; got '", text, "'");
  return static_cast<std::size_t>(bytes);
}

}  // namespace taper
