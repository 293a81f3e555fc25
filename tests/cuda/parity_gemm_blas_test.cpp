// Matrix products by cuBLAS, and in tf32, against the CPU's.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "taper/core/precision.h"
#include "taper/cuda/gemm_blas.h"
#include "taper/tests/cuda/twin.h"

#ifdef TAPER_CUDA_EMULATED
#include "taper/cuda/emulated/failing.h"
#endif

namespace taper::cuda {
namespace {

struct Case {
  DType dtype;
  std::int64_t batch, m, n, k;
};

// How the matrices of an operand lie: each way that cuBLAS takes.
struct Place {
  bool by_columns, has_gaps, is_shared;
};

constexpr Place kPlaces[] = {{false, false, false}, {true, false, false}, {false, true, false},
                             {true, true, false},   {false, false, true}, {true, true, true}};

Layout layout_of(Place place, std::int64_t batch, std::int64_t rows, std::int64_t cols) {
  Layout out = contiguous_layout({batch, rows, cols});
  const std::int64_t inner = place.by_columns ? rows : cols, outer = place.by_columns ? cols : rows;
  const std::int64_t step = inner + (place.has_gaps ? 3 : 0);
  out.strides[1] = place.by_columns ? 1 : step;
  out.strides[2] = place.by_columns ? step : 1;
  out.strides[0] = place.is_shared ? 0 : step * outer + (place.has_gaps ? 2 : 0);
  return out;
}

// Small integers: their sums are exact, so that no order of summing shows.
void make_small(Twin& twin, Random& random) {
  const Out view = twin.on_cpu<Out>();
  visit_dtype(view.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Layout& l = *view.layout;
    for (std::int64_t i = 0; i < l.sizes[0] * l.sizes[1] * l.sizes[2]; ++i) {
      const std::int64_t at = i / (l.sizes[1] * l.sizes[2]) * l.strides[0] +
                              i / l.sizes[2] % l.sizes[1] * l.strides[1] +
                              i % l.sizes[2] * l.strides[2];
      view.as<T>()[at] = static_cast<T>(static_cast<float>(static_cast<int>(random() % 9) - 4));
    }
  });
  twin.upload();
}

// Whether cuBLAS took it; then all of `out`'s storage is as on the CPU.
bool multiply(const Case& c,
              const Layout& a_lies,
              const Layout& b_lies,
              const Layout& c_lies,
              const Layout* bias_lies,
              Activation activation = Activation::kNone) {
  Random random(7);
  Twin a(c.dtype, a_lies, random), b(c.dtype, b_lies, random), out(c.dtype, c_lies, random);
  Twin bias(c.dtype, bias_lies != nullptr ? *bias_lies : contiguous_layout({1, 1, 1}), random);
  for (Twin* twin : {&a, &b, &bias}) make_small(*twin, random);
  const bool biased = bias_lies != nullptr;
  const Exec host(kCPU), device(Device(kCUDA, 0));
  const bool taken = blas_matmul(device, out.on_cuda<Out>(), a.on_cuda<In>(), b.on_cuda<In>(),
                                 biased ? bias.on_cuda<In>() : In{}, activation);
  if (taken) {
    cpu_kernels().matmul(host, out.on_cpu<Out>(), a.on_cpu<In>(), b.on_cpu<In>(),
                         biased ? bias.on_cpu<In>() : In{}, activation);
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(out.difference(), "");
  return taken;
}

TEST(ParityGemmBlas, EveryWayThatMatricesLie) {
  int count = 0;
  for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    for (const Case& c : {Case{dtype, 1, 1, 1, 1}, Case{dtype, 2, 3, 4, 5}, Case{dtype, 3, 1, 7, 2},
                          Case{dtype, 2, 6, 1, 3}, Case{dtype, 1, 33, 40, 100}}) {
      if ((dtype == kFloat64 || dtype == kBFloat16) && c.batch != 2) continue;
      const Layout biases[] = {contiguous_layout({1, 1, c.n}), contiguous_layout({1, c.m, 1}),
                               contiguous_layout({c.batch, c.m, c.n})};
      for (const Place& a : kPlaces) {
        for (const Place& b : kPlaces) {
          for (const Place& to : kPlaces) {
            if (to.is_shared) continue;
            const int choice = count++ % 4;
            SCOPED_TRACE(str(dtype, " (", c.batch, ", ", c.m, ", ", c.n, ", ", c.k, "), a at ",
                             &a - kPlaces, ", b at ", &b - kPlaces, ", c at ", &to - kPlaces,
                             ", bias ", choice));
            EXPECT_TRUE(multiply(c, layout_of(a, c.batch, c.m, c.k),
                                 layout_of(b, c.batch, c.k, c.n), layout_of(to, c.batch, c.m, c.n),
                                 choice < 3 ? &biases[choice] : nullptr,
                                 count % 3 == 0 ? Activation::kRelu : Activation::kNone));
          }
        }
      }
    }
  }
}

// By how much cuBLAS's product, with an activation, differs from the CPU's at most; `lies` has no
// gaps.
double largest_error(DType dtype, const Layout& lies, Activation activation, bool biased) {
  Random random(3);
  Twin a(dtype, contiguous_layout({1, 9, 4}), random), bias(dtype, contiguous_layout({7}), random);
  Twin b(dtype, contiguous_layout({1, 4, 7}), random), out(dtype, lies, random);
  for (Twin* twin : {&a, &b, &bias}) twin->tame(random);
  const Exec host(kCPU), device(Device(kCUDA, 0));
  EXPECT_TRUE(blas_matmul(device, out.on_cuda<Out>(), a.on_cuda<In>(), b.on_cuda<In>(),
                          biased ? bias.on_cuda<In>() : In{}, activation));
  cpu_kernels().matmul(host, out.on_cpu<Out>(), a.on_cpu<In>(), b.on_cpu<In>(),
                       biased ? bias.on_cpu<In>() : In{}, activation);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return visit_dtype(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T got[9 * 7];
    EXPECT_EQ(cudaMemcpy(got, out.on_cuda<In>().data, sizeof(got), cudaMemcpyDeviceToHost),
              cudaSuccess);
    double largest = 0;
    for (int i = 0; i < 9 * 7; ++i) {
      const double want = static_cast<double>(out.on_cpu<In>().template as<T>()[i]);
      largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want));
    }
    return largest;
  });
}

