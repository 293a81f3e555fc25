// Max and average pooling and their gradients against the definition, in every dtype and layout.
#include "taper/tests/cpu/array.h"
#include "taper/tests/reference/conv.h"

namespace taper::testing {
namespace {

using reference::Size4;

Array make(DType dtype, const Size4& s, Form form, bool channels_last = false) {
  Array a(dtype, {s.n, s.c, s.h, s.w}, form);
  if (channels_last)
    a.layout() = contiguous_layout({s.n, s.c, s.h, s.w}, MemoryFormat::kChannelsLast);
  return a;
}

Array random_array(
    std::uint64_t seed, DType dtype, const Size4& s, Form form, bool channels_last = false) {
  Random random(seed);
  Array a = make(dtype, s, form, channels_last);
  a.fill([&] { return std::floor(random.uniform(-20, 20)) / 4; });  // with many equals
  return a;
}

struct Problem {
  Size4 x, y;
  Window2d window;
};

Problem problem(
    Size4 x, std::int64_t k, std::int64_t s, std::int64_t p, std::int64_t d, bool ceil = false) {
  Problem out{x, x, {}};
  for (int i = 0; i < 2; ++i) {
    out.window.kernel[i] = k + i, out.window.stride[i] = s, out.window.padding[i] = p,
    out.window.dilation[i] = d;
    const std::int64_t length = i == 0 ? x.h : x.w;
    std::int64_t n = length + 2 * p - d * (k + i - 1) - 1 + (ceil ? s - 1 : 0);
    n = n / s + 1;
    if (ceil && (n - 1) * s >= length + p) --n;  // no window begins behind the end
    (i == 0 ? out.y.h : out.y.w) = n;
  }
  return out;
}

const Problem kMaxProblems[] = {
    problem({2, 3, 8, 9}, 2, 2, 0, 1), problem({1, 2, 7, 11}, 3, 1, 1, 1),
    problem({2, 2, 9, 9}, 3, 2, 1, 2, true), problem({0, 3, 4, 4}, 2, 2, 0, 1)};

TEST(MaxPool2d, MatchesDefinition) {
  for (const DType dtype : kFloating) {
    for (const Problem& p : kMaxProblems) {
      for (const Form form : kForms) {
        for (const bool last : {false, true}) {
          if (last && form != Form::kContiguous) continue;
          SCOPED_TRACE(str(info(dtype).name, " ", name(form), " ", p.x.h, " x ", p.x.w));
          Array x = random_array(1, dtype, p.x, form, last);
          if (x.numel() > 40 && form != Form::kExpanded)
            x.set(7, NAN), x.set(8, NAN), x.set(30, -INFINITY);
          std::vector<double> best(static_cast<std::size_t>(p.y.n * p.y.c * p.y.h * p.y.w),
                                   -INFINITY);
          std::vector<std::int64_t> place(best.size(), -1);
          reference::for_each_place(p.y, p.x, p.window, [&](std::int64_t o, std::int64_t i) {
            const auto k = static_cast<std::size_t>(o);
            const double value = x.get(i);
            const bool better =
                place[k] < 0 || value > best[k] || (std::isnan(value) && !std::isnan(best[k]));
            if (better) best[k] = value, place[k] = i % (p.x.h * p.x.w);
          });
          on_every_column([&](const Kernels& kernels) {
            Array y = make(dtype, p.y, Form::kSliced),
                  indices = make(kInt64, p.y, Form::kTransposed),
                  only = make(dtype, p.y, Form::kContiguous);
            kernels.max_pool2d(Exec(kCPU), y.out(), indices.out(), x.in(), p.window);
            kernels.max_pool2d(Exec(kCPU), only.out(), Out{}, x.in(), p.window);
            ASSERT_TRUE(y.is_pad_whole() && indices.is_pad_whole());
            ASSERT_TRUE(same_bits(y, only));
            for (std::int64_t i = 0; i < y.numel(); ++i) {
              ASSERT_TRUE(is_near(y.get(i), best[static_cast<std::size_t>(i)], 0)) << i;
              ASSERT_EQ(indices.get(i), static_cast<double>(place[static_cast<std::size_t>(i)]))
                  << i;
            }
            const Array grad =
                random_array(2, dtype, p.y, form == Form::kExpanded ? Form::kReversed : form, last);
            Array dx = make(dtype, p.x, Form::kTransposed);
            kernels.max_pool2d_grad(Exec(kCPU), dx.out(), grad.in(), indices.in());
            std::vector<double> want(static_cast<std::size_t>(x.numel()));
            const std::int64_t out_area = p.y.h * p.y.w, area = p.x.h * p.x.w;
            for (std::int64_t i = 0; i < grad.numel(); ++i) {
              want[static_cast<std::size_t>(i / out_area * area +
                                            place[static_cast<std::size_t>(i)])] += grad.get(i);
            }
            for (std::int64_t i = 0; i < dx.numel(); ++i) {
              ASSERT_TRUE(is_near(dx.get(i), want[static_cast<std::size_t>(i)], tolerance(dtype)))
                  << i;
            }
          });
        }
      }
    }
  }
}

TEST(AvgPool2d, MatchesDefinition) {
  Problem problems[] = {
      problem({2, 3, 8, 9}, 2, 2, 0, 1),        problem({1, 2, 7, 11}, 3, 1, 1, 1),
      problem({1, 2, 7, 11}, 3, 2, 1, 1, true), problem({1, 2, 7, 10}, 3, 2, 1, 1, true),
      problem({2, 2, 6, 6}, 2, 2, 1, 1),        problem({0, 3, 4, 4}, 2, 2, 0, 1)};
  problems[3].window.count_include_pad = false;
  problems[4].window.divisor_override = 3;
  for (const DType dtype : kFloating) {
    for (const Problem& p : problems) {
      for (const Form form : kForms) {
        SCOPED_TRACE(str(info(dtype).name, " ", name(form), " ", p.x.h, " x ", p.x.w));
        const Array x = random_array(1, dtype, p.x, form);
        const Array grad = random_array(2, dtype, p.y, form);
        std::vector<double> y(static_cast<std::size_t>(grad.numel())),
            dx(static_cast<std::size_t>(x.numel()));
        reference::for_each_place(p.y, p.x, p.window, [&](std::int64_t o, std::int64_t i) {
          const double divisor =
              reference::pool_divisor(p.x, p.window, o / p.y.w % p.y.h, o % p.y.w);
          y[static_cast<std::size_t>(o)] += x.get(i) / divisor;
          dx[static_cast<std::size_t>(i)] += grad.get(o) / divisor;
        });
        std::vector<Array> results;
        on_every_column([&](const Kernels& kernels) {
          Array out = make(dtype, p.y, Form::kSliced),
                back = make(dtype, p.x, Form::kContiguous, true);
          kernels.avg_pool2d(Exec(kCPU), out.out(), x.in(), p.window);
          kernels.avg_pool2d_grad(Exec(kCPU), back.out(), grad.in(), p.window);
          ASSERT_TRUE(out.is_pad_whole() && back.is_pad_whole());
          results.push_back(out);
          results.push_back(back);
          ASSERT_TRUE(same_bits(results[0], out) && same_bits(results[1], back));
          for (std::int64_t i = 0; i < out.numel(); ++i) {
            ASSERT_TRUE(is_near(out.get(i), y[static_cast<std::size_t>(i)], tolerance(dtype))) << i;
          }
          for (std::int64_t i = 0; i < back.numel(); ++i) {
            ASSERT_TRUE(is_near(back.get(i), dx[static_cast<std::size_t>(i)], 2 * tolerance(dtype)))
                << i;
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace taper::testing
