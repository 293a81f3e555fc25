// The CUDA column gives the bits of the CPU column, for every slot that it has.
#include "taper/tests/cuda/parity.h"

#include "taper/cuda/gemm_blas.h"

namespace taper::cuda {
namespace {

using Unary = Kernels::Unary Kernels::*;
using Unary2 = Kernels::Unary2 Kernels::*;
using Binary = Kernels::Binary Kernels::*;
using Binary2 = Kernels::Binary2 Kernels::*;

bool is_predicate(Binary slot) {
  for (const Binary predicate :
       {&Kernels::eq, &Kernels::ne, &Kernels::lt, &Kernels::le, &Kernels::gt, &Kernels::ge,
        &Kernels::logical_and, &Kernels::logical_or, &Kernels::logical_xor}) {
    if (slot == predicate) return true;
  }
  return false;
}

bool is_division(Binary slot) {
  return slot == &Kernels::floor_divide || slot == &Kernels::remainder || slot == &Kernels::fmod;
}

void check_binary(Binary slot) {
  Random random(1);
  for (const DType dtype : kEveryDType) {
    for (size_t lie = 0; lie < 6; ++lie) {
      const auto& shape = kShapes[lie % kShapes.size()];
      SCOPED_TRACE(where(slot, dtype, int(lie)));
      Twin out(is_predicate(slot) ? kBool : dtype, lay(kEveryLie[lie % 4], shape), random);
      Twin a(dtype, lay(kEveryLie[lie], shape), random);
      Twin b(dtype, lay(kEveryLie[(lie + 1) % 6], shape), random);
      if (is_division(slot) && is_integral(dtype)) b.replace_zeros();
      check(slot, out, in(a), in(b));
    }
  }
}

TEST(Parity, Binary) {
  for (const Binary slot : {&Kernels::add,
                            &Kernels::sub,
                            &Kernels::mul,
                            &Kernels::div,
                            &Kernels::floor_divide,
                            &Kernels::remainder,
                            &Kernels::fmod,
                            &Kernels::pow,
                            &Kernels::maximum,
                            &Kernels::minimum,
                            &Kernels::atan2,
                            &Kernels::eq,
                            &Kernels::ne,
                            &Kernels::lt,
                            &Kernels::le,
                            &Kernels::gt,
                            &Kernels::ge,
                            &Kernels::logical_and,
                            &Kernels::logical_or,
                            &Kernels::logical_xor,
                            &Kernels::bitwise_and,
                            &Kernels::bitwise_or,
                            &Kernels::bitwise_xor,
                            &Kernels::sigmoid_grad,
                            &Kernels::tanh_grad,
                            &Kernels::relu_grad,
                            &Kernels::silu_grad,
                            &Kernels::gelu_grad,
                            &Kernels::gelu_tanh_grad,
                            &Kernels::log_sigmoid_grad}) {
    check_binary(slot);
  }
}

TEST(Parity, Unary) {
  Random random(2);
  for (const Unary slot :
       {&Kernels::neg,        &Kernels::abs,         &Kernels::sign,        &Kernels::square,
        &Kernels::reciprocal, &Kernels::logical_not, &Kernels::bitwise_not, &Kernels::exp,
        &Kernels::expm1,      &Kernels::log,         &Kernels::log1p,       &Kernels::sqrt,
        &Kernels::rsqrt,      &Kernels::sin,         &Kernels::cos,         &Kernels::tan,
        &Kernels::asin,       &Kernels::acos,        &Kernels::atan,        &Kernels::sinh,
        &Kernels::cosh,       &Kernels::tanh,        &Kernels::erf,         &Kernels::floor,
        &Kernels::ceil,       &Kernels::round,       &Kernels::trunc,       &Kernels::sigmoid,
        &Kernels::relu,       &Kernels::silu,        &Kernels::gelu,        &Kernels::gelu_tanh,
        &Kernels::log_sigmoid}) {
    for (const DType dtype : kEveryDType) {
      for (size_t lie = 0; lie < 6; ++lie) {
        const auto& shape = kShapes[lie % kShapes.size()];
        SCOPED_TRACE(where(slot, dtype, int(lie)));
        const bool predicate = slot == &Kernels::logical_not;
        Twin out(predicate ? kBool : dtype, lay(kEveryLie[lie % 4], shape), random);
        Twin a(dtype, lay(kEveryLie[(lie + 3) % 6], shape), random);
        check(slot, out, in(a));
      }
    }
  }
}

TEST(Parity, ElementwiseWithParameters) {
  Random random(3);
  for (const DType dtype : kEveryDType) {
    for (const Unary2 slot :
         {&Kernels::clamp, &Kernels::leaky_relu, &Kernels::elu, &Kernels::softplus}) {
      SCOPED_TRACE(where(slot, dtype, 0));
      Twin out(dtype, lay(Lie::kGaps, {5, 41}), random);
      Twin a(dtype, lay(Lie::kRowMajor, {5, 41}), random);
      check(slot, out, in(a), -0.75, 1.5);
    }
    for (const Binary2 slot : {&Kernels::clamp_grad, &Kernels::leaky_relu_grad, &Kernels::elu_grad,
                               &Kernels::softplus_grad}) {
      SCOPED_TRACE(where(slot, dtype, 0));
      Twin out(dtype, lay(Lie::kRowMajor, {5, 41}), random);
      Twin a(dtype, lay(Lie::kStretched, {5, 41}), random);
      Twin b(dtype, lay(Lie::kReversed, {5, 41}), random);
      check(slot, out, in(a), in(b), -0.75, 1.5);
    }
    Twin out(dtype, lay(Lie::kReversed, {9, 4}), random);
    Twin condition(kBool, lay(Lie::kGaps, {9, 4}), random);
    Twin a(dtype, lay(Lie::kReversed, {9, 4}), random);
    Twin b(dtype, lay(Lie::kOneNumber, {9, 4}), random);
    check(&Kernels::where, out, in(condition), in(a), in(b));
  }
}

TEST(Parity, ElementwiseInPlace) {
  Random random(4);
  for (const Lie lie : {Lie::kRowMajor, Lie::kReversed, Lie::kGaps, Lie::kBackwards}) {
    Twin x(kFloat32, lay(lie, {6, 50}), random);
    Twin y(kFloat32, lay(Lie::kStretched, {6, 50}), random);
    check(&Kernels::mul, x, in(x), in(y));
    check(&Kernels::exp, x, in(x));
    check(&Kernels::softmax, x, in(x), 1);
  }
}

TEST(Parity, CopyConvertsEveryPairOfTypes) {
  Random random(5);
  for (const DType to : kEveryDType) {
    for (const DType from : kEveryDType) {
      for (size_t lie = 0; lie < 6; ++lie) {
        SCOPED_TRACE(str(to, " <- ", from, ", lie ", lie));
        Twin out(to, lay(kEveryLie[(lie + 1) % 4], {3, 5, 37}), random);
        Twin x(from, lay(kEveryLie[lie], {3, 5, 37}), random);
        check(&Kernels::copy, out, in(x));
      }
    }
  }
}

TEST(Parity, FillAndArange) {
  Random random(6);
  for (const DType dtype : kEveryDType) {
    for (const Lie lie : {Lie::kRowMajor, Lie::kReversed, Lie::kGaps, Lie::kBackwards}) {
      SCOPED_TRACE(str(dtype));
      for (const Scalar& value : {Scalar(3), Scalar(-2.75), Scalar(true), Scalar(1e300)}) {
        Twin out(dtype, lay(lie, {7, 60}), random);
        check(&Kernels::fill, out, value);
      }
      Twin out(dtype, lay(lie, {7, 60}), random);
      check(&Kernels::arange, out, Scalar(-3), Scalar(2));
      check(&Kernels::arange, out, Scalar(0.1), Scalar(0.3));
    }
  }
}

// --- reductions ---

DType sum_dtype(DType dtype) {
  return is_floating_point(dtype) ? dtype : kInt64;
}

void check_reductions(IntArrayRef sizes, std::initializer_list<int> dims, Lie lie, Random& random) {
  for (const DType dtype : kEveryDType) {
    Twin x(dtype, lay(lie, sizes), random);
    const Layout kept = reduced(lay(Lie::kRowMajor, sizes), dims);
    for (const Unary slot : {&Kernels::sum, &Kernels::prod}) {
      SCOPED_TRACE(where(slot, dtype, int(lie)));
      Twin out(sum_dtype(dtype), kept, random);
      check(slot, out, in(x));
    }
    for (const Unary slot : {&Kernels::amax, &Kernels::amin}) {
      SCOPED_TRACE(where(slot, dtype, int(lie)));
      Twin out(dtype, kept, random);
      check(slot, out, in(x));
    }
    SCOPED_TRACE(str("var_mean of ", dtype));
    Twin var(dtype, kept, random), mean(dtype, kept, random);
    check(&Kernels::var_mean, var, As<Out>{mean}, in(x), 1.0);
    compare(mean);
  }
}

TEST(Parity, ReductionsOverAnyDims) {
  Random random(7);
  for (const Lie lie : {Lie::kRowMajor, Lie::kReversed, Lie::kGaps, Lie::kBackwards}) {
    check_reductions({5, 7, 130}, {2}, lie, random);
    check_reductions({5, 7, 130}, {0, 2}, lie, random);
    check_reductions({70, 3, 9}, {0}, lie, random);
    check_reductions({3, 4, 5}, {0, 1, 2}, lie, random);
    check_reductions({6, 1}, {1}, lie, random);
    check_reductions({3, 0, 4}, {1}, lie, random);
    check_reductions({0, 4}, {1}, lie, random);
  }
  check_reductions({300, 9}, {0}, Lie::kStretched, random);
  check_reductions({1200, 3}, {1}, Lie::kRowMajor, random);  // a thread each
  check_reductions({3, 1200}, {0}, Lie::kRowMajor, random);
}

TEST(Parity, LongSumsGoThroughBlocks) {
  Random random(8);
  for (const std::int64_t n : {65536, 65537, 300000}) {
    for (const DType dtype : {kFloat32, kFloat16, kInt32}) {
      SCOPED_TRACE(str(dtype, " ", n));
      Twin x(dtype, contiguous_layout({n, 2}), random);
      Twin out(sum_dtype(dtype), reduced(contiguous_layout({n, 2}), {0}), random);
      check(&Kernels::sum, out, in(x));
      Twin all(sum_dtype(dtype), reduced(contiguous_layout({n, 2}), {0, 1}), random);
      check(&Kernels::sum, all, in(x));
    }
  }
}

TEST(Parity, SoftmaxAndItsGradients) {
  Random random(9);
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt32}) {
    for (const Lie lie : {Lie::kRowMajor, Lie::kReversed, Lie::kGaps, Lie::kBackwards}) {
      for (int dim = 0; dim < 3; ++dim) {
        SCOPED_TRACE(str(dtype, " along ", dim, ", lie ", int(lie)));
        const std::vector<std::int64_t> sizes = {6, 70, 5};
        Twin x(dtype, lay(lie, sizes), random), y(dtype, lay(Lie::kRowMajor, sizes), random);
        Twin dx(dtype, lay(Lie::kReversed, sizes), random);
        check(&Kernels::softmax, y, in(x), dim);
        check(&Kernels::softmax_grad, dx, in(x), in(y), dim);
        check(&Kernels::log_softmax, y, in(x), dim);
        check(&Kernels::log_softmax_grad, dx, in(x), in(y), dim);
      }
    }
  }
  Twin x(kFloat32, contiguous_layout({1, 70000}), random);
  Twin y(kFloat32, contiguous_layout({1, 70000}), random);
  check(&Kernels::softmax, y, in(x), 1);
  check(&Kernels::softmax_grad, y, in(x), in(y), 1);
  Twin one(kFloat64, contiguous_layout({}), random),
      of_one(kFloat64, contiguous_layout({}), random);
  check(&Kernels::softmax, of_one, in(one), 0);
}

