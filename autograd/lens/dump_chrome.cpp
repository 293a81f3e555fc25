// Writes a dump as a trace: what ran forward and backward, and the bytes held meanwhile.
#include <map>

#include <nlohmann/json.hpp>

#include "taper/autograd/lens/dump_parts.h"
#include "taper/core/base/dtype.h"

namespace taper::lens {
namespace {

using nlohmann::ordered_json;

// One process; forward and backward of each stream are rows of it.
std::uint64_t row_of(const DumpEntry& e, bool backward) {
  return 2 * static_cast<std::uint64_t>(e.stream) + (backward ? 2 : 1);
}

ordered_json named(const char* what, const std::string& name, std::uint64_t row) {
  return {{"ph", "M"}, {"name", what}, {"pid", 1}, {"tid", row}, {"args", {{"name", name}}}};
}

ordered_json arguments_of(const TapeDump& dump, const DumpEntry& e) {
  ordered_json out = {{"entry", e.index}, {"line", place_of(e)}, {"scope", e.scope}};
  for (std::size_t k = 0; k < e.outputs.size(); ++k)
    out[str("output ", k)] = str(e.outputs[k].dtype, " ", IntArrayRef(e.outputs[k].sizes));
  for (std::size_t k = 0; k < e.saved.size(); ++k) {
    out[str("saved ", k)] = str(e.saved[k].spec.dtype, " ", IntArrayRef(e.saved[k].spec.sizes),
                                " of ", owner_of(dump, e, e.saved[k]));
  }
  out["saved bytes"] = e.saved_bytes;
  return out;
}

// The times given, and a microsecond each for the others.
std::vector<DumpTime> times_of(const TapeDump& dump,
                               const std::vector<DumpHeld>& held,
                               const std::vector<DumpTime>& given) {
  std::map<std::pair<std::uint64_t, bool>, DumpTime> known;
  for (const DumpTime& t : given) {
    TAPER_CHECK(dump.find_entry(t.entry) != nullptr, "to_chrome: a time is given for entry ",
                t.entry, ", which the dump does not have");
    known[{t.entry, t.backward}] = t;
  }
  std::vector<DumpTime> out;
  double now = 0;
  for (const DumpHeld& h : held) {
    const auto at = known.find({h.entry, h.backward});
    out.push_back(at != known.end() ? at->second : DumpTime{h.entry, h.backward, now, 1});
    now = out.back().start + out.back().duration;
  }
  return out;
}

}  // namespace

std::string to_chrome(const TapeDump& dump, const std::vector<DumpTime>& times) {
  const std::vector<DumpHeld> held = held_over_time(dump);
  const std::vector<DumpTime> all = times_of(dump, held, times);
  std::map<std::uint64_t, std::string> rows;
  ordered_json events = ordered_json::array();
  events.push_back(named("process_name", "tape", 0));
  for (std::size_t i = 0; i < held.size(); ++i) {
    const DumpEntry& e = *dump.find_entry(held[i].entry);
    const std::uint64_t row = row_of(e, held[i].backward);
    std::string& name = rows[row];
    name = held[i].backward ? "backward" : "forward";
    if (e.stream != 0) name += str(", stream ", e.stream);
    const double start = all[i].start, end = all[i].start + all[i].duration;
    events.push_back({{"ph", "X"},
                      {"name", e.op},
                      {"cat", held[i].backward ? "backward" : "forward"},
                      {"pid", 1},
                      {"tid", row},
                      {"ts", start},
                      {"dur", all[i].duration},
                      {"args", arguments_of(dump, e)}});
    // An arrow from forward to backward.
    events.push_back({{"ph", held[i].backward ? "f" : "s"},
                      {"name", "tape"},
                      {"cat", "tape"},
                      {"id", e.index},
                      {"pid", 1},
                      {"tid", row},
                      {"ts", start}});
    if (held[i].backward) events.back()["bp"] = "e";
    events.push_back({{"ph", "C"},
                      {"name", "bytes held"},
                      {"pid", 1},
                      {"ts", held[i].backward ? start : end},
                      {"args", {{"saved", held[i].saved}, {"gradients", held[i].gradients}}}});
  }
  for (const auto& [row, name] : rows) events.push_back(named("thread_name", name, row));
  const char* meaning = times.empty() ? "not measured: one microsecond for each entry"
                                      : "measured; one microsecond for entries without a time";
  const ordered_json trace = {{"traceEvents", std::move(events)},
                              {"displayTimeUnit", "ns"},
                              {"otherData", {{"times", meaning}, {"gradients", "an upper bound"}}}};
  return trace.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace taper::lens
