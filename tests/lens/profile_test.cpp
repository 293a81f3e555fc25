// The profiler: what it counts for each kernel, how it adds up, and the trace that it writes.

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

using lens::By, lens::Profile, lens::ProfileEvent;

// The only event of that kernel, or the first.
ProfileEvent event_of(const Profile& profile, const std::string& kernel, bool backward = false) {
  for (const ProfileEvent& e : profile.events()) {
    if (e.kernel == kernel && e.backward == backward) return e;
  }
  ADD_FAILURE() << "no " << kernel;
  return {};
}

TEST(Profile, CountsByTheTable) {
  const Tensor a = randn({7, 5}, requires_grad()), b = randn({5, 3});
  const Profile profile;
  const std::uint32_t at = __LINE__ + 1;
  const Tensor y = a.matmul(b);
  const ProfileEvent e = event_of(profile, "matmul");
  EXPECT_EQ(e.flops, 2 * 7 * 5 * 3);
  EXPECT_EQ(e.read, 4U * (7 * 5 + 5 * 3));
  EXPECT_EQ(e.written, 4U * 7 * 3);
  EXPECT_STREQ(e.op, "matmul");
  EXPECT_EQ(e.loc.line, at);
  EXPECT_EQ(e.entry, gradient_edge(y).node->index);
  EXPECT_FALSE(e.backward);
  EXPECT_GT(e.duration, 0);
}

TEST(Profile, CountsConvolutions) {
  const Tensor x = randn({2, 4, 9, 9}, requires_grad());
  const Tensor w = randn({6, 2, 3, 3}, requires_grad());  // in two groups
  const Profile profile;
  const Tensor y = nn::functional::conv2d(x, w, nn::functional::Conv2dFuncOptions().groups(2));
  y.sum().backward();
  const double each = 2.0 * 2 * 6 * 7 * 7 * (2 * 3 * 3);
  EXPECT_EQ(event_of(profile, "conv2d").flops, each);
  EXPECT_EQ(event_of(profile, "conv2d_grad_input", true).flops, each);
  EXPECT_EQ(event_of(profile, "conv2d_grad_weight", true).flops, each);
}

TEST(Profile, StretchedOperandsAreReadOnce) {
  const Tensor a = randn({64, 32}), b = randn({32});
  const Profile profile;
  const Tensor y = a + b, s = a.sum(1), h = a.softmax(1);
  EXPECT_EQ(event_of(profile, "add").read, 4U * (64 * 32 + 32));
  EXPECT_EQ(event_of(profile, "add").flops, 64 * 32);
  EXPECT_EQ(event_of(profile, "sum").written, 4U * 64);
  EXPECT_EQ(event_of(profile, "sum").flops, 64 * 32);
  EXPECT_EQ(event_of(profile, "softmax").flops, 5 * 64 * 32);
}

TEST(Profile, OptimizersCountTheirParameters) {
  const Tensor p = ones({10}, requires_grad()), q = ones({6}, requires_grad());
  optim::Adam adam({p, q}, 1e-3);
  (p.sum() + q.sum()).backward();
  const Profile profile;
  adam.step();
  const ProfileEvent e = event_of(profile, "adam");
  EXPECT_EQ(e.flops, 13 * 16);
  EXPECT_EQ(e.read, 4U * 16 * 4);  // without amsgrad: the parameter, two moments, the gradient
  EXPECT_EQ(e.written, 4U * 16 * 3);
  EXPECT_STREQ(e.op, "Adam");
}

struct NetImpl : nn::Module {
  NetImpl()
      : fc1(register_module("fc1", nn::Linear(64, 256))),
        fc2(register_module("fc2", nn::Linear(256, 4))) {}
  Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
  nn::Linear fc1{nullptr}, fc2{nullptr};
};
TAPER_MODULE(Net);

TEST(Profile, AddsUpByLineOpAndModule) {
  Net net;
  const Tensor x = randn({128, 64}), y = randint(4, {128});
  const Profile profile;
  nn::functional::cross_entropy(net->forward(x), y).backward();
  const std::string lines = profile.table(By::kLine), ops = profile.table(By::kOp),
                    modules = profile.table(By::kModule);
  EXPECT_NE(lines.find("profile_test.cpp:"), std::string::npos) << lines;
  EXPECT_NE(ops.find("linear backward"), std::string::npos) << ops;
  EXPECT_NE(modules.find("fc1\n"), std::string::npos) << modules;
  EXPECT_LT(modules.find("fc1\n"), modules.find("fc2\n")) << modules;  // it has most work
  EXPECT_NE(modules.find("all\n"), std::string::npos);
  EXPECT_NE(profile.table(By::kOp, 2).find(" more)\n"), std::string::npos);
}

