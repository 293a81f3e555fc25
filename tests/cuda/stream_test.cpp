// Streams and events as users have them: what is in order, and what backward puts in order.
#include <thread>

#include <gtest/gtest.h>

#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

const Device kFirst(kCUDA, 0), kSecond(kCUDA, 1);

TEST(Streams, TheCurrentOneIsOfTheThreadAndTheDevice) {
  const Stream a = make_stream(kFirst), b = make_stream(kSecond, -1);
  EXPECT_EQ(current_stream(kFirst).id(), 0U);
  {
    const StreamGuard guard(a);
    EXPECT_EQ(current_stream(kFirst), a);
    EXPECT_EQ(current_stream(kSecond).id(), 0U);
    std::thread([&] { EXPECT_EQ(current_stream(kFirst).id(), 0U); }).join();
    const StreamGuard second(b);
    EXPECT_EQ(current_stream(kSecond), b);
    const Tensor x = ones({3}, kFirst);
    EXPECT_EQ(x.storage()->stream(), a.id());
  }
  EXPECT_EQ(current_stream(kFirst).id(), 0U);
  EXPECT_EQ(current_stream(kSecond).id(), 0U);
}

TEST(Streams, AnEventOrdersTwo) {
  const Stream a = make_stream(kFirst), b = make_stream(kFirst);
  Tensor x, y;
  Event made(true), used(true);
  {
    const StreamGuard guard(a);
    x = full({1000}, 3.0, kFirst);
    for (int i = 0; i < 10; ++i) x = x + 1;
    made.record(a);
  }
  {
    const StreamGuard guard(b);
    made.block(b);
    y = x * 2;
    used.record(b);
  }
  x = Tensor();  // its memory waits for b
  used.synchronize();
  EXPECT_TRUE(used.query());
  EXPECT_GE(made.elapsed_time(used), 0);
  EXPECT_EQ(y.sum().item<double>(), 26000);
}

TEST(Streams, AnEventThatWasNeverRecordedHasHappened) {
  const Event event;
  EXPECT_TRUE(event.query());
  event.synchronize();
  event.block(make_stream(kFirst));
}

// Forward on two streams that meet; backward goes back over both without a word of the user's.
TEST(Streams, BackwardFollowsTheStreamsOfForward) {
  const Tensor host = randn({40, 40}), host_v = randn({40, 40});
  const auto run = [&](Device device, bool on_two) {
    const Stream a = on_two ? make_stream(device) : current_stream(device);
    const Stream b = on_two ? make_stream(device) : a;
    const Tensor w = host.clone().to(device).requires_grad_();
    const Tensor v = host_v.clone().to(device).requires_grad_();
    for (int round = 0; round < 3; ++round) {
      wait_for(a, current_stream(device));
      wait_for(b, current_stream(device));
      Tensor left, right, loss;
      {
        const StreamGuard guard(a);
        left = matmul(w, v).tanh();
      }
      {
        const StreamGuard guard(b);
        right = (w * v).sigmoid();
        wait_for(b, a);
        loss = (left * right).sum() + left.square().sum();
      }
      wait_for(current_stream(device), b);
      loss.backward();
    }
    return std::vector<Tensor>{w.grad().cpu(), v.grad().cpu()};
  };
  const std::vector<Tensor> plain = run(kCPU, false), two = run(kFirst, true);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(equal(plain[i], two[i])) << i;
}

TEST(Streams, GradOfAnEntryIsReadyForTheCaller) {
  const Stream a = make_stream(kFirst);
  const Tensor x = ones({100}, kFirst).requires_grad_();
  Tensor y, loss;
  wait_for(a, current_stream(kFirst));
  {
    const StreamGuard guard(a);
    y = x * 3;
    loss = y.square().sum();
  }
  const Tensor g = grad({loss}, {y})[0];
  EXPECT_EQ(g.sum().item<double>(), 600);
}

TEST(Streams, PinnedMemoryIsCopiedWithoutWaiting) {
  const Stream copies = make_stream(kFirst);
  Tensor x;
  {
    const StreamGuard guard(copies);
    const Tensor host = arange(5000, kFloat32).pin_memory();
    EXPECT_TRUE(host.is_pinned());
    x = host.to(kFirst, true);
  }  // the pinned memory is free, and must not be written before it was read
  const Tensor next = zeros({5000}).pin_memory();
  EXPECT_FALSE(zeros({2}).is_pinned());
  wait_for(current_stream(kFirst), copies);
  EXPECT_EQ((x - arange(5000, TensorOptions(kFloat32).device(kFirst))).abs().sum().item<double>(),
            0);
  const Tensor back = x.to(kCPU, true);
  EXPECT_TRUE(back.is_pinned());
  cuda::synchronize();
  EXPECT_EQ(back.sum().item<double>(), 4999.0 * 5000 / 2);
}

