// The alloc group: the allocator's quick path, its twin, and training with it and without.
#include "taper/benchmarks/alloc.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "taper/allocator/options.h"
#include "taper/allocator/sim_device.h"
#include "taper/allocator/twin.h"
#include "taper/benchmarks/alloc_reference.h"
#include "taper/benchmarks/peers.h"
#include "taper/taper.h"

namespace bench {
namespace {

using taper::Allocator;
using taper::Block;
using taper::Tensor;

// Sizes from 512 bytes to 2^`most`, each doubling as likely as another.
std::vector<std::size_t> sizes(std::size_t count, double most) {
  std::mt19937_64 random(1);
  std::vector<std::size_t> out(count);
  for (std::size_t& s : out)
    s = static_cast<std::size_t>(
        std::exp2(9 + static_cast<double>(random() % 1000) / 1000 * (most - 9)));
  return out;
}

// Seconds for a free and an allocation while `live` blocks are out: a random one goes, another
// comes.
template <class Take, class Give>
double pair_seconds(std::size_t live, double most, Take take, Give give) {
  const std::vector<std::size_t> asked = sizes(4 * live, most);
  std::mt19937 random(2);
  std::vector<std::uint32_t> victims(1 << 18);
  for (std::uint32_t& v : victims) v = static_cast<std::uint32_t>(random() % live);
  std::vector<std::pair<decltype(take(std::size_t{1})), std::size_t>> out;
  for (std::size_t i = 0; i < live; ++i) out.emplace_back(take(asked[i]), asked[i]);
  double best = 1e300;
  for (int round = 0; round < 4; ++round) {  // the first warms up
    const double start = now();
    for (std::size_t i = 0; i < victims.size(); ++i) {
      auto& [block, bytes] = out[victims[i]];
      give(block, bytes);
      bytes = asked[(victims[i] * std::size_t{7} + i) % asked.size()];
      block = take(bytes);
    }
    const double took = (now() - start) / static_cast<double>(victims.size());
    if (round != 0) best = std::min(best, took);
  }
  for (auto& [block, bytes] : out) give(block, bytes);
  return best;
}

std::unique_ptr<Allocator> simulated(std::size_t trace_events) {
  taper::AllocatorOptions options;
  options.trace_events = trace_events;
  taper::SimDevice::Settings settings;
  settings.capacity = std::size_t{1} << 44;
  return taper::make_allocator(options, std::make_unique<taper::SimDevice>(settings));
}

double our_pair(std::size_t live, double most, std::size_t trace_events) {
  const auto a = simulated(trace_events);
  return pair_seconds(
      live, most, [&](std::size_t bytes) { return a->allocate(bytes, 0); },
      [&](const Block& block, std::size_t bytes) { a->free(block, bytes, 0); });
}

double set_pair(std::size_t live, double most) {
  SetAllocator a;
  return pair_seconds(
      live, most, [&](std::size_t bytes) { return a.allocate(bytes); },
      [&](std::size_t address, std::size_t) { a.free(address); });
}

// Pairs a second of two threads, each on a stream of its own, over those of one.
double two_threads(Allocator& first, Allocator& second) {
  const auto work = [](Allocator& a, taper::StreamId stream) {
    return pair_seconds(
        1000, 20, [&](std::size_t bytes) { return a.allocate(bytes, stream); },
        [&](const Block& block, std::size_t bytes) { a.free(block, bytes, stream); });
  };
  const double alone = work(first, 0);
  double one = 0, other = 0;
  std::thread thread([&] { other = work(second, 2); });
  one = work(first, 1);
  thread.join();
  return alone / one + alone / other;
}

// A temporary of 64 MB: made, touched on every page, dropped.
template <class Take, class Give> double temporary(Take take, Give give) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  return seconds_per_call(
      [&] {
        auto block = take(kBytes);
        auto* data = static_cast<volatile char*>(static_cast<void*>(block.data));
        for (std::size_t i = 0; i < kBytes; i += 4096) data[i] = 1;
        give(block, kBytes);
      },
      0.05);
}

struct Plain {
  void* data;
};

taper::Trace churn() {
  taper::TraceBuilder b("churn");
  const std::vector<std::size_t> asked = sizes(4096, 22);
  std::mt19937 random(3);
  std::vector<std::uint32_t> out;
  while (b.trace.events.size() < 1'000'000) {
    if (out.size() < 4000 && random() % 2 == 0) {
      out.push_back(b.alloc(asked[random() % asked.size()]));
    } else if (!out.empty()) {
      std::swap(out[random() % out.size()], out.back());
      b.free(out.back());
      out.pop_back();
    }
  }
  return std::move(b.trace);
}

template <class Model> void print_step(const char* name, Model& model, const Tensor& x) {
  taper::optim::Adam adam(model->parameters(), 1e-3);
  const Tensor y = taper::randint(10, {x.size(0)});
  const auto step = [&] {
    adam.zero_grad();
    taper::nn::functional::cross_entropy(model(x), y).backward();
    adam.step();
  };
  for (int i = 0; i < 20; ++i) step();
  const long before = page_faults();
  std::vector<double> took;
  for (int i = 0; i < 60; ++i) {
    const double start = now();
    step();
    took.push_back(now() - start);
  }
  std::printf("%s step\t%.1f\n%s faults per step\t%.2f\n", name, median(took) * 1e6, name,
              static_cast<double>(page_faults() - before) / 60);
}

}  // namespace

