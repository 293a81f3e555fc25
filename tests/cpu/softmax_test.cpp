// Softmax and its kin, along every dim, for short and long lines, against double.
#include "taper/tests/cpu/array.h"
#include "taper/tests/reference/reduce.h"

namespace taper::testing {
namespace {

using Sizes64 = std::vector<std::int64_t>;

Array random_array(std::uint64_t seed, DType dtype, const Sizes64& sizes, Form form) {
  Random random(seed);
  Array a(dtype, sizes, form);
  a.fill([&] { return random.uniform(-5, 5); });
  return a;
}

// The elements that share a line with element i, and its place in it.
std::vector<std::int64_t> line_of(const Layout& layout, int dim, std::int64_t i) {
  std::int64_t step = 1;
  for (int d = dim + 1; d < layout.ndim; ++d) step *= layout.sizes[d];
  const std::int64_t length = layout.ndim == 0 ? 1 : layout.sizes[dim];
  const std::int64_t first = i - i / step % length * step;
  std::vector<std::int64_t> out;
  for (std::int64_t k = 0; k < length; ++k) out.push_back(first + k * step);
  return out;
}

struct Shape {
  Sizes64 sizes;
  int dim;
};

const Shape kShapes[] = {{{}, 0},          {{1}, 0},      {{3, 10}, 1},  {{3, 10}, 0},
                         {{2, 21, 30}, 1}, {{4, 256}, 1}, {{4, 257}, 1}, {{600, 5}, 0},
                         {{2, 2500}, 1},   {{0, 4}, 1},   {{4, 0}, 1}};

struct Case {
  const char* name;
  Kernel<void(const Exec&, Out, In, int)> Kernels::*slot;
  bool log;
};

const Case kCases[] = {{"softmax", &Kernels::softmax, false},
                       {"log_softmax", &Kernels::log_softmax, true}};

TEST(Softmax, MatchesReference) {
  for (const Case& c : kCases) {
    for (const DType dtype : kFloating) {
      for (const Shape& shape : kShapes) {
        for (const Form form : kForms) {
          for (const Form out_form : kOutForms) {
            SCOPED_TRACE(std::string(c.name) + info(dtype).name + name(form) + name(out_form));
            const Array in = random_array(1, dtype, shape.sizes, form);
            std::vector<Array> results;
            for (const cpu::Column& column : runnable_columns()) {
              Array out(dtype, shape.sizes, out_form);
              (column.kernels->*c.slot)(Exec(kCPU), out.out(), in.in(), shape.dim);
              ASSERT_TRUE(out.is_pad_whole());
              results.push_back(out);
              ASSERT_TRUE(same_bits(results[0], out)) << column.isa;
            }
            for (std::int64_t i = 0; i < in.numel(); i += 1 + in.numel() / 12) {
              double total = 0;
              for (const std::int64_t k : line_of(in.layout(), shape.dim, i))
                total += std::exp(in.get(k));
              const double y = c.log ? in.get(i) - std::log(total) : std::exp(in.get(i)) / total;
              ASSERT_TRUE(is_near(results[0].get(i), y, tolerance(dtype)))
                  << i << " " << results[0].get(i) << " " << y;
            }
          }
        }
      }
    }
  }
}

TEST(Softmax, LayoutAndThreadsDoNotChangeBits) {
  for (const Case& c : kCases) {
    for (const DType dtype : {kFloat32, kFloat16}) {
      for (const Sizes64& sizes : {Sizes64{70, 700}, {1, 70000}, {1000, 12}}) {
        const Array model = random_array(1, dtype, sizes, Form::kContiguous);
        std::vector<Array> results;
        on_every_column([&](const Kernels& k) {
          for (const Form form : {Form::kContiguous, Form::kTransposed}) {
            const Array in = random_array(1, dtype, sizes, form);
            Array out(dtype, sizes, form);
            (k.*c.slot)(Exec(kCPU), out.out(), in.in(), 1);
            results.push_back(out);
            ASSERT_TRUE(same_bits(results[0], out)) << c.name << info(dtype).name << sizes[1];
          }
        });
      }
    }
  }
}

TEST(Softmax, LargeAndInfiniteNumbers) {
  Array in(kFloat32, {4, 3}), y(kFloat32, {4, 3}), log_y(kFloat32, {4, 3});
  const double values[] = {1000, 1000, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
                           NAN,  0,    1,         1,         -INFINITY, -INFINITY};
  const double expected[] = {0.5, 0.5, 0, NAN, NAN, NAN, NAN, NAN, NAN, 1, 0, 0};
  for (int i = 0; i < 12; ++i) in.set(i, values[i]);
  cpu_kernels().softmax(Exec(kCPU), y.out(), in.in(), 1);
  cpu_kernels().log_softmax(Exec(kCPU), log_y.out(), in.in(), 1);
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(is_near(y.get(i), expected[i], 1e-6)) << i << " " << y.get(i);
    EXPECT_TRUE(is_near(log_y.get(i), std::log(expected[i]), 1e-6)) << i << " " << log_y.get(i);
  }
}

// d softmax: (g - sum(g y)) y.  d log_softmax: g - exp(y) sum(g).
TEST(Softmax, GradientsMatchReference) {
  for (const DType dtype : kFloating) {
    for (const Shape& shape : kShapes) {
      for (const Form form : kForms) {
        const Array grad = random_array(2, dtype, shape.sizes, form);
        Array y = random_array(3, dtype, shape.sizes, Form::kTransposed);
        for (std::int64_t i = 0; i < y.numel(); ++i) y.set(i, std::abs(y.get(i)) / 50 - 3);
        std::vector<Array> results;
        for (const cpu::Column& column : runnable_columns()) {
          Array dx(dtype, shape.sizes, Form::kSliced), log_dx(dtype, shape.sizes);
          column.kernels->softmax_grad(Exec(kCPU), dx.out(), grad.in(), y.in(), shape.dim);
          column.kernels->log_softmax_grad(Exec(kCPU), log_dx.out(), grad.in(), y.in(), shape.dim);
          results.push_back(dx);
          results.push_back(log_dx);
          ASSERT_TRUE(same_bits(results[0], dx));
          ASSERT_TRUE(same_bits(results[1], log_dx));
        }
        for (std::int64_t i = 0; i < y.numel(); i += 1 + y.numel() / 12) {
          double dot = 0, total = 0, size = 1;
          for (const std::int64_t k : line_of(y.layout(), shape.dim, i)) {
            dot += grad.get(k) * y.get(k);
            total += grad.get(k);
            size += std::abs(grad.get(k) * y.get(k));
          }
          const double scale = tolerance(dtype) + 1e-7 * size * (dtype != kFloat64);
          ASSERT_TRUE(is_near(results[0].get(i), (grad.get(i) - dot) * y.get(i), 3 * scale))
              << results[0].get(i);
          ASSERT_TRUE(
              is_near(results[1].get(i), grad.get(i) - std::exp(y.get(i)) * total, 3 * scale))
              << results[1].get(i);
        }
      }
    }
  }
}

}  // namespace
}  // namespace taper::testing
