// The race checker on random programs, against the whole graph of what happens before what.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "taper/autograd/lens/footprint.h"
#include "taper/taper.h"

namespace taper {
namespace {

// Note [The oracle]
// Every step of a random program is a node: launches, records, waits, and the host's. An edge says
// that one happens before the other; the closure, taken the slow way, says which launches are
// ordered.
class Program {
 public:
  static constexpr int kStreams = 3, kTensors = 6;

  explicit Program(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < kTensors; ++i) tensors_.push_back(ones({4, 5}).to(kCUDA));
    cuda::synchronize();
    static const std::vector<Stream> streams = {make_stream(), make_stream(), make_stream()};
    streams_ = streams;
    for (int s = 0; s <= kStreams; ++s) last_.push_back(add({}));
  }

  // After each launch the checker has found a race there, or not, as the oracle says.
  void run(int steps, const lens::RaceCheck& check) {
    std::vector<Event> events(3);
    std::vector<int> recorded(3, -1);
    for (int i = 0; i < steps; ++i) {
      const std::size_t s = below(kStreams), e = below(3);
      switch (below(10)) {
        case 0:
        case 1:
          events[e].record(streams_[s]);
          recorded[e] = last_[s];
          break;
        case 2:
        case 3:
          events[e].block(streams_[s]);
          if (recorded[e] >= 0) last_[s] = add({last_[s], recorded[e]});
          break;
        case 4:
          if (below(3) != 0) break;
          streams_[s].synchronize();
          last_[kStreams] = add({last_[kStreams], last_[s]});
          break;
        case 5:
          if (below(3) != 0) break;
          events[e].synchronize();
          if (recorded[e] >= 0) last_[kStreams] = add({last_[kStreams], recorded[e]});
          break;
        default: launch(s, static_cast<std::uint32_t>(i + 1), check);
      }
    }
  }

  int races = 0, quiet = 0;

 private:
  struct Use {
    int node;
    lens::Footprint bytes;
    bool writes;
  };

  std::size_t below(std::size_t n) { return random_() % n; }

  int add(const std::vector<int>& after) {
    const std::size_t n = before_.size();
    std::vector<bool> row(n + 1, false);
    row[n] = true;
    for (const int a : after) {
      for (std::size_t i = 0; i < before_[std::size_t(a)].size(); ++i) {
        if (before_[std::size_t(a)][i]) row[i] = true;
      }
    }
    before_.push_back(row);
    return static_cast<int>(n);
  }

  Tensor draw() {
    Tensor t = tensors_[below(kTensors)];
    switch (below(6)) {
      case 0: return t.select(0, static_cast<std::int64_t>(below(4)));
      case 1: return t.select(1, static_cast<std::int64_t>(below(5)));
      case 2: return t.slice(1, static_cast<std::int64_t>(below(2)), std::nullopt, 2);
      case 3: return t.slice(0, 1, 3, 1);
      default: return t;
    }
  }

  void launch(std::size_t s, std::uint32_t line, const lens::RaceCheck& check) {
    const Tensor to = draw(), from = draw();
    const int node = add({last_[s], last_[kStreams]});
    last_[s] = node;
    std::vector<Use> mine = {{node, lens::footprint(to.as<Out>()), true}};
    const bool copies = from.sizes() == to.sizes();
    if (copies) mine.push_back({node, lens::footprint(from.as<In>()), false});
    bool expected = false;
    for (const Use& use : uses_) {
      for (const Use& m : mine) {
        expected |= (use.writes || m.writes) &&
                    !before_[std::size_t(node)][std::size_t(use.node)] &&
                    lens::meet(use.bytes, m.bytes);
      }
    }
    uses_.insert(uses_.end(), mine.begin(), mine.end());
    const std::size_t found = check.count();
    {
      const SourceLoc loc("here.cpp", "f", line);
      const Call call(loc);
      const Exec exec(kCUDA, streams_[s].id());
      if (copies) kernels_for(kCUDA).neg(exec, to.as<Out>(), from.as<In>());
      else kernels_for(kCUDA).fill(exec, to.as<Out>(), 1);
    }
    ASSERT_EQ(check.count() > found, expected) << "launch " << line << "\n" << check.report();
    (expected ? races : quiet) += 1;
  }

  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<bool>> before_;  // before_[b][a]: a is b, or happens before it
  std::vector<int> last_;                  // of each stream, and of the host
  std::vector<Use> uses_;
};

TEST(RacePrograms, AgreeWithTheWholeGraph) {
  int races = 0, quiet = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Program program(seed);
    const lens::RaceCheck check(lens::RaceCheck::Found::kReport);
    program.run(60, check);
    if (HasFailure()) FAIL() << "seed " << seed;
    races += program.races;
    quiet += program.quiet;
    cuda::synchronize();
  }
  EXPECT_GT(races, 1000);
  EXPECT_GT(quiet, 1000);
}

}  // namespace
}  // namespace taper
