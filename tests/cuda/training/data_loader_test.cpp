// Batches that a loader puts into pinned memory, or onto a device while the one before is used.
#include <numeric>

#include "taper/tests/cuda/again.h"
#include "taper/tests/cuda/ops/same_bits.h"
#include "taper/tests/message_of.h"

#ifdef TAPER_CUDA_EMULATED
#include "taper/cuda/emulated/failing.h"
#endif

namespace taper::cuda {
namespace {

using data::DataLoaderOptions;
using data::Example;
using data::datasets::TensorDataset;
using data::samplers::RandomSampler;
using data::samplers::SequentialSampler;

constexpr std::int64_t kExamples = 103;

// Example i: i's multiples, and i.
TensorDataset numbered() {
  const Tensor i = arange(kExamples);
  return {i.view({-1, 1}) * arange(1, 301), i};
}

auto stacked() {
  return numbered().map(data::transforms::Stack<>());
}

DataLoaderOptions options(std::size_t workers) {
  return DataLoaderOptions(10).workers(workers);
}

using Batches = std::vector<Example<>>;

template <class Loader> Batches host_batches(Loader& loader) {
  Batches out;
  for (auto& batch : *loader) out.emplace_back(batch.data.to(kCPU), batch.target.to(kCPU));
  return out;
}

void expect_same_batches(const Batches& a, const Batches& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    expect_same_bits(a[i].data, b[i].data, str("data of batch ", i));
    expect_same_bits(a[i].target, b[i].target, str("target of batch ", i));
  }
}

TEST(PinnedBatches, AreTheSameBatches) {
  for (const std::size_t workers : {0U, 1U, 3U}) {
    auto plain = data::make_data_loader(stacked(), RandomSampler(kExamples, 3), options(workers));
    auto pinned = data::make_data_loader(stacked(), RandomSampler(kExamples, 3),
                                         options(workers).pin_memory(true));
    for (auto& batch : *plain) EXPECT_FALSE(batch.data.is_pinned());
    for (auto& batch : *pinned) EXPECT_TRUE(batch.data.is_pinned() && batch.target.is_pinned());
    for (int epoch = 0; epoch < 2; ++epoch) {
      expect_same_batches(host_batches(plain), host_batches(pinned));
    }
  }
}

// Each batch is used as a step uses it, for long and on the stream that is current.
void expect_right_on(const Device device, std::size_t workers, std::optional<Stream> stream) {
  auto plain = data::make_data_loader(stacked(), RandomSampler(kExamples, 3), options(workers));
  auto moved = data::make_data_loader(stacked(), RandomSampler(kExamples, 3),
                                      options(workers).device(device));
  std::optional<StreamGuard> guard;
  if (stream) guard.emplace(*stream);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<Tensor> sums, expected;
    for (auto& batch : *moved) {
      EXPECT_EQ(batch.data.device(), device);
      EXPECT_EQ(batch.target.device(), device);
      Tensor x = batch.data;
      for (int i = 0; i < 5; ++i) x = x * 3 + batch.target.view({-1, 1});
      sums.push_back(x.sum());
    }
    for (auto& batch : *plain) {
      Tensor x = batch.data;
      for (int i = 0; i < 5; ++i) x = x * 3 + batch.target.view({-1, 1});
      expected.push_back(x.sum());
    }
    ASSERT_EQ(sums.size(), expected.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      expect_same_bits(expected[i], sums[i], str("batch ", i, " of epoch ", epoch));
    }
  }
}

TEST(DeviceBatches, AreRightOnEachDeviceAndStream) {
  for (const Device device : {kFirst, kSecond}) {
    if (device.index() >= device_count()) continue;
    for (const std::size_t workers : {0U, 1U, 3U}) {
      SCOPED_TRACE(str(device, ", workers: ", workers));
      expect_right_on(device, workers, std::nullopt);
      expect_right_on(device, workers, make_stream(device));
    }
  }
}

// Where streams take turns in any order, what does not wait for its batch reads what was there.
TEST(DeviceBatches, AreRightInWhateverOrderStreamsWork) {
#ifndef TAPER_CUDA_EMULATED
  GTEST_SKIP() << "a real device has an order of its own";
#endif
  for (int seed = 1; seed <= 6; ++seed) {
    const Rerun run = run_again("TAPER_EMULATED_STREAMS=seeded:" + std::to_string(seed),
                                "DeviceBatches.AreRightOnEachDeviceAndStream");
    EXPECT_TRUE(run.passed()) << run.output;
  }
}

