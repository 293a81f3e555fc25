// taper_bench: runs groups of benchmarks beside their peers, in turns, and prints ratios.
#include <cstdio>
#include <fstream>
#include <map>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "taper/benchmarks/alloc.h"
#include "taper/benchmarks/build.h"
#include "taper/benchmarks/core.h"
#include "taper/benchmarks/lens.h"
#include "taper/taper.h"

namespace {

using bench::Result;
using bench::Row;

using Samples = std::map<std::string, std::vector<double>>;

void add(Samples& samples, const std::vector<Result>& results) {
  for (const Result& r : results) samples[r.name].push_back(r.value);
}

std::string peer_path(const char* self) {
  const std::string path =
      std::string(self).substr(0, std::string(self).rfind('/') + 1) + "taper_peer_torch";
  return std::ifstream(path).good() ? path : "";
}

nlohmann::ordered_json row_json(const Row& row, const Samples& ours, const Samples& peer) {
  const double mine = bench::median(ours.at(row.name));
  nlohmann::ordered_json out = {{"name", row.name},     {"ours", mine},     {"peer", nullptr},
                                {"peer_name", nullptr}, {"limit", nullptr}, {"unit", row.unit},
                                {"ratio", nullptr},     {"goal", nullptr},  {"met", nullptr}};
  if (row.limit >= 0) {
    out["limit"] = row.limit;
    out["met"] = mine <= row.limit;
  }
  if (row.least >= 0) {
    out["limit"] = row.least;
    out["met"] = mine >= row.least;
  }
  if (row.goal > 0) out["goal"] = row.goal;
  const auto theirs = peer.find(row.name);
  if (theirs == peer.end()) return out;
  const double other = bench::median(theirs->second);
  out["peer"] = other;
  out["peer_name"] = "LibTorch";
  out["ratio"] = mine / other;
  if (row.goal > 0) out["met"] = mine / other <= row.goal;
  return out;
}

std::string cell(const nlohmann::ordered_json& v, const char* format) {
  if (v.is_null()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, format, v.get<double>());
  return text;
}

const std::vector<Row>& rows_of(const std::string& group) {
  if (group == "alloc") return bench::alloc_rows();
  if (group == "lens") return bench::lens_rows();
  return group == "build" ? bench::build_rows() : bench::core_rows();
}

std::vector<Result> run_ours(const std::string& group, const char* self) {
  if (group == "alloc") return bench::run_alloc(self);
  if (group == "lens") return bench::run_lens();
  return group == "build" ? bench::run_build(self) : bench::run_core();
}

// The peer as installed; in the alloc group also with a heap that glibc does not give back.
std::vector<Result> run_theirs(const std::string& group, const std::string& peer) {
  if (group == "build") return bench::run_build_torch();
  if (group == "lens") return {};  // no peer has one
  const std::string command = "'" + peer + "' " + group;
  std::vector<Result> out = bench::run_lines(command);
  if (group != "alloc") return out;
  const char* keep = "MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=4294967296 ";
  for (const Result& r : bench::run_lines(keep + command))
    out.push_back({r.name + ", heap kept", r.value});
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Benchmarks beside their peers, in one run.\n\nExamples:\n"
      "  taper_bench core\n  taper_bench alloc --rounds 3\n  taper_bench core --rounds 9 --json "
      "core.json\n  taper_bench build\n");
  std::string group = "core", json_file;
  int rounds = 5;
  bool first_op = false, steps = false;
  app.add_option(
         "group", group,
         "alloc: the allocator; core: tiny tensors; lens: watching; build: compiling, starting, "
         "size")
      ->check(CLI::IsMember({"alloc", "core", "lens", "build"}))
      ->capture_default_str();
  app.add_flag("--first-op", first_op)->group("");  // how the build group starts itself
  app.add_flag("--steps", steps)->group("");        // and the alloc group
  app.add_option("--json", json_file, "Also write the rows as JSON");
  app.add_option("--rounds", rounds, "Turns of ours and the peer's; medians count")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (first_op) return bench::print_first_op(), 0;
  if (steps) return bench::print_steps(), 0;
  const std::string peer = peer_path(argv[0]);
  if (peer.empty()) std::printf("No LibTorch here (Debian: libtorch-dev): ours alone.\n");
  Samples ours, theirs;
  for (int r = 0; r < rounds; ++r) {
    std::fprintf(stderr, "round %d/%d\n", r + 1, rounds);
    add(ours, run_ours(group, argv[0]));
    if (!peer.empty()) add(theirs, run_theirs(group, peer));
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::printf("%-32s %10s %10s %8s %6s %6s  %s\n", "name", "ours", "LibTorch", "ratio", "goal",
              "met", "unit");
  for (const Row& row : rows_of(group)) {
    rows.push_back(row_json(row, ours, theirs));
    const auto& j = rows.back();
    std::printf("%-32s %10s %10s %8s %6s %6s  %s\n", row.name.c_str(),
                cell(j["ours"], "%.1f").c_str(), cell(j["peer"], "%.1f").c_str(),
                cell(j["ratio"], "%.3f").c_str(),
                cell(j["goal"].is_null() ? j["limit"] : j["goal"], "%.2f").c_str(),
                j["met"].is_null()     ? "-"
                : j["met"].get<bool>() ? "yes"
                                       : "NO",
                row.unit.c_str());
  }
  if (!json_file.empty()) std::ofstream(json_file) << rows.dump(2) << '\n';
  return 0;
}