// --- matrix products ---

void check_matmul(DType dtype, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  Random random(static_cast<std::uint64_t>(m * 31 + n * 7 + k));
  const std::vector<std::vector<std::int64_t>> biases = {{n}, {m, n}, {m, 1}, {batch, m, n}};
  for (size_t lie = 0; lie < 4; ++lie) {
    SCOPED_TRACE(str(dtype, " (", batch, ", ", m, ", ", n, ", ", k, "), lie ", lie));
    Twin a(dtype, lay(kEveryLie[lie], {batch, m, k}), random);
    Twin b(dtype, lay(kEveryLie[(lie + 1) % 5], {batch, k, n}), random);
    Twin out(dtype, lay(kEveryLie[(lie * 3) % 4], {batch, m, n}), random);
    Twin bias(dtype, lay(Lie::kRowMajor, biases[lie]), random);
    check(&Kernels::matmul, out, in(a), in(b), In{}, Activation::kNone);
    for (Twin* twin : {&a, &b, &bias}) twin->tame(random);
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kGeluTanh}) {
      if (!is_floating_point(dtype) && activation != Activation::kNone) continue;
      check(&Kernels::matmul, out, in(a), in(b), in(bias), activation);
    }
  }
}

TEST(Parity, FirstNonfinite) {
  Random random(12);
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kInt32}) {
    for (const Lie lie : kEveryLie) {
      for (const auto& shape : kShapes) {
        SCOPED_TRACE(str(dtype, " ", IntArrayRef(shape), ", lie ", int(lie)));
        Twin x(dtype, lay(lie, shape), random), index(kInt64, contiguous_layout({}), random);
        check(&Kernels::first_nonfinite, index, in(x));
      }
    }
  }
}

