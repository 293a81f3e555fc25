// Running sums and products, their order of additions, and sorting.
#include <algorithm>

#include "taper/tests/cpu/array.h"
#include "taper/tests/reference/reduce.h"

namespace taper::testing {
namespace {

using Sizes64 = std::vector<std::int64_t>;

struct Shape {
  Sizes64 sizes;
  int dim;
};

const Shape kShapes[] = {{{}, 0},          {{1}, 0},      {{3, 10}, 1},   {{300, 7}, 0},
                         {{2, 21, 30}, 1}, {{4, 513}, 1}, {{2, 1000}, 1}, {{700, 2}, 0},
                         {{0, 4}, 1},      {{4, 0}, 1}};

Array random_array(DType dtype, const Sizes64& sizes, Form form, double low, double high) {
  Random random(3);
  Array a(dtype, sizes, form);
  a.fill([&] {
    const double x = random.uniform(low, high);
    return is_floating_point(dtype) ? x : std::floor(x);
  });
  return a;
}

// First elements of the lines along dim, and the step from one element to the next.
std::vector<std::int64_t> starts(const Layout& layout,
                                 int dim,
                                 std::int64_t& step,
                                 std::int64_t& length) {
  step = 1;
  for (int d = dim + 1; d < layout.ndim; ++d) step *= layout.sizes[d];
  length = layout.ndim == 0 ? 1 : layout.sizes[dim];
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < layout.numel(); ++i) {
    if (i / step % length == 0) out.push_back(i);
  }
  return out;
}

template <class T, class Op>
void check_scan(const Array& in, const Array& out, int dim, const Op& op) {
  std::int64_t step = 0, length = 0;
  for (const std::int64_t first : starts(in.layout(), dim, step, length)) {
    std::vector<T> x;
    for (std::int64_t k = 0; k < length; ++k) x.push_back(static_cast<T>(in.get(first + k * step)));
    const std::vector<T> y = reference::scan(x, op);
    for (std::int64_t k = 0; k < length; ++k) {
      ASSERT_EQ(out.get(first + k * step),
                stored_as(out.dtype(), static_cast<double>(y[static_cast<std::size_t>(k)])))
          << k;
    }
  }
}

TEST(Scan, KeepsTheRule) {
  for (const DType dtype : kDTypes) {
    const DType to = is_integral(dtype, true) ? kInt64 : dtype;
    for (const Shape& shape : kShapes) {
      for (const Form form : kForms) {
        for (const Form out_form : kOutForms) {
          SCOPED_TRACE(std::string(info(dtype).name) + name(form) + name(out_form));
          const Array in = random_array(dtype, shape.sizes, form, 0, 2);
          for (const cpu::Column& column : runnable_columns()) {
            Array sum(to, shape.sizes, out_form), prod(to, shape.sizes, out_form);
            column.kernels->cumsum(Exec(kCPU), sum.out(), in.in(), shape.dim);
            column.kernels->cumprod(Exec(kCPU), prod.out(), in.in(), shape.dim);
            ASSERT_TRUE(sum.is_pad_whole());
            const auto check = [&](auto type) {
              using T = decltype(type);
              check_scan<T>(in, sum, shape.dim, [](T a, T b) { return a + b; });
              check_scan<T>(in, prod, shape.dim, [](T a, T b) { return a * b; });
            };
            if (dtype == kFloat64) check(double());
            else if (is_floating_point(dtype)) check(float());
            else check(std::int64_t());
          }
        }
      }
    }
  }
}

bool sorts_before(double a, double b, bool descending) {
  if (std::isnan(a) || std::isnan(b))
    return descending ? std::isnan(a) && !std::isnan(b) : std::isnan(b) && !std::isnan(a);
  return descending ? a > b : a < b;
}

TEST(Sort, IsStableWithNanLast) {
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : kShapes) {
      for (const Form form : kForms) {
        for (const bool descending : {false, true}) {
          Array in = random_array(dtype, shape.sizes, form, 0, 20);  // many equals
          for (std::int64_t i = 0; i < in.numel() && is_floating_point(dtype); i += 11) {
            in.set(i, i % 3 == 0 ? std::nan("") : i % 3 == 1 ? -0.0 : 0.0);
          }
          Array values(dtype, shape.sizes, Form::kSliced),
              indices(kInt64, shape.sizes, form == Form::kExpanded ? Form::kContiguous : form);
          cpu_kernels().sort(Exec(kCPU), values.out(), indices.out(), in.in(), shape.dim,
                             descending);
          std::int64_t step = 0, length = 0;
          for (const std::int64_t first : starts(in.layout(), shape.dim, step, length)) {
            std::vector<std::int64_t> order;
            for (std::int64_t k = 0; k < length; ++k) order.push_back(k);
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
              return sorts_before(in.get(first + a * step), in.get(first + b * step), descending);
            });
            for (std::int64_t k = 0; k < length; ++k) {
              const std::int64_t from = order[static_cast<std::size_t>(k)];
              ASSERT_EQ(indices.get(first + k * step), static_cast<double>(from))
                  << info(dtype).name << name(form);
              ASSERT_EQ(values.bits(first + k * step), in.bits(first + from * step));
            }
          }
        }
      }
    }
  }
}

TEST(Sort, LongLinesAreMergedFromSegments) {
  const std::int64_t n = 100003;
  const Array in = random_array(kInt32, {2, n}, Form::kContiguous, 0, 5000);
  on_every_column([&](const Kernels& k) {
    Array values(kInt32, {2, n}), indices(kInt64, {2, n});
    k.sort(Exec(kCPU), values.out(), indices.out(), in.in(), 1, true);
    for (std::int64_t row = 0; row < 2 * n; row += n) {
      for (std::int64_t i = row + 1; i < row + n; ++i) {
        ASSERT_TRUE(values.get(i) < values.get(i - 1) ||
                    (values.get(i) == values.get(i - 1) && indices.get(i) > indices.get(i - 1)));
      }
    }
  });
}

}  // namespace
}  // namespace taper::testing