TEST(Profile, BackwardHasTheLineAndTheEntryOfItsForward) {
  const Tensor x = randn({8}, requires_grad());
  const Profile profile;
  const std::uint32_t at = __LINE__ + 1;
  const Tensor y = x.sigmoid();
  y.sum().backward();
  const ProfileEvent forward = event_of(profile, "sigmoid"),
                     back = event_of(profile, "sigmoid_grad", true);
  EXPECT_STREQ(back.op, "sigmoid");
  EXPECT_EQ(back.loc.line, at);
  EXPECT_EQ(back.entry, forward.entry);
}

TEST(Profile, HoldsNoMoreThanItIsGiven) {
  const Tensor x = ones({2});
  const Profile profile(10);
  for (int i = 0; i < 25; ++i) const Tensor y = x + x;
  EXPECT_EQ(profile.events().size(), 10U);
  EXPECT_EQ(profile.dropped(), 15U);
  EXPECT_NE(profile.table(By::kOp).find("15 later kernels were counted only"), std::string::npos);
}

TEST(Profile, ThreadsAreToldApart) {
  const Profile profile;
  const Tensor x = ones({2});
  std::thread other([&] { const Tensor y = x + x; });
  other.join();
  std::set<std::uint32_t> threads;
  for (const ProfileEvent& e : profile.events()) threads.insert(e.thread);
  EXPECT_EQ(threads.size(), 2U);
}

TEST(Profile, SaysWhyATraceCannotBeWritten) {
  const Profile profile;
  EXPECT_NE(message_of([&] { profile.write("/nowhere/trace.json"); }).find("/nowhere/trace.json"),
            std::string::npos);
}

nlohmann::json trace_of(const Profile& profile) {
  const std::string path = testing::TempDir() + "taper_trace.json";
  profile.write(path);
  nlohmann::json json;
  std::ifstream(path) >> json;  // throws when it is none
  std::remove(path.c_str());
  return json.at("traceEvents");
}

// Slices of one track lie within one another or apart; arrows go from forward to backward.
TEST(Profile, WritesATraceThatPerfettoTakes) {
  Net net;
  const Tensor x = randn({16, 64}), y = randint(4, {16});
  const Profile profile;
  const Scope odd("a \"quoted\" \\ scope\n\xff");
  nn::functional::cross_entropy(net->forward(x), y).backward();
  const nlohmann::json events = trace_of(profile);
  std::map<int, std::vector<std::pair<double, double>>> slices;
  std::map<int, std::string> tracks;
  std::map<std::uint64_t, int> arrows;
  std::size_t kernels = 0, calls = 0;
  for (const auto& e : events) {
    const std::string kind = e.at("ph");
    if (kind == "M" && e.at("name") == "thread_name") tracks[e.at("tid")] = e.at("args").at("name");
    if (kind == "s") arrows[e.at("id")] += 1 + 10 * (e.at("tid").get<int>() % 2);
    if (kind == "f") arrows[e.at("id")] += 100 + 1000 * (e.at("tid").get<int>() % 2);
    if (kind != "X") continue;
    ++(e.at("cat") == "kernel" ? kernels : calls);
    EXPECT_FALSE(e.at("args").at("line").get<std::string>().empty());
    slices[e.at("tid")].emplace_back(e.at("ts"),
                                     e.at("ts").get<double>() + e.at("dur").get<double>());
  }
  EXPECT_EQ(kernels, profile.events().size());
  EXPECT_GT(calls, 0U);
  ASSERT_EQ(tracks.size(), 2U);
  EXPECT_NE(tracks.begin()->second.find("forward"), std::string::npos);
  EXPECT_NE(tracks.rbegin()->second.find("backward"), std::string::npos);
  EXPECT_GT(arrows.size(), 3U);
  for (const auto& [id, ends] : arrows) EXPECT_EQ(ends, 1 + 100 + 1000) << id;
  for (const auto& [track, on_it] : slices) {
    for (const auto& a : on_it) {
      for (const auto& b : on_it) {
        const bool apart = a.second <= b.first + 1e-3 || b.second <= a.first + 1e-3;
        const bool within = (a.first <= b.first && b.second <= a.second + 1e-3) ||
                            (b.first <= a.first && a.second <= b.second + 1e-3);
        ASSERT_TRUE(apart || within) << track;
      }
    }
  }
}

}  // namespace
}  // namespace taper
