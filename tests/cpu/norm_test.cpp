// Layer normalisation and its gradients, in every dtype and layout, against double.
#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

using Sizes64 = std::vector<std::int64_t>;

constexpr double kEps = 1e-5;

Array random_array(
    std::uint64_t seed, DType dtype, const Sizes64& sizes, Form form, double center = 0) {
  Random random(seed);
  Array a(dtype, sizes, form);
  a.fill([&] { return random.uniform(center - 2, center + 2); });
  return a;
}

const Sizes64 kShapes[] = {{1, 1}, {3, 5}, {70, 64}, {4, 513}, {131, 33}, {0, 4}, {2, 66000}};

struct Stats {
  double mean, rstd;
};

Stats stats(const Array& x, std::int64_t row) {
  const std::int64_t n = x.layout().sizes[1];
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x.get(row * n + i);
  const double mean = sum / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) squares += std::pow(x.get(row * n + i) - mean, 2);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(n) + kEps)};
}

TEST(LayerNorm, MatchesReference) {
  for (const DType dtype : kFloating) {
    for (const Sizes64& sizes : kShapes) {
      for (const Form form : kForms) {
        if (sizes[1] > 60000 && (form == Form::kSliced || dtype == kFloat64)) continue;
        for (const bool affine : {false, true}) {
          SCOPED_TRACE(str(info(dtype).name, " ", sizes[0], "x", sizes[1], " ", name(form)));
          const std::int64_t n = sizes[1];
          const Array x = random_array(1, dtype, sizes, form, 3);
          const Array weight =
              random_array(2, dtype, {n}, form == Form::kExpanded ? Form::kContiguous : form);
          const Array bias = random_array(3, dtype, {n}, Form::kContiguous);
          std::vector<Array> results;
          for (const cpu::Column& column : runnable_columns()) {
            Array y(dtype, sizes, Form::kTransposed), mean(dtype, {sizes[0]}),
                rstd(dtype, {sizes[0]}, Form::kSliced);
            column.kernels->layer_norm(Exec(kCPU), y.out(), mean.out(), rstd.out(), x.in(),
                                       affine ? weight.in() : In{}, affine ? bias.in() : In{},
                                       kEps);
            ASSERT_TRUE(y.is_pad_whole() && rstd.is_pad_whole());
            results.push_back(y);
            results.push_back(mean);
            results.push_back(rstd);
            for (int k = 0; k < 3; ++k) {
              ASSERT_TRUE(same_bits(results[static_cast<std::size_t>(k)],
                                    results[results.size() - 3 + static_cast<std::size_t>(k)]))
                  << column.isa;
            }
          }
          for (std::int64_t r = 0; r < sizes[0]; ++r) {
            const Stats s = stats(x, r);
            ASSERT_TRUE(is_near(results[1].get(r), s.mean, tolerance(dtype)));
            ASSERT_TRUE(is_near(results[2].get(r), s.rstd, 4 * tolerance(dtype)));
            for (std::int64_t i = 0; i < n; i += 3) {
              double want = (x.get(r * n + i) - s.mean) * s.rstd;
              if (affine) want = want * weight.get(i) + bias.get(i);
              ASSERT_TRUE(is_near(results[0].get(r * n + i), want, 4 * tolerance(dtype))) << i;
            }
          }
        }
      }
    }
  }
}

struct Grads {
  Array dx, dweight, dbias;
};

Grads run(
    const Kernels& kernels, const Array& grad, const Array& x, const Array* weight, Form out) {
  const Sizes64 sizes = {x.layout().sizes[0], x.layout().sizes[1]};
  Array mean(x.dtype(), {sizes[0]}), rstd(x.dtype(), {sizes[0]});
  for (std::int64_t r = 0; r < sizes[0]; ++r) {
    mean.set(r, stats(x, r).mean);
    rstd.set(r, stats(x, r).rstd);
  }
  Grads g{Array(x.dtype(), sizes, out), Array(x.dtype(), {sizes[1]}, out),
          Array(x.dtype(), {sizes[1]})};
  kernels.layer_norm_grad(Exec(kCPU), g.dx.out(), g.dweight.out(), g.dbias.out(), grad.in(), x.in(),
                          mean.in(), rstd.in(), weight != nullptr ? weight->in() : In{});
  EXPECT_TRUE(g.dx.is_pad_whole() && g.dweight.is_pad_whole());
  return g;
}

