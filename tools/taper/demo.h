// The demo: trains a small network on Fashion-MNIST, and can be stopped and resumed at any step.
#pragma once
#include <cstdint>
#include <string>

namespace taper::tools {

struct DemoOptions {
  std::string name = "demo";  // results go to <runs>/<name>
  std::string runs = "runs";
  std::string data;  // folder of IDX files; empty: found by itself
  std::string device = "cpu";
  std::int64_t epochs = 5, batch = 64, seed = 1, threads = 0;
  std::int64_t limit = 0;           // examples of each set at most; 0: all
  std::int64_t max_steps = 0;       // stop (resumable) after so many steps; 0: run to the end
  double lr = 1e-3, deadline = 30;  // seconds between SIGTERM and the kill that follows it
  bool resume = false, glyphs = false, json = false;
};

// The exit code: 0 when trained to the end, 75 (EX_TEMPFAIL) when stopped and resumable.
int run_demo(const DemoOptions& options);

}  // namespace taper::tools
