// Reductions: the exact order of additions, every layout and dtype, NaN, ties and nothing at all.
#include "taper/tests/reference/reduce.h"

#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

using Sizes64 = std::vector<std::int64_t>;

// An output for the reduction of `in` over the dims of `mask`, as the slots want it: the input's
// sizes, stride 0 along what is reduced.
struct Target {
  Array array;
  Layout layout;

  Target(DType dtype, const Layout& in, unsigned mask, Form form = Form::kContiguous)
      : array(dtype, kept_sizes(in, mask), form), layout(in) {
    int k = 0;
    for (int d = 0; d < in.ndim; ++d) {
      layout.strides[d] = (mask >> d & 1U) != 0 ? 0 : array.layout().strides[k++];
    }
  }

  Out out() { return {{array.view().data, &layout, array.dtype()}}; }

  static Sizes64 kept_sizes(const Layout& in, unsigned mask) {
    Sizes64 sizes;
    for (int d = 0; d < in.ndim; ++d) {
      if ((mask >> d & 1U) == 0) sizes.push_back(in.sizes[d]);
    }
    return sizes;
  }
};

// The elements that each output reduces, in row-major order of the reduced dims.
std::vector<std::vector<double>> sequences(const Array& in, unsigned mask) {
  const Layout& layout = in.layout();
  std::int64_t outputs = 1;
  for (const std::int64_t n : Target::kept_sizes(layout, mask)) outputs *= n;
  std::vector<std::vector<double>> out(static_cast<std::size_t>(outputs));
  for (std::int64_t i = 0; i < in.numel(); ++i) {
    std::int64_t rest = i, kept = 0, scale = 1;
    for (int d = layout.ndim - 1; d >= 0; --d) {
      const std::int64_t at = rest % layout.sizes[d];
      rest /= layout.sizes[d];
      if ((mask >> d & 1U) != 0) continue;
      kept += at * scale;
      scale *= layout.sizes[d];
    }
    out[static_cast<std::size_t>(kept)].push_back(in.get(i));
  }
  return out;
}

template <class T> std::vector<T> as(const std::vector<double>& x) {
  std::vector<T> out;
  for (const double v : x) out.push_back(static_cast<T>(v));
  return out;
}

// A sum by the rule, in the type that the dtype is summed in.
double ruled_sum(DType dtype, const std::vector<double>& x) {
  if (dtype == kFloat64) return reference::sum(x);
  if (is_floating_point(dtype)) return static_cast<double>(reference::sum(as<float>(x)));
  return static_cast<double>(reference::sum(as<std::int64_t>(x)));
}

Array random_array(DType dtype, const Sizes64& sizes, Form form, double low = -3, double high = 3) {
  Random random(5);
  Array a(dtype, sizes, form);
  a.fill([&] {
    const double x = random.uniform(dtype == kUInt8 ? 0 : low, high);
    return is_floating_point(dtype) ? x : std::floor(x);
  });
  return a;
}

DType sum_dtype(DType dtype) {
  return is_integral(dtype, true) ? kInt64 : dtype;
}

struct Shape {
  Sizes64 sizes;
  std::vector<unsigned> masks;  // bit d: dim d is reduced
};

const Shape kShapes[] = {
    {{}, {0}},
    {{7}, {0, 1}},
    {{200}, {1}},
    {{3, 70}, {1, 2, 3}},
    {{150, 9}, {1, 2, 3}},
    {{5, 4, 130}, {1, 2, 4, 5, 6, 3, 7}},
    {{2, 3, 8, 65}, {1, 2, 4, 8, 13, 10, 15}},
    {{3, 0, 2}, {1, 2, 4, 7}},
};

TEST(Reduce, SumKeepsTheRuleForEveryLayoutAndDType) {
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : kShapes) {
      for (const Form form : kForms) {
        const Array in = random_array(dtype, shape.sizes, form);
        for (const unsigned mask : shape.masks) {
          std::vector<double> expected;
          for (const auto& x : sequences(in, mask)) {
            expected.push_back(stored_as(sum_dtype(dtype), ruled_sum(dtype, x)));
          }
          for (const Form out_form : kOutForms) {
            SCOPED_TRACE(std::string(info(dtype).name) + " " + name(form) + " mask " +
                         std::to_string(mask) + " to " + name(out_form));
            for (const cpu::Column& column : runnable_columns()) {
              Target target(sum_dtype(dtype), in.layout(), mask, out_form);
              column.kernels->sum(Exec(kCPU), target.out(), in.in());
              ASSERT_TRUE(target.array.is_pad_whole());
              for (std::int64_t o = 0; o < target.array.numel(); ++o) {
                ASSERT_EQ(target.array.get(o), expected[static_cast<std::size_t>(o)])
                    << column.isa << " output " << o;
              }
            }
          }
        }
      }
    }
  }
}