TEST(LayerNorm, GradientsMatchReference) {
  for (const DType dtype : kFloating) {
    for (const Sizes64& sizes : kShapes) {
      if (sizes[1] > 60000) continue;
      for (const Form form : kForms) {
        SCOPED_TRACE(str(info(dtype).name, " ", sizes[0], "x", sizes[1], " ", name(form)));
        const std::int64_t rows = sizes[0], n = sizes[1];
        const Array x = random_array(1, dtype, sizes, form),
                    grad = random_array(2, dtype, sizes, form);
        const Array weight = random_array(3, dtype, {n}, Form::kSliced);
        const Grads first = run(cpu_kernels(), grad, x, &weight, Form::kContiguous);
        for (const cpu::Column& column : runnable_columns()) {
          const Grads g = run(*column.kernels, grad, x, &weight, Form::kSliced);
          ASSERT_TRUE(same_bits(g.dx, first.dx) && same_bits(g.dweight, first.dweight) &&
                      same_bits(g.dbias, first.dbias))
              << column.isa;
        }
        std::vector<double> dweight(static_cast<std::size_t>(n)), dbias = dweight;
        for (std::int64_t r = 0; r < rows; ++r) {
          const double mean = stored_as(dtype, stats(x, r).mean),
                       rstd = stored_as(dtype, stats(x, r).rstd);
          double sum = 0, dot = 0;
          for (std::int64_t i = 0; i < n; ++i) {
            const double normal = (x.get(r * n + i) - mean) * rstd, g = grad.get(r * n + i);
            sum += g * weight.get(i);
            dot += g * weight.get(i) * normal;
            dweight[static_cast<std::size_t>(i)] += g * normal;
            dbias[static_cast<std::size_t>(i)] += g;
          }
          for (std::int64_t i = 0; i < n; ++i) {
            const double normal = (x.get(r * n + i) - mean) * rstd;
            const double want = rstd * (grad.get(r * n + i) * weight.get(i) -
                                        (sum + normal * dot) / static_cast<double>(n));
            ASSERT_TRUE(is_near(first.dx.get(r * n + i), want, 8 * rstd * tolerance(dtype))) << i;
          }
        }
        for (std::int64_t i = 0; i < n; ++i) {
          const double scale = 8 * std::sqrt(static_cast<double>(rows)) * tolerance(dtype);
          ASSERT_TRUE(is_near(first.dweight.get(i), dweight[static_cast<std::size_t>(i)], scale))
              << i;
          ASSERT_TRUE(is_near(first.dbias.get(i), dbias[static_cast<std::size_t>(i)], scale)) << i;
        }
      }
    }
  }
}

TEST(LayerNorm, UndefinedGradientsAreLeftOut) {
  const Array x = random_array(1, kFloat32, {5, 6}, Form::kContiguous),
              grad = random_array(2, kFloat32, {5, 6}, Form::kContiguous);
  const Grads both = run(cpu_kernels(), grad, x, nullptr, Form::kContiguous);
  Array mean(kFloat32, {5}), rstd(kFloat32, {5}), dx(kFloat32, {5, 6}), dbias(kFloat32, {6});
  for (std::int64_t r = 0; r < 5; ++r) mean.set(r, stats(x, r).mean), rstd.set(r, stats(x, r).rstd);
  cpu_kernels().layer_norm_grad(Exec(kCPU), dx.out(), Out{}, Out{}, grad.in(), x.in(), mean.in(),
                                rstd.in(), In{});
  EXPECT_TRUE(same_bits(dx, both.dx));
  cpu_kernels().layer_norm_grad(Exec(kCPU), Out{}, Out{}, dbias.out(), grad.in(), x.in(), mean.in(),
                                rstd.in(), In{});
  EXPECT_TRUE(same_bits(dbias, both.dbias));
}

TEST(LayerNorm, ThreadsDoNotChangeBits) {
  const Array x = random_array(1, kFloat32, {3000, 100}, Form::kContiguous);
  const Array grad = random_array(2, kFloat32, {3000, 100}, Form::kTransposed);
  const Array weight = random_array(3, kFloat32, {100}, Form::kContiguous);
  const Grads first = run(cpu_kernels(), grad, x, &weight, Form::kContiguous);
  on_every_column([&](const Kernels& kernels) {
    const Grads g = run(kernels, grad, x, &weight, Form::kContiguous);
    EXPECT_TRUE(same_bits(g.dx, first.dx) && same_bits(g.dweight, first.dweight) &&
                same_bits(g.dbias, first.dbias));
  });
}

}  // namespace
}  // namespace taper::testing
