// Files that are not what they claim: each is refused by a TraceFileError.
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "taper/tests/alloc_tools/bytes.h"
#include "taper/tests/alloc_tools/foreign.h"
#include "taper/tests/alloc_tools/samples.h"
#include "taper/tests/data/files.h"
#include "taper/tests/fuzz/fuzz.h"
#include "taper/tools/alloc/trace_file.h"

namespace taper::testing {
namespace {

using tools::read_trace;
using tools::TraceFileError;

std::string refusal_of(const std::string& bytes) {
  try {
    read_trace(bytes.data(), bytes.size(), "hostile");
  } catch (const TraceFileError& e) {
    EXPECT_EQ(e.file(), "hostile");
    EXPECT_LT(e.message().size(), 500U);
    EXPECT_EQ(e.message().rfind(str("hostile: ", e.unit(), " ", e.at(), ": "), 0), 0U)
        << e.message();
    return e.message();
  }
  return "no error";
}

void expect_refused(const std::string& bytes, const std::string& says) {
  const std::string text = refusal_of(bytes);
  EXPECT_NE(text.find(says), std::string::npos) << "'" << says << "' is not in: " << text;
}

std::string old_text(const std::string& s) {
  return "U" + std::string(1, static_cast<char>(s.size())) + s;
}

// What our own pickles do not use: protocol 2, memos by number, history, appends one by one.
std::string old_pickle() {
  const auto memo = [](char opcode, char slot) { return std::string{opcode, slot}; };
  const std::string frame = "}(" + old_text("name") + old_text("f") + memo('q', 1) +
                            old_text("filename") + memo('h', 1) + old_text("line") +
                            "J\xff\xff\xff\xffu";
  const std::string history =
      "}(" + old_text("real_size") + "M\1\1" + old_text("frames") + "]" + frame + "a" + "u";
  const std::string block = "}(" + old_text("state") + old_text("active_allocated") +
                            old_text("size") + "M\2\2" + old_text("history") + "]" + history + "a" +
                            "u";
  const std::string segment = "}(" + old_text("address") + "K\1" + old_text("blocks") + "](" +
                              block + block + "e" + old_text("segment_pool_id") + "K\1K\1\x86" +
                              "u";
  return "\x80\x02}" + memo('q', 0) + old_text("segments") + "]" + segment + "as.";
}

// One good file of each format.
std::vector<std::string> good_files(int events) {
  const Folder folder;
  Snapshot s = toy_snapshot(11, events);
  s.devices.push_back(toy_snapshot(12, events / 4).devices[0]);
  std::vector<std::string> out;
  for (auto* write : {write_pickle, write_json, write_binary}) {
    write(s, folder / "a");
    out.push_back(read_file(folder / "a"));
  }
  out.push_back(kRmm);
  out.push_back(kStAlloc);
  out.push_back(kLifetimes);
  out.push_back(old_pickle());
  return out;
}

TEST(HostileFiles, TheGoodOnesAreRead) {
  for (const std::string& bytes : good_files(40)) {
    EXPECT_EQ(refusal_of(bytes), "no error") << bytes.substr(0, 30);
    EXPECT_FALSE(read_trace(bytes.data(), bytes.size(), "good").empty());
  }
}

TEST(HostileFiles, CutAtEveryByte) {
  for (const std::string& bytes : good_files(40)) {
    for (std::size_t n = 0; n < bytes.size(); ++n) LLVMFuzzerTestOneInput(bytes_of(bytes), n);
  }
  const std::string binary = good_files(40)[2];
  for (std::size_t n = 0; n < binary.size(); ++n)
    EXPECT_NE(refusal_of(binary.substr(0, n)), "no error");
}

TEST(HostileFiles, EveryByteFlipped) {
  for (std::string bytes : good_files(40)) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const char was = bytes[i];
      for (const int flip : {1, 0x80, 0xff, 0x20, 0x7f}) {
        bytes[i] = static_cast<char>(was ^ flip);
        LLVMFuzzerTestOneInput(bytes_of(bytes), bytes.size());
      }
      bytes[i] = was;
    }
  }
}

