// The dump of a tape: what is in it, what its sums mean, and what its writers make of it.
#include "taper/autograd/lens/dump.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "taper/autograd/lens/flops.h"
#include "taper/taper.h"
#include "taper/tests/lens/dump_samples.h"

namespace taper::testing {
namespace {

using lens::DumpBy;
using lens::DumpBytes;
using lens::DumpEntry;
using lens::DumpGroup;
using lens::DumpHeld;
using lens::TapeDump;

const DumpEntry& entry_of(const TapeDump& dump, const std::string& op) {
  for (const DumpEntry& e : dump.entries) {
    if (e.op == op) return e;
  }
  fail("no entry of op " + op);
}

TEST(Dump, TellsOfEachEntry) {
  SmallNet net;
  const Tensor loss = net->forward(net.x).sum();
  const TapeDump dump = lens::dump(loss);
  ASSERT_EQ(dump.entries.size(), 4U);  // linear, relu, linear, sum
  const DumpEntry &fc1 = dump.entries[0], &relu = entry_of(dump, "relu"), &fc2 = dump.entries[2];
  EXPECT_EQ(fc1.op, "linear");
  EXPECT_EQ(fc1.scope, "fc1");
  EXPECT_NE(fc1.file.find("dump_samples.h"), std::string::npos);
  ASSERT_EQ(fc1.inputs.size(), 3U);
  EXPECT_EQ(fc1.inputs[0].node, 0U);  // x wants no gradient
  EXPECT_EQ(dump.find_leaf(fc1.inputs[1].node)->name, "fc1.weight");
  EXPECT_EQ(relu.inputs[0], (lens::DumpEdge{fc1.index, 0}));
  EXPECT_EQ(relu.outputs[0].sizes.size(), 2U);
  EXPECT_EQ(owner_of(dump, relu, relu.saved[0]), "its output 0");
  std::vector<std::string> owners;
  for (const lens::DumpSaved& s : fc2.saved) owners.push_back(owner_of(dump, fc2, s));
  std::sort(owners.begin(), owners.end());
  EXPECT_EQ(owners, (std::vector<std::string>{str("input 0, #", relu.index, " relu's output 0"),
                                              "input 1, fc2.weight"}));
  EXPECT_EQ(dump.leaves.size(), 4U);
}

TEST(Dump, CountsEachStorageOnce) {
  SmallNet net;
  const Tensor loss = net->forward(net.x).sum();
  const TapeDump dump = lens::dump(loss);
  const DumpBytes bytes = bytes_of(dump);
  EXPECT_EQ(bytes.data, 4U * 5 * 3);         // x, for fc1's weight
  EXPECT_EQ(bytes.activations, 4U * 5 * 7);  // relu's output, which fc2 saves too
  EXPECT_EQ(bytes.parameters, 4U * 2 * 7);   // fc2's weight
  EXPECT_EQ(dump.entries[2].saved_bytes, 4U * 5 * 7 + 4U * 2 * 7);
  EXPECT_EQ(dump.entries[2].first_bytes, 4U * 2 * 7);
}

// All that a forward leaves behind, but for the loss, is what the tape says that it holds; and the
// peak of a real pass is near to the one foretold, which knows no kernel's or rule's own needs.
TEST(Dump, BytesAndPeakAreThoseOfTheAllocator) {
  nn::Sequential blocks;
  const auto options = nn::TransformerBlockOptions(128, 4).dropout(0.1);
  for (int i = 0; i < 4; ++i) blocks->push_back(nn::TransformerBlock(options));
  const Tensor x = rand({4, 128, 128});
  const std::uint64_t before = cpu_allocator().stats().requested;
  const Tensor loss = blocks(x).square().mean();
  const std::uint64_t left = cpu_allocator().stats().requested - before - loss.nbytes();
  const TapeDump dump = lens::dump(loss);
  const DumpBytes bytes = bytes_of(dump);
  EXPECT_EQ(bytes.activations + bytes.data - x.nbytes(), left);
  memory::reset_peak_stats();
  loss.backward();
  const double real = static_cast<double>(cpu_allocator().stats().requested_peak - before);
  EXPECT_NEAR(static_cast<double>(peak_of(dump).total()) / real, 1, 0.05);
}

TEST(Dump, PartsAddUpToTheWhole) {
  const TapeDump dump = lens::dump(transformer_loss());
  const std::uint64_t all = bytes_of(dump).total();
  std::uint64_t first = 0;
  for (const DumpEntry& e : dump.entries) {
    first += e.first_bytes;
    EXPECT_EQ(first_bytes_of(dump, e).total(), e.first_bytes);
    EXPECT_LE(e.first_bytes, e.saved_bytes);
  }
  EXPECT_EQ(first, all);
  for (const DumpBy by : {DumpBy::kOp, DumpBy::kLine}) {
    std::uint64_t sum = 0;
    std::size_t entries = 0;
    for (const DumpGroup& g : bytes_by(dump, by)) sum += g.bytes.total(), entries += g.entries;
    EXPECT_EQ(sum, all);
    EXPECT_EQ(entries, dump.entries.size());
  }
}

TEST(Dump, ScopesAreATree) {
  const TapeDump dump = lens::dump(transformer_loss());
  const std::vector<DumpGroup> groups = bytes_by(dump, DumpBy::kScope);
  EXPECT_EQ(groups[0].name, "");
  EXPECT_EQ(groups[0].bytes.total(), bytes_of(dump).total());
  std::vector<std::string> names;
  std::string all;
  for (const DumpGroup& g : groups) names.push_back(g.name), all += g.name + "\n";
  SCOPED_TRACE(all);
  const auto at = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  EXPECT_LT(at("Sequential.0"), at("Sequential.0.attn"));
  EXPECT_LT(at("Sequential.0.attn"), at("Sequential.0.attn.out_proj"));
  EXPECT_LT(at("Sequential.0.fc2"), at("Sequential.1"));
  // What stands behind a scope and begins with its name lies in it.
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::uint64_t inside = 0;
    for (const DumpGroup& g : groups) {
      const std::string& parent = groups[i].name;
      const bool child = g.name.find('.', parent.size() + 1) == std::string::npos &&
                         g.name != parent && (parent.empty() || g.name.rfind(parent + ".", 0) == 0);
      if (child && (!parent.empty() || g.name.find('.') == std::string::npos))
        inside += g.bytes.total();
    }
    EXPECT_LE(inside, groups[i].bytes.total()) << groups[i].name;
  }
}

TEST(Dump, HeldOverTimeRisesAndFalls) {
  const TapeDump dump = lens::dump(transformer_loss());
  const std::vector<DumpHeld> held = held_over_time(dump);
  ASSERT_EQ(held.size(), 2 * dump.entries.size());
  const std::size_t n = dump.entries.size();
  const DumpBytes bytes = bytes_of(dump);
  for (std::size_t i = 1; i < n; ++i) EXPECT_GE(held[i].saved, held[i - 1].saved);
  for (std::size_t i = n + 1; i < 2 * n; ++i) EXPECT_LE(held[i].saved, held[i - 1].saved);
  EXPECT_EQ(held[n - 1].saved, bytes.activations + bytes.data);
  EXPECT_EQ(held[n].entry, dump.entries.back().index);
  EXPECT_TRUE(held[n].backward);
  // In the end the gradients of all leaves are there, and those of the first entry's outputs.
  std::uint64_t leaves = 0;
  for (const lens::DumpLeaf& leaf : dump.leaves) {
    std::uint64_t size = 4;
    for (const std::int64_t s : leaf.spec.sizes) size *= static_cast<std::uint64_t>(s);
    leaves += size;
  }
  EXPECT_GE(held.back().gradients, leaves);
  const DumpHeld peak = peak_of(dump);
  for (const DumpHeld& h : held) EXPECT_LE(h.total(), peak.total());
  EXPECT_TRUE(peak.backward);
}

TEST(Dump, WhatIsGivenBackIsSaidSo) {
  SmallNet net;
  const Tensor loss = net->forward(net.x).sum();
  const TapeDump before = lens::dump(loss);
  loss.backward();
  const TapeDump dump = lens::dump(loss);
  ASSERT_EQ(dump.entries.size(), before.entries.size());
  for (std::size_t i = 0; i < dump.entries.size(); ++i) {
    EXPECT_EQ(dump.entries[i].consumed, !before.entries[i].saved.empty());
    EXPECT_EQ(dump.entries[i].saved_bytes, 0U);
  }
  EXPECT_NE(to_text(dump).find("given back"), std::string::npos);
}

TEST(Dump, OfAllEntriesHoldsThatOfOneLoss) {
  SmallNet net;
  const Tensor loss = net->forward(net.x).sum();
  const TapeDump one = lens::dump(loss), all = lens::dump();
  EXPECT_EQ(all.entries.size(), live_entries());
  for (const DumpEntry& e : one.entries) {
    ASSERT_NE(all.find_entry(e.index), nullptr);
    EXPECT_EQ(all.find_entry(e.index)->saved_bytes, e.saved_bytes);
  }
}

TEST(Dump, OfALeafIsTheLeaf) {
  const Tensor w = rand({3}).requires_grad_();
  const TapeDump dump = lens::dump(w);
  EXPECT_TRUE(dump.entries.empty());
  EXPECT_EQ(dump.leaves.size(), 1U);
  EXPECT_EQ(peak_of(dump).total(), 0U);
  EXPECT_NE(to_text(dump).find("0 entries, 1 leaf"), std::string::npos);
  EXPECT_THROW(lens::dump(rand({3})), Error);
}

double flops_of(const Tensor& y, const std::string& op) {
  const TapeDump dump = lens::dump(y);
  return lens::recompute_flops(dump, entry_of(dump, op));
}

TEST(Flops, AreThoseOfTheShapes) {
  const Tensor x = rand({2, 3, 4}), w = rand({5, 4}).requires_grad_();
  EXPECT_EQ(flops_of(linear(x, w), "linear"), 2 * 3 * 5 * (2 * 4 + 1));
  EXPECT_EQ(flops_of(matmul(x, w.t()), "matmul"), 2 * 3 * 5 * 2 * 4);
  EXPECT_EQ(flops_of(matmul(x.clone().requires_grad_(), w.detach().t()), "matmul"),
            2 * 3 * 5 * 2 * 4);
  const Tensor v = rand({4}).requires_grad_();
  EXPECT_EQ(flops_of(dot(v, rand({4})), "dot"), 2 * 4);
  EXPECT_EQ(flops_of(addmm(rand({5}), rand({3, 4}), w.t()), "addmm"), 3 * 5 * (2 * 4 + 3));
  EXPECT_EQ(flops_of(v.exp(), "exp"), 4);
  EXPECT_EQ(flops_of(w.softmax(1), "softmax"), 5 * 20);
  EXPECT_EQ(flops_of(w.view({20}), "view"), 0);
  // 2 images, 6 filters of 3 x 5 x 5 in 2 groups: 8 x 8 outputs.
  const Tensor image = rand({2, 6, 12, 12}), filters = rand({6, 3, 5, 5});
  const double conv = 2.0 * (2 * 6 * 8 * 8) * (3 * 5 * 5);
  const auto y = [](const Tensor& a, const Tensor& b) { return conv2d(a, b, {}, 1, 0, 1, 2); };
  EXPECT_EQ(flops_of(y(image, filters.clone().requires_grad_()), "conv2d"), conv);
  EXPECT_EQ(flops_of(y(image.clone().requires_grad_(), filters), "conv2d"), conv);
}

TEST(Flops, AreNotKnownWhereTheTapeIsSilent) {
  const Tensor bias = rand({5}).requires_grad_();
  EXPECT_TRUE(std::isnan(flops_of(linear(rand({3, 4}), rand({5, 4}), bias), "linear")));
  EXPECT_EQ(lens::flops_formula("nothing"), nullptr);
}

TEST(Dump, TraceAndGraphNameEveryEntry) {
  SmallNet net;
  const TapeDump dump = lens::dump(net->forward(net.x).sum());
  const std::vector<lens::DumpTime> times = {{dump.entries[1].index, true, 100, 7}};
  const auto trace = nlohmann::json::parse(to_chrome(dump, times));
  std::size_t forward = 0, backward = 0, counters = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "C") ++counters;
    if (event["ph"] != "X") continue;
    if (event["cat"] == "forward") ++forward;
    else ++backward;
    if (event["cat"] == "backward" && event["args"]["entry"] == dump.entries[1].index) {
      EXPECT_EQ(event["ts"], 100);
      EXPECT_EQ(event["dur"], 7);
    }
  }
  EXPECT_EQ(forward, dump.entries.size());
  EXPECT_EQ(backward, dump.entries.size());
  EXPECT_EQ(counters, 2 * dump.entries.size());
  EXPECT_NE(to_chrome(dump).find("not measured"), std::string::npos);
  EXPECT_THROW(to_chrome(dump, {{1U << 30, false, 0, 1}}), Error);
  const std::string graph = to_dot(dump), text = to_text(dump);
  for (const DumpEntry& e : dump.entries) {
    EXPECT_NE(graph.find(str("e", e.index, " [label=")), std::string::npos);
    EXPECT_NE(text.find(place_of(e)), std::string::npos);
  }
}

}  // namespace
}  // namespace taper::testing
