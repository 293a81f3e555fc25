// Gather, scatter and indexing, in every dtype and layout, against loops over coordinates.
#include <functional>

#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

using Sizes64 = std::vector<std::int64_t>;

Array random_array(std::uint64_t seed, DType dtype, const Sizes64& sizes, Form form) {
  Random random(seed);
  Array a(dtype, sizes, form);
  a.fill([&] {
    return dtype == kBool ? static_cast<double>(random.next() % 2)
                          : std::floor(random.uniform(0, 50));
  });
  return a;
}

Array random_index(
    std::uint64_t seed, const Sizes64& sizes, std::int64_t low, std::int64_t high, Form form) {
  Random random(seed);
  Array a(kInt64, sizes, form);
  a.fill([&] {
    return std::floor(random.uniform(static_cast<double>(low), static_cast<double>(high)));
  });
  return a;
}

Sizes64 coordinates(const Layout& layout, std::int64_t i) {
  Sizes64 at(static_cast<std::size_t>(layout.ndim));
  for (int d = layout.ndim - 1; d >= 0; --d) {
    at[static_cast<std::size_t>(d)] = i % layout.sizes[d];
    i /= layout.sizes[d];
  }
  return at;
}

std::int64_t number(const Layout& layout, const Sizes64& at) {
  std::int64_t i = 0;
  for (int d = 0; d < layout.ndim; ++d) i = i * layout.sizes[d] + at[static_cast<std::size_t>(d)];
  return i;
}

// What x[i] += y gives in the element type.
double added(DType dtype, double x, double y) {
  if (dtype == kBool) return x != 0 || y != 0;
  if (dtype == kUInt8) return std::fmod(x + y, 256);
  return stored_as(dtype, x + y);
}

// Calls move(number of the plain side, number of the indexed side) in row-major order.
template <class Move>
void for_each_move(const Layout& plain,
                   const Layout& indexed,
                   const Array& index,
                   int dim,
                   bool one_for_each,
                   const Move& move) {
  const Layout& range = one_for_each ? index.layout() : plain;
  for (std::int64_t i = 0; i < range.numel(); ++i) {
    Sizes64 at = coordinates(range, i);
    const std::int64_t from = number(plain, at);
    auto& along = at[static_cast<std::size_t>(dim)];
    along = static_cast<std::int64_t>(index.get(one_for_each ? i : along));
    move(from, number(indexed, at));
  }
}

struct Case {
  Sizes64 x, index, plain;  // sizes; index of gather and scatter
  int dim;
};

const Case kCases[] = {{{5}, {7}, {8}, 0},
                       {{5, 6}, {9, 4}, {9, 6}, 0},
                       {{5, 6}, {3, 9}, {4, 10}, 1},
                       {{3, 4, 70}, {2, 9, 65}, {2, 9, 70}, 1},
                       {{2, 3, 4, 5}, {2, 3, 4, 6}, {2, 3, 4, 6}, 3},
                       {{4, 5}, {0, 5}, {0, 5}, 0}};

TEST(Index, GatherAndScatterMatchLoops) {
  for (const cpu::Column& column : runnable_columns()) {
    for (const DType dtype : kDTypes) {
      for (const Case& c : kCases) {
        for (const Form form : kForms) {
          SCOPED_TRACE(str(column.isa, " ", info(dtype).name, " ", name(form), " dim ", c.dim));
          const std::int64_t size = c.x[static_cast<std::size_t>(c.dim)];
          const Array index = random_index(7, c.index, 0, size, form);
          const Array x = random_array(1, dtype, c.x, form);
          Array out(dtype, c.index, Form::kTransposed);
          column.kernels->gather(Exec(kCPU), out.out(), x.in(), index.in(), c.dim);
          ASSERT_TRUE(out.is_pad_whole());
          for_each_move(
              out.layout(), x.layout(), index, c.dim, true,
              [&](std::int64_t to, std::int64_t from) { ASSERT_EQ(out.get(to), x.get(from)); });

          const Array src = random_array(2, dtype, c.plain, form);
          for (const bool add : {false, true}) {
            Array self = random_array(3, dtype, c.x, Form::kSliced), expected = self;
            const auto& slot = add ? column.kernels->scatter_add : column.kernels->scatter;
            slot(Exec(kCPU), InOut{self.view()}, index.in(), src.in(), c.dim);
            for_each_move(src.layout(), self.layout(), index, c.dim, true,
                          [&](std::int64_t from, std::int64_t to) {
                            const double y = src.get(from);
                            expected.set(to, add ? added(dtype, expected.get(to), y) : y);
                          });
            ASSERT_TRUE(same_bits(self, expected)) << add;
            ASSERT_TRUE(self.is_pad_whole());
          }
        }
      }
    }
  }
}

