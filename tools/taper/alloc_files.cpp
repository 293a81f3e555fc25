// `taper alloc generate`, `convert` and `trace`: where trace files come from.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "taper/allocator/options.h"
#include "taper/allocator/plan.h"
#include "taper/allocator/snapshot.h"
#include "taper/core/base/error.h"
#include "taper/tools/alloc/trace_file.h"
#include "taper/tools/alloc/workloads.h"
#include "taper/tools/taper/alloc_inputs.h"

namespace taper::tools {
namespace {

using nlohmann::ordered_json;

struct Format {
  const char* name;
  const char* extension;
  void (*write)(const Snapshot&, const std::string&);
};

constexpr Format kFormats[] = {{"binary", ".trace", write_binary},
                               {"json", ".json", write_json},
                               {"pickle", ".pickle", write_pickle}};

// By name, or else by the file's name, or else binary.
const Format& format_of(const std::string& name, const std::string& file) {
  for (const Format& f : kFormats) {
    if (name.empty() ? file.ends_with(f.extension) : name == f.name) return f;
  }
  TAPER_CHECK(name.empty(), "there is no format '", name, "'; there are binary, json, pickle");
  return kFormats[0];
}

Snapshot snapshot_of(std::vector<Trace> traces) {
  Snapshot out;
  for (Trace& trace : traces) {
    DeviceSnapshot d;
    d.device = trace.device;
    d.trace = std::move(trace);
    out.devices.push_back(std::move(d));
  }
  return out;
}

std::uint64_t size_of(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 ? static_cast<std::uint64_t>(st.st_size) : 0;
}

bool is_folder(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

ordered_json json_of(const std::string& file, const Trace& trace) {
  return {{"file", file},
          {"bytes", size_of(file)},
          {"device", trace.device},
          {"source", trace.source},
          {"events", trace.events.size()},
          {"allocations", trace.allocations},
          {"steps", steps_of(trace)},
          {"streams", trace.streams.size()},
          {"max_load", max_load(intervals_of(trace))}};
}

int list_workloads(bool as_json) {
  ordered_json list = ordered_json::array();
  Table table({"name", "corpus", "shapes", "what"}, 4);
  for (const Workload& w : workloads()) {
    list.push_back({{"name", w.name},
                    {"what", w.what},
                    {"in_corpus", w.in_corpus},
                    {"fixed_shapes", w.fixed_shapes}});
    table.add({w.name, w.in_corpus ? "yes" : "", w.fixed_shapes ? "fixed" : "varying", w.what});
  }
  std::printf("%s", as_json ? (list.dump(2) + "\n").c_str() : table.text().c_str());
  return 0;
}

// What `-o` means for each of `count` files.
std::string target(const GenerateRequest& request, const std::string& name, std::size_t count) {
  const std::string file = name + format_of(request.format, "").extension;
  if (request.out.empty()) return file;
  if (count == 1 && !is_folder(request.out) && request.out.back() != '/') return request.out;
  TAPER_CHECK(mkdir(request.out.c_str(), 0777) == 0 || is_folder(request.out), request.out,
              " is to be a folder for ", count_text(count, "file"), ", and cannot be one");
  return request.out + (request.out.back() == '/' ? "" : "/") + file;
}

// What a file looks like from outside; a file that was replaced differs.
struct Fingerprint {
  explicit Fingerprint(const std::string& path) {
    struct stat st {};
    if (stat(path.c_str(), &st) == 0)
      there = true, inode = st.st_ino, size = st.st_size, time = st.st_mtim.tv_nsec;
  }

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;

  bool there = false;
  ino_t inode = 0;
  off_t size = 0;
  long time = 0;
};

std::string absolute(const std::string& path) {
  if (!path.empty() && path[0] == '/') return path;
  char here[4096];
  TAPER_CHECK(getcwd(here, sizeof here) != nullptr,
              "this folder's name cannot be had: ", std::strerror(errno));
  return str(here, "/", path);
}

// What TAPER_ALLOC is to be for the program. Throws where it would be refused there.
std::string recording_options(const std::string& file) {
  const char* set = std::getenv("TAPER_ALLOC");
  const std::string kept = set == nullptr ? "" : set;
  TAPER_CHECK(file.find(',') == std::string::npos, "'", file,
              "' cannot be recorded to: TAPER_ALLOC has no way to write a comma in a name");
  TAPER_CHECK(parse_allocator_options(kept).trace_file.empty(),
              "TAPER_ALLOC already says where the trace goes (", kept,
              "); take that out, or run the program as it is");
  const std::string all = str(kept, kept.empty() ? "" : ",", "trace:", file);
  parse_allocator_options(all);
  return all;
}

// Runs the program as a shell would; returns its exit code, or 128 and the signal.
int run_program(const std::vector<std::string>& program, const std::string& options, bool quiet) {
  std::vector<std::string> own = program;  // execvp wants them writable
  std::vector<char*> words;
  for (std::string& word : own) words.push_back(word.data());
  words.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = fork();
  TAPER_CHECK(child >= 0, "cannot start a program: ", std::strerror(errno));
  if (child == 0) {
    setenv("TAPER_ALLOC", options.c_str(), 1);
    if (quiet) dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(words[0], words.data());
    std::fprintf(stderr, "taper: cannot run %s: %s\n", words[0], std::strerror(errno));
    _exit(127);
  }
  // Ctrl-C is for the program: what it writes at its end is still to be read.
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  sigaction(SIGINT, &before, nullptr);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int generate_traces(const GenerateRequest& request) {
  if (request.list) return list_workloads(request.json);
  TAPER_CHECK(!request.names.empty(), "name workloads, or corpus, or all; --list shows them");
  const std::vector<std::string> names = expand_inputs(request.names);
  for (const std::string& name : names) {
    TAPER_CHECK(find_workload(name) != nullptr, "'", name,
                "' is no workload; --list shows those that there are, and `taper alloc convert` "
                "turns files into others");
  }
  const Format& format = format_of(request.format, names.size() == 1 ? request.out : "");
  ordered_json list = ordered_json::array();
  LateProgress progress("generate", names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string file = target(request, names[i], names.size());
    const Snapshot snapshot = snapshot_of({load_inputs(names[i]).front().trace});
    format.write(snapshot, file);
    const Trace& trace = snapshot.devices.front().trace;
    list.push_back(json_of(file, trace));
    if (!request.json) {
      std::printf("%s  %s, %s\n", file.c_str(), size_text(size_of(file)).c_str(),
                  summary_of(trace).c_str());
    }
    progress.update(i + 1, names[i]);
  }
  if (request.json) std::printf("%s\n", list.dump(2).c_str());
  return 0;
}

int convert_trace(const ConvertRequest& request) {
  const Format& format = format_of(request.format, request.out);
  std::vector<Trace> traces;
  expand_inputs({request.input});
  TAPER_CHECK(request.input != "corpus" && request.input != "all",
              "convert takes one file; `taper alloc generate` writes many");
  for (AllocInput& input : load_inputs(request.input)) traces.push_back(std::move(input.trace));
  const Snapshot snapshot = snapshot_of(std::move(traces));
  format.write(snapshot, request.out);
  ordered_json list = ordered_json::array();
  for (const DeviceSnapshot& d : snapshot.devices) {
    list.push_back(json_of(request.out, d.trace));
    if (!request.json) {
      std::printf("%s  %s, %s: %s\n", request.out.c_str(), size_text(size_of(request.out)).c_str(),
                  d.device.empty() ? "one device" : d.device.c_str(), summary_of(d.trace).c_str());
    }
  }
  if (request.json) std::printf("%s\n", list.dump(2).c_str());
  return 0;
}

int record_program(const RecordRequest& request) {
  const std::string file = absolute(request.out);
  const std::string options = recording_options(file);
  const Fingerprint before(file);
  const int code = run_program(request.program, options, request.json);
  const Fingerprint after(file);
  const bool written = after.there && after != before;
  if (!written && code != 0) {
    std::fprintf(stderr, "taper: %s ended with code %d and wrote no trace\n",
                 request.program[0].c_str(), code);
    return code;
  }
  TAPER_CHECK(written, request.program[0], " wrote no trace to ", request.out,
              "; only a program that makes tensors with Taper, and ends by itself, does");
  ordered_json list = ordered_json::array();
  for (const Trace& trace : read_trace_file(file)) {
    list.push_back(json_of(request.out, trace));
    if (!request.json) {
      std::printf("%s  %s, %s: %s\n", request.out.c_str(), size_text(size_of(file)).c_str(),
                  trace.device.c_str(), summary_of(trace).c_str());
    }
  }
  if (request.json)
    std::printf("%s\n", ordered_json{{"exit_code", code}, {"traces", list}}.dump(2).c_str());
  if (code != 0)
    std::fprintf(stderr, "taper: %s ended with code %d\n", request.program[0].c_str(), code);
  return code;
}

}  // namespace taper::tools
