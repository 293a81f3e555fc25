// Every elementwise kernel, for every dtype and memory layout, against its slow double.
#include "taper/tests/reference/elementwise.h"

#include <sys/mman.h>

#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

using reference::Domain;

bool takes(Domain domain, DType dtype) {
  if (domain == Domain::kReal) return is_floating_point(dtype);
  if (domain == Domain::kNumber) return dtype != kBool;
  if (domain == Domain::kInteger) return is_integral(dtype);
  return domain == Domain::kAny || is_integral(dtype, true);
}

// Numbers that the dtype holds; for unsigned ones not below 0.
double sample(Random& random, DType dtype, double low, double high) {
  const double x = random.uniform(dtype == kUInt8 && low < 0 ? 0 : low, high);
  return stored_as(dtype, is_floating_point(dtype) ? x : std::floor(x));
}

// Results wrap around in the integer types.
double wrapped(DType dtype, double x) {
  if (dtype == kUInt8)
    return static_cast<double>(static_cast<std::uint8_t>(static_cast<std::int64_t>(x)));
  return is_integral(dtype) ? std::trunc(x) : stored_as(dtype, x);
}

const std::vector<std::int64_t> kSizes[] = {{3, 5, 37}, {2, 600}, {7}, {}, {4, 0, 3}};

// Fewer second operands: one in order, one across, one stretched.
constexpr Form kSecondForms[] = {Form::kContiguous, Form::kTransposed, Form::kExpanded};

Array random_array(std::uint64_t seed,
                   DType dtype,
                   const std::vector<std::int64_t>& sizes,
                   Form form,
                   double low,
                   double high) {
  Random random(seed);
  Array a(dtype, sizes, form);
  a.fill([&] { return sample(random, dtype, low, high); });
  return a;
}

// Compares what `run` leaves in `out` with expected(i), on every column; all must agree to the bit.
template <class Run, class Expected>
void check(const Array& model, double tolerance, const Run& run, const Expected& expected) {
  std::vector<Array> results;
  for (const cpu::Column& column : runnable_columns()) {
    Array out = model;
    run(*column.kernels, out.out());
    ASSERT_TRUE(out.is_pad_whole()) << column.isa;
    results.push_back(out);
    ASSERT_TRUE(same_bits(results[0], out)) << column.isa;
  }
  const Array& out = results[0];
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    ASSERT_TRUE(is_near(out.get(i), expected(i), tolerance))
        << "element " << i << " is " << out.get(i) << ", not " << expected(i);
  }
}

