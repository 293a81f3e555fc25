// Captured work replayed: the same bits as without a graph, memory of its own, and what a capture
// refuses.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "taper/allocator/allocator.h"
#include "taper/allocator/memory_device.h"
#include "taper/cuda/gemm_blas.h"
#include "taper/cuda/runtime.h"
#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper::cuda {
namespace {

const Stream& side() {
  static const Stream stream = make_stream(Device(kCUDA, 0));
  return stream;
}

const Stream& other_side() {
  static const Stream stream = make_stream(Device(kCUDA, 0));
  return stream;
}

class Graphs : public testing::Test {
 protected:
  void SetUp() override { on_.emplace(side()); }

  const Device device_{kCUDA, 0};

 private:
  std::optional<StreamGuard> on_;
};

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name,
                                                 const std::vector<Tensor>& params) {
  if (name == "SGD") {
    return std::make_unique<optim::SGD>(params,
                                        optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
  }
  if (name == "AdamW") return std::make_unique<optim::AdamW>(params, 0.1);
  return std::make_unique<optim::Adam>(params, optim::AdamOptions(0.1).amsgrad(name == "AMSGrad"));
}

// A network and its optimizer, from the same seed each time. One parameter is f64, so that an
// optimizer computes in both.
struct Training {
  nn::Sequential model{nullptr};
  Tensor factor;
  std::unique_ptr<optim::Optimizer> optimizer;
  Tensor x, y;
  Generator generator{5};

  explicit Training(Device device, const std::string& optimizer_name = "SGD", double dropout = 0) {
    manual_seed(3);
    model = nn::Sequential(nn::Linear(12, 32), nn::GELU(), nn::Dropout(dropout), nn::Linear(32, 5));
    factor = ones({1}, TensorOptions(kFloat64).device(device).requires_grad(true));
    x = randn({16, 12}).to(device);
    y = randint(0, 5, {16}, kInt64).to(device);
    model->to(device);
    std::vector<Tensor> params = model->parameters();
    params.push_back(factor);
    optimizer = make_optimizer(optimizer_name, params);
  }

  Tensor step() {
    optimizer->zero_grad();
    const Tensor noise = rand({16, 12}, generator, TensorOptions(kFloat32).device(x.device()));
    const Tensor loss = cross_entropy(model(x + noise * 0.1), y) * factor.to(kFloat32).sum();
    loss.backward();
    optimizer->step();
    return loss.detach();
  }

  std::vector<float> numbers(const Tensor& loss) const {
    std::vector<float> out{loss.item<float>()};
    for (const Tensor& p : model->parameters()) {
      const Tensor host = p.detach().cpu().contiguous();
      out.insert(out.end(), host.data_ptr<float>(), host.data_ptr<float>() + host.numel());
    }
    return out;
  }
};

TEST_F(Graphs, ATrainingStepReplayedEqualsEagerSteps) {
  for (const bool blas : {false, true}) {
    const bool before = blas_selected();
    select_blas(blas);
    Training eager(device_), captured(device_);
    for (int i = 0; i < 3; ++i) {
      eager.step();
      captured.step();
    }
    CUDAGraph graph;
    graph.capture_begin(device_);
    EXPECT_TRUE(is_current_stream_capturing(device_));
    const Tensor loss = captured.step();
    graph.capture_end();
    EXPECT_FALSE(is_current_stream_capturing(device_));
    for (int i = 0; i < 10; ++i) {
      const Tensor batch = (eager.x * 1.01).clone();  // each step has its own input
      eager.x.copy_(batch);
      captured.x.copy_(batch);
      const Tensor expected = eager.step();
      graph.replay();
      EXPECT_EQ(captured.numbers(loss), eager.numbers(expected)) << "step " << i;
    }
    select_blas(before);
  }
}

// One token after another through weights and a cache, on which the next depends.
TEST_F(Graphs, ADecodeStepReplayedEqualsEagerSteps) {
  const NoGradGuard no_grad;
  manual_seed(5);
  const Tensor embedding = randn({11, 8}).to(device_), weight = randn({8, 8}).to(device_);
  const auto decode = [&](Tensor& token, Tensor& cache, Tensor& place) {
    const Tensor h = embedding.index_select(0, token);  // (1, 8)
    cache.scatter_(0, place.view({1, 1}).expand({1, 8}), matmul(h, weight));
    const Tensor scores = softmax(matmul(h, cache.t()) * 0.3, 1);
    const Tensor logits = matmul(matmul(scores, cache), embedding.t());
    token.copy_(logits.argmax(1));
    place.add_(1);
  };
  struct Decoding {
    Tensor token, cache, place;
  };
  const auto fresh = [&] {
    return Decoding{zeros({1}, kInt64).to(device_), zeros({16, 8}).to(device_),
                    zeros({1}, kInt64).to(device_)};
  };
  Decoding eager = fresh(), replayed = fresh();
  decode(eager.token, eager.cache, eager.place);
  decode(replayed.token, replayed.cache, replayed.place);
  CUDAGraph graph;
  graph.capture_begin(device_);
  decode(replayed.token, replayed.cache, replayed.place);
  graph.capture_end();
  for (int i = 0; i < 12; ++i) {
    decode(eager.token, eager.cache, eager.place);
    graph.replay();
    EXPECT_TRUE(equal(eager.token, replayed.token)) << i;
    EXPECT_TRUE(equal(eager.cache, replayed.cache)) << i;
  }
  EXPECT_EQ(replayed.place.item<std::int64_t>(), 13);
}

std::vector<SegmentInfo> segments_of(Device device, PoolId pool) {
  std::vector<SegmentInfo> found;
  for (const SegmentInfo& s : allocator_for(device).memory_map()) {
    if (s.pool == pool) found.push_back(s);
  }
  return found;
}

std::uint64_t bytes_of(const std::vector<SegmentInfo>& segments) {
  std::uint64_t bytes = 0;
  for (const SegmentInfo& s : segments) bytes += s.bytes;
  return bytes;
}

TEST_F(Graphs, MemoryOfAGraphIsItsOwnUntilReset) {
  const Tensor x = ones({1000}).to(device_);
  CUDAGraph graph;
  graph.capture_begin(device_);
  Tensor y = ((x + 1) * 3).sum();  // the two between lie in the pool, free
  graph.capture_end();
  const PoolId pool = graph.pool();
  ASSERT_NE(pool, 0U);
  const std::vector<SegmentInfo> own = segments_of(device_, pool);
  ASSERT_GT(bytes_of(own), 0U);
  allocator_for(device_).empty_cache();
  const auto* base = allocator_for(device_).device().base();
  std::vector<Tensor> others;
  for (int i = 0; i < 200; ++i) {
    others.push_back(full({i * 50 + 1}, -7).to(device_));
    const auto begin = static_cast<std::uint64_t>(
        static_cast<const char*>(others.back().storage()->data()) - base);
    for (const SegmentInfo& s : own) EXPECT_FALSE(begin >= s.offset && begin < s.offset + s.bytes);
  }
  x.fill_(2);
  graph.replay();
  EXPECT_EQ(y.item<float>(), 9000);
  for (const Tensor& t : others) EXPECT_EQ(t.min().item<float>(), -7);
  EXPECT_EQ(bytes_of(segments_of(device_, pool)), bytes_of(own));
  const std::uint64_t before = allocator_for(device_).stats().reserved;
  y = Tensor();
  graph.reset();
  EXPECT_EQ(graph.pool(), 0U);
  others.clear();
  allocator_for(device_).empty_cache();
  EXPECT_EQ(bytes_of(segments_of(device_, pool)), 0U);
  EXPECT_LE(allocator_for(device_).stats().reserved + bytes_of(own), before);
  graph.capture_begin(device_);  // as a new one
  y = x * 2;
  graph.capture_end();
  graph.replay();
  EXPECT_EQ(y.min().item<float>(), 4);
}

TEST_F(Graphs, AnOutputOutlivesItsGraph) {
  const Tensor x = ones({100}).to(device_);
  Tensor y;
  {
    CUDAGraph graph;
    graph.capture_begin(device_);
    y = x + 1;
    graph.capture_end();
    graph.replay();
  }
  const Tensor z = full({100}, 5).to(device_);
  EXPECT_EQ(y.sum().item<float>(), 200);
}

TEST_F(Graphs, StreamsThatWaitTakePart) {
  const Tensor x = ones({300}).to(device_);
  const auto work = [&] {
    const Tensor a = x * 2;
    Tensor b;
    wait_for(other_side(), side());
    {
      const StreamGuard on(other_side());
      Tensor dead = a + 1;
      b = dead * 5;
      dead = Tensor();
    }
    const Tensor c = a - 1;
    wait_for(side(), other_side());
    return b + c;
  };
  const Tensor expected = work();
  synchronize(0);
  CUDAGraph graph;
  graph.capture_begin(device_);
  const Tensor y = work();
  graph.capture_end();
  x.fill_(4);
  graph.replay();
  EXPECT_EQ(expected.max().item<float>(), 16);
  EXPECT_EQ(y.min().item<float>(), 52);
  EXPECT_EQ(y.max().item<float>(), 52);
  // What the other stream took lies in the pool too.
  std::size_t streams = 0;
  for (const SegmentInfo& s : segments_of(device_, graph.pool())) {
    streams += s.stream == other_side().id();
  }
  EXPECT_GT(streams, 0U);
}

TEST_F(Graphs, AStreamThatIsNotJoinedIsAnError) {
  const Tensor x = ones({300}).to(device_);
  Tensor y;
  CUDAGraph graph;
  graph.capture_begin(device_);
  wait_for(other_side(), side());
  {
    const StreamGuard on(other_side());
    y = x + 1;
  }
  const std::string told = message_of([&] { graph.capture_end(); });
  EXPECT_NE(told.find("capturing stream has unjoined work"), std::string::npos) << told;
  EXPECT_EQ(graph.pool(), 0U);
  EXPECT_EQ((x + 1).sum().item<float>(), 600);  // all goes on
}

TEST_F(Graphs, WhatNeedsTheHostSaysSoAndTheCaptureGoesOn) {
  const Tensor x = ones({3, 4}).to(device_), host = ones({3, 4});
  Tensor to = zeros({3, 4}).to(device_);
  Event before, inside;
  before.record(side());
  struct Case {
    const char* op;
    std::function<void()> call;
  };
  const Case cases[] = {
      {"item", [&] { x.sum().item<float>(); }},
      {"to", [&] { x.cpu(); }},
      {"to", [&] { host.to(device_); }},
      {"copy_", [&] { to.copy_(host); }},
      {"nonzero", [&] { nonzero(x); }},
      {"equal", [&] { equal(x, to); }},
      {"synchronize", [&] { side().synchronize(); }},
      {"synchronize", [&] { synchronize(0); }},
      {"query", [&] { side().query(); }},
      {"synchronize", [&] { before.synchronize(); }},
      {"query", [&] { before.query(); }},
      {"synchronize", [&] { inside.synchronize(); }},
      {"query", [&] { inside.query(); }},
      {"block", [&] { inside.block(current_stream(kCPU)); }},
  };
  CUDAGraph graph;
  graph.capture_begin(device_);
  inside.record(side());
  for (const Case& one : cases) {
    const std::string told = message_of(one.call);
    EXPECT_EQ(told.find(one.op), 0U) << told;
    EXPECT_NE(told.find("capture"), std::string::npos) << told;
    EXPECT_NE(told.find("at graph_test.cpp:"), std::string::npos) << told;
    EXPECT_NE(told.find("before capture_begin or after capture_end"), std::string::npos) << told;
  }
  const Tensor y = x + 1;
  graph.capture_end();
  graph.replay();
  EXPECT_EQ(y.sum().item<float>(), 24);
}

TEST_F(Graphs, AnotherDeviceIsRefusedAndTheCaptureGoesOn) {
  if (device_count() < 2) GTEST_SKIP() << "needs two devices";
  const Device second(kCUDA, 1);
  const Tensor x = ones({3, 4}).to(device_), there = ones({3, 4}).to(second);
  Event event;
  event.record(current_stream(second));
  CUDAGraph graph;
  graph.capture_begin(device_);
  const auto refused = [](const auto& copy) {
    const std::string told = message_of(copy);
    EXPECT_EQ(told.find("to: a graph holds the work of one device, and this copies between cuda:"),
              0U)
        << told;
    EXPECT_NE(told.find("at graph_test.cpp:"), std::string::npos) << told;
  };
  refused([&] { x.to(second); });
  refused([&] { x.t().to(second, kFloat64); });
  refused([&] { there.to(device_); });
  event.synchronize();  // of a device that is not captured
  EXPECT_TRUE(event.query());
  const Tensor y = x + 1;
  graph.capture_end();
  graph.replay();
  EXPECT_EQ(y.sum().item<float>(), 24);
}

TEST_F(Graphs, IndicesAndLabelsAreTakenOnTrust) {
  const Tensor x = arange(12, kFloat32).reshape({3, 4}).to(device_);
  const Tensor index = arange(3, kInt64).to(device_), label = arange(3, kInt64).to(device_);
  CUDAGraph graph;
  graph.capture_begin(device_);
  const Tensor rows = x.index_select(0, index);
  const Tensor loss = cross_entropy(rows, label);
  graph.capture_end();
  graph.replay();
  EXPECT_TRUE(equal(rows, x));
  EXPECT_TRUE(equal(loss, cross_entropy(x, label)));
}

TEST_F(Graphs, PinnedMemoryIsReadAtEachReplay) {
  Tensor host = ones({64}).pin_memory();
  Tensor x = zeros({64}).to(device_);
  CUDAGraph graph;
  graph.capture_begin(device_);
  x.copy_(host, true);
  const Tensor y = x * 2;
  graph.capture_end();
  for (const float value : {3.f, 4.f}) {
    host.fill_(value);
    graph.replay();
    EXPECT_EQ(y.sum().item<float>(), 128 * value);
  }
}

TEST_F(Graphs, ANumberOfTheHostIsAnArgument) {
  for (const DType dtype :
       {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool}) {
    for (const DType to : {kFloat32, kBFloat16, kInt64, kBool}) {
      const Tensor host = full({1}, 3.7, kFloat64).to(dtype);
      EXPECT_TRUE(equal(host.to(device_).to(to).cpu(), host.to(to)));
      EXPECT_TRUE(
          equal(empty({1}, TensorOptions(to).device(device_)).copy_(host).cpu(), host.to(to)));
    }
  }
}

// Two generators, dropout forwards and backwards, counts of steps; eager steps in between, for
// which all stands where as many eager steps would have left it.
TEST_F(Graphs, CountsGoOnFromReplayToReplay) {
  for (const char* name : {"SGD", "Adam", "AdamW", "AMSGrad"}) {
    Training eager(device_, name, 0.3);
    const Generator::State seeded = default_generator().state();
    Training captured(device_, name, 0.3);
    auto in_turns = [&, of_eager = seeded, of_captured = seeded](auto one, auto other) mutable {
      default_generator().set_state(of_eager);
      one();
      of_eager = default_generator().state();
      default_generator().set_state(of_captured);
      other();
      of_captured = default_generator().state();
      EXPECT_EQ(of_eager.offset, of_captured.offset);
    };
    in_turns([&] { eager.step(); }, [&] { captured.step(); });
    CUDAGraph graph;
    const std::uint64_t before = default_generator().state().offset;
    graph.capture_begin(device_);
    const Tensor loss = captured.step();
    graph.capture_end();
    EXPECT_EQ(default_generator().state().offset, before);  // nothing has run
    for (int i = 0; i < 12; ++i) {
      Tensor expected, got = loss;
      in_turns([&] { expected = eager.step(); },
               [&] {
                 if (i % 4 == 2) got = captured.step();
                 else graph.replay();
               });
      EXPECT_EQ(captured.numbers(got), eager.numbers(expected)) << name << ", step " << i;
    }
    const auto counts = captured.optimizer->state_dict();
    for (const auto& item : eager.optimizer->state_dict()) {
      EXPECT_TRUE(equal(item.value().cpu(), counts[item.key()].cpu())) << name << item.key();
    }
  }
}

TEST_F(Graphs, RandomNumbersGoOnAndFollowASeed) {
  const TensorOptions options = TensorOptions(kFloat32).device(device_);
  manual_seed(7);
  std::vector<Tensor> expected;
  for (int i = 0; i < 3; ++i) expected.push_back(cat({rand({101}, options), randn({7}, options)}));
  manual_seed(11);
  expected.push_back(cat({rand({101}, options), randn({7}, options)}));
  manual_seed(7);
  CUDAGraph graph;
  graph.capture_begin(device_);
  const Tensor r = cat({rand({101}, options), randn({7}, options)});
  graph.capture_end();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (i == 3) manual_seed(11);
    graph.replay();
    EXPECT_TRUE(equal(r.cpu(), expected[i].cpu())) << "replay " << i;
  }
}

