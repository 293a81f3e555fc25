// The report: one file that needs nothing else, whose data are right and stay small.
#include "taper/tools/alloc/report.h"

#include <chrono>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "taper/tests/alloc_tools/toy_allocator.h"
#include "taper/tests/message_of.h"

namespace taper::tools {
namespace {

using Json = nlohmann::json;

// Steps of a network whose layers leave activations; a few blocks stay for long.
Trace network_steps(int steps, int layers) {
  TraceBuilder builder("train.cpp");
  builder.trace.device = "sim:0";
  const char* ops[] = {"matmul", "softmax", "gelu", "layer_norm", "add", "dropout"};
  for (int layer = 0; layer < layers; ++layer) {
    for (int op = 0; op < 6; ++op) {
      TraceSite site;
      site.op = ops[op], site.scope = str("encoder.", layer, op < 2 ? ".attn" : ".mlp");
      site.frames.push_back({"examples/train.cpp", "forward", static_cast<std::uint32_t>(40 + op)});
      builder.trace.sites.push_back(site);
    }
  }
  std::mt19937 random(1);
  std::vector<std::uint32_t> weights;
  for (int i = 0; i < 2 * layers; ++i) weights.push_back(builder.alloc(4'194'304));
  for (int step = 0; step < steps; ++step) {
    const std::uint64_t length = 64 + random() % 64;
    std::vector<std::uint32_t> saved;
    for (int layer = 0; layer < layers; ++layer) {
      for (int op = 0; op < 6; ++op) {
        const auto site = static_cast<std::uint16_t>(1 + 6 * layer + op);
        const std::uint32_t temporary = builder.alloc(length * 40'000, 0, site);
        saved.push_back(builder.alloc(length * 16'384 * (1 + random() % 3), 0, site));
        builder.trace.events.back().entry = static_cast<std::uint32_t>(saved.size());
        builder.free(temporary);
      }
    }
    for (; !saved.empty(); saved.pop_back()) {
      const std::uint32_t gradient = builder.alloc(length * 20'000);
      builder.free(saved.back());
      builder.free(gradient);
    }
    if (step % 3 == 0) builder.alloc(3000);  // a metric that is kept
    builder.step();
  }
  return builder.trace;
}

std::string data_text(const std::string& page) {
  const std::string opening = "id=\"data\">";
  const std::size_t begin = page.find(opening) + opening.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

std::vector<std::uint8_t> bytes_of(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t word = 0;
  int bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    word = word << 6 | static_cast<std::uint32_t>(digits.find(c));
    if ((bits += 6) >= 8) bytes.push_back(static_cast<std::uint8_t>(word >> (bits -= 8)));
  }
  return bytes;
}

std::vector<std::uint32_t> words_of(const Json& base64) {
  std::vector<std::uint32_t> words;
  std::uint32_t before = 0, word = 0;
  int shift = 0;
  for (const std::uint8_t byte : bytes_of(base64.get<std::string>())) {
    word |= static_cast<std::uint32_t>(byte & 127) << shift, shift += 7;
    if (byte & 128) continue;
    before += word >> 1 ^ (0 - (word & 1));
    words.push_back(before);
    word = 0, shift = 0;
  }
  return words;
}

void expect_self_contained(const std::string& page) {
  for (const char* outside : {"http", "src=", "@import", "url(", "<link", "fetch(", "import("})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

TEST(Report, RefersToNothingOutside) {
  const Trace trace = network_steps(3, 2);
  expect_self_contained(report_html(trace, {toy_run(trace, "toy"), toy_run(trace, "again")}));
}

TEST(Report, NamesBelongingToTheTraceStayText) {
  Trace trace = network_steps(1, 1);
  trace.source = "a</script><script>alert(1)</script>";
  trace.sites[1].op = "</SCRIPT>\"\\\n\xff";
  const std::string page = report_html(trace, {toy_run(trace, "<b>")});
  EXPECT_EQ(page.find("alert(1)<"), std::string::npos);
  const Json data = Json::parse(data_text(page));
  EXPECT_EQ(data["source"], trace.source);
  EXPECT_EQ(data["runs"][0]["policy"], "<b>");
}

TEST(Report, DataAreTheRuns) {
  const Trace trace = network_steps(4, 3);
  const ReportRun run = toy_run(trace, "toy");
  const Json data = Json::parse(data_text(report_html(trace, {run})));
  EXPECT_EQ(data["events"], trace.events.size());
  EXPECT_EQ(data["steps"].size(), 4u);
  const Json& blocks = data["blocks"];
  ASSERT_EQ(blocks["count"], trace.allocations);
  const auto begin = words_of(blocks["begin"]), end = words_of(blocks["end"]);
  const auto size = words_of(blocks["size"]), site = words_of(blocks["site"]);
  const auto entry = words_of(blocks["entry"]), number = words_of(blocks["number"]);
  const Json& first = data["runs"][0];
  const auto at = words_of(first["at"]), bytes = words_of(first["bytes"]);
  EXPECT_EQ(first["grid"], nullptr);
  EXPECT_EQ(first["unit"], 512);
  for (std::size_t i = 0; i < trace.allocations; ++i) {
    const TraceEvent& e = trace.events[begin[i]];
    ASSERT_EQ(e.action, TraceAction::kAlloc);
    ASSERT_EQ(e.block, number[i]);
    ASSERT_EQ(blocks["sizes"][size[i]], e.bytes);
    ASSERT_EQ(entry[i], e.entry);
    ASSERT_EQ(data["sites"][site[i]][1], trace.sites[e.site].scope);
    ASSERT_EQ(at[i] * 512u, run.places[i].offset);
    ASSERT_EQ(bytes[i] * 512u, run.places[i].bytes);
    if (end[i] < trace.events.size()) {
      ASSERT_EQ(trace.events[end[i]].action, TraceAction::kFree);
      ASSERT_EQ(trace.events[end[i]].block, number[i]);
    }
  }
  // The ranges grow as the toy does, and each ends where the next begins.
  const auto ranges = words_of(first["ranges"]);
  ASSERT_GE(ranges.size(), 8u);
  for (std::size_t i = 4; i < ranges.size(); i += 4) {
    EXPECT_GT(ranges[i + 1], ranges[i - 3]);
    EXPECT_EQ(ranges[i + 2], ranges[i - 1]);
  }
  EXPECT_EQ(ranges.back(), trace.events.size());
}

TEST(Report, CurvesKeepTheirPeaks) {
  const Trace trace = network_steps(300, 4);
  const ReportRun run = toy_run(trace, "toy");
  ASSERT_GT(run.events_per_point, 4u);
  EXPECT_LE(run.reserved.high.size(), ReportRecorder::kPoints);
  const auto most = [](const ReportCurve& c) {
    return *std::max_element(c.high.begin(), c.high.end());
  };
  EXPECT_EQ(most(run.reserved), run.result.stats.reserved_peak);
  EXPECT_EQ(most(run.allocated), run.result.stats.allocated_peak);
  EXPECT_EQ(most(run.requested), run.result.stats.requested_peak);
  for (std::size_t i = 0; i < run.requested.high.size(); ++i)
    ASSERT_LE(run.requested.low[i], run.requested.high[i]);
}

// A point of a curve knows the most of each of its events; the figures are those of one event.
TEST(Report, FiguresAtThePeakAreThoseOfOneEvent) {
  const Trace trace = network_steps(300, 4);
  ToyAllocator toy;
  std::vector<Block> blocks(trace.allocations);
  std::vector<std::uint64_t> asked(trace.allocations);
  AllocatorStats most;
  std::size_t at = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    if (e.action == TraceAction::kAlloc)
      blocks[e.block] = toy.allocate(e.bytes, e.stream), asked[e.block] = e.bytes;
    if (e.action == TraceAction::kFree) toy.free(blocks[e.block], asked[e.block], e.stream);
    const AllocatorStats now = toy.stats();
    if (std::pair(now.reserved, now.allocated) > std::pair(most.reserved, most.allocated))
      most = now, at = i;
  }
  const ReportRun run = toy_run(trace, "toy");
  ASSERT_NE(run.largest_free.high[at / run.events_per_point], most.largest_free);
  const Json peak = Json::parse(data_text(report_html(trace, {run})))["runs"][0]["peak"];
  EXPECT_EQ(peak["event"], at);
  EXPECT_EQ(peak["reserved"], most.reserved);
  EXPECT_EQ(peak["allocated"], most.allocated);
  EXPECT_EQ(peak["requested"], most.requested);
  EXPECT_EQ(peak["pending"], most.pending);
  EXPECT_EQ(peak["largestFree"], most.largest_free);
}

TEST(Report, MapsAStepNeedSteps) {
  const Trace trace = network_steps(4, 1);
  ReportRun run = toy_run(trace, "toy");
  const auto maps = [&](std::uint64_t steps, double maps_per_step) {
    run.result.steps = steps, run.result.maps_per_step = maps_per_step;
    return Json::parse(data_text(report_html(trace, {run})))["runs"][0]["result"]["mapsPerStep"];
  };
  EXPECT_EQ(maps(0, 0), nullptr);
  EXPECT_EQ(maps(3, 0), nullptr);  // no quarter to warm up in
  EXPECT_EQ(maps(4, 0), 0);
  EXPECT_EQ(maps(4, 1.5), 1.5);
}

// A policy may keep two kinds of blocks terabytes apart.
TEST(Report, UnusedAddressesAreCutShort) {
  TraceBuilder builder("far");
  builder.alloc(1 << 20), builder.alloc(1 << 20), builder.alloc(0);
  ReportRun run;
  run.policy = "far";
  run.places = {{0, 1 << 20}, {std::uint64_t{18} << 40, 1 << 20}, {0, 0}};
  for (ReportCurve* c :
       {&run.reserved, &run.allocated, &run.requested, &run.pending, &run.largest_free})
    c->low = c->high = {0, 0, 0};
  const Json first = Json::parse(data_text(report_html(builder.trace, {run})))["runs"][0];
  EXPECT_LE(first["total"], 8 << 20);
  EXPECT_EQ(first["spans"].size(), 2u);
  EXPECT_EQ(first["spans"][1][0], std::uint64_t{18} << 40);
  EXPECT_EQ(words_of(first["at"])[1] * std::uint64_t{512}, first["spans"][1][2]);
  EXPECT_EQ(words_of(first["bytes"])[2], 0u);
}

TEST(Report, AMillionEventsStaySmall) {
  const Trace trace = network_steps(1400, 30);
  ASSERT_GE(trace.events.size(), 1'000'000u);
  const std::vector<ReportRun> runs = {toy_run(trace, "a"), toy_run(trace, "b"),
                                       toy_run(trace, "c")};
  for (const std::size_t count : {1u, 3u}) {
    const std::vector<ReportRun> some(runs.begin(),
                                      runs.begin() + static_cast<std::ptrdiff_t>(count));
    const auto start = std::chrono::steady_clock::now();
    const std::string page = report_html(trace, some);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_LE(page.size(), 5'000'000u) << count;
    RecordProperty(str("seconds_", count), std::to_string(seconds.count()));
#if !defined(__SANITIZE_ADDRESS__)
    EXPECT_LE(seconds.count(), 3.0) << count;
#endif
    const Json data = Json::parse(data_text(page));
    EXPECT_GE(data["blocks"]["count"], 40'000u);
    // Around the peak each block is there.
    const auto number = words_of(data["blocks"]["number"]);
    const std::vector<bool> shown = [&] {
      std::vector<bool> is(trace.allocations, false);
      for (const std::uint32_t n : number) is[n] = true;
      return is;
    }();
    ASSERT_FALSE(data["exact"].empty());
    for (const Json& window : data["exact"]) {
      EXPECT_GE(window[1].get<std::size_t>() - window[0].get<std::size_t>(), 1000u);
      for (std::size_t i = window[0]; i < window[1]; ++i) {
        const TraceEvent& e = trace.events[i];
        const bool moves =
            e.action == TraceAction::kAlloc || (e.action == TraceAction::kFree && i > window[0]);
        ASSERT_TRUE(!moves || shown[e.block]) << i;
      }
    }
    // What is not shown one by one is in the sum: some cell is neither empty nor full.
    const auto cells = bytes_of(data["runs"][0]["grid"]["cells"]);
    EXPECT_TRUE(std::any_of(cells.begin(), cells.end(), [](auto c) { return c > 0 && c < 255; }));
  }
}

TEST(Report, SmallestTraces) {
  const Trace empty = TraceBuilder("none").trace;
  expect_self_contained(report_html(empty, {}));
  const Json data = Json::parse(data_text(report_html(empty, {toy_run(empty, "toy")})));
  EXPECT_EQ(data["runs"][0]["total"], 0);
}

TEST(Report, RefusesRunsOfOtherTraces) {
  const Trace trace = network_steps(1, 1), other = network_steps(2, 1);
  const std::string said = message_of([&] { report_html(trace, {toy_run(other, "toy")}); });
  EXPECT_NE(said.find("the run of toy places"), std::string::npos) << said;
  ReportRecorder recorder(trace, "toy");
  EXPECT_NE(message_of([&] { recorder.placed(trace.events.size(), 0, 1); }), "no error");
  EXPECT_NE(message_of([&] { recorder.after(5, ToyAllocator()); }), "no error");
}

// TAPER_REPORT=FILE writes a page to look at.
TEST(Report, WritesAPageToLookAt) {
  const char* path = std::getenv("TAPER_REPORT");
  if (path == nullptr) GTEST_SKIP() << "TAPER_REPORT names no file";
  const Trace trace = network_steps(12, 6);
  const Trace large = network_steps(1400, 30);
  std::ofstream(path) << report_html(trace,
                                     {toy_run(trace, "taper"), toy_run(trace, "torch_native")});
  std::ofstream(std::string(path) + ".large.html") << report_html(large, {toy_run(large, "taper")});
}

}  // namespace
}  // namespace taper::tools