// Several blocks, by output and by column, and both ends of the lanes.
TEST(Reduce, LongSumsAreCutIntoBlocks) {
  const Sizes64 all[] = {{65536}, {65537}, {200000}, {70000, 5}, {300, 700}, {2, 131072 + 63}};
  for (const DType dtype : {kFloat32, kBFloat16, kFloat64}) {
    for (const Sizes64& sizes : all) {
      for (const unsigned mask : {1u, 2u, 3u}) {
        if (mask >> sizes.size() != 0) continue;
        const Array in = random_array(
            dtype, sizes,
            sizes.size() == 2 && sizes[0] == 300 ? Form::kTransposed : Form::kContiguous);
        std::vector<double> expected;
        for (const auto& x : sequences(in, mask)) {
          expected.push_back(stored_as(dtype, ruled_sum(dtype, x)));
        }
        on_every_column([&](const Kernels& k) {
          Target target(dtype, in.layout(), mask);
          k.sum(Exec(kCPU), target.out(), in.in());
          for (std::int64_t o = 0; o < target.array.numel(); ++o) {
            ASSERT_EQ(target.array.get(o), expected[static_cast<std::size_t>(o)])
                << info(dtype).name << " " << sizes[0] << " mask " << mask;
          }
        });
      }
    }
  }
}

TEST(Reduce, SumIsCloseToTheExactOne) {
  const Array in = random_array(kFloat32, {1000000}, Form::kContiguous, 0, 1);
  Target target(kFloat32, in.layout(), 1);
  cpu_kernels().sum(Exec(kCPU), target.out(), in.in());
  const double exact = reference::sum_in_double(sequences(in, 1)[0]);
  EXPECT_NEAR(target.array.get(0), exact, 1e-6 * exact);
}

struct Extreme {
  Kernels::Unary Kernels::*slot;
  Kernel<void(const Exec&, Out, In, int)> Kernels::*arg;
  bool (*better)(double x, double best);
};

const Extreme kExtremes[] = {
    {&Kernels::amax, &Kernels::argmax, [](double x, double best) { return x > best; }},
    {&Kernels::amin, &Kernels::argmin, [](double x, double best) { return x < best; }},
};

std::size_t best_of(const Extreme& e, const std::vector<double>& x) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < x.size() && !std::isnan(x[best]); ++i) {
    if (std::isnan(x[i]) || e.better(x[i], x[best])) best = i;
  }
  return best;
}