TEST_F(Graphs, ACaptureThatFailsLeavesCountsAlone) {
  const Generator::State before = default_generator().state();
  {
    CUDAGraph graph;
    graph.capture_begin(device_);
    rand({100}, TensorOptions(kFloat32).device(device_));
  }
  EXPECT_EQ(default_generator().state().offset, before.offset);
}

// More counts than lie in one storage.
TEST_F(Graphs, ManyCountsGoOn) {
  std::vector<Generator> generators;
  for (std::uint64_t i = 0; i < 300; ++i) generators.emplace_back(i);
  const auto draw_all = [&] {
    std::vector<Tensor> all;
    for (const Generator& g : generators) {
      all.push_back(rand({3}, g, TensorOptions(kFloat32).device(device_)));
    }
    return cat(all);
  };
  const Tensor first = draw_all().cpu(), second = draw_all().cpu();
  for (std::uint64_t i = 0; i < 300; ++i) generators[i].set_current_seed(i);
  CUDAGraph graph;
  graph.capture_begin(device_);
  const Tensor r = draw_all();
  graph.capture_end();
  graph.replay();
  EXPECT_TRUE(equal(r.cpu(), first));
  graph.replay();
  EXPECT_TRUE(equal(r.cpu(), second));
}

TEST_F(Graphs, ACapturedForwardOutlivesItsGraph) {
  Tensor x = ones({100}, TensorOptions(kFloat32).device(device_).requires_grad(true)), y;
  {
    CUDAGraph graph;
    graph.capture_begin(device_);
    y = dropout(x, 0.5, true);
    graph.capture_end();
    graph.replay();
  }
  y.sum().backward();
  EXPECT_TRUE(equal(x.grad().cpu(), y.detach().cpu()));
}