TEST(Elementwise, UnaryMatchesReference) {
  for (const reference::Unary& c : reference::kUnary) {
    for (const DType dtype : kDTypes) {
      if (!takes(c.domain, dtype)) continue;
      for (const auto& sizes : kSizes) {
        for (const Form form : kForms) {
          for (const Form out_form : kOutForms) {
            SCOPED_TRACE(std::string(c.name) + " " + info(dtype).name + " " + name(form) + " to " +
                         name(out_form));
            const Array a = random_array(1, dtype, sizes, form, c.low, c.high);
            const Array model(c.to_bool ? kBool : dtype, sizes, out_form);
            check(
                model, tolerance(dtype),
                [&](const Kernels& k, Out out) { (k.*c.slot)(Exec(kCPU), out, a.in()); },
                [&](std::int64_t i) { return wrapped(model.dtype(), c.f(a.get(i))); });
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Elementwise, BinaryMatchesReference) {
  for (const reference::Binary& c : reference::kBinary) {
    for (const DType dtype : kDTypes) {
      if (!takes(c.domain, dtype)) continue;
      for (const auto& sizes : kSizes) {
        for (const Form form : kForms) {
          for (const Form second : kSecondForms) {
            const Form out_form = second == Form::kExpanded ? Form::kSliced : second;
            SCOPED_TRACE(std::string(c.name) + " " + info(dtype).name + " " + name(form) + ", " +
                         name(second) + " to " + name(out_form));
            const Array a = random_array(1, dtype, sizes, form, c.low, c.high);
            const Array b = random_array(2, dtype, sizes, second, c.low, c.high);
            const Array model(c.to_bool ? kBool : dtype, sizes, out_form);
            check(
                model, tolerance(dtype),
                [&](const Kernels& k, Out out) { (k.*c.slot)(Exec(kCPU), out, a.in(), b.in()); },
                [&](std::int64_t i) { return wrapped(model.dtype(), c.f(a.get(i), b.get(i))); });
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Elementwise, WithParametersMatchesReference) {
  const std::vector<std::int64_t> sizes{3, 5, 37};
  for (const DType dtype : kDTypes) {
    for (const Form form : kForms) {
      for (const reference::Unary2& c : reference::kUnary2) {
        if (!takes(c.domain, dtype)) continue;
        SCOPED_TRACE(std::string(c.name) + " " + info(dtype).name + " " + name(form));
        const Array a = random_array(1, dtype, sizes, form, -4, 4);
        check(
            Array(dtype, sizes), tolerance(dtype),
            [&](const Kernels& k, Out out) {
              (k.*c.slot)(Exec(kCPU), out, a.in(), c.first, c.second);
            },
            [&](std::int64_t i) { return wrapped(dtype, c.f(a.get(i), c.first, c.second)); });
      }
      for (const reference::Binary2& c : reference::kBinary2) {
        if (!is_floating_point(dtype)) continue;
        SCOPED_TRACE(std::string(c.name) + " " + info(dtype).name + " " + name(form));
        const Array a = random_array(1, dtype, sizes, form, -4, 4);
        const Array b = random_array(2, dtype, sizes, Form::kContiguous, -4, 4);
        check(
            Array(dtype, sizes), tolerance(dtype),
            [&](const Kernels& k, Out out) {
              (k.*c.slot)(Exec(kCPU), out, a.in(), b.in(), c.first, c.second);
            },
            [&](std::int64_t i) {
              return wrapped(dtype, c.f(a.get(i), b.get(i), c.first, c.second));
            });
      }
    }
  }
}

TEST(Elementwise, WhereTakesTheElementItself) {
  for (const DType dtype : kDTypes) {
    for (const auto& sizes : kSizes) {
      for (const Form form : kForms) {
        SCOPED_TRACE(std::string(info(dtype).name) + " " + name(form));
        const Array condition = random_array(3, kBool, sizes, form, 0, 2);
        Array a = random_array(1, dtype, sizes, Form::kTransposed, -4, 4);
        const Array b = random_array(2, dtype, sizes, form, -4, 4);
        if (is_floating_point(dtype) && a.numel() > 0) a.set(0, NAN);
        check(
            Array(dtype, sizes, Form::kSliced), 0,
            [&](const Kernels& k, Out out) {
              k.where(Exec(kCPU), out, condition.in(), a.in(), b.in());
            },
            [&](std::int64_t i) { return condition.get(i) != 0 ? a.get(i) : b.get(i); });
      }
    }
  }
}

TEST(Elementwise, InPlace) {
  for (const Form form : {Form::kContiguous, Form::kTransposed, Form::kSliced, Form::kReversed}) {
    for (const DType dtype : {kFloat32, kBFloat16, kInt32}) {
      for (const std::int64_t n : {37, 5000}) {
        const Array a = random_array(1, dtype, {3, n}, form, -4, 4);
        const Array b = random_array(2, dtype, {3, n}, Form::kContiguous, -4, 4);
        Array expected = a, result = a;
        cpu_kernels().sub(Exec(kCPU), expected.out(), a.in(), b.in());
        cpu_kernels().sub(Exec(kCPU), result.out(), result.in(), b.in());
        EXPECT_TRUE(same_bits(expected, result)) << name(form) << " " << info(dtype).name;
      }
    }
  }
}

// Rows of every length meet every remainder of the vectorised loops, scalars on either side too.
TEST(Elementwise, EveryLength) {
  for (std::int64_t n = 0; n < 140; ++n) {
    for (const DType dtype : {kFloat64, kFloat32, kFloat16, kUInt8}) {
      const Array a = random_array(1, dtype, {n}, Form::kContiguous, 0, 9);
      const Array b = random_array(2, dtype, {n}, Form::kExpanded, 1, 9);
      check(
          Array(dtype, {n}), tolerance(dtype),
          [&](const Kernels& k, Out out) { k.add(Exec(kCPU), out, a.in(), b.in()); },
          [&](std::int64_t i) { return wrapped(dtype, a.get(i) + b.get(i)); });
      check(
          Array(dtype, {n}), tolerance(dtype),
          [&](const Kernels& k, Out out) { k.sub(Exec(kCPU), out, b.in(), b.in()); },
          [&](std::int64_t) { return 0; });
      check(
          Array(kBool, {n}), 0,
          [&](const Kernels& k, Out out) { k.lt(Exec(kCPU), out, b.in(), a.in()); },
          [&](std::int64_t i) { return double(b.get(i) < a.get(i)); });
    }
  }
}

TEST(Elementwise, ThreadsDoNotChangeBits) {
  const Array a = random_array(1, kFloat32, {70, 3001}, Form::kContiguous, -4, 4);
  const Array b = random_array(2, kFloat32, {70, 3001}, Form::kTransposed, -4, 4);
  std::vector<Array> results;
  on_every_column([&](const Kernels& k) {
    Array out(kFloat32, {70, 3001}), twice(kFloat32, {70, 3001}, Form::kSliced);
    k.atan2(Exec(kCPU), out.out(), a.in(), b.in());
    k.gelu(Exec(kCPU), twice.out(), out.in());
    EXPECT_TRUE(twice.is_pad_whole());
    results.push_back(twice);
    EXPECT_TRUE(same_bits(results[0], twice));
  });
}

TEST(Elementwise, NanAndZeros) {
  const double nan = NAN, inf = INFINITY;
  struct Case {
    Kernels::Binary Kernels::*slot;
    double a, b, expected;
  };
  const Case cases[] = {
      {&Kernels::maximum, nan, 1, nan},
      {&Kernels::maximum, 1, nan, nan},
      {&Kernels::minimum, nan, 1, nan},
      {&Kernels::minimum, 1, nan, nan},
      {&Kernels::pow, 0, 0, 1},
      {&Kernels::pow, nan, 0, 1},
      {&Kernels::floor_divide, 1, 0, inf},
      {&Kernels::floor_divide, -7, 2, -4},
      {&Kernels::remainder, -7, 2, 1},
      {&Kernels::fmod, -7, 2, -1},
      {&Kernels::remainder, 7, -2, -1},
      {&Kernels::remainder, 1, 0, nan},
      {&Kernels::floor_divide, 6, 0.1, 59},  // 6 // 0.1 of Python: 0.1 is a little more than 1/10
      {&Kernels::relu_grad, 3, 0, 0},
      {&Kernels::relu_grad, 3, nan, 3},
  };
  for (const Case& c : cases) {
    Array a(kFloat64, {1}), b(kFloat64, {1}), out(kFloat64, {1});
    a.set(0, c.a);
    b.set(0, c.b);
    (cpu_kernels().*c.slot)(Exec(kCPU), out.out(), a.in(), b.in());
    EXPECT_TRUE(is_near(out.get(0), c.expected, 0))
        << c.a << ", " << c.b << " gives " << out.get(0);
  }
}

TEST(Elementwise, IntegersWrapAndDoNotTrap) {
  const auto run = [](Kernels::Binary Kernels::*slot, DType dtype, std::int64_t x, std::int64_t y) {
    Array a(dtype, {40}), b(dtype, {40}), out(dtype, {40});
    for (int i = 0; i < 40; ++i) {
      std::memcpy(a.at(i), &x, static_cast<std::size_t>(a.size()));
      std::memcpy(b.at(i), &y, static_cast<std::size_t>(b.size()));
    }
    (cpu_kernels().*slot)(Exec(kCPU), out.out(), a.in(), b.in());
    return out.bits(39);
  };
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min(),
                         kHigh = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(run(&Kernels::add, kInt64, kHigh, 1), static_cast<std::uint64_t>(kLow));
  EXPECT_EQ(run(&Kernels::floor_divide, kInt64, kLow, -1), static_cast<std::uint64_t>(kLow));
  EXPECT_EQ(run(&Kernels::remainder, kInt64, kLow, -1), 0u);
  EXPECT_EQ(run(&Kernels::fmod, kInt32, 1u << 31, -1), 0u);
  EXPECT_EQ(run(&Kernels::mul, kUInt8, 200, 3), 88u);
  EXPECT_EQ(run(&Kernels::sub, kUInt8, 1, 2), 255u);
  EXPECT_EQ(run(&Kernels::pow, kInt64, 2, -1), 0u);
  EXPECT_EQ(run(&Kernels::pow, kInt64, -1, -3), ~std::uint64_t{0});
  EXPECT_EQ(run(&Kernels::pow, kInt32, 3, 40), static_cast<std::uint32_t>(12157665459056928801u));
  EXPECT_THROW(run(&Kernels::floor_divide, kInt64, 1, 0), Error);
  EXPECT_THROW(run(&Kernels::remainder, kUInt8, 1, 0), Error);
  EXPECT_THROW(run(&Kernels::fmod, kInt32, 1, 0), Error);
}

TEST(Elementwise, OutsideOfTheDomainIsAnError) {
  Array a(kInt64, {3}), b(kBool, {3}), x(kFloat32, {3});
  const Kernels& k = cpu_kernels();
  EXPECT_THROW(k.exp(Exec(kCPU), a.out(), a.in()), Error);
  EXPECT_THROW(k.sub(Exec(kCPU), b.out(), b.in(), b.in()), Error);
  EXPECT_THROW(k.bitwise_and(Exec(kCPU), x.out(), x.in(), x.in()), Error);
  EXPECT_THROW(k.elu(Exec(kCPU), a.out(), a.in(), 1, 0), Error);
}

// Neighbours 5 GiB apart, in memory that is only reserved.
TEST(Elementwise, OffsetsAreOf64Bits) {
  constexpr std::int64_t kApart = std::int64_t{5} << 30;
  void* memory = mmap(nullptr, 2 * kApart, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "10 GiB of address space are not to be had";
  Layout layout = contiguous_layout({2});
  layout.strides[0] = kApart;
  auto* bytes = static_cast<std::uint8_t*>(memory);
  bytes[0] = 7;
  bytes[kApart] = 9;
  const View view{memory, &layout, kUInt8};
  cpu_kernels().neg(Exec(kCPU), Out{view}, In{view});
  EXPECT_EQ(bytes[0], 249);
  EXPECT_EQ(bytes[kApart], 247);
  munmap(memory, 2 * kApart);
}

}  // namespace
}  // namespace taper::testing