TEST(Parity, Matmul) {
  const bool before = blas_selected();
  select_blas(false);  // cuBLAS has bits of its own
  for (const DType dtype : kEveryDType) {
    check_matmul(dtype, 1, 1, 1, 1);
    check_matmul(dtype, 3, 5, 9, 17);
    check_matmul(dtype, 2, 70, 3, 65);
    check_matmul(dtype, 1, 64, 64, 16);
    check_matmul(dtype, 2, 4, 5, 0);
    check_matmul(dtype, 0, 4, 5, 3);
  }
  check_matmul(kFloat32, 2, 100, 130, 300);
  check_matmul(kFloat16, 1, 130, 67, 300);
  check_matmul(kFloat64, 1, 129, 33, 270);
  select_blas(before);
}

// --- other memory, streams and devices ---

TEST(Parity, CopyReachesTheHost) {
  Random random(11);
  const Exec host(kCPU), device(Device(kCUDA, 0), make_stream(0));
  for (const DType to : {kFloat32, kBFloat16, kInt64}) {
    for (size_t lie = 0; lie < 6; ++lie) {
      SCOPED_TRACE(str(to, ", lie ", int(lie)));
      Twin x(kFloat32, lay(kEveryLie[lie], {3, 5, 37}), random);
      Twin up(to, lay(kEveryLie[(lie + 1) % 4], {3, 5, 37}), random);
      cpu_kernels().copy(host, up.on_cpu<Out>(), x.on_cpu<In>());
      cuda_kernels().copy(device, up.on_cuda<Out>(), x.on_cpu<In>());
      Twin down(to, lay(kEveryLie[(lie + 2) % 4], {3, 5, 37}), random);
      cuda_kernels().copy(device, down.on_cpu<Out>(), x.on_cuda<In>());
      cuda_kernels().copy(device, down.on_cuda<Out>(), x.on_cuda<In>());
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      compare(up);
      compare(down);
    }
  }
}

