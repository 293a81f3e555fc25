// Traces by name, policies by name, tables and progress.
#include "taper/tools/taper/alloc_inputs.h"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

#include "taper/allocator/options.h"
#include "taper/allocator/plan.h"
#include "taper/allocator/snapshot_file.h"
#include "taper/core/base/error.h"
#include "taper/tools/alloc/trace_file.h"
#include "taper/tools/alloc/workloads.h"

namespace taper::tools {
namespace {

constexpr const char* kPolicies[] = {"taper", "torch_native", "torch_expandable"};

std::string workload_names() {
  std::string text;
  for (const Workload& w : workloads()) text += (text.empty() ? "" : ", ") + std::string(w.name);
  return text;
}

bool is_file(const std::string& name) {
  return access(name.c_str(), F_OK) == 0;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t to = std::min(list.find(',', from), list.size());
    words.push_back(list.substr(from, to - from));
    from = to + 1;
  }
  return words;
}

AllocatorOptions options_of(const std::string& policy, const std::string& more) {
  AllocatorOptions options;
  try {
    options = parse_allocator_options(str("policy:", policy, more.empty() ? "" : ",", more));
  } catch (const Error& e) {
    fail(str("--options ", more, ": ", e.message()));
  }
  TAPER_CHECK(options.trace_file.empty(),
              "trace:FILE has no effect on a replay; `taper alloc trace` records");
  options.trace_events = 0;  // the trace is at hand
  return options;
}

}  // namespace

std::vector<std::string> expand_inputs(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (name == "corpus" || name == "all") {
      for (const Workload& w : workloads()) {
        if (w.in_corpus || name == "all") out.emplace_back(w.name);
      }
      continue;
    }
    TAPER_CHECK(find_workload(name) != nullptr || is_file(name), "'", name,
                "' is no file, and no workload; workloads are ", workload_names(),
                ", and corpus or all for many");
    out.push_back(name);
  }
  return out;
}

std::vector<AllocInput> load_inputs(const std::string& name) {
  std::vector<AllocInput> out;
  if (const Workload* workload = find_workload(name)) {
    out.push_back({name, workload->make()});
    out.back().trace.device = "sim";
    return out;
  }
  std::vector<Trace> traces = read_trace_file(name);
  TAPER_CHECK(!traces.empty(), name, " holds no allocations");
  const bool several = traces.size() > 1;
  for (Trace& trace : traces) {
    std::string called = name.substr(name.rfind('/') + 1);
    if (several) called += " " + trace.device;
    out.push_back({std::move(called), std::move(trace)});
  }
  return out;
}

AllocInput load_input(const std::string& name, const std::string& device) {
  expand_inputs({name});  // says what there is
  TAPER_CHECK(name != "corpus" && name != "all", "'", name, "' is many traces; name one");
  std::vector<AllocInput> inputs = load_inputs(name);
  std::vector<std::string> devices;
  for (AllocInput& input : inputs) {
    if (input.trace.device == device || (device.empty() && inputs.size() == 1))
      return std::move(input);
    devices.push_back(input.trace.device);
  }
  fail(str(name,
           device.empty() ? " has several devices: say --device and one of "
                          : " has no device of that name; it has ",
           joined(devices)));
}

std::vector<AllocSettings> settings_of(const AllocMachine& machine) {
  std::vector<AllocSettings> out;
  for (const std::string& policy : split(machine.policies)) {
    const bool known =
        std::find(std::begin(kPolicies), std::end(kPolicies), policy) != std::end(kPolicies);
    TAPER_CHECK(known, "there is no policy '", policy,
                "' to replay; there are taper, torch_native, torch_expandable");
    for (const AllocSettings& before : out)
      TAPER_CHECK(before.policy != policy, "--policy names ", policy, " twice");
    AllocSettings s;
    s.policy = policy;
    s.twin.options = options_of(policy, machine.options);
    if (!machine.capacity.empty()) s.twin.capacity = parse_size(machine.capacity);
    TAPER_CHECK(s.twin.capacity >= kPageBytes && s.twin.capacity <= TwinSettings{}.capacity,
                "a capacity is from 2M, which is one page, to 16T; got ", machine.capacity);
    s.twin.threads = machine.threads;
    s.twin.timing_seed = machine.timing_seed;
    out.push_back(std::move(s));
  }
  return out;
}

void write_text(const std::string& path, const std::string& text) {
  SnapshotFile file(path);
  file.put(text);
  file.finish();
}

std::uint64_t steps_of(const Trace& trace) {
  std::uint64_t steps = 0;
  for (const TraceEvent& e : trace.events) steps += e.action == TraceAction::kStep ? 1 : 0;
  return steps;
}

std::string summary_of(const Trace& trace) {
  return str(count_text(trace.events.size(), "event"), ", ",
             count_text(trace.allocations, "allocation"), ", ", count_text(steps_of(trace), "step"),
             ", ", count_text(trace.streams.size(), "stream"), ", max load ",
             size_text(max_load(intervals_of(trace))));
}

void LateProgress::update(std::size_t done, const std::string& status) {
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - start_;
  if (shown_ == nullptr && gone.count() < 1) return;
  if (shown_ == nullptr) {
    shown_ = std::make_unique<Progress>(stderr, label_, static_cast<std::int64_t>(total_),
                                        static_cast<std::int64_t>(done));
  }
  shown_->update(static_cast<std::int64_t>(done), status);
}

}  // namespace taper::tools
