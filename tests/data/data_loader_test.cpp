// DataLoader: the same batches in the same order for any number of workers, wherever one begins.
#include "taper/data/data_loader.h"

#include <atomic>
#include <chrono>
#include <set>

#include "taper/autograd/ops/random.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using data::DataLoaderOptions;
using data::Example;
using data::LoaderPosition;
using data::make_data_loader;
using data::samplers::RandomSampler;
using data::samplers::SequentialSampler;

using Batch = std::vector<int>;
using Batches = std::vector<Batch>;

std::vector<int> numbers(int n) {
  std::vector<int> out;
  for (int i = 0; i < n; ++i) out.push_back(i);
  return out;
}

template <class Loader> Batches epoch_of(Loader& loader) {
  Batches out;
  for (auto& batch : *loader) out.push_back(batch);
  return out;
}

DataLoaderOptions with_workers(std::size_t workers, std::size_t batch = 4) {
  return DataLoaderOptions(batch).workers(workers);
}

TEST(DataLoader, SequentialBatches) {
  auto loader = make_data_loader<SequentialSampler>(numbers(7), 3);
  EXPECT_EQ(loader->size(), 3U);
  EXPECT_EQ(epoch_of(loader), (Batches{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(epoch_of(loader), (Batches{{0, 1, 2}, {3, 4, 5}, {6}}));
}

TEST(DataLoader, DropLast) {
  const auto options = DataLoaderOptions(3).drop_last(true);
  auto loader = make_data_loader<SequentialSampler>(numbers(7), options);
  EXPECT_EQ(loader->size(), 2U);
  EXPECT_EQ(epoch_of(loader), (Batches{{0, 1, 2}, {3, 4, 5}}));
  auto none = make_data_loader<SequentialSampler>(numbers(2), options);
  EXPECT_EQ(none->size(), 0U);
  EXPECT_TRUE(epoch_of(none).empty());
  EXPECT_EQ(none->position().epoch, 1U);
}

TEST(DataLoader, EmptyDataset) {
  for (const std::size_t workers : {0UL, 2UL}) {
    auto loader = make_data_loader(std::vector<int>(), with_workers(workers));
    EXPECT_TRUE(epoch_of(loader).empty());
    EXPECT_TRUE(epoch_of(loader).empty());
  }
}

TEST(DataLoader, RefusesBatchesOfNothing) {
  expect_error([] { make_data_loader(numbers(3), 0); }, {"batch size"});
}

TEST(DataLoader, EachExampleOncePerEpoch) {
  for (const std::size_t workers : {0UL, 1UL, 4UL}) {
    auto loader = make_data_loader(numbers(103), with_workers(workers));
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::multiset<int> seen;
      for (const Batch& batch : epoch_of(loader)) seen.insert(batch.begin(), batch.end());
      const auto all = numbers(103);
      EXPECT_EQ(seen, std::multiset<int>(all.begin(), all.end()));
    }
  }
}

TEST(DataLoader, ShuffleFollowsTheSeed) {
  const auto epochs = [](std::uint64_t seed, std::size_t workers, std::size_t ahead) {
    auto options = with_workers(workers);
    if (ahead > 0) options.max_jobs(ahead);
    auto loader = make_data_loader(numbers(50), RandomSampler(50, seed), options);
    const Batches first = epoch_of(loader), second = epoch_of(loader);
    EXPECT_NE(first, second);
    return std::pair(first, second);
  };
  const auto want = epochs(1, 0, 0);
  for (const std::size_t workers : {0UL, 1UL, 4UL}) {
    for (const std::size_t ahead : {0UL, 1UL, 3UL, 100UL})
      EXPECT_EQ(epochs(1, workers, ahead), want);
  }
  EXPECT_NE(epochs(2, 0, 0), want);
  manual_seed(3);
  auto a = make_data_loader(numbers(50), 4);
  manual_seed(3);
  auto b = make_data_loader(numbers(50), 4);
  EXPECT_EQ(epoch_of(a), epoch_of(b));
}

// Workers that take their time in an unfair order do not change the order of batches.
TEST(DataLoader, SlowWorkersKeepTheOrder) {
  struct Uneven : data::Dataset<Uneven, int> {
    int get(std::size_t i) override {
      std::this_thread::sleep_for(std::chrono::microseconds(i % 3 == 0 ? 800 : 10));
      return static_cast<int>(i);
    }

    std::optional<std::size_t> size() const override { return 60; }
  };

  auto want = make_data_loader<SequentialSampler>(numbers(60), 2);
  auto loader = make_data_loader<SequentialSampler>(Uneven(), with_workers(4, 2));
  EXPECT_EQ(epoch_of(loader), epoch_of(want));
}

TEST(DataLoader, StackedTensorsAreTheSameBits) {
  const auto epoch = [](std::size_t workers) {
    auto loader = make_data_loader(data::datasets::glyphs(40, 1)
                                       .map(data::transforms::Normalize<>(0.5, 0.5))
                                       .map(data::transforms::Stack<>()),
                                   RandomSampler(40, 9), with_workers(workers, 16));
    Numbers out;
    for (Example<>& batch : *loader) {
      const Numbers data = values(batch.data), target = values(batch.target);
      out.insert(out.end(), data.begin(), data.end());
      out.insert(out.end(), target.begin(), target.end());
    }
    return out;
  };
  const Numbers want = epoch(0);
  EXPECT_EQ(epoch(1), want);
  EXPECT_EQ(epoch(4), want);
}

// Never more than max_jobs batches are made beyond the one that was taken.
TEST(DataLoader, PrefetchIsBounded) {
  std::atomic<int> made{0};
  auto counting = data::RangeDataset(numbers(100));
  data::MapDataset set(std::move(counting), [&](int i) { return ++made, i; });
  auto loader = make_data_loader<SequentialSampler>(std::move(set), with_workers(2, 1).max_jobs(3));
  int taken = 0;
  for ([[maybe_unused]] auto& batch : *loader) {
    ++taken;
    if (taken % 20 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_LE(made, taken + 3);
  }
  EXPECT_EQ(made, 100);
}

TEST(DataLoader, NoJobsAheadIsOne) {
  auto loader = make_data_loader<SequentialSampler>(numbers(5), with_workers(2, 2).max_jobs(0));
  EXPECT_EQ(epoch_of(loader), (Batches{{0, 1}, {2, 3}, {4}}));
}

// --- Positions ----------------------------------------------------------------------------------

auto shuffled(std::size_t workers) {
  return make_data_loader(numbers(22), RandomSampler(22, 5), with_workers(workers));
}

// All batches of three epochs, and the position saved after each, as a loop would.
struct Progress {
  Batches batches;
  std::vector<LoaderPosition> after;
};

template <class Loader> Progress run_to_epoch(Loader& loader, std::uint64_t end) {
  Progress run;
  while (loader->position().epoch < end) {
    for (auto& batch : *loader) {
      run.batches.push_back(batch);
      run.after.push_back(loader->position());
    }
  }
  return run;
}

TEST(DataLoader, GoesOnFromEachPosition) {
  auto whole = shuffled(0);
  const Progress want = run_to_epoch(whole, 3);
  ASSERT_EQ(want.batches.size(), 18U);
  for (const std::size_t workers : {0UL, 1UL, 4UL}) {
    for (std::size_t k = 0; k < want.after.size(); ++k) {
      auto resumed = shuffled(workers);
      resumed->set_position(want.after[k]);
      const Progress rest = run_to_epoch(resumed, 3);
      EXPECT_EQ(rest.batches, Batches(want.batches.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                                      want.batches.end()))
          << "after batch " << k << " with " << workers << " workers";
    }
  }
}

TEST(DataLoader, PositionCountsBatches) {
  auto loader = shuffled(0);
  EXPECT_EQ(loader->position().batch, 0U);
  auto it = loader->begin();
  EXPECT_EQ(loader->position().batch, 1U);
  for (int i = 0; i < 5; ++i) ++it;
  EXPECT_EQ(loader->position().epoch, 1U);  // after the last: the next epoch's first
  EXPECT_EQ(loader->position().batch, 0U);
  EXPECT_FALSE(it == loader->end());
  ++it;
  EXPECT_TRUE(it == loader->end());
  EXPECT_EQ(loader->position().epoch, 1U);
  expect_error([&] { loader->set_position({0, 6}); }, {"position 6", "6 batches"});
}

TEST(DataLoader, LeavingAnEpochBeginsTheNext) {
  auto loader = shuffled(2), fresh = shuffled(0);
  for ([[maybe_unused]] auto& batch : *loader) break;
  epoch_of(fresh);
  EXPECT_EQ(epoch_of(loader), epoch_of(fresh));
  auto back = shuffled(2);
  back->set_position({1, 2});
  Batches two;
  for (auto& batch : *back) {
    two.push_back(batch);
    if (two.size() == 2) break;
  }
  back->set_position({1, 2});
  const Batches again = epoch_of(back);
  EXPECT_EQ(Batches(again.begin(), again.begin() + 2), two);
}

// --- Failures -----------------------------------------------------------------------------------

struct Fragile : data::Dataset<Fragile, int> {
  int get(std::size_t i) override {
    if (i == 9) throw std::runtime_error("file 9 is gone");
    if (i == 13) throw 13;
    return static_cast<int>(i);
  }

  std::optional<std::size_t> size() const override { return 20; }
};

TEST(DataLoader, FailureComesInItsTurnAndNamesTheExample) {
  for (const std::size_t workers : {0UL, 1UL, 4UL}) {
    auto loader = make_data_loader<SequentialSampler>(Fragile(), with_workers(workers, 4));
    Batches seen;
    expect_error(
        [&] {
          for (auto& batch : *loader) seen.push_back(batch);
        },
        {"example 9", "file 9 is gone"});
    EXPECT_EQ(seen, (Batches{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  }
}

// Who catches a failure may go on behind it, and the epoch still ends.
TEST(DataLoader, GoesOnAfterAFailure) {
  for (const std::size_t workers : {0UL, 1UL, 4UL}) {
    auto loader = make_data_loader<SequentialSampler>(Fragile(), with_workers(workers, 4));
    Batches seen;
    int failed = 0;
    for (auto it = loader->begin(); !(it == loader->end());) {
      seen.push_back(*it);
      while (true) {
        try {
          ++it;
          break;
        } catch (const Error&) {
          ++failed;
        }
      }
    }
    EXPECT_EQ(failed, 2) << workers;
    EXPECT_EQ(seen, (Batches{{0, 1, 2, 3}, {4, 5, 6, 7}, {16, 17, 18, 19}}));
    EXPECT_EQ(loader->position().epoch, 1U);
    EXPECT_EQ(loader->position().batch, 0U);
  }
}

TEST(DataLoader, LeftMidEpochDoesNotHang) {
  for (const std::size_t workers : {0UL, 1UL, 4UL}) {
    for (const std::size_t take : {0UL, 1UL, 3UL}) {
      auto loader = make_data_loader(numbers(1000), with_workers(workers, 1));
      std::size_t taken = 0;
      if (take > 0) {
        for ([[maybe_unused]] auto& batch : *loader) {
          if (++taken == take) break;
        }
      }
      EXPECT_EQ(taken, take);
    }
  }
  auto fragile = make_data_loader<SequentialSampler>(Fragile(), with_workers(4, 20));
  EXPECT_THROW(fragile->begin(), Error);
}

// Begins many epochs anew, with batches under way.
TEST(DataLoader, BeginsAgainWhileWorkersRun) {
  auto loader = make_data_loader(numbers(64), with_workers(3, 2));
  for (int i = 0; i < 200; ++i) {
    auto it = loader->begin();
    if (i % 2 == 0) ++it;
    EXPECT_EQ(it->size(), 2U);
  }
}

}  // namespace
}  // namespace taper::testing
