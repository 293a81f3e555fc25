// Patches as columns and pixel shuffles against loops, and their derivatives.
#include "taper/autograd/ops/conv.h"
#include "taper/autograd/ops/matmul.h"
#include "taper/autograd/ops/patches.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {
namespace {

using Inputs = std::vector<Tensor>;

// A convolution is a product of the weight with the patches.
TEST(Im2col, IsTheMatrixOfAConvolution) {
  const Tensor x = sample({2, 3, 7, 6}), w = sample({4, 3, 2, 3}, 2);
  const Tensor y = conv2d(x, w, {}, {2, 1}, {1, 2}, {1, 2});
  const Tensor columns = im2col(x, {2, 3}, {1, 2}, {1, 2}, {2, 1});
  expect_close(matmul(w.view({4, 18}), columns).view(y.sizes()), y);
  expect_close(im2col(x.select(0, 1), 2), im2col(x, 2).select(0, 1));
}

TEST(Im2col, GradientsAndErrors) {
  expect_gradients([](const Inputs& in) { return im2col(in[0], 2, 1, 1, 2); },
                   {leaf({1, 2, 3, 4})});
  expect_error([] { im2col(ones({1, 1, 2, 2}), 3); }, {"(3)", "(1, 1, 2, 2)"});
}

TEST(PixelShuffle, ThereAndBack) {
  const Tensor x = sample({2, 8, 2, 3});
  const Tensor y = pixel_shuffle(x, 2);
  ASSERT_TRUE(y.sizes() == IntArrayRef({2, 2, 4, 6}));
  expect_close(y.slice(2, 1, std::nullopt, 2).slice(3, 0, std::nullopt, 2).select(1, 1),
               x.select(1, 6));
  expect_close(pixel_unshuffle(y, 2), x);
  expect_gradients([](const Inputs& in) { return pixel_shuffle(in[0], 2); }, {leaf({4, 1, 2})});
  EXPECT_TRUE(pixel_shuffle(zeros({0, 4, 2, 2}), 2).sizes() == IntArrayRef({0, 1, 4, 4}));
  expect_error([&] { pixel_shuffle(x, 3); }, {"(2, 8, 2, 3)", "3"});
}

}  // namespace
}  // namespace taper::testing
