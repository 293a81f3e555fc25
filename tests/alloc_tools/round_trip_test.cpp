// What is written is read again: all of it by binary and JSON, what it can hold by the pickle.
#include <gtest/gtest.h>

#include "taper/allocator/snapshot_fit.h"
#include "taper/tests/alloc_tools/samples.h"
#include "taper/tests/data/files.h"
#include "taper/tests/message_of.h"
#include "taper/tools/alloc/trace_file.h"

namespace taper::testing {
namespace {

using tools::read_trace_file;

// What is left of a trace in a pickle.
Trace as_pickled(const Trace& t) {
  Trace out;
  out.device = t.device;
  std::vector<std::uint32_t> blocks(t.allocations), sites(t.sites.size());
  std::vector<std::uint16_t> streams(t.streams.size());
  std::vector<std::uint64_t> bytes(t.allocations);
  for (const TraceEvent& e : t.events) {
    if (e.action == TraceAction::kAlloc) bytes[e.block] = e.bytes;
  }
  std::uint64_t start = UINT64_MAX, lowest = UINT64_MAX;
  for (TraceEvent e : t.events) {
    const bool of_block = e.action == TraceAction::kAlloc || e.action == TraceAction::kFree;
    const bool told = e.action == TraceAction::kMap || e.action == TraceAction::kUnmap ||
                      e.action == TraceAction::kOom;
    if (!told && (!of_block || bytes[e.block] == 0)) continue;
    start = std::min(start, e.time / 1000);
    e.time = (e.time / 1000 - start) * 1000;
    e.entry = e.pool = 0;
    if (told) e.site = e.action == TraceAction::kOom ? e.site : 0;
    if (e.action == TraceAction::kAlloc) {
      out.offsets.push_back(t.offsets[e.block]);
      lowest = std::min(lowest, t.offsets[e.block]);
      blocks[e.block] = out.allocations++;
    }
    if (of_block) e.block = blocks[e.block];
    else if (e.action != TraceAction::kOom)
      lowest = std::min(lowest, e.block * std::uint64_t{kBlockBytes});
    if (e.site != 0) {
      if (sites[e.site] == 0) {
        sites[e.site] = static_cast<std::uint32_t>(out.sites.size());
        out.sites.push_back(t.sites[e.site]);
      }
      e.site = sites[e.site];
    }
    if (e.stream != 0) {
      if (streams[e.stream] == 0) {
        streams[e.stream] = static_cast<std::uint16_t>(out.streams.size());
        out.streams.push_back(t.streams[e.stream]);
      }
      e.stream = streams[e.stream];
    }
    out.events.push_back(e);
  }
  EXPECT_EQ(lowest, 0U) << "the sample should begin at offset 0";
  return out;
}

void expect_same(const Trace& got, const Trace& expected) {
  EXPECT_EQ(got.device, expected.device);
  EXPECT_EQ(got.allocations, expected.allocations);
  EXPECT_EQ(got.streams, expected.streams);
  EXPECT_EQ(got.offsets, expected.offsets);
  EXPECT_TRUE(got.sites == expected.sites);
  ASSERT_EQ(got.events.size(), expected.events.size());
  for (std::size_t i = 0; i < got.events.size(); ++i)
    ASSERT_TRUE(got.events[i] == expected.events[i]) << "event " << i;
  EXPECT_TRUE(got == expected);
}

// Two devices, the second with extreme values.
Snapshot two_devices() {
  Snapshot s = toy_snapshot(1, 3000);
  Snapshot other = toy_snapshot(2, 100);
  Trace& t = other.devices[0].trace;
  t.device = other.devices[0].device = "host \"0\"";
  t.source = "a\tb";
  t.events.push_back(
      {UINT64_MAX, UINT64_MAX, UINT32_MAX, 3, UINT32_MAX, 2, TraceAction::kOom, 255});
  t.events.push_back({0, 0, 0, 0, 1, 0, TraceAction::kStep, 0});
  t.sites.push_back({"", std::string("\xc3\xa9", 2), {{"", "", UINT32_MAX}}});
  t.streams.push_back(UINT64_MAX);
  s.devices.push_back(other.devices[0]);
  return s;
}

TEST(TraceFiles, BinaryHoldsTracesWithoutLoss) {
  const Folder folder;
  const Snapshot s = two_devices();
  write_binary(s, folder / "a");
  const std::vector<Trace> read = read_trace_file(folder / "a");
  ASSERT_EQ(read.size(), 2U);
  expect_same(read[0], s.devices[0].trace);
  expect_same(read[1], s.devices[1].trace);
  EXPECT_LT(read_file(folder / "a").size(), s.devices[0].trace.events.size() * 16);
}

TEST(TraceFiles, JsonHoldsTracesWithoutLoss) {
  const Folder folder;
  const Snapshot s = two_devices();
  write_json(s, folder / "a");
  const std::vector<Trace> read = read_trace_file(folder / "a");
  ASSERT_EQ(read.size(), 2U);
  expect_same(read[0], s.devices[0].trace);
  expect_same(read[1], s.devices[1].trace);
}

TEST(TraceFiles, JsonMendsTextThatIsNotUtf8) {
  const Folder folder;
  Snapshot s = toy_snapshot(1, 3);
  s.devices[0].trace.source = "a\xff\xc0\xafz\xed\xa0\x80\xf0\x9f\x98\x80";
  write_json(s, folder / "a");
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(read_trace_file(folder / "a")[0].source,
            "a" + bad + bad + bad + "z" + bad + bad + bad + "\xf0\x9f\x98\x80");
}

TEST(TraceFiles, PickleMendsTextThatIsNotUtf8) {
  const Folder folder;
  DeviceSnapshot device;
  device.trace.sites.push_back({"op", "", {{"caf\xe9.cpp", "main", 7}}});
  device.trace.events.push_back({0, 512, device.trace.allocations++, 1});
  Snapshot s;
  s.devices.push_back(device);
  write_pickle(s, folder / "a");
  const std::vector<Trace> read = read_trace_file(folder / "a");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].sites.back().frames.back().file, "caf\xef\xbf\xbd.cpp");
}

