// Dumps as files: what was written is read, and what is no dump is refused.
#include <random>

#include <gtest/gtest.h>

#include "taper/autograd/lens/dump.h"
#include "taper/tests/lens/dump_samples.h"

namespace taper::testing {
namespace {

using lens::DumpError;
using lens::from_json;
using lens::TapeDump;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

void expect_refused(const std::string& text, const std::string& says) {
  try {
    from_json(text, "hostile.json");
    FAIL() << "was read: " << text.substr(0, 200);
  } catch (const DumpError& e) {
    EXPECT_NE(e.message().find(says), std::string::npos) << e.message();
    EXPECT_EQ(e.message().rfind("hostile.json: ", 0), 0U) << e.message();
    EXPECT_LT(e.message().size(), 300U);
  }
}

TEST(DumpFile, IsReadAsItWasWritten) {
  const TapeDump dump = lens::dump(transformer_loss());
  const std::string text = to_json(dump);
  const TapeDump read = from_json(text);
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(to_text(read), to_text(dump));
  EXPECT_EQ(to_chrome(read), to_chrome(dump));
  EXPECT_EQ(bytes_of(read).total(), bytes_of(dump).total());
}

TEST(DumpFile, OfNothingIsRead) {
  EXPECT_TRUE(from_json(to_json(TapeDump{})).entries.empty());
}

TEST(DumpFile, UnknownKeysArePassedOver) {
  const std::string text = to_json(lens::dump(transformer_loss()));
  const std::string more = R"("later":{"a":[1,-2.5,null,{"b":true}],"from":"x"},)";
  EXPECT_EQ(to_json(from_json(replaced(text, "\"op\"", more + "\"op\""))), text);
  EXPECT_EQ(to_json(from_json(replaced(text, "\"version\"", more + "\"version\""))), text);
}

TEST(DumpFile, WhatIsNoneIsRefused) {
  SmallNet net;
  const TapeDump dump = lens::dump(net->forward(net.x).sum());
  const std::string good = to_json(dump);
  const std::string last = std::to_string(dump.entries.back().index);
  expect_refused("", "no JSON at byte");
  expect_refused("[1]", "a list is not expected");
  expect_refused("{}", "expected the format");
  expect_refused(good.substr(0, good.size() / 2), "no JSON at byte");
  expect_refused(good + "x", "no JSON at byte");
  expect_refused(std::string(100000, '['), "not expected");
  expect_refused("{\"later\":" + std::string(100000, '['), "nested deeper");
  expect_refused(replaced(good, "taper-tape", "tape"), "expected the format");
  expect_refused(replaced(good, "\"version\":1", "\"version\":2"), "expected version 1, got 2");
  expect_refused(replaced(good, "\"f32\"", "\"f33\""), "there is no dtype 'f33'");
  expect_refused(replaced(good, "\"cpu\"", "\"gpu\""), "there is no device 'gpu'");
  expect_refused(replaced(good, "\"parameter\"", "\"thing\""), "no storage is a 'thing'");
  expect_refused(replaced(good, "\"bytes\":60", "\"bytes\":18446744073709551615"), "any memory");
  expect_refused(replaced(good, "\"sizes\":[7", "\"sizes\":[9223372036854775807,9"), "too large");
  expect_refused(replaced(good, "\"sizes\":[7", "\"sizes\":[-7"), "a negative number");
  expect_refused(replaced(good, "\"sizes\":[7", "\"sizes\":[1,1,1,1,1,1,1,1,1"),
                 "more than 8 dims");
  expect_refused(replaced(good, "\"storage\":0", "\"storage\":99"), "saves storage 99 of 3");
  expect_refused(replaced(good, "\"storage\":0", "\"storage\":4294967296"), "at most");
  expect_refused(replaced(good, "\"index\":" + last, "\"index\":1"), "stands behind");
  expect_refused(replaced(good, "\"inputs\":[null", "\"inputs\":[[" + last + ",0]"), "cannot come");
  expect_refused(replaced(good, "\"inputs\":[null", "\"inputs\":[[1,2,3]"), "more than two");
  expect_refused(replaced(good, "\"op\":\"", "\"op\":\"" + std::string(5000, 'x')), "longer than");
  expect_refused(replaced(good, "\"entries\":[", "\"entries\":7,\"x\":["), "a number is not");
}

TEST(DumpFile, AShortFileMakesNoLargeDump) {
  std::string text = R"({"format":"taper-tape","version":1,"entries":[{"inputs":[null)";
  for (int i = 0; i < 6000000; ++i) text += ",{}";
  expect_refused(text, "is not expected");
  text = R"({"format":"taper-tape","version":1,"entries":[{})";
  for (int i = 0; i < 1000000; ++i) text += ",{}";
  expect_refused(text, "far more than");
}

// Bytes changed, cut out and doubled: a dump or a DumpError, and a dump can be shown.
TEST(DumpFile, MutationsAreReadOrRefused) {
  SmallNet net;
  const std::string good = to_json(lens::dump(net->forward(net.x).sum()));
  std::mt19937 rng(7);
  const std::string alphabet = "0123456789\"[]{},:-nulltrue.x\\\0";
  int read = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (std::size_t k = rng() % 3 + 1; k > 0; --k) {
      const std::size_t at = rng() % text.size(), length = rng() % 6;
      switch (rng() % 4) {
        case 0: text[at] = alphabet[rng() % alphabet.size()]; break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(at, text.substr(rng() % text.size(), length)); break;
        default: text[at] = static_cast<char>(text[at] ^ (1 << rng() % 8)); break;
      }
    }
    try {
      const TapeDump dump = from_json(text);
      to_text(dump), to_dot(dump), to_chrome(dump);
      EXPECT_EQ(to_json(from_json(to_json(dump))), to_json(dump));
      ++read;
    } catch (const DumpError&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 500);
  EXPECT_GT(refused, 5000);
}

}  // namespace
}  // namespace taper::testing
