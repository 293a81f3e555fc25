// `taper tape`: its options, and what it prints of a dump.
#include "taper/tools/taper/tape.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "taper/autograd/lens/dump.h"
#include "taper/core/base/file.h"
#include "taper/core/base/text.h"
#include "taper/tools/tape/page.h"
#include "taper/tools/taper/alloc_inputs.h"

namespace taper::tools {
namespace {

using lens::DumpBy;
using lens::DumpBytes;
using lens::DumpEdge;
using lens::DumpEntry;
using lens::DumpGroup;
using lens::TapeDump;
using nlohmann::ordered_json;

struct TapeRequest {
  std::string file, other, html, scope, by;
  bool text = false, json = false, dot = false, chrome = false;
};

TapeDump read(const std::string& path) {
  const File file(path);
  std::string text(file.size(), '\0');
  file.read_at(0, text.data(), text.size());
  return lens::from_json(text, path);
}

// The entries of one scope, as if nothing else were there.
TapeDump within(const TapeDump& dump, const std::string& scope) {
  TapeDump out;
  for (const DumpEntry& e : dump.entries) {
    if (e.scope == scope || e.scope.rfind(scope + ".", 0) == 0) out.entries.push_back(e);
  }
  TAPER_CHECK(!out.entries.empty(), "no entry is of scope '", scope,
              "'; --by scope shows those that there are");
  std::map<std::uint32_t, std::uint32_t> places;
  const auto cut = [&](DumpEdge& edge) {
    if (out.find_entry(edge.node) == nullptr && dump.find_leaf(edge.node) == nullptr) edge = {};
  };
  for (DumpEntry& e : out.entries) {
    for (DumpEdge& edge : e.inputs) cut(edge);
    for (lens::DumpSaved& s : e.saved) {
      cut(s.from);
      const auto [at, fresh] =
          places.emplace(s.storage, static_cast<std::uint32_t>(out.storages.size()));
      if (fresh) out.storages.push_back(dump.storages[s.storage]);
      s.storage = at->second;
    }
  }
  for (const lens::DumpLeaf& leaf : dump.leaves) {
    for (const DumpEntry& e : out.entries) {
      const bool used =
          std::find(e.inputs.begin(), e.inputs.end(), DumpEdge{leaf.index, 0}) != e.inputs.end();
      if (!used) continue;
      out.leaves.push_back(leaf);
      break;
    }
  }
  return lens::from_json(to_json(out));  // with its own sums
}

int print_groups(const TapeDump& dump, const TapeRequest& request) {
  const DumpBy by = request.by == "scope" ? DumpBy::kScope
                    : request.by == "op"  ? DumpBy::kOp
                                          : DumpBy::kLine;
  ordered_json list = ordered_json::array();
  Table table({request.by, "entries", "bytes", "activations", "parameters", "data"}, 1);
  for (const DumpGroup& g : bytes_by(dump, by)) {
    list.push_back({{request.by, g.name},
                    {"entries", g.entries},
                    {"bytes", g.bytes.total()},
                    {"activations", g.bytes.activations},
                    {"parameters", g.bytes.parameters},
                    {"data", g.bytes.data}});
    table.add({g.name.empty() ? "all" : g.name, str(g.entries), size_text(g.bytes.total()),
               size_text(g.bytes.activations), size_text(g.bytes.parameters),
               size_text(g.bytes.data)});
  }
  std::printf("%s", request.json ? (list.dump(2) + "\n").c_str() : table.text().c_str());
  return 0;
}

// The entries of one op at one line in one scope.
struct Kind {
  std::int64_t entries = 0, bytes = 0;
};

void count(std::map<std::string, Kind>& kinds, const TapeDump& dump, std::int64_t sign) {
  for (const DumpEntry& e : dump.entries) {
    Kind& k = kinds[str(e.op, " at ", place_of(e), e.scope.empty() ? "" : " in ", e.scope)];
    k.entries += sign;
    k.bytes += sign * static_cast<std::int64_t>(e.first_bytes);
  }
}

std::string change_text(std::int64_t n, const std::string& absolute) {
  return n == 0 ? "" : (n > 0 ? "+" : "-") + absolute;
}

std::uint64_t absolute(std::int64_t n) {
  return static_cast<std::uint64_t>(n < 0 ? -n : n);
}

int print_changes(const TapeDump& from, const TapeDump& to, bool as_json) {
  std::map<std::string, Kind> kinds;
  count(kinds, from, -1), count(kinds, to, 1);
  ordered_json list = ordered_json::array();
  Table table({"entries", "bytes", ""}, 0);
  std::string lines;
  for (const auto& [what, k] : kinds) {
    if (k.entries == 0 && k.bytes == 0) continue;
    list.push_back({{"what", what}, {"entries", k.entries}, {"bytes", k.bytes}});
    table.add({change_text(k.entries, str(absolute(k.entries))),
               change_text(k.bytes, size_text(absolute(k.bytes))), what});
  }
  if (as_json) return std::printf("%s\n", list.dump(2).c_str()), 0;
  if (list.empty()) return std::printf("no change in %zu entries\n", to.entries.size()), 0;
  std::printf("%s", table.text().c_str());
  return 0;
}

int show_tape(const TapeRequest& request) {
  TapeDump dump = read(request.file);
  if (!request.scope.empty()) dump = within(dump, request.scope);
  if (!request.other.empty()) {
    TapeDump other = read(request.other);
    if (!request.scope.empty()) other = within(other, request.scope);
    return print_changes(dump, other, request.json);
  }
  if (!request.by.empty()) return print_groups(dump, request);
  if (!request.html.empty()) {
    std::string name = request.file.substr(request.file.rfind('/') + 1);
    if (!request.scope.empty()) name += ", " + request.scope;
    const std::string page = tape_html(dump, name);
    write_text(request.html, page);
    std::printf("%s  %s, %s\n", request.html.c_str(), size_text(page.size()).c_str(),
                count_text(dump.entries.size(), "row").c_str());
    return 0;
  }
  const std::string out = request.json     ? to_json(dump)
                          : request.dot    ? to_dot(dump)
                          : request.chrome ? to_chrome(dump)
                                           : to_text(dump);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return 0;
}

}  // namespace

void add_tape(CLI::App& app, std::function<int()>& run) {
  auto request = std::make_shared<TapeRequest>();
  CLI::App* tape = app.add_subcommand("tape", "Show a saved dump of the tape");
  tape->add_option("file", request->file, "What lens::to_json(lens::dump(loss)) gave")->required();
  CLI::Option* text = tape->add_flag("--text", request->text, "A table of its entries (default)");
  CLI::Option* json =
      tape->add_flag("--json", request->json, "The dump; of --by and --diff, their rows");
  CLI::Option* dot = tape->add_flag("--dot", request->dot, "For Graphviz");
  CLI::Option* chrome =
      tape->add_flag("--chrome", request->chrome, "For Perfetto and chrome://tracing");
  CLI::Option* html = tape->add_option("--html", request->html, "Write one page to this file");
  tape->add_option("--scope", request->scope, "Only that module and what is inside it");
  CLI::Option* by = tape->add_option("--by", request->by, "Sums instead of entries")
                        ->check(CLI::IsMember({"scope", "op", "line"}));
  CLI::Option* diff =
      tape->add_option("--diff", request->other, "What this dump has more or less than the file");
  for (CLI::Option* one : {text, json, dot, chrome, html}) {
    for (CLI::Option* other : {text, json, dot, chrome, html}) {
      if (one != other) one->excludes(other);
    }
  }
  for (CLI::Option* one : {dot, chrome, html}) one->excludes(by)->excludes(diff);
  by->excludes(diff);
  tape->footer(
      "Bytes are those of storages, each counted where it is saved first. Times of a trace are "
      "not\n"
      "measured: each entry takes a microsecond.\n\n"
      "Examples:\n"
      "  taper tape step.json\n"
      "  taper tape step.json --by scope\n"
      "  taper tape step.json --html tape.html\n"
      "  taper tape step.json --scope blocks.0 --dot | dot -Tsvg -o block.svg\n"
      "  taper tape step.json --chrome > trace.json\n"
      "  taper tape step_10.json --diff step_11.json");
  tape->callback([&run, request] { run = [request] { return show_tape(*request); }; });
}

}  // namespace taper::tools
