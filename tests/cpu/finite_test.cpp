// first_nonfinite: every floating dtype and layout, sizes around the width of vectors, each place.
#include <limits>

#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

using Sizes64 = std::vector<std::int64_t>;

const Sizes64 kShapes[] = {{},       {0},       {1},       {7},       {15},   {16},
                           {17},     {31},      {33},      {64},      {1025}, {5, 513},
                           {513, 5}, {4, 3, 9}, {2, 0, 3}, {300, 601}};

std::int64_t oracle(const Array& x) {
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    if (!std::isfinite(x.get(i))) return i;
  }
  return -1;
}

void check(const Kernels& kernels, const Array& x) {
  Array index(kInt64, {});
  kernels.first_nonfinite(Exec(kCPU), index.out(), x.in());
  ASSERT_EQ(static_cast<std::int64_t>(index.get(0)), oracle(x));
}

// The largest finite number must pass, and so must what surrounds the elements.
double largest(DType dtype) {
  if (dtype == kFloat64) return std::numeric_limits<double>::max();
  return dtype == kFloat16 ? 65504 : 0x1.fep127;
}

TEST(Finite, FindsTheFirstOneOfAnyKindAnywhere) {
  for (const DType dtype : kFloating) {
    for (const Sizes64& sizes : kShapes) {
      for (const Form form : kForms) {
        SCOPED_TRACE(std::string(info(dtype).name) + " " + name(form) + " " +
                     str(IntArrayRef(sizes)));
        Random random(3);
        Array x(dtype, sizes, form);
        x.fill([&] {
          const std::uint64_t pick = random.next() % 8;
          if (pick == 0) return largest(dtype);
          return pick == 1 ? -largest(dtype) : pick == 2 ? -0.0 : random.uniform(-3, 3);
        });
        ASSERT_EQ(oracle(x), -1);
        on_every_column([&](const Kernels& kernels) { check(kernels, x); });
        const double bad[] = {std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity()};
        const std::int64_t n = x.numel();
        for (std::int64_t k = 0; k < n; k += 1 + n / 20) {
          Array y = x;
          y.set(n - 1 - k, bad[static_cast<std::size_t>(k) % 3]);
          y.set(n - 1, bad[0]);
          on_every_column([&](const Kernels& kernels) { check(kernels, y); });
        }
      }
    }
  }
}

// Kernels that look at what they write tell the truth, wherever the bad element is.
template <class Run> void check_watch(Array& out, const Run& run) {
  FiniteWatch watch;
  finite_watch = &watch;
  run();
  finite_watch = nullptr;
  ASSERT_EQ(watch.looked_at, out.out().data);
  ASSERT_EQ(watch.found.load(), oracle(out) >= 0);
}

TEST(Finite, ElementwiseKernelsLookAtWhatTheyWrite) {
  for (const DType dtype : kFloating) {
    for (const Sizes64& sizes : kShapes) {
      if (IntArrayRef(sizes).empty()) continue;
      for (const Form form : kForms) {
        SCOPED_TRACE(std::string(info(dtype).name) + " " + name(form) + " " +
                     str(IntArrayRef(sizes)));
        Random random(4);
        Array x(dtype, sizes), y(dtype, sizes, form);
        Array out(dtype, sizes, form == Form::kExpanded ? Form::kContiguous : form);
        x.fill([&] { return random.uniform(-3, 3); });
        y.fill([&] { return random.uniform(-3, 3); });
        const std::int64_t n = x.numel();
        for (std::int64_t k = -1; k < n; k += 1 + n / 5) {
          Array bad = x;
          if (k >= 0) bad.set(k, std::numeric_limits<double>::infinity());
          on_every_column([&](const Kernels& kernels) {
            const Exec exec(kCPU);
            check_watch(out, [&] { kernels.add(exec, out.out(), bad.in(), y.in()); });
            check_watch(out, [&] { kernels.tanh(exec, out.out(), bad.in()); });
            check_watch(out, [&] { kernels.abs(exec, out.out(), bad.in()); });
          });
        }
        on_every_column([&](const Kernels& kernels) {
          for (const double value : {1.0, std::numeric_limits<double>::quiet_NaN()})
            check_watch(out, [&] { kernels.fill(Exec(kCPU), out.out(), Scalar(value)); });
        });
      }
    }
  }
}

TEST(Finite, MatmulLooksAtWhatItWrites) {
  int turn = 0;
  for (const DType dtype : kFloating) {
    for (const Sizes64& mnk : {Sizes64{1, 1, 1},
                               {1, 700, 3},
                               {7, 33, 5},
                               {100, 17, 300},
                               {97, 65, 64},
                               {200, 300, 260},
                               {3, 4, 0}}) {
      SCOPED_TRACE(std::string(info(dtype).name) + " " + str(IntArrayRef(mnk)));
      const std::int64_t m = mnk[0], n = mnk[1], k = mnk[2];
      for (const std::int64_t batch : {1, 3}) {
        Random random(5);
        Array a(dtype, {batch, m, k}), b(dtype, {batch, k, n}), c(dtype, {batch, m, n});
        a.fill([&] { return random.uniform(-1, 1); });
        b.fill([&] { return random.uniform(-1, 1); });
        for (std::int64_t at = -1; at < a.numel(); at += 1 + a.numel() / 2) {
          Array bad = a;
          if (at >= 0) bad.set(at, std::numeric_limits<double>::quiet_NaN());
          on_every_column([&](const Kernels& kernels) {
            check_watch(c, [&] {
              const auto activation = static_cast<Activation>(++turn % 4);
              kernels.matmul(Exec(kCPU), c.out(), bad.in(), b.in(), In{}, activation);
            });
          });
        }
      }
    }
  }
}

TEST(Finite, IntegersAreRefused) {
  const Array x(kInt32, {3});
  Array index(kInt64, {});
  EXPECT_THROW(cpu_kernels().first_nonfinite(Exec(kCPU), index.out(), x.in()), Error);
}

}  // namespace
}  // namespace taper::testing