TEST(ParityGemmBlas, EveryActivationMeansWhatItsSlotMeans) {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    const double near = dtype == kFloat64   ? 1e-14
                        : dtype == kFloat32 ? 4e-6
                        : dtype == kFloat16 ? 1e-2
                                            : 8e-2;
    for (const Activation activation : {Activation::kGelu, Activation::kGeluTanh}) {
      for (const bool biased : {false, true}) {
        for (const Lie lie : {Lie::kRowMajor, Lie::kReversed}) {
          SCOPED_TRACE(str(dtype, ", ", static_cast<int>(activation), ", ", biased));
          EXPECT_LT(largest_error(dtype, lay(lie, {1, 9, 7}), activation, biased), near);
        }
      }
    }
  }
}

// relu is max(x, 0) in the texts of cuBLASLt, which do not say what becomes of a NaN; ours stays.
TEST(ParityGemmBlas, ReluKeepsNaNs) {
  Random random(4);
  const Layout row = contiguous_layout({1, 1, 8}), square = contiguous_layout({1, 8, 8});
  Twin a(kFloat32, row, random), b(kFloat32, square, random), out(kFloat32, row, random);
  const Exec host(kCPU), device(Device(kCUDA, 0));
  cpu_kernels().fill(host, a.on_cpu<Out>(), 1);
  cpu_kernels().fill(host, b.on_cpu<Out>(), -1);
  b.on_cpu<Out>().as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  a.upload();
  b.upload();
  EXPECT_TRUE(blas_matmul(device, out.on_cuda<Out>(), a.on_cuda<In>(), b.on_cuda<In>(), In{},
                          Activation::kRelu));
  cpu_kernels().matmul(host, out.on_cpu<Out>(), a.on_cpu<In>(), b.on_cpu<In>(), In{},
                       Activation::kRelu);
  EXPECT_EQ(out.difference(), "");
}

