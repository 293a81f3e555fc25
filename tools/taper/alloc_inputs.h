// What the subcommands of `taper alloc` share: traces by name, policies by name, progress.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "taper/allocator/trace.h"
#include "taper/allocator/twin.h"
#include "taper/core/base/text.h"
#include "taper/tools/taper/alloc_commands.h"
#include "taper/tools/taper/progress.h"

namespace taper::tools {

struct AllocInput {
  std::string name;  // the workload's or the file's; with the device where a file has several
  Trace trace;
};

// "corpus" is the seven workloads that goals are stated over, "all" is all of them. Throws where a
// name is neither a workload nor a file.
std::vector<std::string> expand_inputs(const std::vector<std::string>& names);
// A workload is made, a file read: each device of a file is a trace of its own.
std::vector<AllocInput> load_inputs(const std::string& name);
// The one of `device`; of any, if there is but one.
AllocInput load_input(const std::string& name, const std::string& device);

// Settings under each policy in turn, with the policy's name.
struct AllocSettings {
  std::string policy;
  TwinSettings twin;
};
std::vector<AllocSettings> settings_of(const AllocMachine& machine);

// Bytes to `path`; the file is there as a whole or not at all.
void write_text(const std::string& path, const std::string& text);

// "5,120 events, 2,560 allocations, 12 steps on 1 stream; max load 1.20 GiB".
std::string summary_of(const Trace& trace);
std::uint64_t steps_of(const Trace& trace);

// Progress on stderr of what takes more than a second; less is not worth a line.
class LateProgress {
 public:
  LateProgress(std::string label, std::size_t total) : label_(std::move(label)), total_(total) {}

  void update(std::size_t done, const std::string& status);

 private:
  std::string label_;
  std::size_t total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<Progress> shown_;
};

}  // namespace taper::tools
