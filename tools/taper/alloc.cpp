// The words and options of `taper alloc`.
#include "taper/tools/taper/alloc.h"

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "taper/tools/taper/alloc_commands.h"

namespace taper::tools {
namespace {

using Run = std::function<int()>;

constexpr const char* kInputs =
    "Trace files of any known format, workloads (see generate --list), corpus, or all";
constexpr const char* kInput = "A trace file of any known format, or a workload";

// A subcommand, and the request that its options fill.
template <class Request>
CLI::App* add(CLI::App& alloc,
              Run& run,
              const char* name,
              const char* what,
              int (*command)(const Request&),
              std::shared_ptr<Request>& request) {
  request = std::make_shared<Request>();
  CLI::App* app = alloc.add_subcommand(name, what);
  app->add_flag("--json", request->json, "Print JSON, with exact numbers");
  app->callback(
      [&run, request, command] { run = [request, command] { return command(*request); }; });
  return app;
}

void add_machine(CLI::App& app, AllocMachine& machine, bool several) {
  if (!several) machine.policies = "taper";
  app.add_option("--policy", machine.policies,
                 several ? "Of taper, torch_native, torch_expandable; with commas between"
                         : "taper, torch_native or torch_expandable")
      ->capture_default_str();
  app.add_option("--options", machine.options,
                 "The policy's settings as TAPER_ALLOC spells them: key:value,key:value");
  app.add_option("--threads", machine.threads, "Threads that take turns, each for its streams")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--timing-seed", machine.timing_seed,
                 "Work on the device takes up to 4 times longer or shorter, by this chance; "
                 "0: what the trace says")
      ->capture_default_str();
}

void add_capacity(CLI::App& app, AllocMachine& machine) {
  app.add_option("--capacity", machine.capacity,
                 "Of the simulated device: 80G (default: as much as it takes)");
}

void add_replay(CLI::App& alloc, Run& run) {
  std::shared_ptr<ReplayRequest> request;
  CLI::App* app = add(alloc, run, "replay", "Replay traces under policies and compare figures",
                      replay_traces, request);
  app->add_option("input", request->inputs, kInputs)->required();
  add_machine(*app, request->machine, true);
  add_capacity(*app, request->machine);
  app->add_flag("--brief", request->brief, "Only reserved / max load, a column for each policy");
  app->add_option("--time", request->time,
                  "Measure nanoseconds an event too: the median of so many runs")
      ->check(CLI::Range(1, 1000));
  app->footer(
      "Peaks are over the whole run. Shares and cached bytes are of the event at which reserved\n"
      "first was at its peak: internal and external are lost to rounding and lying free, of what\n"
      "is reserved; releasable is cached in whole pages, pinned beside live blocks; scattered is\n"
      "the share of free bytes outside the largest free block; squares sums the squares of the\n"
      "free blocks' shares. `a step` is pages mapped for each step after the first quarter.\n\n"
      "Examples:\n"
      "  taper alloc replay corpus\n"
      "  taper alloc replay snapshot.pickle --policy taper,torch_native --capacity 80G\n"
      "  taper alloc replay pins --policy taper --options slack:0 --json");
}

void add_min_capacity(CLI::App& alloc, Run& run) {
  std::shared_ptr<ReplayRequest> request;
  CLI::App* app = add(alloc, run, "min-capacity",
                      "Find the smallest device on which traces finish, to one page",
                      find_min_capacity, request);
  app->add_option("input", request->inputs, kInputs)->required();
  app->add_flag("--brief", request->brief, "Only ratios, a column for each policy");
  add_machine(*app, request->machine, true);
  app->footer(
      "Examples:\n"
      "  taper alloc min-capacity corpus --policy taper\n"
      "  taper alloc min-capacity run.trace --json");
}

void add_generate(CLI::App& alloc, Run& run) {
  std::shared_ptr<GenerateRequest> request;
  CLI::App* app =
      add(alloc, run, "generate", "Write workloads as trace files", generate_traces, request);
  app->add_option("name", request->names, "Workloads, corpus, or all");
  app->add_option("-o,--out", request->out, "The file, or for several the folder");
  app->add_option("--format", request->format,
                  "binary, json or pickle (default: by the file's name, else binary)");
  app->add_flag("--list", request->list, "Show the workloads");
  app->footer(
      "Examples:\n"
      "  taper alloc generate --list\n"
      "  taper alloc generate pins -o pins.pickle\n"
      "  taper alloc generate corpus -o traces --format json");
}

void add_convert(CLI::App& alloc, Run& run) {
  std::shared_ptr<ConvertRequest> request;
  CLI::App* app =
      add(alloc, run, "convert", "Write a trace in another format", convert_trace, request);
  app->alias("import");
  app->add_option("input", request->input, kInput)->required();
  app->add_option("-o,--out", request->out, "The file")->required();
  app->add_option("--format", request->format,
                  "binary, json or pickle (default: by the file's name, else binary)");
  app->footer(
      "Reads Taper's traces, PyTorch's snapshots, RMM's logs, STAlloc's traces, and lifetimes of\n"
      "MiniMalloc and idealloc; the content says which it is.\n\n"
      "Examples:\n"
      "  taper alloc convert snapshot.pickle -o run.trace\n"
      "  taper alloc convert rmm_log.csv -o run.json");
}

void add_report(CLI::App& alloc, Run& run) {
  std::shared_ptr<ReportRequest> request;
  CLI::App* app = add(alloc, run, "report", "Write one HTML page that shows a trace's memory",
                      write_report, request);
  app->add_option("input", request->input, kInput)->required();
  app->add_option("-o,--out", request->out, "The page")->required();
  app->add_option("--device", request->device, "Which one, where a file has several");
  add_machine(*app, request->machine, true);
  add_capacity(*app, request->machine);
  app->footer(
      "Examples:\n"
      "  taper alloc report run.trace -o run.html\n"
      "  taper alloc report pins -o pins.html --policy taper,torch_native");
}

void add_map(CLI::App& alloc, Run& run) {
  std::shared_ptr<MapRequest> request;
  CLI::App* app =
      add(alloc, run, "map", "Draw memory after an event, a character a page", show_map, request);
  app->add_option("input", request->input, kInput)->required();
  app->add_option("--at", request->at, "After this event, from 0 (default: where most is reserved)")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--page", request->page, "Bytes for a character")->capture_default_str();
  app->add_option("--device", request->device, "Which one, where a file has several");
  add_machine(*app, request->machine, false);
  add_capacity(*app, request->machine);
  app->footer(
      "Examples:\n"
      "  taper alloc map pins --at 1000\n"
      "  taper alloc map run.trace --policy torch_native --page 20M");
}

void add_plan(CLI::App& alloc, Run& run) {
  std::shared_ptr<PlanRequest> request;
  CLI::App* app = add(alloc, run, "plan", "Plan offline where the blocks of a step would lie",
                      plan_trace, request);
  app->add_option("input", request->input, kInput)->required();
  app->add_option("-o,--out", request->out, "Write the offsets to this file, as JSON");
  app->add_option("--device", request->device, "Which one, where a file has several");
  app->add_flag("--whole", request->whole, "Plan the whole trace, not a step");
  app->add_option("--alignment", request->alignment,
                  "Sizes are rounded up to it: 512, 64K; a power of two")
      ->capture_default_str();
  app->add_option("--search", request->search,
                  "Search so many seconds for a lower plan, of at most 10,000 blocks")
      ->check(CLI::Range(0.0, 1e6));
  app->footer(
      "Plans the last step that does what the step before it did, or the whole trace where there\n"
      "is none. Then replays the trace with plan:on, which does the same while it runs.\n\n"
      "A plan is made greedily, in milliseconds, and is the same each time. --search goes on from\n"
      "there, and ends early once the plan takes no more than the max load. What it finds depends\n"
      "on how quick the machine is.\n\n"
      "Examples:\n"
      "  taper alloc plan resnet_like\n"
      "  taper alloc plan run.trace -o plan.json\n"
      "  taper alloc plan lifetimes.csv --alignment 1 --search 60 -o plan.json");
}

void add_trace(CLI::App& alloc, Run& run) {
  std::shared_ptr<RecordRequest> request;
  CLI::App* app =
      add(alloc, run, "trace", "Run a program and record its memory", record_program, request);
  app->add_option("-o,--out", request->out,
                  "The file; .pickle and .json are what they say, else binary")
      ->capture_default_str();
  app->add_option("program", request->program, "The program and its arguments, after --")
      ->required();
  app->footer(
      "Adds trace:FILE to TAPER_ALLOC, which the program reads; ends with the program's code.\n\n"
      "Examples:\n"
      "  taper alloc trace -- ./train data\n"
      "  taper alloc trace -o run.pickle -- taper run demo --glyphs --epochs 1");
}

}  // namespace

void add_alloc(CLI::App& app, std::function<int()>& run) {
  CLI::App* alloc =
      app.add_subcommand("alloc", "Record, replay, plan and show how memory is allocated");
  alloc->require_subcommand(1);
  alloc->footer(
      "Examples:\n"
      "  taper alloc trace -o run.trace -- ./train\n"
      "  taper alloc replay run.trace\n"
      "  taper alloc report run.trace -o run.html");
  add_trace(*alloc, run);
  add_replay(*alloc, run);
  add_min_capacity(*alloc, run);
  add_report(*alloc, run);
  add_map(*alloc, run);
  add_plan(*alloc, run);
  add_generate(*alloc, run);
  add_convert(*alloc, run);
}

}  // namespace taper::tools
