// The race checker: races that are planted, and programs that have none.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "taper/allocator/allocator.h"
#include "taper/taper.h"
#include "taper/tests/cuda/again.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

using lens::RaceCheck;

// A place whose line is easy to name, because it is made up.
struct At {
  explicit At(std::uint32_t line) : loc("here.cpp", "f", line), call(loc) {}

  SourceLoc loc;
  Call call;
};

Tensor on_device(IntArrayRef sizes) {
  Tensor t = ones(sizes).to(kCUDA);
  cuda::synchronize();
  return t;
}

const Stream& first_stream() {
  static const Stream stream = make_stream();
  return stream;
}

const Stream& second_stream() {
  static const Stream stream = make_stream();
  return stream;
}

template <class F> auto on(const Stream& stream, const F& work) {
  const StreamGuard guard(stream);
  return work();
}

std::string stream_text(const Stream& stream) {
  return "stream " + std::to_string(stream.id());
}

TEST(Races, ARaceIsThrownWithBothLines) {
  const Tensor x = on_device({2, 3});
  const RaceCheck check;
  on(first_stream(), [&] {
    const At at(10);
    return x.mul_(2);
  });
  std::string message;
  on(second_stream(), [&] {
    const At at(12);
    message = message_of([&] { x + x; });
    return 0;
  });
  EXPECT_EQ(
      message,
      "race: add at here.cpp:12 in f on cuda:0 " + stream_text(second_stream()) +
          " reads f32 (2, 3), which mul at here.cpp:10 in f on " + stream_text(first_stream()) +
          " writes; nothing orders them: record an Event on " + stream_text(first_stream()) +
          " and block " + stream_text(second_stream()) +
          " on it\n  given f32 (2, 3) on cuda:0, f32 (2, 3) on cuda:0\n  at here.cpp:12 in f");
  cuda::synchronize();
}

std::size_t races_of(const std::function<void()>& program, std::string* report = nullptr) {
  const RaceCheck check(RaceCheck::Found::kReport);
  program();
  cuda::synchronize();
  if (report != nullptr) *report = check.report();
  return check.count();
}

TEST(Races, EachMissingWaitIsFound) {
  const Tensor x = on_device({64}), y = on_device({64});
  const auto write = [&] { x.fill_(1); };
  const auto read = [&] { y.copy_(x); };
  const auto read_other = [&] { return x.sum(); };
  const auto two = [&](const auto& a, const auto& b, bool waits) {
    return races_of([&] {
      on(first_stream(), [&] { return a(), 0; });
      if (waits) wait_for(second_stream(), first_stream());
      on(second_stream(), [&] { return b(), 0; });
    });
  };
  for (const bool waits : {false, true}) {
    const std::size_t races = waits ? 0 : 1;
    EXPECT_EQ(two(write, read, waits), races) << "write, read";
    EXPECT_EQ(two(read, write, waits), races) << "read, write";
    EXPECT_EQ(two(write, write, waits), races) << "write, write";
  }
  EXPECT_EQ(two(read_other, read, false), 0u) << "both read";
}

TEST(Races, APairOfLinesIsListedOnce) {
  const Tensor x = on_device({64});
  std::string report;
  EXPECT_EQ(races_of(
                [&] {
                  for (int i = 0; i < 5; ++i) {
                    on(first_stream(), [&] { return x.fill_(1); });
                    on(second_stream(), [&] { return x.sum(); });
                  }
                },
                &report),
            2u)  // and the next round's write
      << report;
}

TEST(Races, TheWrongEventOrdersNothing) {
  const Tensor x = on_device({64});
  EXPECT_EQ(races_of([&] {
              Event early;
              early.record(first_stream());  // before the work that it was to tell of
              on(first_stream(), [&] { return x.fill_(1); });
              early.block(second_stream());
              on(second_stream(), [&] { return x.sum(); });
            }),
            1u);
}

