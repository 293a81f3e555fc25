// Compiles, starts and strips, and reads the clocks.
#include "taper/benchmarks/build.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <sys/resource.h>
#include <unistd.h>

#include "taper/taper.h"

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInclude = "include: user time";
constexpr const char* kTrain = "hello-train at -O0 -g: user time";
constexpr const char* kLines = "include: preprocessed lines";
constexpr const char* kStart = "process start to first op";
constexpr const char* kSize = "library, stripped";

double user_seconds_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

// User seconds, which a busy machine disturbs least.
double seconds_of(const std::string& command) {
  const double before = user_seconds_of_children();
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  return user_seconds_of_children() - before;
}

// A folder that goes away with this object.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("taper_bench_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }

 private:
  fs::path path_;
};

std::vector<Result> compile(const std::string& header,
                            const std::string& flags,
                            const std::string& train) {
  const Folder folder;
  const std::string includer = folder.write("includer.cpp", "#include <" + header + ">\n");
  const std::string compiler = std::string(TAPER_BENCH_CXX) + " " + flags + " ";
  const std::string expanded = folder.file("expanded.i"), object = folder.file("train.o");
  std::vector<Result> out;
  out.push_back({kInclude, seconds_of(compiler + "-fsyntax-only " + includer)});
  out.push_back({kTrain, seconds_of(compiler + "-O0 -g -c " + train + " -o " + object)});
  seconds_of(compiler + "-E " + includer + " -o " + expanded);
  std::ifstream text(expanded);
  double lines = 0;
  for (std::string line; std::getline(text, line);) ++lines;
  out.push_back({kLines, lines});
  return out;
}

// The started copy reads the same clock as we do: both count from the machine's start.
double milliseconds_to_first_op(const std::string& self) {
  const double start = now();
  const std::vector<Result> printed = run_lines("exec '" + self + "' --first-op");
  if (printed.empty()) throw std::runtime_error("cannot start " + self);
  return (printed[0].value - start) * 1e3;
}

double stripped_megabytes() {
  const Folder folder;
  const std::string copy = folder.file("stripped.so");
  seconds_of(std::string("strip ") + TAPER_BENCH_LIBRARY + " -o " + copy);
  return static_cast<double>(fs::file_size(copy)) * 1e-6;
}

std::vector<Row> rows(const Setup&) {
  return {
      {kInclude, "s", {}, 1.5}, {kTrain, "s", {}, 3},  {kLines, "lines", {}, 100000},
      {kStart, "ms", {}, 20},   {kSize, "MB", {}, 10},
  };
}

std::vector<Result> whole(const Setup& setup) {
  std::vector<Result> out =
      compile("taper/taper.h", "-std=c++20 -I" TAPER_BENCH_INCLUDE, TAPER_BENCH_TRAIN);
  out.push_back({kStart, milliseconds_to_first_op(setup.self)});
  out.push_back({kSize, stripped_megabytes()});
  return out;
}

#ifdef TAPER_BENCH_TORCH_INCLUDE
std::vector<Result> compile_torch() {
  return compile("torch/torch.h", "-std=c++17 -I" TAPER_BENCH_TORCH_INCLUDE,
                 TAPER_BENCH_TORCH_TRAIN);
}

std::vector<Peer> peers(const Setup& setup) {
  if (!setup.peers) return {};
  return {{kTorch, {}, compile_torch}};
}
#else
std::vector<Peer> peers(const Setup&) {
  return {};
}
#endif

}  // namespace

const Group kBuild = {"build", "compiling, starting, size", rows, peers, nullptr, whole};

void print_first_op() {
  const taper::Tensor y = taper::ones({1}) + 1;
  keep(y.item<float>());
  std::printf("clock\t%.9f\n", now());
}

}  // namespace bench