TEST(Index, SelectAndAddMatchLoops) {
  for (const cpu::Column& column : runnable_columns()) {
    for (const DType dtype : kDTypes) {
      for (const Case& c : kCases) {
        for (const Form form : kForms) {
          SCOPED_TRACE(str(column.isa, " ", info(dtype).name, " ", name(form), " dim ", c.dim));
          const auto dim = static_cast<std::size_t>(c.dim);
          Sizes64 sizes = c.x;
          sizes[dim] = 11;
          const Array index = random_index(7, {11}, 0, c.x[dim], form);
          const Array x = random_array(1, dtype, c.x, form);
          Array out(dtype, sizes, Form::kSliced);
          column.kernels->index_select(Exec(kCPU), out.out(), x.in(), index.in(), c.dim);
          ASSERT_TRUE(out.is_pad_whole());
          for_each_move(
              out.layout(), x.layout(), index, c.dim, false,
              [&](std::int64_t to, std::int64_t from) { ASSERT_EQ(out.get(to), x.get(from)); });

          const Array src = random_array(2, dtype, sizes, form);
          Array self = random_array(3, dtype, c.x, Form::kTransposed), expected = self;
          column.kernels->index_add(Exec(kCPU), InOut{self.view()}, index.in(), src.in(), c.dim);
          for_each_move(src.layout(), self.layout(), index, c.dim, false,
                        [&](std::int64_t from, std::int64_t to) {
                          expected.set(to, added(dtype, expected.get(to), src.get(from)));
                        });
          ASSERT_TRUE(same_bits(self, expected));
        }
      }
    }
  }
}

// x (6, 5, 4) by indices (3, 2) for its first dims, of out's sizes with stride 0 over the rest.
TEST(Index, IndexAndPutMatchLoops) {
  for (const cpu::Column& column : runnable_columns()) {
    for (const DType dtype : kDTypes) {
      for (const int together : {1, 2, 3}) {
        SCOPED_TRACE(str(column.isa, " ", info(dtype).name, " ", together, " indices"));
        const Sizes64 sizes = {6, 5, 4};
        Sizes64 out_sizes = {3, 2};
        out_sizes.insert(out_sizes.end(), sizes.begin() + together, sizes.end());
        std::vector<Array> indices;
        for (int k = 0; k < together; ++k) {
          const std::int64_t size = sizes[static_cast<std::size_t>(k)];
          indices.push_back(random_index(static_cast<std::uint64_t>(k) + 5, {3, 2}, -size, size,
                                         Form::kTransposed));
          Layout& layout = indices.back().layout();
          for (std::size_t d = 2; d < out_sizes.size(); ++d) {
            layout.sizes[d] = out_sizes[d];
            layout.strides[d] = 0;
          }
          layout.ndim = static_cast<int>(out_sizes.size());
        }
        std::vector<In> views;
        for (const Array& index : indices) views.push_back(index.in());
        Array x = random_array(1, dtype, sizes, Form::kSliced);
        const auto place = [&](std::int64_t i) {
          const Sizes64 at = coordinates(contiguous_layout(out_sizes), i);
          Sizes64 to;
          for (int k = 0; k < together; ++k) {
            auto value = static_cast<std::int64_t>(indices[static_cast<std::size_t>(k)].get(i));
            to.push_back(value < 0 ? value + sizes[static_cast<std::size_t>(k)] : value);
          }
          to.insert(to.end(), at.begin() + 2, at.end());
          return number(x.layout(), to);
        };
        Array out(dtype, out_sizes, Form::kTransposed);
        column.kernels->index(Exec(kCPU), out.out(), x.in(), views);
        for (std::int64_t i = 0; i < out.numel(); ++i) ASSERT_EQ(out.get(i), x.get(place(i)));
        const Array src = random_array(2, dtype, out_sizes, Form::kReversed);
        for (const bool accumulate : {false, true}) {
          Array expected = x, self = x;
          column.kernels->index_put(Exec(kCPU), InOut{self.view()}, src.in(), views, accumulate);
          for (std::int64_t i = 0; i < src.numel(); ++i) {
            const double y = src.get(i), old = expected.get(place(i));
            expected.set(place(i), accumulate ? added(dtype, old, y) : y);
          }
          ASSERT_TRUE(same_bits(self, expected)) << accumulate;
          ASSERT_TRUE(self.is_pad_whole());
        }
      }
    }
  }
}

