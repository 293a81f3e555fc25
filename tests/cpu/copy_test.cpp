// copy between every two layouts and dtypes, fill, and arange.
#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

const std::vector<std::int64_t> kSizes[] = {
    {}, {1}, {33}, {40, 70}, {3, 5, 37}, {2, 3, 4, 5, 3}, {0, 4}, {17, 2}};

Array numbered(DType dtype, const std::vector<std::int64_t>& sizes, Form form) {
  Array a(dtype, sizes, form);
  double next = -3;
  a.fill([&] {
    next += 1;
    if (dtype == kUInt8) return std::fmod(next + 200, 200);
    return next / (is_floating_point(dtype) ? 2 : 1);
  });
  return a;
}

TEST(Copy, SameDTypeMovesBits) {
  for (const DType dtype : kDTypes) {
    for (const auto& sizes : kSizes) {
      for (const Form form : kForms) {
        for (const Form out_form :
             {Form::kContiguous, Form::kTransposed, Form::kSliced, Form::kReversed}) {
          const Array in = numbered(dtype, sizes, form);
          Array out(dtype, sizes, out_form);
          cpu_kernels().copy(Exec(kCPU), out.out(), in.in());
          ASSERT_TRUE(same_bits(in, out)) << info(dtype).name << name(form) << name(out_form);
          ASSERT_TRUE(out.is_pad_whole());
        }
      }
    }
  }
}

TEST(Copy, LargeTransposes) {
  for (const DType dtype : {kFloat32, kFloat64, kUInt8, kBFloat16}) {
    for (const auto& sizes : {std::vector<std::int64_t>{301, 515}, {3, 128, 200}, {64, 64, 33}}) {
      const Array in = numbered(dtype, sizes, Form::kTransposed);
      on_every_column([&](const Kernels& k) {
        Array out(dtype, sizes, Form::kContiguous);
        k.copy(Exec(kCPU), out.out(), in.in());
        EXPECT_TRUE(same_bits(in, out)) << info(dtype).name;
      });
    }
  }
}

TEST(Copy, ConvertsAsCastsDo) {
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      for (const auto& sizes : kSizes) {
        for (const Form form : {Form::kContiguous, Form::kTransposed, Form::kExpanded}) {
          const Array in = numbered(from, sizes, form);
          for (const cpu::Column& column : runnable_columns()) {
            Array out(to, sizes, Form::kTransposed);
            column.kernels->copy(Exec(kCPU), out.out(), in.in());
            for (std::int64_t i = 0; i < in.numel(); ++i) {
              const double x = in.get(i);
              const double expected =
                  to == kUInt8 && x < 0
                      ? static_cast<double>(static_cast<std::uint8_t>(static_cast<int>(x)))
                  : to == kUInt8 ? std::fmod(std::trunc(x), 256)
                                 : stored_as(to, x);
              ASSERT_EQ(out.get(i), expected)
                  << info(from).name << " to " << info(to).name << " " << x;
            }
          }
        }
      }
    }
  }
}

// What C++ leaves open is the same on every column.
TEST(Copy, NumbersThatDoNotFit) {
  const double values[] = {NAN,           INFINITY, -INFINITY, 1e30,  -1e30, 2147483648.0,
                           -2147483649.0, 300.5,    -1.5,      70000, 1e-30, 9.3e18};
  struct Case {
    DType to;
    double expected[12];
  };
  constexpr double kLow32 = -2147483648.0, kLow64 = -9223372036854775808.0;
  const Case cases[] = {
      {kInt32, {kLow32, kLow32, kLow32, kLow32, kLow32, kLow32, kLow32, 300, -1, 70000, 0, kLow32}},
      {kInt64,
       {kLow64, kLow64, kLow64, kLow64, kLow64, 2147483648.0, -2147483649.0, 300, -1, 70000, 0,
        kLow64}},
      {kUInt8, {0, 0, 0, 0, 0, 0, 0, 44, 255, 112, 0, 0}},
      {kBool, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {kFloat16,
       {NAN, INFINITY, -INFINITY, INFINITY, -INFINITY, INFINITY, -INFINITY, 300.5, -1.5, INFINITY,
        0, INFINITY}},
  };
  for (const cpu::Column& column : runnable_columns()) {
    for (const Case& c : cases) {
      Array in(kFloat64, {48}), out(c.to, {48});
      for (int i = 0; i < 48; ++i) in.set(i, values[i % 12]);
      column.kernels->copy(Exec(kCPU), out.out(), in.in());
      for (int i = 0; i < 48; ++i) {
        EXPECT_TRUE(is_near(out.get(i), c.expected[i % 12], 0))
            << info(c.to).name << " of " << values[i % 12] << " is " << out.get(i);
      }
    }
  }
}

// 1 + 2^-11 + 2^-40 is above the middle of two halves; through float it would be exactly on it.
TEST(Copy, RoundsOnce) {
  Array in(kFloat64, {40}), out(kFloat16, {40});
  in.fill([] { return 1 + 0x1p-11 + 0x1p-40; });
  cpu_kernels().copy(Exec(kCPU), out.out(), in.in());
  EXPECT_EQ(out.get(39), 1 + 0x1p-10);
}

TEST(Fill, EveryDTypeAndLayout) {
  for (const DType dtype : kDTypes) {
    for (const auto& sizes : kSizes) {
      for (const Form form :
           {Form::kContiguous, Form::kTransposed, Form::kSliced, Form::kReversed}) {
        Array out(dtype, sizes, form);
        cpu_kernels().fill(Exec(kCPU), out.out(), 2.75);
        for (std::int64_t i = 0; i < out.numel(); ++i)
          ASSERT_EQ(out.get(i), stored_as(dtype, 2.75));
        cpu_kernels().fill(Exec(kCPU), out.out(), true);
        for (std::int64_t i = 0; i < out.numel(); ++i) ASSERT_EQ(out.get(i), 1);
        ASSERT_TRUE(out.is_pad_whole());
      }
    }
  }
  Array big(kInt64, {3});
  cpu_kernels().fill(Exec(kCPU), big.out(), std::int64_t{9007199254740993});  // 2^53 + 1
  EXPECT_EQ(big.bits(2), 9007199254740993u);
}

TEST(Arange, CountsInDoubleOrInteger) {
  for (const DType dtype : kDTypes) {
    if (dtype == kBool) continue;
    Array out(dtype, {130}, Form::kSliced);
    cpu_kernels().arange(Exec(kCPU), out.out(), 3, 1);
    for (std::int64_t i = 0; i < 130; ++i)
      ASSERT_EQ(out.get(i), stored_as(dtype, static_cast<double>(i + 3)));
  }
  Array tenths(kFloat32, {100000});
  on_every_column([&](const Kernels& k) {
    k.arange(Exec(kCPU), tenths.out(), -1.0, 0.1);
    EXPECT_EQ(tenths.get(99999), static_cast<double>(static_cast<float>(-1.0 + 99999 * 0.1)));
  });
  Array far(kInt64, {2});
  cpu_kernels().arange(Exec(kCPU), far.out(), std::int64_t{1} << 60, 3);
  EXPECT_EQ(far.bits(1), (std::uint64_t{1} << 60) + 3);
}

}  // namespace
}  // namespace taper::testing
