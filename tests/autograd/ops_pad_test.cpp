// Padding in its four modes, its derivative, composite activations.
#include "taper/autograd/ops/activation.h"
#include "taper/autograd/ops/pad.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Inputs = std::vector<Tensor>;

TEST(Pad, Modes) {
  const Tensor x = tensor({1., 2., 3.});
  EXPECT_EQ(values(pad(x, {2, 1}, kConstant, 9)), (Numbers{9, 9, 1, 2, 3, 9}));
  EXPECT_EQ(values(pad(x, {-1, 2})), (Numbers{2, 3, 0, 0}));
  EXPECT_EQ(values(pad(x, {2, 1}, kReflect)), (Numbers{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(values(pad(x, {2, 1}, kReplicate)), (Numbers{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(values(pad(x, {2, 1}, kCircular)), (Numbers{2, 3, 1, 2, 3, 1}));
}

TEST(Pad, CircularWrapsWhatCroppingLeaves) {
  EXPECT_EQ(values(pad(tensor({1., 2., 3., 4.}), {-1, 2}, kCircular)), (Numbers{2, 3, 4, 2, 3}));
}

TEST(Pad, LastDimFirst) {
  const Tensor y = pad(ones({2, 2}), {1, 0, 0, 1});
  EXPECT_TRUE(y.sizes() == IntArrayRef({3, 3}));
  EXPECT_EQ(values(y), (Numbers{0, 1, 1, 0, 1, 1, 0, 0, 0}));
}

TEST(Pad, Gradients) {
  for (const PadMode mode : {kConstant, kReflect, kReplicate, kCircular}) {
    expect_gradients(
        [=](const Inputs& in) {
          return pad(in[0], {1, 2, 2, 0}, mode, 0.5);
        },
        {leaf({3, 4})});
  }
  expect_gradients([](const Inputs& in) { return pad(in[0], {-1, 2}); }, {leaf({2, 3})});
}

TEST(Pad, Errors) {
  const Tensor x = ones({2, 3});
  expect_error([&] { pad(x, {1, 1, 1}); }, {"(1, 1, 1)", "(2, 3)", "ops_pad_test.cpp"});
  expect_error([&] { pad(x, {3, 0}, kReflect); }, {"(3, 0)", "dim 1"});
  expect_error([&] { pad(x, {-2, -2}); }, {"crops"});
}

TEST(Activation, Values) {
  const Tensor x = tensor({-4., -1., -0.25, 0., 0.25, 1., 4., 8.}, kFloat64);
  const auto map = [&](auto f) {
    Numbers out;
    for (const double v : values(x)) out.push_back(f(v));
    return tensor(out, kFloat64);
  };
  expect_close(relu6(x), map([](double v) { return std::fmin(std::fmax(v, 0), 6); }));
  expect_close(celu(x, 2), map([](double v) { return v > 0 ? v : 2 * std::expm1(v / 2); }));
  expect_close(mish(x), map([](double v) { return v * std::tanh(std::log1p(std::exp(v))); }));
  expect_close(softsign(x), map([](double v) { return v / (1 + std::fabs(v)); }));
  expect_close(tanhshrink(x), map([](double v) { return v - std::tanh(v); }));
  expect_close(hardshrink(x), map([](double v) { return std::fabs(v) <= 0.5 ? 0 : v; }));
  expect_close(softshrink(x), map([](double v) {
                 return v > 0.5 ? v - 0.5 : v < -0.5 ? v + 0.5 : 0;
               }));
  expect_close(hardsigmoid(x), relu6(x + 3) / 6);
  expect_close(hardswish(x), x * relu6(x + 3) / 6);
  expect_close(threshold(x, 0.5, 7), map([](double v) { return v > 0.5 ? v : 7; }));
  expect_close(glu(x), x.slice(0, 0, 4) * sigmoid(x.slice(0, 4)));
  expect_close(prelu(x, tensor(0.5, kFloat64)), map([](double v) { return v > 0 ? v : v / 2; }));
  expect_close(selu(x), map([](double v) {
                 return 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * std::expm1(v));
               }));
}

TEST(Activation, Gradients) {
  const auto all = [](const Inputs& in) {
    const Tensor& x = in[0];
    return relu6(x) + celu(x, 2) + selu(x) + mish(x) + softsign(x) + tanhshrink(x) + hardshrink(x) +
           softshrink(x) + hardsigmoid(x) + hardswish(x) + threshold(x, 0.5, 1) +
           prelu(x.unsqueeze(0), in[1]).squeeze(0);
  };
  expect_gradients(all, {leaf({12}, 1, -5, 8), leaf(tensor(0.3, kFloat64))});
}

// Far out and at the joints no branch that is not taken gives NaN.
TEST(Activation, GradientsAtTheEnds) {
  const Tensor x = leaf(tensor({1000., 0., -1000.}, kFloat64));
  celu(x).sum().backward();
  EXPECT_EQ(values(x.grad()), (Numbers{1, 1, 0}));
}

}  // namespace
}  // namespace taper::testing
