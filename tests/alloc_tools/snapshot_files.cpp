// For snapshot_test.py: writes sample snapshots, and says as JSON what is read from a file.
//
//   snapshot_files write FOLDER    NAME.pickle and NAME.json of several snapshots
//   snapshot_files read FILE OUT   OUT: the traces as a JSON snapshot, or the refusal's text
#include <cstdio>
#include <cstring>

#include "taper/tests/alloc_tools/samples.h"
#include "taper/tools/alloc/trace_file.h"

namespace taper::testing {
namespace {

void write_samples(const std::string& folder) {
  const auto write = [&](const Snapshot& s, const char* name) {
    write_pickle(s, folder + "/" + name + ".pickle");
    write_json(s, folder + "/" + name + ".json");
  };
  Snapshot s = toy_snapshot(1, 4000);
  write(s, "consistent");
  s.devices.insert(s.devices.begin(), DeviceSnapshot());
  s.devices.push_back(toy_snapshot(2, 1500).devices[0]);
  write(s, "devices");

  s = toy_snapshot(3, 3000);
  s.devices[0].segments.clear();
  write(s, "without_segments");
  s.devices[0].trace.offsets.clear();
  write(s, "without_addresses");

  // The map of another moment: what the events say does not fit it.
  s = toy_snapshot(4, 3000);
  s.devices[0].segments = toy_snapshot(4, 1500).devices[0].segments;
  write(s, "other_moment");
  s = toy_snapshot(5, 3000);
  s.devices[0].base = UINT64_MAX / 2;
  for (SegmentInfo& segment : s.devices[0].segments) {
    segment.stream = 2;
    for (BlockInfo& b : segment.blocks) {
      if (b.state == BlockState::kLive && b.offset % 3 == 0) b.state = BlockState::kPending;
    }
  }
  write(s, "pending");
  write(Snapshot(), "nothing");
}

int run(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "write") == 0) {
    write_samples(argv[2]);
    return 0;
  }
  if (argc != 4 || std::strcmp(argv[1], "read") != 0) return 2;
  try {
    Snapshot s;
    for (Trace& t : tools::read_trace_file(argv[2])) {
      s.devices.emplace_back();
      s.devices.back().device = t.device;
      s.devices.back().trace = std::move(t);
    }
    write_json(s, argv[3]);
  } catch (const tools::TraceFileError& e) {
    std::puts(e.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace taper::testing

int main(int argc, char** argv) {
  return taper::testing::run(argc, argv);
}
