// Every pair of option values over all workloads of the corpus and of users' reports: options
// compose, and none makes the peak much higher.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "taper/allocator/twin.h"
#include "taper/tests/allocator/arena_checks.h"
#include "taper/tools/alloc/workloads.h"

namespace taper::testing {
namespace {

// One value of one key. A limit is given in hundredths of the peak without options.
struct Value {
  const char* key;
  double value;

  void set(AllocatorOptions& o, std::uint64_t peak) const {
    const std::string name = key;
    if (name == "limit")
      o.limit = static_cast<std::size_t>(value * static_cast<double>(peak) / 100);
    if (name == "garbage_threshold") o.garbage_threshold = value;
    if (name == "slack") o.slack = value;
    if (name == "plan") o.plan = value != 0;
    if (name == "huge_pages") o.huge_pages = value != 0;
    if (name == "max_split_size") o.max_split_size = static_cast<std::size_t>(value) * kMiB;
    if (name == "roundup_power2_divisions")
      o.roundup_power2_divisions = static_cast<std::size_t>(value);
    if (name == "trace_events") o.trace_events = static_cast<std::size_t>(value);
  }

  std::string text() const { return str(key, ":", value); }
};

struct Load {
  std::string name;
  Trace trace;
};

std::vector<Load> loads() {
  std::vector<Load> out;
  for (const Workload& w : workloads()) {
    const auto reports = report_names();
    const bool is_report = std::any_of(reports.begin(), reports.end(), [&](const char* name) {
      return w.name == std::string(name);
    });
    // Steps of two kinds by turns: what a plan keeps for one of them is not to burden the other.
    const bool alternates = w.name == std::string("eval_between");
    if (w.in_corpus || is_report || alternates) out.push_back({w.name, w.make()});
  }
  return out;
}

// Runs all pairs; the highest peak over that of the policy without options.
struct Worst {
  double ratio = 0;
  std::string where;
  int runs = 0, refused = 0;
};

Worst run_pairs(AllocatorPolicy policy, const std::vector<Value>& values) {
  Worst worst;
  for (const Load& load : loads()) {
    TwinSettings settings;
    settings.options.policy = policy;
    settings.options.trace_events = 0;
    const TwinResult plain = run_twin(load.trace, settings);
    EXPECT_TRUE(plain.finished) << load.name;
    for (const Value& a : values) {
      for (const Value& b : values) {
        const int order = std::string(a.key).compare(b.key);
        if (order > 0 || (order == 0 && a.value != b.value)) continue;
        TwinSettings with = settings;
        a.set(with.options, plain.stats.reserved_peak);
        b.set(with.options, plain.stats.reserved_peak);
        if (policy == AllocatorPolicy::kTorchNative && with.options.garbage_threshold > 0 &&
            with.options.limit == 0)
          continue;  // refused: without effect
        EXPECT_TRUE(parse_allocator_options(to_string(with.options)) == with.options);
        const TwinResult result = run_twin(load.trace, with);
        ++worst.runs;
        if (!result.finished) {
          ++worst.refused;
          worst.where += str(" ", load.name, " refused with ", a.text(), ",", b.text());
          continue;
        }
        const double ratio = static_cast<double>(result.stats.reserved_peak) /
                             static_cast<double>(plain.stats.reserved_peak);
        if (ratio <= worst.ratio) continue;
        worst.ratio = ratio;
        worst.where = str(load.name, " with ", a.text(), ",", b.text());
      }
    }
  }
  ::testing::Test::RecordProperty("worst", std::to_string(worst.ratio));
  ::testing::Test::RecordProperty("where", worst.where);
  ::testing::Test::RecordProperty("refused", worst.refused);
  return worst;
}

TEST(OptionPairs, Taper) {
  const std::vector<Value> values = {{"limit", 105},
                                     {"limit", 300},
                                     {"garbage_threshold", 0.5},
                                     {"garbage_threshold", 0.9},
                                     {"slack", 0},
                                     {"slack", 0.05},
                                     {"plan", 1},
                                     {"huge_pages", 0},
                                     {"trace_events", 64},
                                     {"trace_events", 4096}};
  const Worst worst = run_pairs(AllocatorPolicy::kTaper, values);
  EXPECT_GT(worst.runs, 500);
  EXPECT_EQ(worst.refused, 0) << worst.where;
  EXPECT_LE(worst.ratio, 1.10) << worst.where;
}

// PyTorch's options are what they are: they run. Rounding to powers of two, and blocks that may not
// be split, cost up to what is recorded.
TEST(OptionPairs, TorchNative) {
  const std::vector<Value> values = {{"limit", 300},
                                     {"garbage_threshold", 0.5},
                                     {"garbage_threshold", 0.9},
                                     {"max_split_size", 32},
                                     {"max_split_size", 512},
                                     {"roundup_power2_divisions", 2},
                                     {"roundup_power2_divisions", 8},
                                     {"trace_events", 64}};
  const Worst worst = run_pairs(AllocatorPolicy::kTorchNative, values);
  EXPECT_GT(worst.runs, 300);
  EXPECT_GT(worst.ratio, 1.10) << "PyTorch's options have become harmless?";
}

TEST(OptionPairs, TorchExpandable) {
  const std::vector<Value> values = {{"limit", 300},
                                     {"roundup_power2_divisions", 2},
                                     {"roundup_power2_divisions", 8},
                                     {"trace_events", 64}};
  const Worst worst = run_pairs(AllocatorPolicy::kTorchExpandable, values);
  EXPECT_GT(worst.runs, 100);
  EXPECT_EQ(worst.refused, 0) << worst.where;
}

}  // namespace
}  // namespace taper::testing
