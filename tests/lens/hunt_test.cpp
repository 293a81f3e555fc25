// The non-finite hunt: what it names, what it lets pass, and what it says of numbers that came in.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "taper/taper.h"
#include "taper/tests/message_of.h"

namespace taper {
namespace {

using lens::Hunt;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr DType kFloating[] = {kFloat64, kFloat32, kFloat16, kBFloat16};

// Holds all of the parts, in that order.
testing::AssertionResult says(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    at = text.find(part, at);
    if (at == std::string::npos)
      return testing::AssertionFailure() << "no '" << part << "' in\n" << text;
  }
  return testing::AssertionSuccess();
}

std::string line(std::uint32_t n) {
  return str("hunt_test.cpp:", n, " in ");
}

Tensor leaf(const std::vector<double>& values, DType dtype = kFloat32) {
  return tensor(values).to(dtype).requires_grad_();
}

TEST(Hunt, NamesTheForwardThatBegan) {
  for (const DType dtype : kFloating) {
    const Hunt hunt;
    const Tensor x = leaf({1, 2, 0, 3}, dtype);
    const std::uint32_t at = __LINE__ + 1;
    const Tensor y = x.view({2, 2}).log();
    const Tensor loss = (y * 2).sum();
    const std::string said = message_of([&] { loss.backward(); });
    EXPECT_TRUE(says(said, {"the loss", "-inf", "it began in forward: #", "log at " + line(at),
                            str("element (1, 0) of ", dtype, " (2, 2) became -inf"), "operand 0",
                            ": 0 there", "log x is -inf at x = 0"}));
    EXPECT_TRUE(says(said, {"at " + line(at)}));
  }
}

TEST(Hunt, OverflowIsOneToo) {
  for (const DType dtype : kFloating) {
    const Hunt hunt;
    const Tensor x = leaf({1, dtype == kFloat64 ? 710.0 : 89.0}, dtype);
    const std::uint32_t at = __LINE__ + 1;
    const Tensor loss = x.exp().mean();
    EXPECT_TRUE(
        says(message_of([&] { loss.backward(); }), {"exp at " + line(at), "(1)", "became inf"}));
  }
}

TEST(Hunt, ReductionsAndProductsAreNamed) {
  const Hunt hunt;
  const Tensor x = full({3, 4}, 3e38).requires_grad_();
  const std::uint32_t at = __LINE__ + 1;
  const Tensor rows = x.sum(1);
  EXPECT_TRUE(
      says(message_of([&] { rows.mean().backward(); }),
           {"sum at " + line(at), "element (0, 0) of f32 (3, 1)", "finite, the largest 3e+38"}));
  const Tensor a = full({2, 5}, 1e20).requires_grad_(), b = full({5, 3}, 1e20);
  const std::uint32_t product = __LINE__ + 1;
  const Tensor y = a.matmul(b);
  EXPECT_TRUE(says(message_of([&] { y.mean().backward(); }), {"matmul at " + line(product)}));
}

TEST(Hunt, MaskedScoresAreLegal) {
  const Hunt hunt;
  const Tensor x = randn({4, 4}, requires_grad()), mask = ones({4, 4}).triu(1) > 0;
  for (int step = 0; step < 3; ++step) {
    const std::uint32_t at = __LINE__ + 1;
    const Tensor masked = x.masked_fill(mask, -kInf);
    masked.softmax(1).square().sum().backward();
    EXPECT_TRUE(says(hunt.report(),
                     {"1 place made", "masked_fill at " + line(at), "it is the number -inf"}));
  }
}

TEST(Hunt, ARowThatIsAllMaskedNamesBothLines) {
  const Hunt hunt;
  const Tensor x = randn({3, 4}, requires_grad());
  Tensor mask = zeros({3, 4}) > 0;
  mask[1].fill_(true);
  const std::uint32_t filled = __LINE__ + 1;
  const Tensor masked = x.masked_fill(mask, -kInf);
  const std::uint32_t at = __LINE__ + 1;
  const Tensor y = masked.softmax(1);
  EXPECT_TRUE(says(message_of([&] { y.square().sum().backward(); }),
                   {"is nan", "masked_fill at " + line(filled), "it became nan in forward",
                    "softmax at " + line(at), "element (1, 0)", "a row"}));
}

TEST(Hunt, NamesTheBackwardWhereForwardIsFinite) {
  for (const DType dtype : kFloating) {
    const Hunt hunt;
    const Tensor x = leaf({4, 0, 1}, dtype);
    const std::uint32_t at = __LINE__ + 1;
    const Tensor y = x.sqrt();
    const std::string said = message_of([&] { y.sum().backward(); });
    EXPECT_TRUE(says(
        said, {"the gradient", "it began in the backward of #", "sqrt, recorded at " + line(at),
               "element (1) of", "became inf", ": 0 there", "sqrt: dx = g / (2 sqrt x)"}));
  }
}

TEST(Hunt, ZeroTimesInfinityInBackward) {
  const Hunt hunt;
  const Tensor x = leaf({2, 0});
  const std::uint32_t at = __LINE__ + 1;
  const Tensor y = where(x > 0, x.log(), 0.0);
  EXPECT_TRUE(says(
      message_of([&] { y.sum().backward(); }),
      {"is not finite", "in the backward of #", "log, recorded at " + line(at), "nan", "log: dx"}));
}

TEST(Hunt, WritesInPlaceAreOrigins) {
  const Hunt hunt;
  const Tensor x = leaf({1, -1});
  Tensor y = x * 1;
  const std::uint32_t at = __LINE__ + 1;
  y.log_();
  EXPECT_TRUE(says(message_of([&] { y.sum().backward(); }),
                   {"log at " + line(at), "became nan", "written over in place"}));
}

TEST(Hunt, OpsThatTheTapeDoesNotKnowAreNamed) {
  const Hunt hunt;
  const Tensor x = leaf({1, 2});
  Tensor target;
  const std::uint32_t at = __LINE__ + 3;
  {
    const NoGradGuard no_grad;
    target = (x - x).log();
  }
  EXPECT_TRUE(says(message_of([&] { mse_loss(x, target).backward(); }),
                   {"it began in forward: log at " + line(at)}));
}

struct NetImpl : nn::Module {
  NetImpl() : fc(register_module("fc", nn::Linear(3, 2))) {}
  Tensor forward(const Tensor& x) { return fc(x); }
  nn::Linear fc{nullptr};
};
TAPER_MODULE(Net);

TEST(Hunt, AParameterThatCameInBadIsNamed) {
  Net net;
  std::uint32_t at = 0;
  {
    const NoGradGuard no_grad;
    at = __LINE__ + 1;
    net->fc->weight.fill_(kInf);
  }
  const Hunt hunt;
  const Tensor x = ones({4, 3});
  EXPECT_TRUE(says(message_of([&] { net->forward(x).sum().backward(); }),
                   {"it came from outside in forward", "scope fc",
                    "operand 1 was so before: fc.weight, last written by fill_ at " + line(at)}));
}

TEST(Hunt, AParameterThatTurnsToNaNIsNamedToo) {
  Net net;
  {
    const NoGradGuard no_grad;
    net->fc->weight.fill_(kInf);
  }
  const Hunt hunt;
  const Tensor x = zeros({4, 3});
  EXPECT_TRUE(says(message_of([&] { net->forward(x).sum().backward(); }),
                   {"it became nan in forward", "was so before: fc.weight", "0 * inf"}));
}

TEST(Hunt, DataThatCameInBadIsNamed) {
  Net net;
  const Tensor x = tensor({1.0, std::nan(""), 2.0}).view({1, 3});
  const Hunt hunt;
  EXPECT_TRUE(says(message_of([&] { net->forward(x).sum().backward(); }),
                   {"came from outside", "operand 0 was so before: a tensor without gradient"}));
}

TEST(Hunt, AStepThatOverflowsIsNamed) {
  Net net;
  const Hunt hunt;
  optim::SGD sgd(net->parameters(), 1e38);
  const Tensor x = full({4, 3}, 100.0);
  net->forward(x).sum().backward();
  const std::uint32_t at = __LINE__ + 1;
  sgd.step();
  EXPECT_TRUE(says(message_of([&] { net->forward(x).sum().backward(); }),
                   {"fc.", "last written by SGD at " + line(at)}));
}

TEST(Hunt, ReportsOnceWhenAsked) {
  const Hunt hunt(Hunt::Found::kReport);
  EXPECT_EQ(hunt.report(), "every number so far is finite");
  const Tensor x = leaf({0, 1});
  const std::uint32_t at = __LINE__ + 1;
  const Tensor y = x.log();
  testing::internal::CaptureStderr();
  y.sum().backward({}, true);
  y.mean().backward();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(says(log, {"the loss", "log at " + line(at)}));
  EXPECT_EQ(log.find("the loss", log.find("the loss") + 1), std::string::npos);
  EXPECT_TRUE(says(hunt.report(), {"the loss", "log at " + line(at)}));
  EXPECT_TRUE(std::isinf(x.grad()[0].item<double>()));
}

TEST(Hunt, AHookMayMendAGradient) {
  const Hunt hunt;
  const Tensor x = leaf({0, 1});
  x.register_hook([](const Tensor& g) { return g.clamp(-1, 1); });
  x.sqrt().sum().backward();
  EXPECT_EQ(x.grad()[0].item<double>(), 1);
}

TEST(Hunt, GradientsThatAreGivenAreLookedAt) {
  const Hunt hunt;
  const Tensor x = leaf({1, 2}), y = x * 2;
  EXPECT_TRUE(says(message_of([&] {
                     y.backward(tensor({1.0, kInf}));
                   }),
                   {"the gradient that backward was given"}));
}

TEST(Hunt, BegunTooLateItSaysSo) {
  const Tensor x = leaf({0, 1}), loss = x.log().sum();
  const Hunt hunt;
  EXPECT_TRUE(
      says(message_of([&] { loss.backward(); }), {"the loss", "Begin the hunt before forward"}));
}

TEST(Hunt, StepsToTheBadGradientAndStands) {
  const Hunt hunt;
  const Tensor x = leaf({0, 1}), loss = x.sqrt().sum();
  Backward pass(loss);
  ASSERT_TRUE(pass.step());
  ASSERT_TRUE(pass.step());
  const std::size_t before = pass.position();
  EXPECT_TRUE(says(message_of([&] { pass.step(); }), {"the backward of #", "sqrt"}));
  EXPECT_EQ(pass.position(), before);
}

TEST(Hunt, MemoryThatIsWrittenAgainIsForgotten) {
  const Hunt hunt;
  Tensor x = tensor({0.0, 1.0});
  x.log_();
  x.fill_(1);
  const Tensor w = leaf({1, 2});
  (x * w).sum().backward();
  EXPECT_EQ(w.grad()[0].item<double>(), 1);
}

TEST(Hunt, FollowsTheNumbersOnADevice) {
  const Device device(kCUDA, 0);
  Tensor x;
  try {
    x = tensor({1.0, 0.0}).to(device).requires_grad_();
  } catch (const Error&) {
    GTEST_SKIP() << "no CUDA";
  }
  const Hunt hunt;
  const std::uint32_t at = __LINE__ + 1;
  const Tensor y = x.log();
  EXPECT_TRUE(says(message_of([&] { (y * 2).sum().backward(); }),
                   {"log at " + line(at), "element (1)", "became -inf", ": 0 there"}));
}

}  // namespace
}  // namespace taper