TEST(ParityGemmBlas, LeavesTheRestToTheTiles) {
  const auto takes = [](DType dtype, std::int64_t k, Lie a, Lie b, Lie c) {
    return multiply({dtype, 2, 4, 5, k}, lay(a, {2, 4, k}), lay(b, {2, k, 5}), lay(c, {2, 4, 5}),
                    nullptr);
  };
  const Lie rows = Lie::kRowMajor;
  EXPECT_TRUE(takes(kFloat32, 3, rows, rows, rows));
  EXPECT_FALSE(takes(kFloat32, 0, rows, rows, rows));
  for (const DType dtype : {kInt64, kInt32, kUInt8, kBool}) {
    EXPECT_FALSE(takes(dtype, 3, rows, rows, rows));
  }
  for (const Lie other : {Lie::kReversed, Lie::kGaps, Lie::kBackwards, Lie::kOneNumber}) {
    EXPECT_FALSE(takes(kFloat32, 3, other, rows, rows));
    EXPECT_FALSE(takes(kFloat32, 3, rows, other, rows));
    if (other != Lie::kOneNumber) {
      EXPECT_FALSE(takes(kFloat32, 3, rows, rows, other));
    }
  }
}

#ifdef TAPER_CUDA_EMULATED
TEST(ParityGemmBlas, TheSwitchDecidesWhoMultiplies) {
  Random random(8);
  const Layout layout = contiguous_layout({1, 8, 8});
  Twin a(kFloat32, layout, random), out(kFloat32, layout, random);
  const bool before = blas_selected();
  for (const bool on : {true, false}) {
    select_blas(on);
    emulated::count_calls();
    {
      const Exec exec(Device(kCUDA, 0));
      cuda_kernels().matmul(exec, out.on_cuda<Out>(), a.on_cuda<In>(), a.on_cuda<In>(), In{},
                            Activation::kNone);
    }
    EXPECT_EQ(emulated::counted_calls()["cublasGemmStridedBatchedEx"], on ? 1 : 0);
    EXPECT_EQ(emulated::counted_calls()["cudaLaunchKernel"], on ? 0 : 1);
  }
  select_blas(before);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// The calls that one product makes, as "Lt", "blas" and launches of our own, in numbers.
std::string calls_of(DType dtype, const Layout& bias_lies, bool biased, Activation activation) {
  Random random(8);
  const Layout layout = contiguous_layout({1, 8, 8});
  Twin a(dtype, layout, random), bias(dtype, bias_lies, random), out(dtype, layout, random);
  const Exec exec(Device(kCUDA, 0));
  emulated::count_calls();
  blas_matmul(exec, out.on_cuda<Out>(), a.on_cuda<In>(), a.on_cuda<In>(),
              biased ? bias.on_cuda<In>() : In{}, activation);
  auto calls = emulated::counted_calls();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return str(calls["cublasLtMatmul"], calls["cublasGemmStridedBatchedEx"],
             calls["cudaLaunchKernel"]);
}

TEST(ParityGemmBlas, LtTakesWhatItEndsTheSameWay) {
  const Layout row = contiguous_layout({8}), column = contiguous_layout({8, 1});
  const auto none = Activation::kNone, relu = Activation::kRelu, gelu = Activation::kGelu,
             gelu_tanh = Activation::kGeluTanh;
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    EXPECT_EQ(calls_of(dtype, row, false, none), "010");
    EXPECT_EQ(calls_of(dtype, row, true, none), "100");
    EXPECT_EQ(calls_of(dtype, row, true, relu), "100");
    EXPECT_EQ(calls_of(dtype, row, false, relu), "100");
    EXPECT_EQ(calls_of(dtype, row, true, gelu_tanh), "100");
    EXPECT_EQ(calls_of(dtype, row, true, gelu), "101");
    EXPECT_EQ(calls_of(dtype, row, false, gelu), "011");
    EXPECT_EQ(calls_of(dtype, column, true, none), "011");  // the bias is copied first
    EXPECT_EQ(calls_of(dtype, column, true, relu), "012");
  }
  EXPECT_EQ(calls_of(kFloat64, row, true, relu), "012");
}

