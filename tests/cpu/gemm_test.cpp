// The matrix product is one chain of fmas for each element, bit for bit, in every layout and size.
#include "taper/tests/reference/gemm.h"

#include <cstdlib>

#include "taper/cpu/gemm_blas.h"
#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

using Sizes64 = std::vector<std::int64_t>;

struct Shape {
  std::int64_t batch, m, n, k;
};

Array random_array(std::uint64_t seed, DType dtype, const Sizes64& sizes, Form form) {
  Random random(seed);
  Array a(dtype, sizes, form);
  a.fill([&] { return is_floating_point(dtype) ? random.uniform(-1, 1) : random.uniform(0, 9); });
  return a;
}

// Matrix i of a batch, as numbers of T.
template <class T> std::vector<T> matrix(const Array& a, std::int64_t i) {
  const std::int64_t n = a.layout().sizes[1] * a.layout().sizes[2];
  std::vector<T> out;
  for (std::int64_t j = 0; j < n; ++j) out.push_back(static_cast<T>(a.get(i * n + j)));
  return out;
}

template <class T>
void expect_chain(
    const Shape& s, const Array& a, const Array& b, const Array* bias, const Array& out) {
  for (std::int64_t i = 0; i < s.batch; ++i) {
    std::vector<T> start(static_cast<std::size_t>(s.m * s.n), T(0));
    if (bias != nullptr) start = matrix<T>(*bias, i);
    const std::vector<T> expected =
        reference::product<T>(s.m, s.n, s.k, matrix<T>(a, i), matrix<T>(b, i), start);
    for (std::int64_t j = 0; j < s.m * s.n; ++j) {
      const double want =
          stored_as(out.dtype(), static_cast<double>(expected[static_cast<std::size_t>(j)]));
      ASSERT_EQ(out.get(i * s.m * s.n + j), want) << "element " << j << " of matrix " << i;
    }
  }
}

struct Problem {
  DType dtype;
  Shape shape;
  Form a, b, out, bias;
  bool biased;
};

struct Operands {
  explicit Operands(const Problem& p)
      : a(random_array(1, p.dtype, {p.shape.batch, p.shape.m, p.shape.k}, p.a)),
        b(random_array(2, p.dtype, {p.shape.batch, p.shape.k, p.shape.n}, p.b)),
        bias(random_array(3, p.dtype, {p.shape.batch, p.shape.m, p.shape.n}, p.bias)) {}

  Array a, b, bias;
};

Array run(const Kernels& kernels,
          const Problem& p,
          const Operands& in,
          Activation activation = Activation::kNone) {
  Array out = random_array(4, p.dtype, {p.shape.batch, p.shape.m, p.shape.n}, p.out);
  kernels.matmul(Exec(kCPU), out.out(), in.a.in(), in.b.in(), p.biased ? in.bias.in() : In{},
                 activation);
  EXPECT_TRUE(out.is_pad_whole());
  return out;
}

// All columns give the bits of the chain.
void check(const Problem& p, bool with_threads = false) {
  SCOPED_TRACE(str(info(p.dtype).name, " ", p.shape.batch, "x", p.shape.m, "x", p.shape.n, "x",
                   p.shape.k, " a ", name(p.a), " b ", name(p.b), " out ", name(p.out), " bias ",
                   p.biased ? name(p.bias) : "none"));
  const Operands in(p);
  const Array* bias = p.biased ? &in.bias : nullptr;
  const Array first = run(cpu_kernels(), p, in);
  if (p.dtype == kFloat64) expect_chain<double>(p.shape, in.a, in.b, bias, first);
  else expect_chain<float>(p.shape, in.a, in.b, bias, first);
  if (with_threads) {
    on_every_column([&](const Kernels& k) { ASSERT_TRUE(same_bits(run(k, p, in), first)); });
  } else {
    for (const cpu::Column& column : runnable_columns()) {
      ASSERT_TRUE(same_bits(run(*column.kernels, p, in), first)) << column.isa;
    }
  }
}

// Sizes around the edges of tiles (6 x 16 and its kin), of blocks of k (256) and of rows (96).
const Shape kShapes[] = {{1, 1, 1, 1},    {1, 8, 8, 8},    {2, 3, 5, 7},     {1, 6, 16, 256},
                         {3, 7, 17, 257}, {1, 1, 70, 300}, {1, 70, 1, 300},  {1, 2, 530, 6},
                         {1, 13, 33, 40}, {1, 97, 9, 100}, {2, 100, 35, 20}, {1, 12, 32, 513}};

