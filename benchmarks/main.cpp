// taper_bench: runs a group of benchmarks beside its peers, in turns, and prints ratios.
#include <cmath>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "taper/benchmarks/alloc.h"
#include "taper/benchmarks/build.h"
#include "taper/benchmarks/core.h"
#include "taper/benchmarks/gemm.h"
#include "taper/benchmarks/growth.h"
#include "taper/benchmarks/kernels.h"
#include "taper/benchmarks/lens.h"
#include "taper/benchmarks/machine.h"
#include "taper/benchmarks/peers.h"
#include "taper/benchmarks/report.h"
#include "taper/benchmarks/roofline.h"
#include "taper/benchmarks/train.h"
#include "taper/taper.h"

namespace {

using namespace bench;

const std::vector<const Group*>& groups() {
  static const std::vector<const Group*> all = {&kAlloc,   &kBuild, &kCore, &kGemm,
                                                &kKernels, &kLens,  &kTrain};
  return all;
}

const Group& group_named(const std::string& name) {
  for (const Group* g : groups()) {
    if (g->name == name) return *g;
  }
  return kCore;
}

void print_machine(const std::vector<int>& threads) {
  for (const int n : threads) {
    std::printf("%d thread%s: copy %.1f GB/s; FMA GFLOP/s:", n, n == 1 ? "" : "s",
                stream_bytes(n) / 1e9);
    for (const std::string& isa : machine_isas())
      std::printf(" %s %.0f", isa.c_str(), peak_flops(isa, n) / 1e9);
    std::printf("\n");
  }
}

// Each row: ours, then at once the peers.
void take_turns(const Group& group, const Setup& setup, std::vector<Column>& columns, Report& out) {
  for (const Row& row : out.rows()) {
    if (!row.best_of.empty() || !row.above_limit_of.empty()) continue;
    const double units = units_in_a_second(row.unit);
    const Turn turn = group.turn(setup, row.name);
    out.add(row.name, kOurs, turn.ours * units);
    out.add(row.name, kLimit, turn.limit > 0 ? turn.limit * units : std::nan(""));
    for (Column& c : columns) out.add(row.name, c.name(), c.ask(row.name) * units);
  }
}

void run_whole(const Group& group,
               const Setup& setup,
               const std::vector<Peer>& peers,
               Report& out) {
  for (const Result& r : group.whole(setup)) out.add(r.name, kOurs, r.value);
  for (const Peer& p : peers) {
    const std::vector<Result> results = p.here != nullptr ? p.here() : run_lines(p.commands[0]);
    for (const Result& r : results) out.add(r.name, p.name, r.value);
  }
}

std::vector<Line> run(const Group& group, const Setup& setup, int rounds) {
  taper::set_num_threads(setup.threads);
  const std::vector<Peer> peers = group.peers(setup);
  std::vector<std::string> names;
  std::vector<Column> columns;
  if (group.turn != nullptr) names.emplace_back(kLimit);
  for (const Peer& p : peers) {
    names.push_back(p.name);
    if (group.turn != nullptr) columns.emplace_back(p);
  }
  Report report(group.rows(setup), names, setup.threads);
  for (int r = 0; r < rounds; ++r) {
    std::fprintf(stderr, "%d thread%s, round %d/%d\n", setup.threads, setup.threads == 1 ? "" : "s",
                 r + 1, rounds);
    if (group.turn != nullptr) take_turns(group, setup, columns, report);
    else run_whole(group, setup, peers, report);
    report.end_round();
  }
  return report.lines();
}

std::string list_of_groups() {
  std::string out;
  for (const Group* g : groups()) out += std::string("\n") + g->name + ": " + g->about;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Benchmarks beside their peers and the machine's limits, in one run. See "
      "docs/benchmarks.md.\n\n"
      "Examples:\n"
      "  taper_bench core\n"
      "  taper_bench gemm --threads 1,2 --json gemm.json\n"
      "  taper_bench train --rounds 9 --svg train.svg --roofline roofs.svg\n"
      "  taper_bench kernels --threads 1 --growth growth.svg\n"
      "  TAPER_PYTHON=~/torch/bin/python taper_bench train\n");
  std::string group_name = "core", json_file, svg_file, roofline_file, growth_file;
  std::vector<int> threads;
  int rounds = 5;
  bool first_op = false, steps = false;
  Setup setup;
  setup.self = argv[0];
  std::vector<std::string> names;
  for (const Group* g : groups()) names.emplace_back(g->name);
  app.add_option("group", group_name, "What to measure:" + list_of_groups())
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_flag("--first-op", first_op)->group("");  // how the build group starts itself
  app.add_flag("--steps", steps)->group("");        // and the alloc group
  app.add_flag("--tiny", setup.tiny, "Sizes for a test of the benchmarks themselves; no peers");
  app.add_option("--threads", threads,
                 "Numbers of threads, as 1,2; as many as the library would use")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--json", json_file, "Also write the rows as JSON");
  app.add_option("--svg", svg_file, "Also draw the ratios");
  app.add_option("--roofline", roofline_file,
                 "Also draw the ops of training steps under the machine's roofs, on the last "
                 "number of threads");
  app.add_option(
      "--growth", growth_file,
      "Also draw how kernels grow with size and ops with the tape, on the last number of threads");
  app.add_option("--rounds", rounds, "Turns of ours and the peers'; medians count")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (first_op) return print_first_op(), 0;
  if (steps) return print_steps(), 0;
  if (threads.empty()) threads = {taper::get_num_threads()};
  if (setup.tiny) setup.peers = false;
  else if (program_beside(setup, "taper_peer_torch").empty())
    std::printf("No LibTorch here (Debian: libtorch-dev): its columns are missing.\n");
  const Group& group = group_named(group_name);
  if (group.turn != nullptr) print_machine(threads);
  std::vector<Line> all;
  for (const int n : threads) {
    setup.threads = n;
    const std::vector<Line> lines = run(group, setup, rounds);
    std::printf("\n%s, %d thread%s, %s\n", group.name, n, n == 1 ? "" : "s", taper::cpu_isa());
    print_table(lines);
    all.insert(all.end(), lines.begin(), lines.end());
  }
  if (!json_file.empty()) write_json(json_file, all);
  if (!svg_file.empty()) write_svg(svg_file, group.name, all);
  if (!roofline_file.empty()) draw_rooflines(setup, roofline_file);
  if (!growth_file.empty()) draw_growth(setup, growth_file);
  return 0;
}
