// Starts peers in their settings, and talks to them through pipes.
#include "taper/benchmarks/peers.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {
namespace {

std::string threads_setting(const Setup& setup) {
  return "OMP_NUM_THREADS=" + std::to_string(setup.threads);
}

// Where Debian keeps the OpenBLAS whose threads are OpenMP's, which are LibTorch's too.
std::string openmp_blas() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib", ignored)) {
    const auto folder = entry.path() / "openblas-openmp";
    if (std::filesystem::exists(folder / "libopenblas.so.0", ignored)) return folder.string();
  }
  return "";
}

std::string without_openblas_variables() {
  std::string out = "env";
  for (char** v = environ; *v != nullptr; ++v) {
    if (std::strncmp(*v, "OPENBLAS_", 9) == 0)
      out += " -u " + std::string(*v).substr(0, std::string(*v).find('='));
  }
  return out;
}

std::string best_settings(const Setup& setup) {
  const std::string blas = openmp_blas();
  return without_openblas_variables() + " " + threads_setting(setup) +
         " MALLOC_MMAP_THRESHOLD_=8589934592 MALLOC_TRIM_THRESHOLD_=17179869184"
         " GOMP_SPINCOUNT=10000 " +
         (blas.empty() ? "" : "LD_LIBRARY_PATH='" + blas + "' ");
}

std::string first_line_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  char line[256] = "";
  if (std::fgets(line, sizeof line, pipe) == nullptr) line[0] = '\0';
  pclose(pipe);
  return std::string(line).substr(0, std::string(line).find('\n'));
}

std::string quoted(const std::string& path) {
  return "'" + path + "'";
}

}  // namespace

Process::Process(const std::string& command) {
  std::signal(SIGPIPE, SIG_IGN);  // a peer that died shows as NaN
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe to a peer");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  std::string text = "exec " + command;
  std::string shell = "sh", option = "-c";
  char* argv[] = {shell.data(), option.data(), text.data(), nullptr};
  if (posix_spawn(&pid_, "/bin/sh", &actions, nullptr, argv, environ) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  to_ = fdopen(in[1], "w");
  from_ = fdopen(out[0], "r");
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      to_(std::exchange(other.to_, nullptr)),
      from_(std::exchange(other.from_, nullptr)) {}

Process::~Process() {
  if (to_ != nullptr) std::fclose(to_);  // the end of its input ends it
  if (from_ != nullptr) std::fclose(from_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

double Process::ask(const std::string& row) {
  if (std::fprintf(to_, "%s\n", row.c_str()) < 0 || std::fflush(to_) != 0) return std::nan("");
  char line[256];
  while (std::fgets(line, sizeof line, from_) != nullptr) {  // others' notes are passed over
    if (std::strncmp(line, row.c_str(), row.size()) == 0 && line[row.size()] == '\t')
      return std::strtod(line + row.size() + 1, nullptr);
  }
  return std::nan("");
}

Column::Column(const Peer& peer) : name_(peer.name) {
  for (const std::string& command : peer.commands) processes_.emplace_back(command);
}

double Column::ask(const std::string& row) {
  double best = std::nan("");
  for (Process& p : processes_) best = std::fmin(best, p.ask(row));
  return best;
}

std::string program_beside(const Setup& setup, const std::string& program) {
  const std::string path = setup.self.substr(0, setup.self.rfind('/') + 1) + program;
  return std::ifstream(path).good() ? quoted(path) : "";
}

std::vector<Peer> torch_peers(const Setup& setup, const std::string& group) {
  std::vector<Peer> out;
  if (!setup.peers) return out;
  const std::string best = best_settings(setup);
  if (const std::string program = program_beside(setup, "taper_peer_torch"); !program.empty()) {
    const std::string call = program + " " + group;
    out.push_back({kTorch, {"env " + threads_setting(setup) + " " + call}});
    out.push_back({kBestTorch, {best + call}});
  }
  const char* named = std::getenv("TAPER_PYTHON");
  const std::string python = quoted(named == nullptr ? "python3" : named);
  const std::string version =
      first_line_of(python + " -c 'import torch; print(torch.__version__)' 2>/dev/null");
  if (!version.empty() && (group == "train" || group == "kernels"))
    out.push_back({"PyTorch " + version,
                   {best + python + " " + quoted(TAPER_BENCH_PYTHON_PEER) + " " + group}});
  return out;
}

// OpenBLAS chooses its kernels by the processor it sees, and not always the best: the least of its
// own choice and of those for AVX-512 and AVX2 counts.
std::vector<Peer> gemm_peers(const Setup& setup) {
  const std::string program = setup.peers ? program_beside(setup, "taper_peer_gemm") : "";
  if (program.empty()) return {};
  const std::string best = best_settings(setup);
  const std::string blas = program + " openblas";
  Peer openblas{"OpenBLAS", {best + blas}};
  for (const char* core : {"SKYLAKEX", "HASWELL"})
    openblas.commands.push_back(best + "OPENBLAS_CORETYPE=" + core + " " + blas);
  return {openblas, {"oneDNN", {best + program + " onednn"}}};
}

}  // namespace bench