TEST(Parity, CopyReachesOtherDevices) {
  if (device_count() < 2) GTEST_SKIP() << "needs two devices";
  const Layout wide = lay(Lie::kReversed, {30, 50}), dense = contiguous_layout({30, 50});
  const Exec exec(Device(kCUDA, 0));
  Random random(12);
  Twin x(kFloat32, wide, random), back(kFloat64, dense, random);
  for (const Layout& layout : {dense, wide}) {
    const Exec other(Device(kCUDA, 1));
    const Out there{{other.scratch(30 * 50 * 8), &layout, kFloat64}};
    cuda_kernels().copy(exec, there, x.on_cuda<In>());
    cuda_kernels().copy(other, back.on_cuda<Out>(), In{there});
    cpu_kernels().copy(Exec(kCPU), back.on_cpu<Out>(), x.on_cpu<In>());
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    compare(back);
  }
}

TEST(Parity, OtherStreamsAndDevices) {
  Random random(10);
  if (device_count() < 2) GTEST_SKIP() << "needs two devices";
  Twin x(kFloat32, contiguous_layout({1000}), random),
      y(kFloat32, contiguous_layout({1000}), random);
  const Exec here(kCPU);
  cpu_kernels().tanh(here, y.on_cpu<Out>(), x.on_cpu<In>());
  void *x1 = nullptr, *y1 = nullptr;
  const StreamId stream = make_stream(1);
  const DeviceGuard guard(1);
  ASSERT_EQ(cudaMalloc(&x1, 4000), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&y1, 4000), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(x1, x.on_cuda<In>().data, 4000, cudaMemcpyDefault), cudaSuccess);
  const Layout layout = contiguous_layout({1000});
  {
    const DeviceGuard elsewhere(0);  // a slot runs where its Exec says
    const Exec there(Device(kCUDA, 1), stream);
    cuda_kernels().tanh(there, Out{{y1, &layout, kFloat32}}, In{{x1, &layout, kFloat32}});
  }
  ASSERT_EQ(cudaStreamSynchronize(stream_of(Device(kCUDA, 1), stream)), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(y.on_cuda<Out>().data, y1, 4000, cudaMemcpyDefault), cudaSuccess);
  compare(y);
  EXPECT_EQ(cudaFree(x1), cudaSuccess);
  EXPECT_EQ(cudaFree(y1), cudaSuccess);
}

TEST(Parity, ASlotThatIsMissingSaysItsName) {
  const Kernels::Binary missing = unsupported<"missing">;
  try {
    missing(Exec(Device(kCUDA, 0)), Out{}, In{}, In{});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'missing'"), std::string::npos);
  }
}

}  // namespace
}  // namespace taper::cuda