void print_steps() {
  taper::nn::Sequential mlp(taper::nn::Linear(784, 256), taper::nn::ReLU(),
                            taper::nn::Linear(256, 128), taper::nn::ReLU(),
                            taper::nn::Linear(128, 10));
  print_step("MLP", mlp, taper::rand({64, 784}));
  taper::nn::Sequential cnn(taper::nn::Conv2d(taper::nn::Conv2dOptions(1, 16, 3).padding(1)),
                            taper::nn::ReLU(), taper::nn::MaxPool2d(2),
                            taper::nn::Conv2d(taper::nn::Conv2dOptions(16, 32, 3).padding(1)),
                            taper::nn::ReLU(), taper::nn::MaxPool2d(2), taper::nn::Flatten(),
                            taper::nn::Linear(32 * 7 * 7, 10));
  print_step("CNN", cnn, taper::rand({64, 1, 28, 28}));
}

namespace {

std::vector<Row> rows(const Setup&) {
  return {
      {"pair, 100 live", "ns"},
      {"pair, 10k live", "ns", {}, 60},
      {"pair, 10k live, std::set", "ns"},
      {"pair, 10k live, traced", "ns", {}, 80},
      {"pair, 100k live", "ns"},
      {"pair, 100k over 100 live", "ratio", {}, 1.5},
      {"two streams over one", "ratio", {}, -1, 1.7},
      {"two allocators over one", "ratio"},  // what two threads can do here at best
      {"64 MB temporary", "us"},
      {"64 MB temporary, malloc over ours", "ratio", {}, -1, 5},
      {"twin", "million events/s", {}, -1, 3},
      {"MLP step", "us"},
      {"MLP faults per step", "faults", {}, 0},
      {"CNN step", "us"},
      {"CNN faults per step", "faults", {}, 0},
      {"malloc: MLP step", "us"},
      {"malloc: MLP faults per step", "faults"},
      {"malloc: CNN step", "us"},
      {"malloc: CNN faults per step", "faults"},
  };
}

std::vector<Result> whole(const Setup& setup) {
  std::vector<Result> out;
  const auto add = [&](const char* name, double value) { out.push_back({name, value}); };
  constexpr std::size_t kRing = std::size_t{1} << 14;
  // The same sizes at all three: at 100,000 live blocks larger ones would not fit any device.
  const double few = our_pair(100, 20, 0), many = our_pair(100'000, 20, 0);
  add("pair, 100 live", few * 1e9);
  add("pair, 10k live", our_pair(10'000, 26, 0) * 1e9);
  add("pair, 10k live, std::set", set_pair(10'000, 26) * 1e9);
  add("pair, 10k live, traced", our_pair(10'000, 26, kRing) * 1e9);
  add("pair, 100k live", many * 1e9);
  add("pair, 100k over 100 live", many / few);
  const auto shared = simulated(0), another = simulated(0);
  add("two streams over one", two_threads(*shared, *shared));
  add("two allocators over one", two_threads(*shared, *another));
  const double ours = temporary(
      [](std::size_t bytes) { return taper::cpu_allocator().allocate(bytes, 0); },
      [](const Block& b, std::size_t bytes) { taper::cpu_allocator().free(b, bytes, 0); });
  const double plain = temporary([](std::size_t bytes) { return Plain{std::malloc(bytes)}; },
                                 [](const Plain& p, std::size_t) { std::free(p.data); });
  add("64 MB temporary", ours * 1e6);
  add("64 MB temporary, malloc over ours", plain / ours);
  const taper::Trace trace = churn();
  taper::TwinSettings settings;
  settings.options.trace_events = 0;
  settings.capacity = std::size_t{80} << 30;
  const taper::TwinResult twin = taper::run_twin(trace, settings);
  add("twin", static_cast<double>(trace.events.size()) / twin.seconds / 1e6);
  // This program again, under other allocators.
  const std::string steps = "'" + setup.self + "' --steps";
  for (const Result& r : run_lines(steps)) out.push_back(r);
  for (const Result& r : run_lines("TAPER_ALLOC=policy:malloc " + steps))
    out.push_back({"malloc: " + r.name, r.value});
  return out;
}

std::vector<Peer> peers(const Setup& setup) {
  return torch_peers(setup, "alloc");
}

}  // namespace

const Group kAlloc = {"alloc", "the allocator", rows, peers, nullptr, whole};

}  // namespace bench
