// Small parts of the base: scopes and call sites, errors, scalars, ordered dictionaries.
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "taper/core/base/device.h"
#include "taper/core/base/ordered_dict.h"
#include "taper/core/base/scalar.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

TEST(SourceLoc, NamesFileLineAndFunction) {
  const SourceLoc here = SourceLoc::current();
  EXPECT_EQ(here.line, static_cast<std::uint32_t>(__LINE__ - 1));
  EXPECT_EQ(to_string(SourceLoc("/a/b/train.cpp", "main", 42)), "train.cpp:42 in main");
  EXPECT_EQ(to_string(SourceLoc("train.cpp", "main", 1)), "train.cpp:1 in main");
  EXPECT_EQ(to_string(SourceLoc()), "an unknown line");
  EXPECT_TRUE(here.known());
  EXPECT_FALSE(SourceLoc().known());
}

// As public functions do.
void inner(SourceLoc loc) {
  const Call call(loc);
  fail("it went wrong");
}

void outer(SourceLoc loc) {
  const Call call(loc);
  inner(SourceLoc("inside.cpp", "", 9));
}

TEST(Device, EveryIndexIsKeptOrRefused) {
  for (const DeviceType type : {kCPU, kCUDA, kMeta}) {
    for (int index = -1000; index <= 1000; ++index) {
      if (index >= 0 && index <= 99) {
        EXPECT_EQ(Device(type, index).index(), index);
      } else {
        EXPECT_EQ(message_of([&] { Device(type, index); }),
                  str("Device: the index must be a number from 0 to 99, got ", index));
      }
    }
    for (const int index : {std::numeric_limits<int>::min(), std::numeric_limits<int>::max()})
      EXPECT_THROW(Device(type, index), Error);
  }
  for (int index = 0; index <= 99; ++index) {
    EXPECT_EQ(Device("cuda:" + std::to_string(index)), Device(kCUDA, index));
  }
  EXPECT_THROW(Device("cuda:100"), Error);
  static_assert(Device(kCUDA, 99).index() == 99);
}

TEST(Call, TheOutermostSetsLineAndName) {
  const SourceLoc user("user.cpp", "main", 7);
  EXPECT_EQ(message_of([&] { inner(user); }), "inner: it went wrong\n  at user.cpp:7 in main");
  EXPECT_EQ(message_of([&] { outer(user); }), "outer: it went wrong\n  at user.cpp:7 in main");
  EXPECT_FALSE(call_site.active());  // also after errors
}

TEST(Call, OperatorsAndForwardLeaveTheNameToTheOp) {
  const SourceLoc user("user.cpp", "main", 7);
  for (const char* function : {"operator+", "operator()", "forward", "Backward"}) {
    const Call call(user, function);
    EXPECT_EQ(message_of([] { fail("no"); }), "no\n  at user.cpp:7 in main") << function;
  }
  const Call call(user, "mse_loss");
  call_site.op = "sub";
  EXPECT_EQ(message_of([] { fail("no"); }), "mse_loss: sub: no\n  at user.cpp:7 in main");
  call_site.op = "mse_loss";
  EXPECT_EQ(message_of([] { fail("no"); }), "mse_loss: no\n  at user.cpp:7 in main");
  call_site.op = nullptr;
  EXPECT_EQ(message_of([] { fail("mse_loss: no"); }), "mse_loss: no\n  at user.cpp:7 in main");
}

TEST(Call, AnInPlaceMethodIsNamedOnce) {
  const SourceLoc at("user.cpp", "main", 7);
  const Call call(at, "add_");
  call_site.op = "add";
  EXPECT_EQ(message_of([] { fail("no"); }), "add_: no\n  at user.cpp:7 in main");
  call_site.op = nullptr;
  EXPECT_EQ(message_of([] { fail("add: no"); }), "add: no\n  at user.cpp:7 in main");
}

TEST(Call, EachThreadHasItsOwn) {
  const SourceLoc at("user.cpp", "main", 7);
  const Call call(at, "mul");
  std::string text;
  std::thread([&] { text = message_of([] { fail("no"); }); }).join();
  EXPECT_EQ(text, "no");
}