TEST_F(Graphs, ABlockOfAnotherStreamFreedMeanwhileIsNoObstacle) {
  Tensor x;
  {
    const StreamGuard on(other_side());
    x = ones({500}).to(device_);
  }
  const Tensor keeps = x.clone();
  CUDAGraph graph;
  graph.capture_begin(device_);
  Tensor y = keeps + 1;
  y.record_stream(other_side());
  x.record_stream(side());
  x = Tensor();
  y = keeps * 3;
  {  // Another stream goes on by itself; it must not be drawn into the capture.
    const StreamGuard on(other_side());
    const Tensor z = ones({500}, TensorOptions(kFloat32).device(device_));
    EXPECT_FALSE(is_current_stream_capturing(device_));
  }
  graph.capture_end();
  graph.replay();
  EXPECT_EQ(y.sum().item<float>(), 1500);
}

TEST_F(Graphs, AnotherThreadCannotResetACapture) {
  CUDAGraph graph;
  graph.capture_begin(device_);
  const Tensor x = ones({8}, TensorOptions(kFloat32).device(device_)) * 3;
  std::string refused;
  std::thread([&] { refused = message_of([&] { graph.reset(); }); }).join();
  EXPECT_NE(refused.find("another thread captures"), std::string::npos) << refused;
  graph.capture_end();
  graph.replay();
  EXPECT_EQ(x.sum().item<float>(), 24);
}

