// Traces of other programs: small twins of each format, and the real ones where they lie.
#include <gtest/gtest.h>

#include "taper/allocator/plan.h"
#include "taper/allocator/snapshot.h"
#include "taper/tests/alloc_tools/foreign.h"
#include "taper/tests/data/files.h"
#include "taper/tools/alloc/trace_file.h"

namespace taper::testing {
namespace {

using tools::read_trace;
using tools::read_trace_file;

Trace read_one(const std::string& bytes) {
  std::vector<Trace> traces = read_trace(bytes.data(), bytes.size(), "twin");
  EXPECT_EQ(traces.size(), 1U);
  EXPECT_EQ(first_fault(traces.at(0)), "");
  EXPECT_EQ(traces.at(0).source, "twin");
  return traces.at(0);
}

// "a100@0 f0": the events as a test reads them; @ the time in nanoseconds.
std::string told(const Trace& t) {
  std::string out;
  for (const TraceEvent& e : t.events) {
    if (!out.empty()) out += ' ';
    if (e.action == TraceAction::kAlloc) out += str("a", e.bytes);
    else if (e.action == TraceAction::kFree) out += str("f", e.block);
    else out += str(to_string(e.action), e.bytes);
    if (e.stream != 0) out += str("/", t.streams[e.stream]);
    out += str("@", e.time);
  }
  return out;
}

TEST(ForeignFiles, Rmm) {
  const Trace t = read_one(kRmm);
  EXPECT_EQ(told(t),
            "a512@0 a1024@0 a300/2@10000 f1@20000 oom99999999999@20000 "
            "a2048/94000000@1000020000 f0@2000020000");
  EXPECT_EQ(t.device, "cuda:0");
  EXPECT_EQ(t.offsets, (std::vector<std::uint64_t>{4096, 0, 8192, 0}));
}

TEST(ForeignFiles, RmmPastMidnight) {
  const Trace t = read_one(
      "Thread,Time,Action,Pointer,Size,Stream\n"
      "1,23:59:59.999999,allocate,0x10,1,0x0\n1,00:00:00.000001,free,0x10,1,0x0\n");
  EXPECT_EQ(told(t), "a1@0 f0@2000");
}

TEST(ForeignFiles, RmmWithoutMemory) {
  const Trace t = read_one(
      "Thread,Time,Action,Pointer,Size,Stream\r\n1,1:2:3:4,allocate,(nil),0,0\r\n"
      "1,1:2:3:4,allocate,(nil),0,0\r\n\r\n1,1:2:3:4,free,0x0,0,0\r\n");
  EXPECT_EQ(told(t), "");
}

TEST(ForeignFiles, StAlloc) {
  const Trace t = read_one(kStAlloc);
  EXPECT_EQ(told(t), "a77/5@0 a512@0 a1024/5@0 f1@0 a256@0 f0/5@0");
  EXPECT_EQ(t.offsets, (std::vector<std::uint64_t>{3904, 0, 4000, 0}));
}

// Half-open: what ends at a time makes room for what begins then.
TEST(ForeignFiles, Lifetimes) {
  const Trace t = read_one(kLifetimes);
  EXPECT_EQ(told(t), "a4@0 a7@0 f0@3 a4@3 a1@3 f2@4 f1@9 f3@9");
  EXPECT_EQ(max_load(intervals_of(t)), 12U);
}

TEST(ForeignFiles, LifetimesWithoutLastNewline) {
  EXPECT_EQ(told(read_one("id,lower,upper,size\nb1,5,6,18446744073709551615")),
            "a18446744073709551615@5 f0@6");
}

TEST(ForeignFiles, NothingButAHeader) {
  EXPECT_EQ(told(read_one("id,lower,upper,size\n")), "");
  EXPECT_EQ(told(read_one("Thread,Time,Action,Pointer,Size,Stream")), "");
}

// Where the traces of others lie, which are not ours to ship.
std::string shared(const std::string& name) {
  const char* folder = std::getenv("TAPER_SHARED");
  return (folder != nullptr ? std::string(folder) : TAPER_TESTS_DIR "/../../shared") +
         "/data/alloc/" + name;
}

struct Real {
  const char* name;
  std::uint32_t allocations;
  std::uint64_t load;
};

class RealTraces : public ::testing::TestWithParam<Real> {};

TEST_P(RealTraces, HaveTheKnownLoad) {
  const std::string path = shared(GetParam().name);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "there is no " << path;
  const std::vector<Trace> traces = read_trace_file(path);
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(first_fault(traces[0]), "");
  EXPECT_EQ(traces[0].allocations, GetParam().allocations);
  EXPECT_EQ(traces[0].events.size(), 2 * traces[0].allocations);
  EXPECT_EQ(max_load(intervals_of(traces[0])), GetParam().load);
}

INSTANTIATE_TEST_SUITE_P(All,
                         RealTraces,
                         ::testing::Values(Real{"idealloc/resnet50.csv", 1042, 1'515'472'556},
                                           Real{"idealloc/pangu_2.6B.csv", 18692, 5'530'099'775},
                                           Real{"minimalloc/A.1048576.csv", 154, 1'048'576},
                                           Real{"minimalloc/C.1048576.csv", 203, 1'039'360},
                                           Real{"minimalloc/K.1048576.csv", 454, 1'048'576}),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           for (char& c : name) c = std::isalnum(c) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace taper::testing
