// Runs this test program again, another way: what the environment decides is decided for a process.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

#include <sys/wait.h>

namespace taper::cuda {

struct Rerun {
  int status;  // of waitpid
  std::string output;

  bool passed() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

// `settings` as a shell takes them: "A=1 B=2". The tests of `filter` run, also those that are
// DISABLED_ because they are parts of others.
inline Rerun run_again(const std::string& settings, const std::string& filter) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "GTEST_OUTPUT= TAPER_TEST_AGAIN=1 " + settings + " timeout 900 '" +
                              program +
                              "' --gtest_brief=1 --gtest_also_run_disabled_tests "
                              "--gtest_filter='" +
                              filter + "' 2>&1";
  Rerun run{-1, "$ " + command + "\n"};
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return run;
  char piece[4096];
  while (const size_t size = std::fread(piece, 1, sizeof(piece), pipe)) {
    run.output.append(piece, size);
  }
  run.status = pclose(pipe);
  return run;
}

}  // namespace taper::cuda
