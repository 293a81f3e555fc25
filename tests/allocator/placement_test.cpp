// Where blocks are placed, against an oracle that keeps a sorted list of byte ranges and looks at
// all of them.
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "taper/tests/allocator/arena_checks.h"

namespace taper::testing {
namespace {

struct Range {
  std::uint64_t begin = 0, end = 0;
  StreamId stream = 0;
  bool live = false;

  std::uint64_t bytes() const { return end - begin; }

  friend bool operator==(const Range&, const Range&) = default;
};

// All reserved memory, in address order; free ranges are as long as they can be.
class Oracle {
 public:
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  // The smallest free range of the stream that fits, and of several the lowest.
  std::uint64_t best_fit(StreamId stream, std::uint64_t bytes) const {
    const Range* best = nullptr;
    for (const Range& r : ranges_) {
      if (r.live || r.stream != stream || r.bytes() < bytes) continue;
      if (best == nullptr || r.bytes() < best->bytes()) best = &r;
    }
    return best == nullptr ? kNowhere : best->begin;
  }

  struct Growth {
    std::uint64_t pages = 0, at = kNowhere;
  };

  // Where the fewest pages have to be mapped, of all places that begin with unmapped pages or with
  // the free range before them; of several, the lowest.
  Growth fewest_pages(StreamId stream, std::uint64_t bytes) const {
    Growth best;
    std::uint64_t gap = 0;  // where unmapped pages begin
    for (std::size_t i = 0; i <= ranges_.size(); ++i) {
      const bool is_gap = i == ranges_.size() || ranges_[i].begin > gap;
      if (is_gap) {
        const bool joins = i > 0 && ranges_[i - 1].end == gap && !ranges_[i - 1].live &&
                           ranges_[i - 1].stream == stream;
        const std::uint64_t begin = joins ? ranges_[i - 1].begin : gap;
        const std::uint64_t pages = pages_needed(stream, i, gap, begin + bytes);
        if (pages != 0 && (best.pages == 0 || pages < best.pages)) best = {pages, begin};
      }
      if (i < ranges_.size()) gap = ranges_[i].end;
    }
    return best;
  }

  void take(std::uint64_t begin, std::uint64_t bytes) {
    const auto it = at(begin);
    ASSERT_TRUE(it->begin == begin && !it->live && it->bytes() >= bytes);
    const Range rest{begin + bytes, it->end, it->stream, false};
    it->live = true;
    it->end = begin + bytes;
    if (rest.bytes() > 0) ranges_.insert(it + 1, rest);
  }

  void give_back(std::uint64_t begin) {
    auto it = at(begin);
    it->live = false;
    const auto joins = [](const Range& a, const Range& b) {
      return !a.live && !b.live && a.stream == b.stream && a.end == b.begin;
    };
    if (it + 1 != ranges_.end() && joins(*it, *(it + 1))) {
      it->end = (it + 1)->end;
      ranges_.erase(it + 1);
    }
    if (it != ranges_.begin() && joins(*(it - 1), *it)) {
      (it - 1)->end = it->end;
      ranges_.erase(it);
    }
  }

  // Pages were mapped or unmapped: which ones, only the allocator knows. Live blocks stay.
  void learn(const std::vector<SegmentInfo>& map) {
    std::vector<Range> was, is;
    for (const Range& r : ranges_) {
      if (r.live) was.push_back(r);
    }
    ranges_.clear();
    for (const SegmentInfo& segment : map) {
      for (const BlockInfo& b : segment.blocks) {
        const bool live = b.state == BlockState::kLive;
        ranges_.push_back({b.offset, b.offset + b.bytes, segment.stream, live});
        if (live) is.push_back(ranges_.back());
      }
    }
    ASSERT_TRUE(was == is);
  }

 private:
  std::vector<Range>::iterator at(std::uint64_t begin) {
    return std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                            [](const Range& r, std::uint64_t b) { return r.begin < b; });
  }

  // Of a block up to `end`, whose first unmapped pages, from `at` on, lie before range i.
  std::uint64_t pages_needed(StreamId stream,
                             std::size_t i,
                             std::uint64_t at,
                             std::uint64_t end) const {
    std::uint64_t pages = 0;
    for (;; ++i) {
      const std::uint64_t up_to = i == ranges_.size() ? end : std::min(end, ranges_[i].begin);
      pages += pages_of(up_to - at);
      if (i == ranges_.size() || end <= ranges_[i].begin) return pages;
      if (ranges_[i].live || ranges_[i].stream != stream) return 0;
      at = ranges_[i].end;
      if (end <= at) return pages;
    }
  }

  std::vector<Range> ranges_;
};

using Sizes = std::uint64_t (*)(std::mt19937_64&);

// An allocator and its oracle, doing the same.
class Both {
 public:
  Both(Sizes sizes, std::size_t most_out, StreamId streams, std::uint64_t seed)
      : sim_(quiet(), Torch::at(std::size_t{1} << 42)),
        sizes_(sizes),
        most_out_(most_out),
        streams_(streams),
        random_(seed) {}