TEST(HostileFiles, Binary) {
  const std::string none = number(1) + number(0) + number(1) + number(0) + number(0) + number(0);
  expect_refused("TAPRTRCE\2", "4 more bytes are expected");
  expect_refused(std::string("TAPRTRCE\2\0\0\0", 12), "byte 12: expected version 1, got 2");
  expect_refused(binary_file(number(UINT64_MAX)), "a text of 18446744073709551615 bytes where 0");
  expect_refused(binary_file(std::string(10, '\xff')), "a number of at most 64 bits");
  expect_refused(binary_file(number(0) + number(UINT64_MAX)), "18446744073709551615 devices where");
  for (const char* what : {"texts", "sites", "streams", "offsets", "events"}) {
    std::string rest = kDevice;
    for (const char* before : {"texts", "sites", "streams", "offsets"}) {
      if (std::string(before) == what) break;
      rest += number(0);
    }
    if (std::string(what) == "events") rest += number(0);
    expect_refused(binary_file(rest + number(UINT64_MAX)), std::string(" ") + what + " where");
  }
  expect_refused(binary_file(kDevice + number(1) + number(0) + number(1) + number(9) + none + none),
                 "expected a text below 1, got 9");
  expect_refused(binary_file(kDevice + number(1) + none + number(0) + number(0) + number(0) +
                             number(1) + std::string("\x0b\0\0\0", 4)),
                 "expected an action of 0 to 10, got 11");
  std::string good = good_files(40)[2];
  expect_refused(good + '\0', "expected the end of the file");
}

std::string event(const std::string& action, const std::string& size = "K\1") {
  return "}(" + key("action") + key(action) + key("addr") + "K\1" + key("size") + size + "u";
}