TEST(DeviceBatches, TakeBatchesOfEveryForm) {
  const auto on_first = options(2).device(kFirst);
  // A vector of examples: no transform stacks them.
  auto of_examples = data::make_data_loader<SequentialSampler>(numbered(), on_first);
  for (auto& batch : *of_examples) {
    for (const Example<>& e : batch) EXPECT_EQ(e.data.device(), kFirst);
  }
  // A range of tensors.
  std::vector<Tensor> tensors;
  for (int i = 0; i < 7; ++i) tensors.push_back(full({3}, i));
  std::int64_t next = 0;
  auto of_tensors =
      data::make_data_loader<SequentialSampler>(tensors, DataLoaderOptions(3).device(kFirst));
  for (auto& batch : *of_tensors) {
    for (const Tensor& t : batch) {
      EXPECT_EQ(t.device(), kFirst);
      EXPECT_EQ(t[1].item<std::int64_t>(), next++);
    }
  }
  EXPECT_EQ(next, 7);
  // What holds no tensor stays as it is.
  std::vector<int> numbers(9);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<int> got;
  auto of_numbers = data::make_data_loader<SequentialSampler>(
      numbers, DataLoaderOptions(4).device(kFirst).pin_memory(true));
  for (auto& batch : *of_numbers) got.insert(got.end(), batch.begin(), batch.end());
  EXPECT_EQ(got, numbers);
}

// The dataset lies on a device itself, perhaps not on the one that is asked for.
TEST(DeviceBatches, ComeFromDatasetsOnDevices) {
  const TensorDataset host = numbered();
  auto plain = data::make_data_loader<SequentialSampler>(stacked(), options(0));
  const Batches expected = host_batches(plain);
  for (const Device from : {kFirst, kSecond}) {
    if (from.index() >= device_count()) continue;
    const TensorDataset there(host.data().to(from), host.targets().to(from));
    for (const std::size_t workers : {0U, 2U}) {
      auto moved = data::make_data_loader<SequentialSampler>(
          TensorDataset(there).map(data::transforms::Stack<>()), options(workers).device(kFirst));
      expect_same_batches(expected, host_batches(moved));
      auto fetched = data::make_data_loader<SequentialSampler>(
          TensorDataset(there).map(data::transforms::Stack<>()), options(workers).device(kCPU));
      for (auto& batch : *fetched) EXPECT_TRUE(batch.data.is_cpu());
    }
  }
}

TEST(DeviceBatches, GiveTheirMemoryBack) {
  const auto live = [] { return memory::stats(kFirst).allocated; };
  const auto before = live();
  auto loader = data::make_data_loader<SequentialSampler>(stacked(), options(2).device(kFirst));
  for (auto& batch : *loader) {
    EXPECT_GT(live(), before);
    if (batch.target[0].item<int>() == 50) break;  // with batches on their way
  }
  static_cast<void>(host_batches(loader));
  loader.reset();
  cuda::synchronize(0);
  EXPECT_EQ(live(), before);
}

TEST(DeviceBatches, ADeviceThatIsNotThereIsRefusedAtOnce) {
  const Device missing(kCUDA, device_count());
  const std::string text = message_of(
      [&] { data::make_data_loader<SequentialSampler>(stacked(), options(1).device(missing)); });
  EXPECT_NE(text.find("there is no device " + str(missing)), std::string::npos) << text;
  EXPECT_NE(text.find("at data_loader_test.cpp:"), std::string::npos) << text;
  EXPECT_NE(message_of([] { options(1).device(kMeta); }).find("meta"), std::string::npos);
}

#ifdef TAPER_CUDA_EMULATED
TEST(DeviceBatches, WhatGoesWrongOnTheWayNamesTheLoop) {
  for (const std::size_t workers : {0U, 1U}) {
    auto loader =
        data::make_data_loader<SequentialSampler>(stacked(), options(workers).device(kFirst));
    static_cast<void>(host_batches(loader));
    emulated::fail_call("cudaMemcpyAsync", 1, cudaErrorNotSupported);
    const int line = __LINE__ + 2;
    const std::string text = message_of([&] {
      for (auto& batch : *loader) EXPECT_TRUE(batch.data.is_cuda());
    });
    emulated::count_calls();
    cudaGetLastError();
    EXPECT_EQ(text.find("to: CUDA error 801"), 0U) << text;
    EXPECT_NE(text.find(str("at data_loader_test.cpp:", line, " ")), std::string::npos) << text;
    static_cast<void>(host_batches(loader));
  }
}
#endif

}  // namespace
}  // namespace taper::cuda