  void churn(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFatalFailure(); ++i) {
      const bool fills = i / 5000 % 2 == 0;
      const std::uint64_t kind = random_() % 1000;
      if (kind == 0) {
        sim_.allocator->empty_cache();
        oracle_.learn(sim_.allocator->memory_map());
      } else if (out_.empty() || (out_.size() < most_out_ && kind < (fills ? 600u : 400u))) {
        allocate();
      } else {
        free_one();
      }
      if (i % 20'000 == 0) {
        ASSERT_EQ(first_wrong_in_arena(sim_), "");
      }
    }
    while (!out_.empty()) free_one();
    EXPECT_EQ(first_left_over(sim_), "");
  }

  std::uint64_t fits = 0, growths = 0;

 private:
  struct Out {
    Block block;
    std::size_t bytes;
    StreamId stream;
  };

  static AllocatorOptions quiet() {
    AllocatorOptions options;
    options.trace_events = 0;
    return options;
  }

  void allocate() {
    const auto stream = static_cast<StreamId>(random_() % streams_);
    const std::size_t bytes = sizes_(random_);
    const std::size_t rounded = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    const std::uint64_t expected = oracle_.best_fit(stream, rounded);
    const AllocatorStats before = sim_.allocator->stats();
    const Block block = sim_.allocate(bytes, stream);
    const AllocatorStats after = sim_.allocator->stats();
    const std::size_t offset = sim_.offset(block);
    out_.push_back({block, bytes, stream});
    ASSERT_EQ(block.bytes, rounded);
    if (expected != Oracle::kNowhere) {
      ++fits;
      ASSERT_EQ(offset, expected) << bytes << " bytes";
      ASSERT_EQ(after.device_calls, before.device_calls);
      return oracle_.take(expected, rounded);
    }
    ASSERT_GT(after.pages_mapped, before.pages_mapped);
    if (after.pages_unmapped == before.pages_unmapped) {
      ++growths;
      const Oracle::Growth growth = oracle_.fewest_pages(stream, rounded);
      ASSERT_EQ(after.pages_mapped - before.pages_mapped, growth.pages) << bytes << " bytes";
      ASSERT_EQ(offset, growth.at);
    }
    oracle_learns_with(block, bytes, stream);
  }

  // Takes the new block out of the comparison, and in again.
  void oracle_learns_with(const Block& block, std::size_t bytes, StreamId stream) {
    sim_.free(block, bytes, stream);
    oracle_.learn(sim_.allocator->memory_map());
    const std::uint64_t expected = oracle_.best_fit(stream, block.bytes);
    const Block again = sim_.allocate(bytes, stream);
    ASSERT_EQ(sim_.offset(again), expected);
    oracle_.take(expected, block.bytes);
    out_.back().block = again;
  }

  void free_one() {
    std::swap(out_[random_() % out_.size()], out_.back());
    const Out o = out_.back();
    out_.pop_back();
    if (random_() % 16 == 0) sim_.allocator->record_stream(o.block, streams_);
    sim_.free(o.block, o.bytes, o.stream);
    oracle_.give_back(sim_.offset(o.block));
  }

  OnSim sim_;
  Oracle oracle_;
  Sizes sizes_;
  std::size_t most_out_;
  StreamId streams_;
  std::mt19937_64 random_;
  std::vector<Out> out_;
};

void compare(Sizes sizes, std::size_t most_out, StreamId streams, int operations) {
  Both both(sizes, most_out, streams, most_out);
  both.churn(operations);
  EXPECT_GT(both.fits, static_cast<std::uint64_t>(operations) / 4);
  EXPECT_GT(both.growths, 10u);
}

TEST(Placement, EqualSizes) {
  compare([](std::mt19937_64&) { return std::uint64_t{300'000}; }, 200, 1, 200'000);
}

TEST(Placement, SmallSizes) {
  compare([](std::mt19937_64& r) { return 1 + r() % 20'000; }, 300, 1, 200'000);
}

TEST(Placement, SizesOfAllMagnitudes) {
  compare([](std::mt19937_64& r) { return 1 + r() % (std::uint64_t{1} << (9 + r() % 18)); }, 300, 1,
          200'000);
}

TEST(Placement, WholePages) {
  compare([](std::mt19937_64& r) { return (1 + r() % 8) * kPageBytes; }, 100, 1, 150'000);
}

TEST(Placement, Above128MiB) {
  compare([](std::mt19937_64& r) { return 100 * kMiB + r() % kGiB; }, 50, 1, 100'000);
}

TEST(Placement, SeveralStreams) {
  compare([](std::mt19937_64& r) { return 1 + r() % (std::uint64_t{1} << (12 + r() % 14)); }, 200,
          3, 150'000);
}

}  // namespace
}  // namespace taper::testing
