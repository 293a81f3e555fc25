// Files that are cheap to write and would be dear to believe.
#include <chrono>

#include <gtest/gtest.h>

#include "taper/tests/alloc_tools/bytes.h"
#include "taper/tests/counted_heap.h"
#include "taper/tools/alloc/trace_file.h"

namespace taper::testing {
namespace {

using tools::read_trace;
using tools::TraceFileError;

std::string repeated(const std::string& s, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += s;
  return out;
}

TEST(LargeFiles, CostLittle) {
  constexpr std::size_t kMany = 4 << 20, kConstant = 100 << 20;
  const std::string start =
      "{\"format\":\"taper-snapshot\",\"version\":1,\"devices\":[{\"sites\":[";
  std::string texts, frames = "](";
  for (std::uint32_t i = 0; i < kMany / 8; ++i) {
    const std::string n = str(10'000'000 + i);
    texts += key(n);
    frames += "}(h" + std::string(1, 0) + "h\3h\1h\3h\2J" +
              std::string(reinterpret_cast<const char*>(&i), sizeof i) + "u";
  }
  const std::string words = key("name") + "\x94" + key("filename") + "\x94" + key("line") + "\x94";
  const std::string long_text =
      "X" + std::string("\0\0\x10\0", 4) + std::string(1 << 20, 'x') + "\x94";
  const std::string frame = "](}(h" + std::string(1, 0) + "h\3h\1h\3h\2";
  std::string events = "](";
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const std::string line = "J" + std::string(reinterpret_cast<const char*>(&i), sizeof i);
    events += "}(" + key("action") + key("alloc") + key("addr") + line + key("size") + "K\1" +
              key("frames") + frame + line + "ueu";
  }
  const std::vector<std::string> files = {
      pickle(std::string(kMany, ']')),
      pickle(repeated("]\x94", kMany)),
      pickle(repeated("N\x94", kMany)),
      pickle(repeated("](", 60) + repeated("K\1", kMany)),
      pickle("](" + texts),
      pickle(words + key("x") + "\x94" + frames),
      pickle("}(" + words + long_text + key("x") + events + "eu."),
      binary_file(kDevice + number(kMany) + std::string(kMany, '\0')),
      binary_file(kDevice + number(1) + number(kMany) + std::string(kMany, 'x') + number(1000) +
                  repeated(std::string(3, '\0'), 1000)),
      start + repeated("{},", kMany / 3),
      start + "{\"frames\":[" + repeated("{},", kMany / 3),
      "{\"" + std::string(kMany, 'x'),
      "{\"x\":\"" + std::string(kMany, 'x'),
      "{\"x\":[" + repeated("[],", kMany / 3),
      std::string("id,lower,upper,size\n") + std::string(kMany, 'x')};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& bytes = files[i];
    SCOPED_TRACE(i);
    const std::size_t before = heap_now;
    const auto began = std::chrono::steady_clock::now();
    const std::size_t used = heap_used_by(
        [&] { EXPECT_THROW(read_trace(bytes.data(), bytes.size(), "large"), TraceFileError); });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    EXPECT_LT(used, 2 * bytes.size() + kConstant);
    EXPECT_LT(took.count(), 10);
    EXPECT_LE(heap_now, before + 4096);
  }
}

}  // namespace
}  // namespace taper::testing
