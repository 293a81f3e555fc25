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

TEST(Finite, IntegersAreRefused) {
  const Array x(kInt32, {3});
  Array index(kInt64, {});
  EXPECT_THROW(cpu_kernels().first_nonfinite(Exec(kCPU), index.out(), x.in()), Error);
}

}  // namespace
}  // namespace taper::testing