// Raw allocator calls, as Frame would have told the allocator of the other stream.
TEST(Races, MemoryThatIsUsedAgainTooEarlyIsFound) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  Allocator& allocator = allocator_for(Device(kCUDA, 0));
  const Layout layout = contiguous_layout({static_cast<std::int64_t>(kBytes / 4)});
  const Stream owner = make_stream(), user = make_stream();
  const auto fill = [&](const Stream& stream, void* data) {
    const At at(stream == owner ? 1 : 2);
    kernels_for(kCUDA).fill(Exec(kCUDA, stream.id()), Out{{data, &layout}}, 1);
  };
  for (const bool recorded : {false, true}) {
    std::string report;
    const std::size_t races = races_of(
        [&] {
          Block block = allocator.allocate(kBytes, owner.id());
          const void* first = block.data;
          fill(owner, block.data);
          wait_for(user, owner);
          fill(user, block.data);
          if (recorded) allocator.record_stream(block, user.id());
          allocator.free(block, kBytes, owner.id());
          block = allocator.allocate(kBytes, owner.id());
          ASSERT_EQ(block.data, first);
          fill(owner, block.data);
          allocator.free(block, kBytes, owner.id());
        },
        &report);
    EXPECT_EQ(races, recorded ? 0u : 1u) << report;
  }
}

// Ops tell it themselves.
TEST(Races, NoneInMemoryThatOpsUseAgain) {
  std::string report;
  bool again = false;
  const std::size_t races = races_of(
      [&] {
        const StreamGuard guard(first_stream());
        Tensor x = full({1 << 18}, 1.0, kCUDA);
        const void* first = x.data_ptr();
        wait_for(second_stream(), first_stream());
        const Tensor y = on(second_stream(), [&] { return x.exp(); });
        x = Tensor();
        x = full({1 << 18}, 2.0, kCUDA);
        again = x.data_ptr() == first;
      },
      &report);
  EXPECT_TRUE(again);
  EXPECT_EQ(races, 0u) << report;
}

struct Net {
  nn::Sequential model{nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 4)};
  Tensor x = randn({8, 16}), target = randn({8, 4});

  Net() {
    model->to(Device(kCUDA));
    x = x.to(kCUDA);
    target = target.to(kCUDA);
    cuda::synchronize();
  }
};

TEST(Races, AMissingWaitInATrainingStepIsFound) {
  const Net net;
  std::string report;
  const auto step = [&](bool waits) {
    return races_of(
        [&] {
          const Tensor hidden = on(first_stream(), [&] { return net.model(net.x); });
          if (waits) wait_for(second_stream(), first_stream());
          on(second_stream(), [&] { return mse_loss(hidden, net.target); });
        },
        &report);
  };
  EXPECT_EQ(step(true), 0u) << report;
  EXPECT_GE(step(false), 1u) << report;
  EXPECT_NE(report.find("linear at race_test.cpp:"), std::string::npos) << report;
}

TEST(Races, NoneInWholeStepsOnOneStream) {
  const Net net;
  optim::Adam adam(net.model->parameters(), optim::AdamOptions(1e-3));
  std::string report;
  std::size_t kept[2] = {};
  {
    const RaceCheck check;
    for (int step = 0; step < 6; ++step) {
      adam.zero_grad();
      mse_loss(net.model(net.x), net.target).backward();
      adam.step();
      kept[step == 5] = check.kept();
    }
    EXPECT_EQ(check.report(), "no race so far");
  }
  EXPECT_LE(kept[1], kept[0] + 8);  // one for each place in memory, however long it runs
  EXPECT_GT(kept[0], 8u);
}

// Backward runs each op on the stream of its forward and waits by itself.
TEST(Races, NoneInBackwardOverTwoStreams) {
  const Tensor w1 = on_device({32, 32}), w2 = on_device({32, 32}), x = on_device({4, 32});
  for (const Tensor& w : {w1, w2}) w.requires_grad_();
  std::string report;
  const std::size_t races = races_of(
      [&] {
        for (int step = 0; step < 3; ++step) {
          wait_for(first_stream(), current_stream());
          wait_for(second_stream(), current_stream());
          const Tensor a = on(first_stream(), [&] { return x.matmul(w1).tanh(); });
          const Tensor b = on(second_stream(), [&] { return x.matmul(w2).sigmoid() * w1.sum(); });
          wait_for(second_stream(), first_stream());
          const Tensor c = on(second_stream(), [&] { return (a * b).matmul(w1); });
          wait_for(current_stream(), second_stream());
          (c + a).sum().backward();
          const NoGradGuard no_grad;
          for (const Tensor& w : {w1, w2}) {
            w.sub_(w.grad() * 0.01);
            w.mutable_grad() = Tensor();
          }
        }
      },
      &report);
  EXPECT_EQ(races, 0u) << report;
}