TEST_F(Graphs, AGraphThatAnotherThreadDestroysIsLetGo) {
  auto graph = std::make_unique<CUDAGraph>();
  graph->capture_begin(device_);
  ones({8}, TensorOptions(kFloat32).device(device_)).mul_(3);
  std::thread([&] { graph.reset(); }).join();
  CUDAGraph second;
  second.capture_begin(device_);
  const Tensor x = ones({8}, TensorOptions(kFloat32).device(device_)) * 5;
  second.capture_end();
  second.replay();
  EXPECT_EQ(x.sum().item<float>(), 40);
}

TEST_F(Graphs, UseInTheWrongOrderIsAnError) {
  CUDAGraph graph, second;
  EXPECT_NE(message_of([&] { graph.replay(); }).find("nothing to replay"), std::string::npos);
  EXPECT_NE(message_of([&] { graph.capture_end(); }).find("has not begun"), std::string::npos);
  {
    const StreamGuard on(Stream(device_, 0));
    EXPECT_NE(message_of([&] { graph.capture_begin(device_); }).find("default stream"),
              std::string::npos);
  }
  graph.capture_begin(device_);
  EXPECT_NE(message_of([&] { second.capture_begin(device_); }).find("another graph"),
            std::string::npos);
  graph.reset();  // gives the capture up
  EXPECT_FALSE(is_current_stream_capturing(device_));
  second.capture_begin(device_);
  second.capture_end();
  second.replay();
  EXPECT_NE(message_of([&] { second.capture_begin(device_); }).find("reset() it first"),
            std::string::npos);
}

}  // namespace
}  // namespace taper::cuda