TEST(Reduce, ExtremesOfEveryLayoutAndDType) {
  for (const Extreme& e : kExtremes) {
    for (const DType dtype : kDTypes) {
      for (const Shape& shape : kShapes) {
        for (const Form form : kForms) {
          Array in = random_array(dtype, shape.sizes, form, -40, 40);
          if (in.numel() == 0) continue;
          if (is_floating_point(dtype)) {
            in.set(in.numel() / 2, NAN);
            in.set(in.numel() / 3, NAN);
          }
          for (const unsigned mask : shape.masks) {
            const auto all = sequences(in, mask);
            for (const cpu::Column& column : runnable_columns()) {
              Target target(dtype, in.layout(), mask, Form::kSliced),
                  index(kInt64, in.layout(), mask);
              (column.kernels->*e.slot)(Exec(kCPU), target.out(), in.in());
              const int dim = __builtin_ctz(mask | 1U << 31);
              const bool one_dim = (mask & (mask - 1)) == 0 && mask != 0;
              if (one_dim) (column.kernels->*e.arg)(Exec(kCPU), index.out(), in.in(), dim);
              for (std::int64_t o = 0; o < target.array.numel(); ++o) {
                const std::vector<double>& x = all[static_cast<std::size_t>(o)];
                const std::size_t best = best_of(e, x);
                ASSERT_TRUE(is_near(target.array.get(o), x[best], 0))
                    << info(dtype).name << name(form) << mask;
                if (one_dim) {
                  ASSERT_EQ(index.array.get(o), static_cast<double>(best))
                      << info(dtype).name << name(form) << mask;
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(Reduce, ArgmaxOfALongLineIsTheFirst) {
  for (const std::int64_t at : {0, 63, 511, 65535, 65536, 150000}) {
    Array in(kFloat32, {200000});
    for (const std::int64_t i : {at, at + 1, std::int64_t{199999}}) in.set(i, 1);
    on_every_column([&](const Kernels& k) {
      Target index(kInt64, in.layout(), 1);
      k.argmax(Exec(kCPU), index.out(), in.in(), 0);
      EXPECT_EQ(index.array.get(0), static_cast<double>(at));
    });
  }
}

TEST(Reduce, OfNothing) {
  const Array in(kFloat32, {0, 3});
  Target sum(kFloat32, in.layout(), 1), none(kFloat32, in.layout(), 2);
  const Kernels& k = cpu_kernels();
  k.sum(Exec(kCPU), sum.out(), in.in());
  EXPECT_EQ(sum.array.get(2), 0);
  k.prod(Exec(kCPU), sum.out(), in.in());
  EXPECT_EQ(sum.array.get(0), 1);
  k.amax(Exec(kCPU), none.out(), in.in());  // no output either: fine
  EXPECT_THROW(k.amax(Exec(kCPU), sum.out(), in.in()), Error);
  Target index(kInt64, in.layout(), 1);
  EXPECT_THROW(k.argmin(Exec(kCPU), index.out(), in.in(), 0), Error);
  Target mean(kFloat32, in.layout(), 1);
  k.var_mean(Exec(kCPU), sum.out(), mean.out(), in.in(), 1);
  EXPECT_TRUE(std::isnan(sum.array.get(0)) && std::isnan(mean.array.get(0)));
}

TEST(Reduce, ProductsMatchReference) {
  for (const DType dtype : {kFloat64, kFloat32, kInt64, kInt32, kUInt8, kBool}) {
    const Array in = random_array(dtype, {12, 9}, Form::kTransposed, 1, 3);
    for (const unsigned mask : {1u, 2u}) {
      const auto all = sequences(in, mask);
      Target target(sum_dtype(dtype), in.layout(), mask);
      cpu_kernels().prod(Exec(kCPU), target.out(), in.in());
      for (std::int64_t o = 0; o < target.array.numel(); ++o) {
        double expected = 1;
        for (const double x : all[static_cast<std::size_t>(o)]) expected *= x;
        EXPECT_TRUE(is_near(target.array.get(o), expected, tolerance(sum_dtype(dtype))));
      }
    }
  }
}

TEST(Reduce, VarianceTakesTwoPasses) {
  for (const DType dtype : kFloating) {
    for (const Shape& shape : kShapes) {
      const Array in = random_array(dtype, shape.sizes, Form::kTransposed, 999, 1001);
      if (in.numel() == 0) continue;
      for (const unsigned mask : shape.masks) {
        const auto all = sequences(in, mask);
        Target var(dtype, in.layout(), mask, Form::kSliced), mean(dtype, in.layout(), mask);
        cpu_kernels().var_mean(Exec(kCPU), var.out(), mean.out(), in.in(), 1);
        for (std::int64_t o = 0; o < mean.array.numel(); ++o) {
          const std::vector<double>& x = all[static_cast<std::size_t>(o)];
          const double n = static_cast<double>(x.size()), center = reference::sum_in_double(x) / n;
          double squares = 0;
          for (const double v : x) squares += (v - center) * (v - center);
          EXPECT_TRUE(is_near(mean.array.get(o), stored_as(dtype, center), tolerance(dtype)));
          // A mean of 1000 that is wrong by one part in 2^24 shifts the squares by 1e-8 of it.
          EXPECT_TRUE(
              is_near(var.array.get(o), stored_as(dtype, squares / (n - 1)), 4 * tolerance(dtype)))
              << var.array.get(o) << " " << squares / (n - 1);
        }
      }
    }
  }
}

TEST(Reduce, SignOfZeroDoesNotDependOnTheWay) {
  for (const std::int64_t n : {1, 3, 63, 64, 70}) {
    Array in(kFloat32, {n, 8});
    in.fill([] { return -0.0; });
    for (const unsigned mask : {1u, 2u, 3u}) {
      Target target(kFloat32, in.layout(), mask);
      cpu_kernels().sum(Exec(kCPU), target.out(), in.in());
      EXPECT_FALSE(std::signbit(target.array.get(0))) << n << " mask " << mask;
    }
  }
}

// One byte stands for 2^31 + 8 of them.
TEST(Reduce, CountsBeyond32Bits) {
  Array in(kBool, {1});
  in.set(0, 1);
  in.layout().sizes[0] = (std::int64_t{1} << 31) + 8;
  in.layout().strides[0] = 0;
  Array out(kInt64, {});
  Layout layout = in.layout();
  cpu_kernels().sum(Exec(kCPU), Out{{out.view().data, &layout, kInt64}}, in.in());
  EXPECT_EQ(out.get(0), 2147483656.0);
}

}  // namespace
}  // namespace taper::testing