TEST(TraceFiles, PickleHoldsWhatTorchRecords) {
  const Folder folder;
  for (unsigned seed = 1; seed < 20; ++seed) {
    const Snapshot s = toy_snapshot(seed, 2500);
    write_pickle(s, folder / "a");
    const std::vector<Trace> read = read_trace_file(folder / "a");
    ASSERT_EQ(read.size(), 1U);
    Trace expected = as_pickled(s.devices[0].trace);
    expected.source = folder / "a";
    expect_same(read[0], expected);
  }
}

TEST(TraceFiles, PickleOfAnEmptyRun) {
  const Folder folder;
  write_pickle(Snapshot(), folder / "none");
  EXPECT_TRUE(read_trace_file(folder / "none").empty());
  Snapshot s;
  s.devices.resize(3);
  write_pickle(s, folder / "three");
  EXPECT_TRUE(read_trace_file(folder / "three").empty());
}

// Devices keep their places, also those of which there is nothing to say.
TEST(TraceFiles, PickleNumbersDevices) {
  const Folder folder;
  Snapshot s;
  s.devices.resize(2);
  s.devices.push_back(toy_snapshot(3, 50).devices[0]);
  write_pickle(s, folder / "a");
  const std::vector<Trace> read = read_trace_file(folder / "a");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].device, "cuda:2");
}

TEST(TraceFiles, PickleOfATraceWithoutAddresses) {
  const Folder folder;
  Snapshot s = toy_snapshot(5, 500);
  Trace& t = s.devices[0].trace;
  t.offsets.clear();
  write_pickle(s, folder / "a");
  const std::vector<Trace> read = read_trace_file(folder / "a");
  ASSERT_EQ(read.size(), 1U);
  std::uint32_t with_memory = 0;
  for (const TraceEvent& e : t.events)
    with_memory += e.action == TraceAction::kAlloc && e.bytes > 0;
  EXPECT_EQ(read[0].allocations, with_memory);
  // What is out together lies apart.
  std::map<std::uint64_t, std::uint64_t> live;
  for (const TraceEvent& e : read[0].events) {
    const std::uint64_t at = e.block < with_memory ? read[0].offsets[e.block] : 0;
    if (e.action == TraceAction::kFree) live.erase(at);
    if (e.action != TraceAction::kAlloc) continue;
    const auto next = live.lower_bound(at);
    EXPECT_TRUE(next == live.end() || next->first >= at + e.bytes);
    EXPECT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= at);
    live[at] = e.bytes;
  }
}

// A consistent run loses nothing; without its maps, blocks stand alone.
TEST(SnapshotFit, KeepsWhatFits) {
  Snapshot s = toy_snapshot(7, 2000);
  for (const Fit fit : fit_for_viewer(s.devices[0]).fits) EXPECT_NE(fit, Fit::kAlone);
  std::size_t maps = 0, kept = 0;
  FittedTrace f = fit_for_viewer(s.devices[0]);
  const auto count = [&] {
    maps = kept = 0;
    for (std::size_t i = 0; i < f.fits.size(); ++i) {
      const TraceAction a = s.devices[0].trace.events[i].action;
      if (a != TraceAction::kMap && a != TraceAction::kUnmap) continue;
      ++maps;
      kept += f.fits[i] == Fit::kKeep;
    }
  };
  count();
  EXPECT_GT(maps, 20U);
  EXPECT_EQ(kept, maps);
  s.devices[0].segments.resize(1);
  s.devices[0].segments[0] = {std::uint64_t{1} << 40, kPageBytes, 0, 0, false, {}};
  f = fit_for_viewer(s.devices[0]);
  count();
  EXPECT_LT(kept, maps);
  std::size_t alone = 0;
  for (const Fit fit : f.fits) alone += fit == Fit::kAlone;
  EXPECT_GT(alone, 100U);
}

TEST(TraceFiles, WritersNameTheFileTheyCannotWrite) {
  const Folder folder;
  const Snapshot s = toy_snapshot(1, 10);
  const std::string nowhere = folder / "no/folder/a";
  for (auto* write : {write_pickle, write_json, write_binary}) {
    EXPECT_NE(message_of([&] { write(s, nowhere); }).find("cannot write " + nowhere),
              std::string::npos);
  }
  EXPECT_EQ(folder.files(), 0U);
}

TEST(TraceFiles, WritersRefuseFaults) {
  const Folder folder;
  Snapshot s = toy_snapshot(1, 10);
  s.devices[0].trace.events.push_back({0, 0, 99, 0, 0, 0, TraceAction::kFree, 0});
  for (auto* write : {write_pickle, write_json, write_binary}) {
    EXPECT_NE(message_of([&] { write(s, folder / "a"); }).find("frees block 99"),
              std::string::npos);
  }
  EXPECT_EQ(folder.files(), 0U);
}

TEST(TraceFiles, SameBytesOnEveryRun) {
  const Folder folder;
  const Snapshot s = two_devices();
  for (auto* write : {write_pickle, write_json, write_binary}) {
    write(s, folder / "a");
    write(s, folder / "b");
    EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
  }
}

}  // namespace
}  // namespace taper::testing
