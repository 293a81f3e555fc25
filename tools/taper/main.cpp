// taper, the command: what this build is, the demo, and what `alloc` and `tape` add.
#include <cstdio>
#include <functional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "taper/taper.h"
#include "taper/tools/taper/alloc.h"
#include "taper/tools/taper/demo.h"
#include "taper/tools/taper/tape.h"

namespace {

using taper::tools::DemoOptions;

const char* cuda_kind() {
  if (taper::cuda::device_count() == 0) return "absent";
  return taper::cuda::is_available() ? "real" : "emulated, for tests";
}

int print_info(bool as_json) {
  const nlohmann::ordered_json info = {
      {"version", taper::version()},
      {"cpu_isa", taper::cpu_isa()},
      {"threads", taper::get_num_threads()},
      {"cuda", cuda_kind()},
      {"cuda_available", taper::cuda::is_available()},
      {"cuda_devices", taper::cuda::device_count()},
      {"cuda_missing", taper::cuda::why_no_device()},
      {"sizeof_tensor", sizeof(taper::Tensor)},
      {"sizeof_tensor_impl", sizeof(taper::TensorImpl)},
      {"sizeof_tape_entry", sizeof(taper::Entry)},
  };
  if (as_json) {
    std::printf("%s\n", info.dump(2).c_str());
    return 0;
  }
  for (const auto& [key, value] : info.items()) {
    std::printf("%-20s %s\n", key.c_str(),
                value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  }
  return 0;
}

// `taper run demo` and its options.
void add_demo(CLI::App& run, DemoOptions& demo) {
  CLI::App* train = run.add_subcommand(
      "demo", "Train an MLP on Fashion-MNIST. Ctrl-C and SIGTERM save; --resume goes on");
  const auto one_folder = [](const std::string& name) -> std::string {
    const bool is =
        !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
    return is ? "" : "'" + name + "' is no name of a folder in the folder of all runs";
  };
  train->add_option("--name", demo.name, "Results go to <runs>/<name>")
      ->capture_default_str()
      ->check(one_folder);
  train->add_option("--runs", demo.runs, "Folder of all runs")->capture_default_str();
  CLI::Option* data = train->add_option(
      "--data", demo.data, "Folder with IDX or IDX.gz files (else $TAPER_DATA, else Debian's)");
  train->add_option("--device", demo.device, "Where to train: cpu, cuda, cuda:1")
      ->capture_default_str();
  train->add_option("--epochs", demo.epochs)->capture_default_str()->check(CLI::Range(1, 1000000));
  train->add_option("--batch", demo.batch)->capture_default_str()->check(CLI::Range(1, 60000));
  train->add_option("--lr", demo.lr, "Adam's learning rate at its highest")->capture_default_str();
  train->add_option("--seed", demo.seed)->capture_default_str();
  train->add_option("--threads", demo.threads, "0: as many as there are cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  train->add_option("--limit", demo.limit, "Use so many examples of each set at most")
      ->check(CLI::Range(1, 1000000));
  train->add_option("--max-steps", demo.max_steps, "Stop, resumable, after so many steps")
      ->check(CLI::PositiveNumber);
  train->add_option("--deadline", demo.deadline, "Seconds from SIGTERM to the kill")
      ->capture_default_str();
  train->add_flag("--resume", demo.resume, "Go on where the run of this name stopped");
  train->add_flag("--glyphs", demo.glyphs, "Use the made-up glyphs even if the data is there")
      ->excludes(data);
  train->add_flag("--json", demo.json, "Print the result as JSON");
  train->footer(
      "Examples:\n"
      "  taper run demo\n"
      "  taper run demo --glyphs --epochs 2 --name drawn\n"
      "  taper run demo --device cuda\n"
      "  taper run demo --max-steps 500; taper run demo --resume\n"
      "  taper run demo --json > result.json");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Taper: tensors, a tape, and what stands on them.\n\n"
      "Examples:\n"
      "  taper info --json\n"
      "  taper run demo --epochs 3\n"
      "  taper run demo --name mine --resume     go on after Ctrl-C\n"
      "  taper alloc replay corpus               what allocators do with training's memory\n"
      "  taper tape step.json --html tape.html   what backward will need, and whose it is\n");
  app.require_subcommand(1);

  bool json = false;
  CLI::App* info = app.add_subcommand("info", "What this build and machine are");
  info->add_flag("--json", json, "Print JSON");
  info->footer("Examples:\n  taper info\n  taper info --json");

  CLI::App* run = app.add_subcommand("run", "Run a built-in program");
  run->require_subcommand(1);
  DemoOptions demo;
  add_demo(*run, demo);
  std::function<int()> run_tool;
  taper::tools::add_alloc(app, run_tool);
  taper::tools::add_tape(app, run_tool);

  CLI11_PARSE(app, argc, argv);
  try {
    if (info->parsed()) return print_info(json);
    if (run_tool) return run_tool();
    return taper::tools::run_demo(demo);
  } catch (const taper::Error& e) {
    std::fprintf(stderr, "taper: %s\n", e.message().c_str());
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "taper: %s\n", e.what());
    return 1;
  }
}
