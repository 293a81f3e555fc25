// What is said of devices that this machine does not have, and of a machine that has none.
#include <cstdio>
#include <iterator>

#include "taper/tests/cuda/again.h"
#include "taper/tests/cuda/ops/same_bits.h"
#include "taper/tests/message_of.h"

namespace taper::cuda {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// All that first asks for a device, and what the error calls it; empty where no function is named.
struct FirstUse {
  const char* name;
  void (*use)(Device);
};

const FirstUse kFirstUses[] = {
    {"zeros",
     [](Device d) {
       zeros({2, 3}, d);
     }},
    {"empty",
     [](Device d) {
       empty({2, 3}, d);
     }},
    {"tensor",
     [](Device d) {
       tensor({1, 2}, d);
     }},
    {"arange", [](Device d) { arange(5, d); }},
    {"rand", [](Device d) { rand({2}, d); }},
    {"to", [](Device d) { ones({2}).to(d); }},
    {"ones_like", [](Device d) { ones_like(ones({2}), d); }},
    {"", [](Device d) { nn::Linear(2, 3)->to(d); }},
    {"make_stream", [](Device d) { make_stream(d); }},
    {"synchronize", [](Device d) { Stream(d).synchronize(); }},
    {"query", [](Device d) { Stream(d).query(); }},
    {"record", [](Device d) { Event().record(Stream(d)); }},
    {"", [](Device d) { const StreamGuard guard((Stream(d))); }},
    {"", [](Device d) { const DeviceGuard guard(d.index()); }},
    {"synchronize", [](Device d) { synchronize(d.index()); }},
    {"memory_info", [](Device d) { memory_info(d.index()); }},
    {"", [](Device d) { memory::stats(d); }},
    {"",
     [](Device d) {
       data::make_data_loader(std::vector<Tensor>{ones({2})}, data::DataLoaderOptions(1).device(d));
     }},
};

void expect_missing(Device device, const std::string& count) {
  for (const FirstUse& first : kFirstUses) {
    const std::string text = message_of([&] { first.use(device); });
    EXPECT_TRUE(contains(text, str("there is no device ", device, "; this machine has ", count)))
        << first.name << ": " << text;
    if (*first.name == 0) continue;
    EXPECT_TRUE(contains(text, "at missing_device_test.cpp:")) << text;
    EXPECT_EQ(text.find(std::string(first.name) + ": "), 0U) << text;
  }
}

TEST(MissingDevice, IsNamedWithHowManyThereAre) {
  const std::string count = std::to_string(device_count());
  for (const int index : {device_count(), device_count() + 1, kMaxDevices - 1}) {
    expect_missing(Device(kCUDA, index), count);
  }
}

// Part of the next test.
TEST(MissingDevice, DISABLED_NoneIsThere) {
  ASSERT_EQ(device_count(), 0);
  EXPECT_FALSE(is_available());
  expect_missing(kFirst, "0");
  const std::string text = message_of([] { ones({2}).pin_memory(); });
  EXPECT_TRUE(contains(text, "pin_memory: memory is pinned for CUDA devices, and this machine has"))
      << text;
  const std::string batches = message_of([] {
    data::make_data_loader(std::vector<Tensor>{ones({2})},
                           data::DataLoaderOptions(1).pin_memory(true));
  });
  EXPECT_EQ(batches.find("memory is pinned for CUDA devices"), 0U) << batches;
  EXPECT_TRUE(contains(batches, "at missing_device_test.cpp:")) << batches;
  EXPECT_EQ(ones({2}).sum().item<int>(), 2);  // the CPU works on
}

TEST(MissingDevice, AMachineWithoutAny) {
#ifndef TAPER_CUDA_EMULATED
  GTEST_SKIP() << "a real machine has what it has";
#endif
  const Rerun run = run_again("TAPER_EMULATED_DEVICES=0", "MissingDevice.DISABLED_NoneIsThere");
  EXPECT_TRUE(run.passed()) << run.output;
}

// Part of the next test: what each first use says, and that the CPU works on.
TEST(MissingDevice, DISABLED_Why) {
  std::printf("why: %s\n", why_no_device().c_str());
  for (const FirstUse& first : kFirstUses) {
    std::printf("use: %s\n", message_of([&] { first.use(kFirst); }).c_str());
  }
  EXPECT_EQ(device_count(), 0);
  EXPECT_EQ(ones({2}).sum().item<int>(), 2);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(MissingDevice, SaysWhatTheMachineLacks) {
#ifndef TAPER_CUDA_EMULATED
  GTEST_SKIP() << "a real machine has what it has";
#endif
  const struct {
    const char *settings, *why;
  } cases[] = {
      {"TAPER_EMULATED_DRIVER=none", "there is no NVIDIA driver here"},
      {"TAPER_EMULATED_DRIVER=12.4",
       "the driver supports CUDA 12.4 and this build needs 13.0: update the driver"},
      {"TAPER_EMULATED_DEVICES=0", "there is an NVIDIA driver here and no GPU"},
  };
  for (const auto& one : cases) {
    const Rerun run = run_again(one.settings, "MissingDevice.DISABLED_Why");
    EXPECT_TRUE(run.passed()) << run.output;
    EXPECT_EQ(count_of(run.output, one.why), int(std::size(kFirstUses)) + 1) << run.output;
    EXPECT_EQ(count_of(run.output, "CUDA error"), 0) << run.output;
  }
}

// Part of the next test.
TEST(MissingDevice, DISABLED_FirstUse) {
  std::printf("told: %s\n", message_of([] { ones({2}, kFirst); }).c_str());
}

TEST(MissingDevice, SwitchesThatSayNothingAreRefused) {
#ifndef TAPER_CUDA_EMULATED
  GTEST_SKIP() << "they are the emulated machine's";
#endif
  const struct {
    const char *settings, *allowed;
  } cases[] = {
      {"TAPER_EMULATED_ORDER=forward", "reverse"},
      {"TAPER_EMULATED_STREAMS=seeded:x", "late, or seeded:n"},
      {"TAPER_EMULATED_STREAMS=seeded:3x", "late, or seeded:n"},
      {"TAPER_EMULATED_STREAMS=early", "late, or seeded:n"},
      {"TAPER_EMULATED_DEVICES=x", "a number from 0 to 64"},
      {"TAPER_EMULATED_DEVICES=65", "a number from 0 to 64"},
      {"TAPER_EMULATED_MEMORY=8X", "a size, as in 512M or 8G"},
      {"TAPER_EMULATED_DRIVER=old", "none, or the CUDA version"},
      {"TAPER_EMULATED_ACCESS=open", "guarded"},
      {"TAPER_EMULATED_FAIL=cudaMalloc", "name:n=e"},
      {"TAPER_EMULATED_FAIL=cudaMallok:1=2", "the name of a call; there are cuMem"},
  };
  for (const auto& one : cases) {
    const Rerun run = run_again(one.settings, "MissingDevice.DISABLED_FirstUse");
    EXPECT_TRUE(contains(run.output, str(one.settings, ": say ", one.allowed))) << run.output;
    EXPECT_TRUE(contains(run.output, "at missing_device_test.cpp:")) << run.output;
  }
  // This program asks for it before main.
  const Rerun gemm = run_again("TAPER_GEMM=cublass", "MissingDevice.DISABLED_FirstUse");
  EXPECT_TRUE(contains(gemm.output, "TAPER_GEMM=cublass: say own, openblas (on the CPU) or cublas"))
      << gemm.output;
  const Rerun run = run_again("TAPER_EMULATED_ODER=reverse", "MissingDevice.DISABLED_FirstUse");
  EXPECT_TRUE(contains(run.output, "there is no variable TAPER_EMULATED_ODER")) << run.output;
  EXPECT_TRUE(run_again("TAPER_EMULATED_MEMORY=1G", "MissingDevice.DISABLED_Fits").passed());
}

// Part of the test before.
TEST(MissingDevice, DISABLED_Fits) {
  EXPECT_EQ(memory_info(0).total, std::size_t{1} << 30);
  EXPECT_EQ(ones({2}, kFirst).sum().item<int>(), 2);
}

}  // namespace
}  // namespace taper::cuda
