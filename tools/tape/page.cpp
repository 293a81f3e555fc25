// Puts the tape's page together: its data are the dump and what is derived from it.
#include "taper/tools/tape/page.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "taper/autograd/lens/flops.h"
#include "taper/tools/page_style.h"
#include "taper/tools/tape/page_parts.h"

namespace taper::tools {
namespace {

using nlohmann::ordered_json;

// [name, entries, activations, parameters, data] each.
ordered_json groups_of(const lens::TapeDump& dump, lens::DumpBy by) {
  ordered_json out = ordered_json::array();
  for (const lens::DumpGroup& g : bytes_by(dump, by)) {
    out.push_back({g.name, g.entries, g.bytes.activations, g.bytes.parameters, g.bytes.data});
  }
  return out;
}

// [place of the entry, backward, saved, gradients] each, and which is the peak.
ordered_json held_of(const lens::TapeDump& dump) {
  ordered_json out = ordered_json::array();
  const std::size_t n = dump.entries.size();
  for (const lens::DumpHeld& h : held_over_time(dump)) {
    const std::size_t place = h.backward ? 2 * n - 1 - out.size() : out.size();
    out.push_back({place, h.backward, h.saved, h.gradients});
  }
  return out;
}

ordered_json owners_of(const lens::TapeDump& dump, const lens::DumpEntry& e) {
  ordered_json out = ordered_json::array();
  for (const lens::DumpSaved& s : e.saved) out.push_back(owner_of(dump, e, s));
  return out;
}

// Inside <script> no text may end it.
void append_safely(std::string& page, const std::string& json) {
  for (const char c : json) {
    if (c == '<') page += "\\u003c";
    else page += c;
  }
}

}  // namespace

std::string tape_html(const lens::TapeDump& dump, const std::string& name) {
  ordered_json more = {{"name", name},
                       {"held", held_of(dump)},
                       {"scope", groups_of(dump, lens::DumpBy::kScope)},
                       {"op", groups_of(dump, lens::DumpBy::kOp)},
                       {"line", groups_of(dump, lens::DumpBy::kLine)}};
  ordered_json flops = ordered_json::array(), owners = flops;
  for (const lens::DumpEntry& e : dump.entries) {
    const double n = recompute_flops(dump, e);
    flops.push_back(std::isnan(n) ? ordered_json() : ordered_json(n));
    owners.push_back(owners_of(dump, e));
  }
  more["flops"] = std::move(flops);
  more["owners"] = std::move(owners);
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Tape</title>\n<style>\n";
  page += kPageStyle;
  page += kTapeBody;
  page += "<script type=\"application/json\" id=\"tape\">";
  append_safely(page, to_json(dump));
  page += "</script>\n<script type=\"application/json\" id=\"more\">";
  append_safely(page, more.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  page += "</script>\n<script>\n";
  page += kTapeScript;
  return page + "</script>\n</body>\n</html>\n";
}

}  // namespace taper::tools