TEST(HostileFiles, Pickle) {
  for (const auto& [opcode, name] : std::map<std::string, std::string>{{"cos\nsystem\n", "GLOBAL"},
                                                                       {"R", "REDUCE"},
                                                                       {"ios\nsystem\n", "INST"},
                                                                       {"o", "OBJ"},
                                                                       {"b", "BUILD"},
                                                                       {"\x81", "NEWOBJ"},
                                                                       {"\x92", "NEWOBJ_EX"},
                                                                       {"\x93", "STACK_GLOBAL"},
                                                                       {"\x82", "EXT1"},
                                                                       {"Pid\n", "PERSID"},
                                                                       {"Q", "BINPERSID"}}) {
    expect_refused(pickle(opcode), str("byte 2: the opcode ", name, " is refused"));
  }
  expect_refused(pickle("\xfe"), "byte 2: the opcode 254 is not one");
  expect_refused(pickle("2"), "the opcode 50 is not one");
  expect_refused("\x80\x06", "expected protocol 2 to 5, got 6");
  expect_refused("\x80\x01", "expected protocol 2 to 5, got 1");
  expect_refused(pickle("."), "expected one value at the end, got 0");
  expect_refused(pickle("NN."), "expected one value at the end, got 2");
  expect_refused(pickle("e"), "no mark");
  expect_refused(pickle("(e"), "items without a list");
  expect_refused(pickle("(NNu"), "items without an empty dict");
  expect_refused(pickle("a"), "the stack is empty");
  expect_refused(pickle("s"), "the stack is empty");
  expect_refused(pickle("\x94"), "the stack is empty");
  expect_refused(pickle("\x87"), "the stack is empty");
  expect_refused(pickle("}(Nu."), "a key without a value");
  expect_refused(pickle("NNa."), "expected a list to append to, got None");
  expect_refused(pickle("h\0"), "more bytes are expected");
  expect_refused(pickle(std::string("h\0", 2)), "expected a memo below 0, got 0");
  expect_refused(pickle("Nr\xff\xff\xff\xff"), "expected a memo of at most 1, got 4294967295");
  expect_refused(pickle("X\xff\xff\xff\xff"), "a text of 4294967295 bytes where 0 remain");
  expect_refused(pickle("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), "a text of 18446744073709551615");
  expect_refused(pickle("\x8e\xff\xff\xff\xff\xff\xff\xff\x7f"), "bytes of data where 0 remain");
  expect_refused(pickle(std::string(100, '(')), "nested deeper than 64");
  expect_refused(pickle(event("alloc") + "."), "expected a list around the events");
  expect_refused(pickle("]" + event("alloc") + "a" + event("alloc") + "a."),
                 "where a block is out");
  expect_refused(pickle("]" + event("free") + "a" + event("free") + "a."), "where no block is out");
  expect_refused(pickle("]" + event("alloc", "J\xff\xff\xff\xff")), "of at least 0, got -1");
  expect_refused(pickle("]" + event("alloc", std::string("G\x7f\xf8\0\0\0\0\0\0", 9))),
                 "a fraction");
  expect_refused(pickle("](" + event("alloc") + "Ne."), "expected an event in a trace, got None");
  expect_refused(pickle("](" + event("alloc") + "e\x94h\0"), "bytes are expected");
  expect_refused(pickle("](" + event("alloc") + "e\x94" + std::string("h\0", 2)),
                 "stands in two places");
  // A dict that was an event takes no more.
  expect_refused(pickle("]" + event("alloc") + "(NNu"), "without an empty dict");
}

TEST(HostileFiles, Text) {
  const std::string rmm = "Thread,Time,Action,Pointer,Size,Stream\n",
                    rows = "id,lower,upper,size\n";
  expect_refused("", "an empty file");
  expect_refused("hello", "got 'hello'");
  expect_refused(rmm + "1,1:2:3.4,allocate,0x1,-5,0\n", "line 2: expected a whole number as Size");
  expect_refused(rmm + "1,1:2:3.4,allocate,0x1,nan,0\n", "as Size, got 'nan'");
  expect_refused(rmm + "1,1:2:3.4,allocate,0x1,99999999999999999999,0\n", "as Size, got");
  expect_refused(rmm + "1,1:2:3.4,allocate,0x,1,0\n", "as Pointer, got '0x'");
  expect_refused(rmm + "1,1:2:3.4,allocate,0x1,1\n", "as Stream, got ''");
  expect_refused(rmm + "1,1:2:3.4,allocate,0x1,1,0,7\n", "expected the line to end, got '7'");
  expect_refused(rmm + "1,25:2:3.4,allocate,0x1,1,0\n", "expected a time as");
  expect_refused(rmm + "1,1:2:3.4,grow,0x1,1,0\n", "expected allocate, free or allocate failure");
  const std::string a = "1,1:2:3.4,allocate,0x1,1,0\n", f = "1,1:2:3.4,free,0x1,1,0\n";
  expect_refused(rmm + a + a, "line 3: allocates at address 1, where a block is out");
  expect_refused(rmm + a + f + f, "line 4: frees address 1, where no block is out");
  expect_refused("1 1 1 0\n2 1 1 0\n", "line 2: expected 1 to allocate or 0 to free, got '2'");
  expect_refused("1 1 1\n", "as stream, got ''");
  expect_refused(rows + "a,3,3,1\n", "line 2: expected lower < upper, got 3 and 3");
  expect_refused(rows + "a,-3,3,1\n", "as lower, got '-3'");
  expect_refused(rows + std::string(5000, 'a'), "line 2: a line is longer than 4096 bytes");
  std::string streams;
  for (int i = 0; i < 70000; ++i) streams += str("1 ", i + 1, " 1 ", i, "\n");
  expect_refused(streams, "line 65537: more than 65,536 streams");
}

TEST(HostileFiles, Json) {
  const std::string start = "{\"format\":\"taper-snapshot\",\"version\":1,\"devices\":[{";
  expect_refused("{}", "expected the format 'taper-snapshot', got ''");
  expect_refused("{\"format\":\"taper-snapshot\",\"version\":2}", "expected version 1, got 2");
  expect_refused("{\"version\":-1}", "a negative number is not expected at the key 'version'");
  expect_refused("{\"a\":NaN}", "expected JSON");
  expect_refused(std::string("{\"a\":\0}", 7), "expected JSON");
  expect_refused(start + "\"events\":[{\"action\":\"grow\"}]}]}", "expected an action, got 'grow'");
  expect_refused(start + "\"events\":[7]}]}", "a number is not expected");
  expect_refused(start + "\"events\":[{\"bytes\":1.5}]}]}",
                 "a fraction is not expected at the key 'bytes'");
  expect_refused(start + "\"events\":[{\"block\":4294967296}]}]}",
                 "expected at most 4294967295 as 'block'");
  expect_refused(start + "\"sites\":[{\"frames\":{}}]}]}", "an object is not expected");
  expect_refused(
      start + "\"streams\":[0],\"sites\":[{}],\"events\":[{\"action\":\"free\",\"block\":3}]}]}",
      "event 0 frees block 3, which is not out");
  expect_refused("{\"x\":" + std::string(1000, '['), "nested deeper than 32");
  const std::string unknown = "\"later\":{\"a\":[1,{\"b\":-2.5}],\"action\":null},";
  std::string good = good_files(40)[1];
  good.insert(1, unknown);
  EXPECT_EQ(refusal_of(good), "no error");
}

TEST(HostileFiles, FromTheDisk) {
  const Folder folder;
  write_file(folder / "a", "id,lower,upper,size\nx,1,2\n");
  try {
    tools::read_trace_file(folder / "a");
    FAIL();
  } catch (const TraceFileError& e) {
    EXPECT_EQ(e.file(), folder / "a");
    EXPECT_EQ(e.unit(), "line");
    EXPECT_EQ(e.at(), 2U);
  }
  EXPECT_THROW(tools::read_trace_file(folder / "none"), Error);
  EXPECT_THROW(tools::read_trace_file(folder / ""), Error);
}

// Changes a few bytes, runs of bytes and numbers.
std::string mutated(std::string bytes, const std::string& other, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(bytes.size() + 1), n = below(20);
    switch (below(8)) {
      case 0:
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random());
        break;
      case 2:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
        break;
      case 3: bytes.erase(at, n); break;
      case 4: bytes.insert(at, bytes.substr(below(bytes.size()), n)); break;
      case 5: bytes.replace(at, n, other.substr(below(other.size()), n)); break;
      case 6:
        bytes.replace(at, n, std::string(n, static_cast<char>(random() % 2 ? 0xff : 0x7f)));
        break;
      default: {
        constexpr const char* kNumbers[] = {"18446744073709551615", "-1",  "0",
                                            "4294967296",           "1e9", "nan"};
        bytes.insert(at, kNumbers[below(6)]);
      }
    }
  }
  return bytes;
}

void fuzz(int inputs, unsigned seed) {
  std::mt19937 random(seed);
  const std::vector<std::string> files = good_files(24);
  int read = 0;
  for (int i = 0; i < inputs; ++i) {
    const std::string& other = files[random() % files.size()];
    const std::string bytes =
        mutated(files[static_cast<std::size_t>(i) % files.size()], other, random);
    LLVMFuzzerTestOneInput(bytes_of(bytes), bytes.size());
    if (i % 16 == 0) read += refusal_of(bytes) == "no error";
  }
  EXPECT_GT(read, inputs / 16 / 100);  // deep enough to be worth it
  EXPECT_LT(read, inputs / 16 / 2);
}

TEST(HostileFiles, TwentyThousandMutations) {
  fuzz(20'000, 1);
}

TEST(HostileFiles, AMillionMutations) {
  if (std::getenv("TAPER_LONG_TESTS") == nullptr) GTEST_SKIP() << "TAPER_LONG_TESTS is not set";
  fuzz(1'000'000, 2);
}

}  // namespace
}  // namespace taper::testing