// grad() gives what entries on other streams have made to the stream that is current.
TEST(Races, NoneInWhatGradReturns) {
  const Tensor w = on_device({32}).requires_grad_();
  std::string report;
  const std::size_t races = races_of(
      [&] {
        Tensor square;
        const Tensor loss = on(first_stream(), [&] {
          square = w * w;
          return square.exp().sum();
        });
        const StreamGuard guard(second_stream());
        wait_for(second_stream(), first_stream());
        grad({loss}, {square})[0].zero_();
      },
      &report);
  EXPECT_EQ(races, 0u) << report;
}

// Whichever thread comes first.
TEST(Races, AreFoundBetweenThreads) {
  const Tensor x = on_device({64}), y = on_device({64});
  const auto fill = [](const Stream& stream, const Tensor& t) {
    return std::thread([=] {
      const StreamGuard guard(stream);
      for (int i = 0; i < 50; ++i) t.fill_(i);
    });
  };
  for (const bool apart : {true, false}) {
    std::string report;
    const std::size_t races = races_of(
        [&] {
          std::thread one = fill(first_stream(), x), other = fill(second_stream(), apart ? y : x);
          one.join();
          other.join();
        },
        &report);
    if (apart) EXPECT_EQ(races, 0u) << report;
    else EXPECT_GE(races, 1u);
  }
}

TEST(Races, NoneInADiamondAndWhereEventsAreUsedAgain) {
  const Tensor x = on_device({64}), y = on_device({64}), z = on_device({64});
  const Stream third = make_stream();
  std::string report;
  EXPECT_EQ(races_of(
                [&] {
                  Event start, left, right;
                  for (int i = 0; i < 4; ++i) {
                    on(third, [&] { return x.add_(1); });
                    start.record(third);
                    start.block(first_stream());
                    start.block(second_stream());
                    on(first_stream(), [&] { return y.copy_(x); });
                    on(second_stream(), [&] { return z.copy_(x); });
                    left.record(first_stream());
                    right.record(second_stream());
                    left.block(third);
                    right.block(third);
                    on(third, [&] { return x.add_(y).add_(z); });
                  }
                },
                &report),
            0u)
      << report;
}

TEST(Races, TheHostOrdersBySynchronizing) {
  const Tensor x = on_device({64});
  const auto program = [&](const std::function<void()>& between) {
    return races_of([&] {
      on(first_stream(), [&] { return x.fill_(1); });
      between();
      on(second_stream(), [&] { return x.fill_(2); });
    });
  };
  Event event;
  EXPECT_EQ(program([] {}), 1u);
  EXPECT_EQ(program([&] { second_stream().synchronize(); }), 1u);  // the wrong one
  EXPECT_EQ(program([&] { first_stream().synchronize(); }), 0u);
  EXPECT_EQ(program([&] { cuda::synchronize(0); }), 0u);
  EXPECT_EQ(program([&] {
              event.record(first_stream());
              event.synchronize();
            }),
            0u);
  EXPECT_EQ(program([&] { on(first_stream(), [&] { return x.to(kCPU); }); }), 0u);
}

// The columns of one storage, one stream each.
TEST(Races, InterleavedViewsDoNotMeet) {
  const Tensor x = on_device({6, 7});
  const auto columns = [&](int first) {
    return x.index({indexing::Slice(), indexing::Slice(first, indexing::None, 2)});
  };
  const Tensor even = columns(0), odd = columns(1), row = x.select(0, 3);
  const auto races = [&](const Tensor& a, const Tensor& b) {
    return races_of([&] {
      on(first_stream(), [&] { return a.fill_(1); });
      on(second_stream(), [&] { return b.fill_(2); });
    });
  };
  EXPECT_EQ(races(even, odd), 0u);
  EXPECT_EQ(races(even, row), 1u);
  EXPECT_EQ(races(odd, x), 1u);
}