TEST(Scope, NamesNest) {
  EXPECT_EQ(scope_name(0), "");
  const Scope encoder("encoder");
  EXPECT_EQ(scope_name(call_site.scope), "encoder");
  const std::uint32_t outside = call_site.scope;
  {
    const Scope layer("3");
    const Scope attn("attn");
    EXPECT_EQ(scope_name(call_site.scope), "encoder.3.attn");
    EXPECT_EQ(message_of([] { fail("no"); }), "no, scope encoder.3.attn");
  }
  EXPECT_EQ(call_site.scope, outside);
  EXPECT_EQ(scope_child(outside, "3"), scope_child(outside, "3"));
  EXPECT_NE(scope_child(outside, "3"), scope_child(0, "3"));
}

TEST(Scope, ThreadsAgreeOnNumbers) {
  std::vector<std::uint32_t> numbers(8);
  std::vector<std::thread> threads;
  for (std::uint32_t& number : numbers) {
    threads.emplace_back([&number] {
      for (int i = 0; i < 1000; ++i) {
        number = scope_child(scope_child(0, "block" + std::to_string(i % 10)), "fc");
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::uint32_t number : numbers) EXPECT_EQ(number, numbers[0]);
  EXPECT_EQ(scope_name(numbers[0]), "block9.fc");
}

TEST(Error, KnowsItsParts) {
  const Error e("the shapes differ", "mul", SourceLoc("a.cpp", "f", 3), "net.fc");
  EXPECT_STREQ(e.what(), "mul: the shapes differ\n  at a.cpp:3 in f, scope net.fc");
  EXPECT_EQ(e.message(), "the shapes differ");
  EXPECT_EQ(e.op(), "mul");
  EXPECT_EQ(e.scope(), "net.fc");
  EXPECT_EQ(e.loc().line, 3u);
}

TEST(Error, TextsAreJoined) {
  EXPECT_EQ(str("n ", 3, ' ', true, ' ', 0.1, ' ', 1e-300), "n 3 true 0.1 1e-300");
  EXPECT_EQ(str(IntArrayRef({2, 3})), "(2, 3)");
  EXPECT_EQ(str(IntArrayRef()), "()");
  const std::string assertion = message_of([] { TAPER_ASSERT(1 + 1 == 3); });
  EXPECT_NE(assertion.find("1 + 1 == 3"), std::string::npos) << assertion;
  EXPECT_NE(assertion.find("base_test.cpp"), std::string::npos) << assertion;
}

TEST(Scalar, RemembersHowItWasWritten) {
  EXPECT_EQ(Scalar(true).dtype(), kBool);
  EXPECT_EQ(Scalar(2).dtype(), kInt64);
  EXPECT_EQ(Scalar(2.5f).dtype(), kFloat64);
  EXPECT_EQ(Scalar(Half(0.5f)).dtype(), kFloat64);
  EXPECT_EQ(Scalar(BFloat16(0.5f)).to_double(), 0.5);
  EXPECT_EQ(Scalar(std::int64_t{1} << 62).to_int(), std::int64_t{1} << 62);
  EXPECT_EQ(Scalar(-2.9).to_int(), -2);
  EXPECT_EQ(Scalar(2.5).to<float>(), 2.5f);
  EXPECT_EQ(Scalar(7).to<double>(), 7.0);
  EXPECT_TRUE(Scalar(0.1).to<bool>());
  EXPECT_FALSE(Scalar(0).to<bool>());
  EXPECT_EQ(str(Scalar(3), ' ', Scalar(0.5)), "3 0.5");
}

TEST(OrderedDict, KeepsTheOrderOfInsertion) {
  OrderedDict<std::string, int> dict;
  EXPECT_TRUE(dict.is_empty());
  dict.insert("b", 2);
  dict.insert("a", 1);
  EXPECT_EQ(dict.size(), 2u);
  EXPECT_EQ(dict.keys(), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(dict.values(), (std::vector<int>{2, 1}));
  dict["b"] = 5;
  EXPECT_EQ(dict["b"], 5);
  EXPECT_TRUE(dict.contains("a"));
  EXPECT_EQ(dict.find("c"), nullptr);
  EXPECT_EQ(*dict.find("a"), 1);
  std::string order;
  for (const auto& item : dict) order += item.key() + std::to_string(item.value());
  EXPECT_EQ(order, "b5a1");
  EXPECT_NE(message_of([&] { dict["c"]; }).find("'c'"), std::string::npos);
  EXPECT_NE(message_of([&] { dict.insert("a", 3); }).find("'a'"), std::string::npos);
  EXPECT_EQ(dict["a"], 1);
}

}  // namespace
}  // namespace taper
