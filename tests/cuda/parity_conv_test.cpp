// Convolution, pooling and their gradients: the CUDA column gives the bits of the CPU column.
#include "taper/tests/cuda/parity.h"

namespace taper::cuda {
namespace {

using Sizes64 = std::vector<std::int64_t>;

constexpr DType kFloating[] = {kFloat64, kFloat32, kFloat16, kBFloat16};

// How a 4-d operand lies: channels_last, then as others do. An output takes the first five.
constexpr size_t kLies = 7, kOutputLies = 5;

Layout lay4(size_t lie, const Sizes64& sizes) {
  lie %= kLies;
  if (lie == 0) return contiguous_layout(sizes, MemoryFormat::kChannelsLast);
  return lay(kEveryLie[lie - 1], sizes);
}

Layout lay4_out(size_t lie, const Sizes64& sizes) {
  return lay4(lie % kOutputLies, sizes);
}

std::int64_t length(const Window2d& window, int dim, std::int64_t in) {
  const std::int64_t reach = window.dilation[dim] * (window.kernel[dim] - 1) + 1;
  const std::int64_t padded = in + 2 * window.padding[dim];
  return padded < reach ? 0 : (padded - reach) / window.stride[dim] + 1;
}

std::string text_of(const Window2d& w) {
  return str("kernel ", w.kernel[0], "x", w.kernel[1], " stride ", w.stride[0], "x", w.stride[1],
             " padding ", w.padding[0], "x", w.padding[1], " dilation ", w.dilation[0], "x",
             w.dilation[1], " groups ", w.groups);
}

void check_conv(
    DType dtype, const Sizes64& x_sizes, std::int64_t outputs, const Window2d& window, size_t lie) {
  SCOPED_TRACE(
      str(dtype, " ", IntArrayRef(x_sizes), " to ", outputs, ", ", text_of(window), ", lie ", lie));
  Random random(lie + 1);
  const Sizes64 w_sizes = {outputs, x_sizes[1] / window.groups, window.kernel[0], window.kernel[1]};
  const Sizes64 y_sizes = {x_sizes[0], outputs, length(window, 0, x_sizes[2]),
                           length(window, 1, x_sizes[3])};
  Twin x(dtype, lay4(lie, x_sizes), random), w(dtype, lay4(lie * 3 + 1, w_sizes), random);
  Twin grad(dtype, lay4(lie * 2, y_sizes), random);
  Twin bias(dtype, lay(kEveryLie[lie % 6], {outputs}), random);
  Twin y(dtype, lay4_out(lie, y_sizes), random), dx(dtype, lay4_out(lie + 3, x_sizes), random);
  Twin dw(dtype, lay4_out(lie + 1, w_sizes), random);
  for (Twin* twin : {&x, &w, &grad, &bias}) twin->tame(random);
  check(&Kernels::conv2d, y, in(x), in(w), in(bias), window);
  check(&Kernels::conv2d, y, in(x), in(w), In{}, window);
  check(&Kernels::conv2d_grad_input, dx, in(grad), in(w), window);
  check(&Kernels::conv2d_grad_weight, dw, in(grad), in(x), window);
}

std::vector<Window2d> every_window() {
  std::vector<Window2d> windows;
  for (const std::int64_t kernel : {1, 3}) {
    for (const std::int64_t stride : {1, 2, 3}) {
      for (const std::int64_t padding : {0, 1}) {
        for (const std::int64_t dilation : {1, 2}) {
          for (const std::int64_t groups : {1, 2, 6}) {
            Window2d window;
            window.kernel[0] = kernel;
            window.kernel[1] = kernel > 1 ? 2 : 1;
            window.stride[0] = stride;
            window.stride[1] = stride > 1 ? stride - 1 : 2;
            window.padding[0] = padding;
            window.padding[1] = 2 * padding;
            window.dilation[0] = dilation;
            window.dilation[1] = 3 - dilation;
            window.groups = groups;
            windows.push_back(window);
          }
        }
      }
    }
  }
  return windows;
}

TEST(ParityConv, EveryWindow) {
  size_t lie = 0;
  for (const Window2d& window : every_window()) {
    check_conv(kFloat32, {2, 6, 9, 8}, 12, window, lie++);
    check_conv(kFloating[lie % 4], {3, 6, 7, 6}, 6, window, lie + 2);
  }
}

TEST(ParityConv, EveryDTypeAndLie) {
  Window2d window;
  window.kernel[0] = window.kernel[1] = 3;
  window.padding[0] = window.padding[1] = 1;
  for (const DType dtype : kFloating) {
    for (size_t lie = 0; lie < kLies; ++lie) {
      window.stride[0] = lie % 2 == 0 ? 1 : 2;
      check_conv(dtype, {2, 20, 6, 5}, 18, window, lie);
    }
  }
}

TEST(ParityConv, WithoutElements) {
  Window2d window;
  window.kernel[0] = window.kernel[1] = 2;
  check_conv(kFloat32, {0, 3, 5, 5}, 4, window, 1);
  check_conv(kFloat32, {2, 0, 5, 5}, 4, window, 1);
  check_conv(kFloat32, {2, 3, 5, 5}, 0, window, 1);
  check_conv(kFloat32, {2, 3, 1, 5}, 4, window, 1);
  check_conv(kFloat32, {2, 3, 5, 5}, 8, window, 1);
}

// Enough tiles for the larger ones to be picked, with rests in every direction.
TEST(ParityConv, LargeTiles) {
  Window2d window;
  window.kernel[0] = window.kernel[1] = 3;
  for (size_t lie = 0; lie < 2; ++lie) {
    for (const DType dtype : {kFloat32, kBFloat16, kFloat64}) {
      check_conv(dtype, {1, 3, 70, 70}, 8, window, lie);
      check_conv(dtype, {1, 3, 70, 70}, 70, window, lie);
    }
    window.padding[0] = window.padding[1] = 1;
    check_conv(kFloat32, {2, 470, 3, 4}, 70, window, lie);
    window.padding[0] = window.padding[1] = 0;
  }
}

// A pad is a 0 that an infinite weight meets, and a sum of nothing but -0 is not 0.
TEST(ParityConv, InfinitiesAndSignedZeros) {
  Window2d window;
  window.kernel[0] = window.kernel[1] = 3;
  window.padding[0] = window.padding[1] = 2;
  for (const DType dtype : kFloating) {
    for (const std::int64_t outputs : {2, 9}) {
      SCOPED_TRACE(str(dtype, " to ", outputs));
      Random random(5);
      Twin x(dtype, lay4(1, {2, 2, 5, 4}), random), w(dtype, lay4(1, {outputs, 2, 3, 3}), random);
      Twin y(dtype, lay4(1, {2, outputs, 7, 6}), random);
      Twin bias(dtype, lay(Lie::kRowMajor, {outputs}), random);
      Twin dx(dtype, lay4(1, {2, 2, 5, 4}), random), dw(dtype, lay4(1, {outputs, 2, 3, 3}), random);
      const auto check_all = [&] {
        check(&Kernels::conv2d, y, in(x), in(w), in(bias), window);
        check(&Kernels::conv2d_grad_input, dx, in(y), in(w), window);
        check(&Kernels::conv2d_grad_weight, dw, in(y), in(x), window);
      };
      check_all();
      for (Twin* twin : {&x, &w, &bias}) {
        twin->fill([&] { return random() % 3 == 0 ? 0.0 : random() % 2 == 0 ? -0.0 : 1.0; });
      }
      check_all();
      x.fill([] { return -0.0; });
      w.fill([] { return 1.0; });
      bias.fill([] { return -0.0; });
      check_all();
    }
  }
}

// --- pooling ---

void check_pool(DType dtype, const Sizes64& x_sizes, Window2d window, size_t lie) {
  SCOPED_TRACE(str(dtype, " ", IntArrayRef(x_sizes), ", ", text_of(window), ", lie ", lie));
  Random random(lie + 1);
  const Sizes64 y_sizes = {x_sizes[0], x_sizes[1], length(window, 0, x_sizes[2]),
                           length(window, 1, x_sizes[3])};
  Twin x(dtype, lay4(lie, x_sizes), random), grad(dtype, lay4(lie + 2, y_sizes), random);
  Twin y(dtype, lay4_out(lie, y_sizes), random), dx(dtype, lay4_out(lie + 1, x_sizes), random);
  Twin indices(kInt64, lay4_out(lie + 3, y_sizes), random);
  for (const bool tame : {false, true}) {
    if (tame) x.tame(random);
    if (tame) grad.tame(random);
    check(&Kernels::max_pool2d, y, As<Out>{indices}, in(x), window);
    compare(indices);
    check(&Kernels::max_pool2d, y, Out{}, in(x), window);
    check(&Kernels::max_pool2d_grad, dx, in(grad), in(indices));
    for (const std::int64_t divisor : {0, 5}) {
      for (const bool include : {false, true}) {
        window.divisor_override = divisor;
        window.count_include_pad = include;
        check(&Kernels::avg_pool2d, y, in(x), window);
        check(&Kernels::avg_pool2d_grad, dx, in(grad), window);
      }
    }
  }
}

TEST(ParityPool, EveryWindow) {
  size_t lie = 0;
  for (Window2d window : every_window()) {
    if (window.groups > 1) continue;
    if (window.kernel[0] == 1) window.kernel[1] = 4;
    if (window.padding[1] > window.kernel[1] / 2) window.padding[1] = window.kernel[1] / 2;
    if (window.padding[0] > window.kernel[0] / 2) window.padding[0] = window.kernel[0] / 2;
    for (const DType dtype : kFloating) check_pool(dtype, {2, 3, 9, 11}, window, lie++);
  }
}

TEST(ParityPool, Sizes) {
  Window2d window;
  window.kernel[0] = window.kernel[1] = 3;
  window.stride[0] = window.stride[1] = 2;
  for (size_t lie = 0; lie < kLies; ++lie) {
    check_pool(kFloat32, {1, 1, 3, 3}, window, lie);
    check_pool(kFloat32, {0, 2, 5, 5}, window, lie);
    check_pool(kFloat16, {2, 0, 5, 5}, window, lie);
    check_pool(kFloat32, {3, 40, 21, 18}, window, lie);
  }
}

// Places that no window could have recorded are summed in the order of grad as well.
TEST(ParityPool, MaxGradientOfAnyPlaces) {
  for (const DType dtype : kFloating) {
    for (size_t lie = 0; lie < kOutputLies; ++lie) {
      SCOPED_TRACE(str(dtype, ", lie ", lie));
      Random random(lie);
      Twin grad(dtype, lay4(lie, {2, 3, 9, 7}), random), dx(dtype, lay4(lie, {2, 3, 5, 6}), random);
      Twin indices(kInt64, lay4(lie + 1, {2, 3, 9, 7}), random);
      grad.tame(random);
      indices.fill([&] { return static_cast<double>(random() % 30); });
      check(&Kernels::max_pool2d_grad, dx, in(grad), in(indices));
    }
  }
}

}  // namespace
}  // namespace taper::cuda