TEST(Matmul, IsOneChainOfFmasInEveryLayout) {
  for (const Shape& shape : kShapes) {
    int turn = 0;
    for (const Form a : kForms) {
      for (const Form b : kForms) {
        const Form out = kOutForms[turn % 3], bias = kForms[turn % 5];
        check({kFloat32, shape, a, b, out, bias, turn++ % 2 == 0});
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Matmul, EveryFloatingTypeIsSummedWideAndRoundedOnce) {
  constexpr Form t = Form::kTransposed, c = Form::kContiguous;
  for (const DType dtype : kFloating) {
    for (const Shape& shape : kShapes) {
      check({dtype, shape, c, c, c, Form::kExpanded, true});
      check({dtype, shape, t, t, t, c, false});
      check({dtype, shape, c, t, Form::kSliced, c, true});
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Large enough for packed chunks, several blocks of k and all threads.
TEST(Matmul, LargeProductsAreTheSameChain) {
  constexpr Form t = Form::kTransposed, c = Form::kContiguous;
  check({kFloat32, {1, 200, 70, 600}, c, t, c, c, false}, true);
  check({kFloat32, {1, 110, 150, 300}, t, c, Form::kSliced, c, true}, true);
  check({kFloat32, {1, 100, 2100, 20}, c, c, c, c, true}, true);
  check({kBFloat16, {1, 130, 50, 270}, t, c, c, Form::kExpanded, true}, true);
  check({kFloat32, {1, 2400, 20, 30}, t, t, t, c, false}, true);
  check({kFloat32, {9, 130, 90, 30}, c, c, c, c, false}, true);
}

TEST(Matmul, SharedOperandsOfABatchAndBroadcastBias) {
  const Array a = random_array(1, kFloat32, {5, 4, 30}, Form::kContiguous);
  const Array b = random_array(2, kFloat32, {5, 30, 20}, Form::kExpanded);
  const Array bias = random_array(3, kFloat32, {20}, Form::kContiguous);
  Array out(kFloat32, {5, 4, 20}), full(kFloat32, {5, 4, 20}), expected(kFloat32, {5, 4, 20});
  Array spread(kFloat32, {5, 4, 20}), copied(kFloat32, {5, 30, 20});
  for (std::int64_t i = 0; i < spread.numel(); ++i) spread.set(i, bias.get(i % 20));
  for (std::int64_t i = 0; i < copied.numel(); ++i) copied.set(i, b.get(i));
  cpu_kernels().matmul(Exec(kCPU), out.out(), a.in(), b.in(), bias.in(), Activation::kNone);
  cpu_kernels().matmul(Exec(kCPU), full.out(), a.in(), copied.in(), spread.in(), Activation::kNone);
  EXPECT_TRUE(same_bits(out, full));
  expect_chain<float>({5, 4, 20, 30}, a, b, &spread, out);
}

TEST(Matmul, NothingToSumGivesTheBiasOrZero) {
  for (const DType dtype : kDTypes) {
    const Array a(dtype, {2, 3, 0}), b(dtype, {2, 0, 4});
    const Array bias = random_array(1, dtype, {2, 3, 4}, Form::kTransposed);
    Array out = random_array(2, dtype, {2, 3, 4}, Form::kSliced);
    cpu_kernels().matmul(Exec(kCPU), out.out(), a.in(), b.in(), bias.in(), Activation::kNone);
    for (std::int64_t i = 0; i < 24; ++i) EXPECT_EQ(out.get(i), bias.get(i)) << info(dtype).name;
    cpu_kernels().matmul(Exec(kCPU), out.out(), a.in(), b.in(), In{}, Activation::kNone);
    for (std::int64_t i = 0; i < 24; ++i) EXPECT_EQ(out.get(i), 0) << info(dtype).name;
    ASSERT_TRUE(out.is_pad_whole());
  }
  for (const Shape& s : {Shape{0, 2, 2, 2}, {2, 0, 2, 2}, {2, 2, 0, 2}}) {
    Array out(kFloat32, {s.batch, s.m, s.n});
    const Array a(kFloat32, {s.batch, s.m, s.k}), b(kFloat32, {s.batch, s.k, s.n});
    cpu_kernels().matmul(Exec(kCPU), out.out(), a.in(), b.in(), In{}, Activation::kNone);
  }
}

// The slot whose name an activation has.
void apply(const Kernels& kernels, Activation activation, Array& x) {
  const Exec exec(kCPU);
  if (activation == Activation::kRelu) kernels.relu(exec, x.out(), x.in());
  if (activation == Activation::kGelu) kernels.gelu(exec, x.out(), x.in());
  if (activation == Activation::kGeluTanh) kernels.gelu_tanh(exec, x.out(), x.in());
}

constexpr Activation kActivations[] = {Activation::kNone, Activation::kRelu, Activation::kGelu,
                                       Activation::kGeluTanh};

// Sums of a few numbers in (-1, 1): of both signs, and where the gelus are curved.
TEST(Matmul, EndsWithWhatTheActivationsSlotDoes) {
  constexpr Form t = Form::kTransposed, c = Form::kContiguous, s = Form::kSliced;
  std::vector<Problem> problems;
  for (const DType dtype : kFloating) {
    for (const Shape& shape : kShapes) {
      problems.push_back({dtype, shape, c, t, kOutForms[problems.size() % 3], c, true});
    }
    problems.push_back({dtype, {2, 3, 4, 0}, c, c, c, c, true});
    problems.push_back({dtype, {1, 110, 150, 300}, t, c, c, Form::kExpanded, true});
    problems.push_back({dtype, {1, 100, 2100, 20}, c, c, t, c, false});
  }
  problems.push_back({kFloat32, {1, 110, 70, 20}, c, c, s, c, false});
  for (const Problem& p : problems) {
    SCOPED_TRACE(str(info(p.dtype).name, " ", p.shape.batch, "x", p.shape.m, "x", p.shape.n, "x",
                     p.shape.k, " out ", name(p.out)));
    const Operands in(p);
    for (const Activation activation : kActivations) {
      for (const cpu::Column& column : runnable_columns()) {
        Array want = run(*column.kernels, p, in);
        apply(*column.kernels, activation, want);
        ASSERT_TRUE(same_bits(run(*column.kernels, p, in, activation), want))
            << static_cast<int>(activation) << " " << column.isa;
      }
    }
  }
}

// In a process of its own, for the choice is made once.
TEST(Matmul, OpenBlasEndsWithIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ends_right = [] {
    setenv("TAPER_GEMM", "openblas", 1);
    const Problem p{kFloat32,
                    {2, 40, 30, 20},
                    Form::kContiguous,
                    Form::kContiguous,
                    Form::kContiguous,
                    Form::kContiguous,
                    true};
    const Operands in(p);
    for (const Activation activation : kActivations) {
      Array want = run(cpu_kernels(), p, in);
      apply(cpu_kernels(), activation, want);
      if (!same_bits(run(cpu_kernels(), p, in, activation), want)) return false;
    }
    return cpu::blas_selected();
  };
  EXPECT_EXIT(std::exit(ends_right() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST(Matmul, IntegersWrap) {
  for (const cpu::Column& column : runnable_columns()) {
    for (const DType dtype : {kInt64, kInt32, kUInt8, kBool}) {
      const Array a = random_array(1, dtype, {2, 7, 30}, Form::kTransposed);
      const Array b = random_array(2, dtype, {2, 30, 9}, Form::kReversed);
      Array out(dtype, {2, 7, 9}, Form::kSliced);
      column.kernels->matmul(Exec(kCPU), out.out(), a.in(), b.in(), In{}, Activation::kNone);
      for (std::int64_t i = 0; i < out.numel(); ++i) {
        double sum = 0;
        const std::int64_t matrix = i / 63, row = i / 9 % 7, col = i % 9;
        for (std::int64_t k = 0; k < 30; ++k) {
          sum += a.get((matrix * 7 + row) * 30 + k) * b.get((matrix * 30 + k) * 9 + col);
        }
        if (dtype == kUInt8) sum = static_cast<double>(static_cast<std::int64_t>(sum) % 256);
        if (dtype == kBool) sum = sum != 0;
        ASSERT_EQ(out.get(i), sum) << info(dtype).name << " " << i;
      }
    }
  }
  Array a(kInt32, {1, 1, 1}), b(kInt32, {1, 1, 1}), out(kInt32, {1, 1, 1});
  a.set(0, 1 << 20);
  b.set(0, (1 << 20) + 1);
  cpu_kernels().matmul(Exec(kCPU), out.out(), a.in(), b.in(), In{}, Activation::kNone);
  EXPECT_EQ(out.get(0), 1 << 20);
}

TEST(Matmul, OpenBlasAgrees) {
  const std::int64_t m = 60, n = 50, k = 300;
  for (const DType dtype : {kFloat32, kFloat64}) {
    const Array a = random_array(1, dtype, {1, m, k}, Form::kContiguous);
    const Array b = random_array(2, dtype, {1, k, n}, Form::kTransposed);
    Array ours(dtype, {1, m, n}), theirs(dtype, {1, m, n});
    cpu_kernels().matmul(Exec(kCPU), ours.out(), a.in(), b.in(), In{}, Activation::kNone);
    visit_floating(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      if constexpr (sizeof(T) >= 4) {
        ASSERT_TRUE(cpu::blas_multiply(m, n, k,
                                       cpu::BlasMatrix<const T>{a.view().as<T>(), k, false},
                                       cpu::BlasMatrix<const T>{b.view().as<T>(), k, true},
                                       cpu::BlasMatrix<T>{theirs.view().as<T>(), n, false}));
      }
    });
    for (std::int64_t i = 0; i < m * n; ++i) {
      ASSERT_TRUE(is_near(ours.get(i), theirs.get(i), 20 * tolerance(dtype))) << i;
    }
  }
}

}  // namespace
}  // namespace taper::testing
