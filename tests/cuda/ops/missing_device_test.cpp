// What is said of devices that this machine does not have, and of a machine that has none.
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
    {"", [](Device d) { make_stream(d); }},
    {"", [](Device d) { Stream(d).synchronize(); }},
    {"", [](Device d) { Event().record(Stream(d)); }},
    {"", [](Device d) { const StreamGuard guard((Stream(d))); }},
    {"", [](Device d) { synchronize(d.index()); }},
    {"", [](Device d) { memory_info(d.index()); }},
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
    EXPECT_EQ(text.find(std::string(first.name) + ": "), 0U) << text;
    EXPECT_TRUE(contains(text, "at missing_device_test.cpp:")) << text;
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
  EXPECT_EQ(ones({2}).sum().item<int>(), 2);  // the CPU works on
}

TEST(MissingDevice, AMachineWithoutAny) {
#ifndef TAPER_CUDA_EMULATED
  GTEST_SKIP() << "a real machine has what it has";
#endif
  const Rerun run = run_again("TAPER_EMULATED_DEVICES=0", "MissingDevice.DISABLED_NoneIsThere");
  EXPECT_TRUE(run.passed()) << run.output;
}

}  // namespace
}  // namespace taper::cuda
