// Exponents against a slow count, marks of the tape, and cuts under many threads.
#include <cmath>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "taper/autograd/lens/cuts.h"
#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

using namespace taper::lens;

double share(const Exponents& e, const std::string& format, double Exponents::Loss::*what) {
  for (const Exponents::Loss& l : e.losses) {
    if (l.format == format) return l.*what;
  }
  return -1;
}

TEST(Exponents, CountsEveryKindOfNumber) {
  const Tensor t =
      tensor({0.0, -0.0, 1.0, 1.5, -2.0, 3e-300, HUGE_VAL, NAN}, TensorOptions(kDouble));
  const Exponents e = exponents(t);
  EXPECT_EQ(e.total, 8);
  EXPECT_EQ(e.zeros, 2);
  EXPECT_EQ(e.infinities, 1);
  EXPECT_EQ(e.nans, 1);
  EXPECT_EQ(e.lowest, std::ilogb(3e-300));
  EXPECT_EQ(e.counts.front(), 1);
  EXPECT_EQ(e.counts.back(), 1);                // 2
  EXPECT_EQ(e.counts[e.counts.size() - 2], 2);  // 1, 1.5
  EXPECT_EQ(share(e, "fp16", &Exponents::Loss::to_zero), 0.25);
}

// The library's own conversions are the oracle for the two formats that it has.
TEST(Exponents, LossesAreThoseOfRounding) {
  manual_seed(2);
  const Tensor t = exp(randn({20000}, TensorOptions(kFloat)) * 12);
  const Exponents e = exponents(t);
  for (const auto& [name, dtype, tiny] :
       {std::tuple("fp16", kHalf, 0x1p-14), std::tuple("bf16", kBFloat16, 0x1p-126)}) {
    const Tensor there = t.to(dtype).to(kDouble);
    const auto part = [&](const Tensor& mask) { return mask.sum().item<double>() / 20000; };
    EXPECT_DOUBLE_EQ(share(e, name, &Exponents::Loss::to_zero), part(there == 0)) << name;
    EXPECT_DOUBLE_EQ(share(e, name, &Exponents::Loss::overflow), part(isinf(there))) << name;
    EXPECT_DOUBLE_EQ(share(e, name, &Exponents::Loss::to_subnormal),
                     part(logical_and(there > 0, there < tiny)))
        << name;
  }
}

TEST(Exponents, EdgesOfFormats) {
  struct Row {
    double x;
    const char* format;
    double Exponents::Loss::*what;
    bool lost;
  };
  const Row rows[] = {
      {65504, "fp16", &Exponents::Loss::overflow, false},
      {65519.99, "fp16", &Exponents::Loss::overflow, false},
      {65520, "fp16", &Exponents::Loss::overflow, true},
      {0x1p-25, "fp16", &Exponents::Loss::to_zero, true},  // a tie goes to the even zero
      {0x1.0001p-25, "fp16", &Exponents::Loss::to_zero, false},
      {0x1p-24, "fp16", &Exponents::Loss::to_subnormal, true},
      {0x1p-14, "fp16", &Exponents::Loss::to_subnormal, false},
      {464, "fp8 e4m3", &Exponents::Loss::overflow, false},  // a tie goes to 448, which is even
      {464.1, "fp8 e4m3", &Exponents::Loss::overflow, true},
      {0x1p-10, "fp8 e4m3", &Exponents::Loss::to_zero, true},
      {0x1p-9, "fp8 e4m3", &Exponents::Loss::to_subnormal, true},
      {57344, "fp8 e5m2", &Exponents::Loss::overflow, false},
      {61440, "fp8 e5m2", &Exponents::Loss::overflow, true},
      {0x1p-17, "fp8 e5m2", &Exponents::Loss::to_zero, true},
      {0x1p-133, "bf16", &Exponents::Loss::to_subnormal, true},
  };
  for (const Row& row : rows) {
    for (const double sign : {1.0, -1.0}) {
      const Exponents e = exponents(full({1}, sign * row.x, TensorOptions(kDouble)));
      EXPECT_EQ(share(e, row.format, row.what), row.lost ? 1 : 0) << row.format << " " << row.x;
    }
  }
}

TEST(Exponents, PrintsAHistogramAndRefusesIntegers) {
  const std::string text = to_string(exponents(tensor({1.0f, 1.0f, 4.0f})));
  EXPECT_NE(text.find("2^    2          1 ####################\n"), std::string::npos) << text;
  EXPECT_NE(text.find("2^    0          2 ########################################\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(to_string(exponents(zeros({3}))).substr(0, 18), "3 elements: 3 zero");
  EXPECT_NE(message_of([] { exponents(zeros({2}, TensorOptions(kLong))); }).find("i64 (2)"),
            std::string::npos);
}

TEST(Cuts, ManyThreadsCutTheSameLeaves) {
  const Tensor w = randn({8}).requires_grad_();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&w] {
      for (int round = 0; round < 2000; ++round) {
        const Tensor y = w * 2;
        const Tensor z = y.detach();
        (z * w).sum().backward();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(allclose(w.grad(), w.detach() * 16000, 1e-3));  // each round adds 2 w
}

// Metrics that are read in each round of a loop over one growing graph must not walk it each time.
TEST(Cuts, ALoopThatReadsItsStateIsLinear) {
  Tensor state = randn({1}).requires_grad_();
  const auto rounds = [&](int n) {
    const auto begin = std::chrono::steady_clock::now();
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      state = state * 1.0001;
      sum += state.item<double>();
      sum += state.detach().abs().item<double>();
    }
    EXPECT_TRUE(std::isfinite(sum));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  rounds(500);
  const double early = rounds(500);
  rounds(30000);
  EXPECT_LT(rounds(500), 20 * early + 0.02);
}

TEST(Cuts, AreForgottenAfterAThousand) {
  const Tensor w = randn({2}).requires_grad_();
  const Tensor first = w.detach();
  EXPECT_NE(cut(first.impl().cut).id, 0U);
  for (std::size_t i = 0; i < kCutsKept; ++i) (w * 2).detach();
  EXPECT_EQ(cut(first.impl().cut).id, 0U);
}

}  // namespace
}  // namespace taper