TEST(ParityGemmBlas, LtIsAskedOnceForEachProduct) {
  const Layout row = contiguous_layout({1, 1, 5});
  const auto asks = [&](std::int64_t m, Activation activation) {
    emulated::count_calls();
    const Case c{kFloat32, 1, m, 5, 3};
    EXPECT_TRUE(multiply(c, contiguous_layout({1, m, 3}), contiguous_layout({1, 3, 5}),
                         contiguous_layout({1, m, 5}), &row, activation));
    return emulated::counted_calls()["cublasLtMatmulAlgoGetHeuristic"];
  };
  EXPECT_EQ(asks(71, Activation::kNone), 1);
  EXPECT_EQ(asks(71, Activation::kNone), 0);
  EXPECT_EQ(asks(71, Activation::kRelu), 1);
  EXPECT_EQ(asks(72, Activation::kRelu), 1);
  EXPECT_EQ(asks(71, Activation::kRelu), 0);
  // More products than are remembered: of vectors of every length.
  Random random(5);
  Twin x(kFloat32, contiguous_layout({1100}), random);
  Twin out(kFloat32, contiguous_layout({1, 1, 1}), random);
  for (std::int64_t k = 1; k <= 1100; ++k) {
    const Layout across = contiguous_layout({1, 1, k}), down = contiguous_layout({1, k, 1});
    const Exec exec(Device(kCUDA, 0));
    In a = x.on_cuda<In>(), b = a;
    a.layout = &across;
    b.layout = &down;
    EXPECT_TRUE(blas_matmul(exec, out.on_cuda<Out>(), a, b, In{}, Activation::kRelu));
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(asks(71, Activation::kRelu), 1);
}

TEST(ParityGemmBlas, WhatLtDoesNotTakeIsForCublas) {
  constexpr int kNotSupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED
  const Layout row = contiguous_layout({1, 1, 5});
  for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
    const Case c{kFloat32, 2, 61, 5, 3};
    emulated::fail_call("cublasLtMatmulAlgoGetHeuristic", 1, kNotSupported);
    for (int time = 0; time < 2; ++time) {
      EXPECT_TRUE(multiply(c, contiguous_layout({2, 61, 3}), contiguous_layout({2, 3, 5}),
                           contiguous_layout({2, 61, 5}), &row, activation));
    }
    EXPECT_EQ(emulated::counted_calls()["cublasGemmStridedBatchedEx"], 2);
    EXPECT_EQ(emulated::counted_calls()["cublasLtMatmul"], 0);
  }
}
#endif

// --- tf32 ---

class Tf32 : public testing::Test {
 protected:
  Tf32() { set_float32_matmul_precision("high"); }

  ~Tf32() override { set_float32_matmul_precision("highest"); }
};

TEST_F(Tf32, RoundsToTenBitsTiesAwayFromZero) {
  const float ulp = 1.0f / 1024, inf = std::numeric_limits<float>::infinity();
  const float cases[][2] = {{1, 1},
                            {1 + ulp / 2, 1 + ulp},
                            {-1 - ulp / 2, -1 - ulp},
                            {1 + ulp * 0.4999f, 1},
                            {1 + ulp * 1.5f, 1 + 2 * ulp},
                            {2 - ulp / 4, 2},
                            {0, 0},
                            {1e-45f, 0},
                            {std::numeric_limits<float>::max(), inf},
                            {-inf, -inf}};
  for (const auto& [x, rounded] : cases) {
    EXPECT_EQ(round_to_tf32(x), rounded) << x;
  }
  EXPECT_NE(round_to_tf32(std::numeric_limits<float>::quiet_NaN()),
            std::numeric_limits<float>::quiet_NaN());
}