// Between every kind of memory, alike in layout and dtype or not: what has been waited for is
// there.
TEST(Streams, CopiesIntoATensorArrive) {
  const auto make = [](const std::string& where, DType dtype, bool turned) {
    Tensor t = zeros({40, 30}, dtype);
    if (where == "pinned") t = t.pin_memory();
    if (where == "device") t = t.to(kFirst);
    return turned ? t.view({30, 40}).t() : t;
  };
  const Tensor numbers = arange(1200).view({40, 30}) / 4;
  for (const char* from : {"device", "pinned", "pageable"}) {
    for (const char* to : {"device", "pinned", "pageable"}) {
      for (int kind = 0; kind < 16; ++kind) {
        const bool other_dtype = kind & 1, source_turned = kind & 2, target_turned = kind & 4;
        const bool stretched = kind & 8;
        Tensor source = make(from, kFloat32, source_turned);
        source.copy_(numbers);
        source.mul_(2);
        if (stretched) source = source.slice(0, 7, 8);
        const Tensor target = make(to, other_dtype ? kFloat64 : kFloat32, target_turned);
        target.copy_(source, true);
        cuda::synchronize();
        const Tensor want = stretched ? numbers.slice(0, 7, 8).expand({40, 30}) : numbers;
        EXPECT_TRUE(equal(target.cpu(), (want * 2).to(target.dtype())))
            << from << " to " << to << ", kind " << kind;
      }
    }
  }
}

TEST(Streams, ACopyAcrossDevicesHasGradients) {
  Tensor x = ones({3}, requires_grad()), y = zeros({2, 3}, TensorOptions(kFloat32).device(kFirst));
  y.copy_(x, true);
  (y * 5).sum().backward();
  EXPECT_TRUE(x.grad().is_cpu());
  EXPECT_EQ(x.grad().sum().item<float>(), 30);
  Tensor z = ones({3}, TensorOptions(kFloat32).device(kFirst).requires_grad(true)), w = zeros({3});
  w.copy_(z);
  (w * 7).sum().backward();
  EXPECT_TRUE(z.grad().is_cuda());
  EXPECT_EQ(z.grad().sum().item<float>(), 21);
}

TEST(Streams, TheCpuHasOne) {
  EXPECT_EQ(current_stream(kCPU).id(), 0U);
  EXPECT_TRUE(current_stream(kCPU).query());
  current_stream(kCPU).synchronize();
  Event first(true), second(true);
  first.record(current_stream(kCPU));
  second.record(current_stream(kCPU));
  EXPECT_GE(first.elapsed_time(second), 0);
  EXPECT_NE(message_of([] { make_stream(kCPU); }).find("one stream"), std::string::npos);
}

TEST(Streams, WhatDoesNotExistIsRefused) {
  const auto refused = [](const char* part, const auto& f) {
    const std::string text = message_of(f);
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("at stream_test.cpp:"), std::string::npos) << text;
  };
  const Stream bad(kFirst, 77777), nowhere(Device(kCUDA, 80)), other = make_stream(kSecond);
  const Tensor x = ones({2}, kFirst);
  const std::string count = "; this machine has " + std::to_string(cuda::device_count());
  refused("wait_for: there is no stream 77777", [&] { wait_for(bad, current_stream(kFirst)); });
  refused("wait_for: there is no stream 77777", [&] { wait_for(current_stream(kFirst), bad); });
  refused("query: there is no stream 77777", [&] { bad.query(); });
  refused("there is no stream 77777", [&] { StreamGuard{bad}; });
  refused(("there is no device cuda:80" + count).c_str(), [&] { StreamGuard{nowhere}; });
  refused(("current_stream: there is no device cuda:80" + count).c_str(),
          [] { current_stream(Device(kCUDA, 80)); });
  refused(("there is no device cuda:99" + count).c_str(), [] { cuda::DeviceGuard{99}; });
  refused("record_stream: there is no stream 99", [&] { x.record_stream(Stream(kFirst, 99)); });
  refused("record_stream: there is no device cuda:80", [&] { x.record_stream(nowhere); });
  refused("record_stream: the tensor lies on cuda:0 and stream", [&] { x.record_stream(other); });
  ones({2}).pin_memory().record_stream(other);  // the host's memory is any device's
  refused("no device cuda:9", [] { make_stream(Device(kCUDA, 9)); });
  refused("no stream 77777", [] { StreamGuard(Stream(kFirst, 77777)); });
  refused("priorities from", [] { make_stream(kFirst, 3); });
  refused("no device cuda:40", [] { cuda::synchronize(40); });
  refused("enable_timing", [] { Event().elapsed_time(Event()); });
  refused("pinned", [] { ones({2}, kFirst).pin_memory(); });
  const cuda::MemoryInfo info = cuda::memory_info(1);
  EXPECT_GT(info.total, 0U);
  EXPECT_LE(info.free, info.total);
}

}  // namespace
}  // namespace taper