// What a loader does: batches in pinned memory, copied beside the work on the one before.
TEST(Races, NoneInPrefetchOnACopyStream) {
  const Net net;
  const Stream copies = make_stream();
  std::string report;
  const std::size_t races = races_of(
      [&] {
        Event copied;
        const auto fetch = [&] {
          const Tensor batch = rand({8, 16}).pin_memory();
          const StreamGuard guard(copies);
          const Tensor there = batch.to(kCUDA, /*non_blocking=*/true);
          copied.record(copies);
          return there;
        };
        Tensor next = fetch();
        for (int step = 0; step < 5; ++step) {
          copied.block(current_stream());
          const Tensor batch = next;
          next = fetch();
          mse_loss(net.model(batch), net.target).backward();
        }
      },
      &report);
  EXPECT_EQ(races, 0u) << report;
}

TEST(Races, TheHostMustNotWriteWhatIsBeingCopied) {
  const Tensor batch = ones({64}).pin_memory();
  for (const bool waits : {false, true}) {
    std::string report;
    const std::size_t races = races_of(
        [&] {
          const Tensor there =
              on(first_stream(), [&] { return batch.to(kCUDA, /*non_blocking=*/true); });
          if (waits) first_stream().synchronize();
          const At at(7);
          batch.fill_(2);
        },
        &report);
    EXPECT_EQ(races, waits ? 0u : 1u) << report;
    if (waits) continue;
    EXPECT_EQ(report.find("fill_ at here.cpp:7 in f on the host writes f32 (64), which "), 0u)
        << report;
  }
}

// One number is copied as any other, unless it is the host's.
TEST(Races, ASingleNumberIsLookedAt) {
  const Tensor loss = on_device({1}), x = on_device({4, 4});
  const auto write = [&] { on(first_stream(), [&] { return loss.mul_(2), x.mul_(2); }); };
  const std::function<void()> reads[] = {[&] { loss.item(); },     [&] { loss.cpu(); },
                                         [&] { loss.clone(); },    [&] { x[1][2].item(); },
                                         [&] { x[1][2].clone(); }, [&] { loss.to(kFloat64); }};
  for (const auto& read : reads) {
    EXPECT_EQ(races_of([&] { write(), read(); }), 1U);
    EXPECT_EQ(races_of([&] { write(), wait_for(current_stream(), first_stream()), read(); }), 0U);
  }
  EXPECT_EQ(races_of([&] {
              loss.clone();
              on(first_stream(), [&] { return loss.mul_(2); });
            }),
            1U);
}

TEST(Races, ANumberOfTheHostIsReadAtOnce) {
  const Tensor pinned = ones({1}).pin_memory(), plain = ones({1}), x = on_device({1});
  const Tensor other = on_device({1});
  EXPECT_EQ(races_of([&] {
              for (const Tensor& number : {pinned, plain}) {
                x.copy_(number);
                number.fill_(2);
              }
            }),
            0U);
  EXPECT_EQ(races_of([&] {
              on(first_stream(), [&] { return pinned.copy_(x, true); });
              other.copy_(pinned);  // before it has arrived
            }),
            1U);
}

TEST(Races, NoneBetweenDevices) {
  if (cuda::device_count() < 2) GTEST_SKIP() << "needs two devices";
  const Tensor x = on_device({64});
  std::string report;
  EXPECT_EQ(races_of(
                [&] {
                  x.add_(1);
                  const Tensor there = x.to(Device(kCUDA, 1));
                  x.add_(1);
                  there.add_(1);
                  x.copy_(there);
                },
                &report),
            0u)
      << report;
}

TEST(Races, OneCheckAtATime) {
  const RaceCheck check;
  EXPECT_NE(message_of([] { const RaceCheck second; }).find("there is one already"),
            std::string::npos);
}

#ifdef TAPER_CUDA_EMULATED
// Found by order, not by luck: whatever runs first.
TEST(Races, AreTheSameInEveryOrder) {
  if (std::getenv("TAPER_TEST_AGAIN") != nullptr) GTEST_SKIP() << "is such a run itself";
  for (const char* order : {"late", "seeded:1", "seeded:2"}) {
    const cuda::Rerun run = cuda::run_again(
        std::string("TAPER_LOG=off TAPER_EMULATED_STREAMS=") + order, "Races.*:RacePrograms.*");
    EXPECT_TRUE(run.passed()) << order << "\n" << run.output;
  }
}
#endif

}  // namespace
}  // namespace taper
