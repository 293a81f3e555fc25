// TAPER_ALLOC: every key, what is refused and how, and that what is written reads back.
#include "taper/allocator/options.h"

#include <random>

#include <gtest/gtest.h>

#include "taper/core/base/error.h"
#include "taper/core/base/text.h"

namespace taper {
namespace {

// The message with which `text` is refused; "" if it is not.
std::string refusal(const std::string& text) {
  try {
    parse_allocator_options(text);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

void expect_refused(const std::string& text, const std::string& because) {
  const std::string message = refusal(text);
  EXPECT_NE(message.find(because), std::string::npos) << text << ": " << message;
}

TEST(Options, EveryKey) {
  const AllocatorOptions standard = parse_allocator_options("");
  EXPECT_TRUE(standard == AllocatorOptions());
  EXPECT_EQ(standard.policy, AllocatorPolicy::kTaper);
  const AllocatorOptions ours = parse_allocator_options(
      "limit:80G,garbage_threshold:0.8,slack:0.02,huge_pages:off,trace_events:4K,trace:a:b.bin");
  EXPECT_EQ(ours.limit, std::size_t{80} << 30);
  EXPECT_EQ(ours.garbage_threshold, 0.8);
  EXPECT_EQ(ours.slack, 0.02);
  EXPECT_FALSE(ours.huge_pages);
  EXPECT_EQ(ours.trace_events, 4096u);
  EXPECT_EQ(ours.trace_file, "a:b.bin");
  const AllocatorOptions native = parse_allocator_options(
      "max_split_size:512M,policy:torch_native,roundup_power2_divisions:4,limit:2G,"
      "garbage_threshold:0.5,huge_pages:on");
  EXPECT_EQ(native.policy, AllocatorPolicy::kTorchNative);
  EXPECT_EQ(native.max_split_size, std::size_t{512} << 20);
  EXPECT_EQ(native.roundup_power2_divisions, 4u);
  EXPECT_EQ(parse_allocator_options("policy:torch_expandable").policy,
            AllocatorPolicy::kTorchExpandable);
  EXPECT_EQ(parse_allocator_options("policy:malloc").policy, AllocatorPolicy::kMalloc);
}

TEST(Options, UnknownTwiceOrWithoutEffect) {
  expect_refused("slak:0.1", "no key 'slak'; there are policy:taper|torch_native");
  expect_refused("slack :0.1", "no key 'slack '");
  expect_refused("max_split_size_mb:128", "no key 'max_split_size_mb'");
  expect_refused("policy:best", "no policy 'best'");
  expect_refused("slack:0.1,slack:0.1", "gives slack twice");
  expect_refused("policy:taper,limit:1G,policy:taper", "gives policy twice");
  expect_refused("max_split_size:512M", "max_split_size has no effect under policy:taper");
  expect_refused("roundup_power2_divisions:4", "no effect under policy:taper");
  expect_refused("slack:0.1,policy:torch_native", "slack has no effect under policy:torch_native");
  expect_refused("policy:torch_expandable,max_split_size:512M", "no effect");
  expect_refused("policy:torch_expandable,limit:1G,garbage_threshold:0.8", "no effect");
  for (const char* key : {"limit:1G", "garbage_threshold:0.5", "huge_pages:off", "slack:0.1",
                          "trace_events:16", "trace:f", "max_split_size:512M"})
    expect_refused(std::string("policy:malloc,") + key, "has no effect under policy:malloc");
  expect_refused("policy:torch_native,garbage_threshold:0.8", "no effect");
  expect_refused("trace_events:0,trace:f", "no effect with trace_events:0");
}

TEST(Options, BadForms) {
  for (const char* text : {"slack", "slack:", ",", "slack:0.1,,limit:1G", ":", "limit=1G",
                           ",slack:0.1", "slack:0.1,", " "})
    expect_refused(text, "key:value,key:value");
}

TEST(Options, BadValues) {
  for (const char* value : {"-0.1", "1.5", "nan", "inf", "x", "0.5x", "0,5"})
    EXPECT_NE(refusal(std::string("garbage_threshold:") + value), "") << value;
  for (const char* value : {"-1", "1001", "nan", "inf", "1e", "0x1", " 1"})
    EXPECT_NE(refusal(std::string("slack:") + value), "") << value;
  for (const char* value : {"yes", "ON", "1", "true", "of"})
    expect_refused(std::string("huge_pages:") + value, "huge_pages is on or off");
  for (const char* value : {"0", "3", "128", "1.5", "x"})
    EXPECT_NE(refusal(std::string("policy:torch_native,roundup_power2_divisions:") + value), "")
        << value;
  for (const char* value : {"1", "20M", "1M"})
    expect_refused(std::string("policy:torch_native,max_split_size:") + value, "above 20M");
  expect_refused("limit:1M", "less than a page");
  expect_refused("trace_events:1G", "at most 256M");
}

TEST(Options, Sizes) {
  const struct {
    const char* text;
    std::size_t bytes;
  } good[] = {{"0", 0},
              {"512", 512},
              {"1K", 1024},
              {"64KiB", 65536},
              {"64KB", 65536},
              {"1.5G", std::size_t{3} << 29},
              {"0.5M", std::size_t{1} << 19},
              {"2T", std::size_t{2} << 40},
              {"1e3", 1000},
              {"9007199254740991", (std::size_t{1} << 53) - 1}};
  for (const auto& x : good) EXPECT_EQ(parse_size(x.text), x.bytes) << x.text;
  for (const char* text : {"", "K", "-1", "1.5", "0.3K", "1k", "1 K", "1P", "1KiBs", "1Ki", "1B",
                           "nan", "inf", "0x10", "1e40", "2e18", "1,5G", "G1"})
    EXPECT_THROW(parse_size(text), Error) << text;
}

TEST(Options, SizesAsText) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1024), "1.00 KiB");
  EXPECT_EQ(size_text(1'572'864), "1.50 MiB");
  EXPECT_EQ(size_text(std::uint64_t{80} << 30), "80.0 GiB");
  EXPECT_EQ(size_text(~std::uint64_t{0}), "16.0 EiB");
}

// Values by chance of every key that has an effect under the policy.
AllocatorOptions some_options(std::mt19937_64& random) {
  AllocatorOptions o;
  o.policy = static_cast<AllocatorPolicy>(random() % 4);
  if (o.policy == AllocatorPolicy::kMalloc) return o;
  const auto sometimes = [&] { return random() % 2 == 0; };
  const bool taper = o.policy == AllocatorPolicy::kTaper;
  const bool native = o.policy == AllocatorPolicy::kTorchNative;
  if (sometimes()) o.limit = kPageBytes + random() % (std::size_t{1} << (22 + random() % 22));
  if ((taper || (native && o.limit != 0)) && sometimes())
    o.garbage_threshold = static_cast<double>(random()) * 0x1p-64;
  if (taper && sometimes()) o.slack = static_cast<double>(random()) * 0x1p-60;
  if (sometimes()) o.huge_pages = false;
  if (native && sometimes()) o.max_split_size = (std::size_t{21} << 20) + random() % 1'000'000'007;
  if (!taper && sometimes()) o.roundup_power2_divisions = std::size_t{1} << (random() % 7);
  if (sometimes()) o.trace_events = 1 + random() % (1 << 20);
  if (sometimes()) o.trace_file = "runs/" + std::to_string(random()) + ":1.bin";
  return o;
}

TEST(Options, WhatIsWrittenReadsBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'000; ++i) {
    const AllocatorOptions o = some_options(random);
    const std::string text = to_string(o);
    ASSERT_TRUE(parse_allocator_options(text) == o) << text;
    ASSERT_EQ(text.find(str("policy:", to_string(o.policy))), 0u) << text;
  }
  EXPECT_EQ(to_string(AllocatorOptions()), "policy:taper");
}

// Any text is read or refused by an Error.
TEST(Options, TextByChance) {
  const std::string parts[] = {"policy", "taper", "limit", "slack", ":",     ",",
                               "1",      "G",     "0.5",   "on",    "trace", "malloc",
                               "-",      " ",     "1e99",  "\xff",  "nan"};
  std::mt19937_64 random(2);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint64_t n = random() % 8; n > 0; --n) text += parts[random() % std::size(parts)];
    try {
      const AllocatorOptions o = parse_allocator_options(text);
      EXPECT_TRUE(parse_allocator_options(to_string(o)) == o) << text;
      ++read;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace taper