TEST(Index, SumsAreTheSameForAnyNumberOfThreads) {
  Random random(3);
  Array src(kFloat32, {5000, 70}), index = random_index(5, {5000}, 0, 10, Form::kContiguous);
  src.fill([&] { return random.uniform(-1, 1); });
  std::vector<Array> results;
  on_every_column([&](const Kernels& kernels) {
    Array self(kFloat32, {10, 70}), turned(kFloat32, {70, 10});
    kernels.index_add(Exec(kCPU), InOut{self.view()}, index.in(), src.in(), 0);
    Array across = src;
    across.layout() = transpose_layout(src.layout(), 0, 1);
    kernels.index_add(Exec(kCPU), InOut{turned.view()}, index.in(), across.in(), 1);
    results.push_back(self);
    EXPECT_TRUE(same_bits(results[0], self));
    turned.layout() = transpose_layout(turned.layout(), 0, 1);
    EXPECT_TRUE(same_bits(results[0], turned));
  });
}

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.message();
  }
  return "";
}

TEST(Index, OutOfRangeThrowsBeforeAnythingIsWritten) {
  const Kernels& k = cpu_kernels();
  const Array x = random_array(1, kFloat32, {5, 3}, Form::kContiguous);
  Array index(kInt64, {3}), grid(kInt64, {3, 3}),
      out = random_array(2, kFloat32, {3, 3}, Form::kContiguous);
  index.set(1, 7);
  grid.set(5, -1);
  const Array before = out, x_before = x;
  Array self = x;
  EXPECT_EQ(error_of([&] { k.index_select(Exec(kCPU), out.out(), x.in(), index.in(), 0); }),
            "index 7 is out of range for dim 0 of size 5");
  EXPECT_EQ(error_of([&] { k.gather(Exec(kCPU), out.out(), x.in(), grid.in(), 1); }),
            "index -1 is out of range for dim 1 of size 3");
  EXPECT_EQ(error_of([&] { k.scatter(Exec(kCPU), InOut{self.view()}, grid.in(), out.in(), 0); }),
            "index -1 is out of range for dim 0 of size 5");
  EXPECT_EQ(
      error_of([&] { k.scatter_add(Exec(kCPU), InOut{self.view()}, grid.in(), out.in(), 0); }),
      "index -1 is out of range for dim 0 of size 5");
  EXPECT_EQ(error_of([&] { k.index_add(Exec(kCPU), InOut{self.view()}, index.in(), out.in(), 0); }),
            "index 7 is out of range for dim 0 of size 5");
  Array low(kInt64, {3, 3}), high(kInt64, {3, 3});
  low.set(0, -6);
  high.set(8, 3);
  Array picked(kFloat32, {3, 3});
  const In wrong_low[] = {low.in(), grid.in()}, wrong_high[] = {grid.in(), high.in()};
  EXPECT_EQ(error_of([&] { k.index(Exec(kCPU), picked.out(), x.in(), InList(wrong_low, 2)); }),
            "index -6 is out of range for dim 0 of size 5");
  EXPECT_EQ(error_of([&] {
              k.index_put(Exec(kCPU), InOut{self.view()}, out.in(), InList(wrong_high, 2), true);
            }),
            "index 3 is out of range for dim 1 of size 3");
  EXPECT_TRUE(same_bits(out, before));
  EXPECT_TRUE(same_bits(self, x_before));
}

TEST(Index, NonzeroFindsWhatIsNotZeroInOrder) {
  for (const DType dtype : kDTypes) {
    for (const Form form : kForms) {
      for (const Sizes64& sizes : {Sizes64{}, {0}, {7}, {3, 0}, {4, 5, 6}, {130, 300}}) {
        if (sizes.size() == 2 && sizes[0] == 130 && (dtype != kFloat32 || form == Form::kExpanded))
          continue;
        Random random(9);
        Array x(dtype, sizes, form);
        x.fill([&] { return static_cast<double>(random.next() % 3 == 0); });
        if (x.numel() > 2 && is_floating_point(dtype) && form != Form::kExpanded) {
          x.set(0, -0.0);
          x.set(1, NAN);
        }
        std::vector<std::int64_t> expected;
        for (std::int64_t i = 0; i < x.numel(); ++i) {
          if (x.get(i) != 0) expected.push_back(i);
        }
        const auto found = static_cast<std::int64_t>(expected.size());
        on_every_column([&](const Kernels& kernels) {
          Array count(kInt64, {});
          kernels.count_nonzero(Exec(kCPU), count.out(), x.in());
          ASSERT_EQ(count.get(0), static_cast<double>(found));
          Array rows(kInt64, {found, x.layout().ndim}, Form::kTransposed);
          kernels.nonzero(Exec(kCPU), rows.out(), x.in());
          for (std::int64_t i = 0; i < found && x.layout().ndim > 0; ++i) {
            Sizes64 at;
            for (int d = 0; d < x.layout().ndim; ++d) {
              at.push_back(static_cast<std::int64_t>(rows.get(i * x.layout().ndim + d)));
            }
            ASSERT_EQ(number(x.layout(), at), expected[static_cast<std::size_t>(i)]);
          }
          ASSERT_TRUE(rows.is_pad_whole());
        });
      }
    }
  }
}

}  // namespace
}  // namespace taper::testing