// f32 rounds on both machines alike, by tiles; the other types do not.
TEST_F(Tf32, TheTilesGiveTheBitsOfTheCpu) {
  const bool before = blas_selected();
  select_blas(false);
  Random random(9);
  for (const Place& place : kPlaces) {
    for (const DType dtype : {kFloat32, kFloat64, kInt32}) {
      for (const Case& c : {Case{dtype, 3, 5, 9, 17}, Case{dtype, 1, 130, 70, 300},
                            Case{dtype, 2, 1, 4, 0}, Case{dtype, 2, 3, 1, 40}}) {
        SCOPED_TRACE(str(dtype, " (", c.m, ", ", c.n, ", ", c.k, ")"));
        Twin a(c.dtype, layout_of(place, c.batch, c.m, c.k), random);
        Twin b(c.dtype, layout_of(place, c.batch, c.k, c.n), random);
        Twin bias(c.dtype, contiguous_layout({c.n}), random);
        Twin out(c.dtype, contiguous_layout({c.batch, c.m, c.n}), random);
        Both<>::run(
            &Kernels::matmul,
            [&](const auto& matmul, const Exec& exec) {
              matmul(exec, out.on_cpu<Out>(), a.on_cpu<In>(), b.on_cpu<In>(), bias.on_cpu<In>(),
                     Activation::kNone);
            },
            [&](const auto& matmul, const Exec& exec) {
              matmul(exec, out.on_cuda<Out>(), a.on_cuda<In>(), b.on_cuda<In>(), bias.on_cuda<In>(),
                     Activation::kNone);
            });
        EXPECT_EQ(out.difference(), "");
      }
    }
  }
  select_blas(before);
}

// 1 + 2^-11 rounds up to 1 + 2^-10 and 1 - 2^-12 to 1; f32 would keep both.
TEST_F(Tf32, OperandsAreRoundedAndTheBiasIsNot) {
  const float x = 1 + 1.0f / 2048, y = 1 - 1.0f / 4096, bias = x;
  float out = 0;
  const Layout one = contiguous_layout({1, 1, 1});
  const Exec exec(kCPU);
  const auto multiply_on_cpu = [&] {
    float a = x, b = y, c = bias;
    cpu_kernels().matmul(exec, Out{{&out, &one, kFloat32}}, In{{&a, &one, kFloat32}},
                         In{{&b, &one, kFloat32}}, In{{&c, &one, kFloat32}}, Activation::kNone);
    return out;
  };
  EXPECT_EQ(multiply_on_cpu(), 1 + 1.0f / 1024 + bias);
  EXPECT_EQ(get_float32_matmul_precision(), "high");
  set_float32_matmul_precision("highest");
  EXPECT_NE(multiply_on_cpu(), 1 + 1.0f / 1024 + bias);
  EXPECT_EQ(get_float32_matmul_precision(), "highest");
  EXPECT_THROW(set_float32_matmul_precision("low"), Error);
}

#ifdef TAPER_CUDA_EMULATED
// A real one rounds as it likes.
TEST_F(Tf32, CublasIsAskedForIt) {
  Random random(10);
  const Layout one = contiguous_layout({1, 1, 1});
  Twin x(kFloat32, one, random), y(kFloat32, one, random), out(kFloat32, one, random);
  const Exec host(kCPU);
  cpu_kernels().fill(host, x.on_cpu<Out>(), 1 + 1.0 / 2048);
  cpu_kernels().fill(host, y.on_cpu<Out>(), 1);
  x.upload();
  y.upload();
  for (const bool tf32 : {true, false}) {
    set_float32_matmul_precision(tf32 ? "high" : "highest");
    const Exec device(Device(kCUDA, 0));
    EXPECT_TRUE(blas_matmul(device, out.on_cuda<Out>(), x.on_cuda<In>(), y.on_cuda<In>(), In{},
                            Activation::kNone));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    cpu_kernels().fill(host, out.on_cpu<Out>(), tf32 ? 1 + 1.0 / 1024 : 1 + 1.0 / 2048);
    EXPECT_EQ(out.difference(), "");
  }
}
#endif

}  // namespace
}  // namespace taper::cuda
