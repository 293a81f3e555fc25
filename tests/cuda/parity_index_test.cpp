// Gathers and scatters give the bits of the CPU column, where many lead to one place too.
#include "taper/taper.h"
#include "taper/tests/cuda/parity.h"
#include "taper/tests/message_of.h"

namespace taper::cuda {
namespace {

using Shape = std::vector<std::int64_t>;
using Put = Kernel<void(const Exec&, InOut, In index, In src, int dim)> Kernels::*;

constexpr Lie kLies[] = {Lie::kRowMajor,  Lie::kReversed,  Lie::kGaps,
                         Lie::kBackwards, Lie::kStretched, Lie::kOneNumber};

Lie lie_after(Lie lie, size_t steps) {
  return kLies[(static_cast<size_t>(lie) + steps) % 6];
}

Lie out_lie(Lie lie) {
  return kEveryOutLie[static_cast<size_t>(lie) % 4];
}

std::int64_t extent_of(const Shape& shape, int dim) {
  return shape.empty() ? 1 : shape[static_cast<size_t>(dim)];
}

// `walked`: the sizes of the index, and of what is plain; `indexed` may be larger.
void check_each(
    DType dtype, const Shape& walked, const Shape& indexed, int dim, Lie lie, Random& random) {
  SCOPED_TRACE(str(dtype, " ", IntArrayRef(walked), " of ", IntArrayRef(indexed), " along ", dim,
                   ", lie ", int(lie)));
  Twin index(kInt64, lay(lie_after(lie, 2), walked), random);
  index.draw_indices(random, 0, extent_of(indexed, dim));
  {
    Twin out(dtype, lay(out_lie(lie), walked), random), x(dtype, lay(lie, indexed), random);
    check(&Kernels::gather, out, in(x), in(index), dim);
  }
  for (const Put slot : {&Kernels::scatter, &Kernels::scatter_add}) {
    Twin out(dtype, lay(out_lie(lie), indexed), random), src(dtype, lay(lie, walked), random);
    check<InOut>(slot, out, in(index), in(src), dim);
  }
}

TEST(ParityOfIndex, GatherAndScatter) {
  Random random(1);
  for (const DType dtype : kEveryDType) {
    for (const Lie lie : kLies) {
      check_each(dtype, {}, {}, 0, lie, random);
      check_each(dtype, {9}, {1}, 0, lie, random);
      check_each(dtype, {0, 3}, {4, 3}, 0, lie, random);
      check_each(dtype, {1, 3}, {1, 3}, 1, lie, random);
      for (int dim = 0; dim < 3; ++dim) {
        check_each(dtype, {4, 9, 5}, {4, 9, 5}, dim, lie, random);
        check_each(dtype, {2, 7, 3}, {4, 9, 5}, dim, lie, random);
      }
    }
  }
}

TEST(ParityOfIndex, GatherAndScatterMany) {
  Random random(2);
  check_each(kFloat32, {3000}, {7}, 0, Lie::kRowMajor, random);
  check_each(kBool, {3000}, {7}, 0, Lie::kRowMajor, random);
  check_each(kFloat32, {15, 200}, {15, 70000}, 1, Lie::kRowMajor, random);
  check_each(kBFloat16, {500, 5}, {20, 5}, 0, Lie::kReversed, random);
}

void check_rows(DType dtype, const Shape& shape, int dim, std::int64_t n, Lie lie, Random& random) {
  SCOPED_TRACE(
      str(dtype, " ", n, " rows of ", IntArrayRef(shape), " along ", dim, ", lie ", int(lie)));
  Shape plain = shape;
  if (!plain.empty()) plain[static_cast<size_t>(dim)] = n;
  Twin index(kInt64, lay(lie_after(lie, 1), {n}), random);
  index.draw_indices(random, 0, extent_of(shape, dim));
  {
    Twin out(dtype, lay(out_lie(lie), plain), random), x(dtype, lay(lie, shape), random);
    check(&Kernels::index_select, out, in(x), in(index), dim);
  }
  Twin out(dtype, lay(out_lie(lie), shape), random), src(dtype, lay(lie, plain), random);
  check<InOut>(&Kernels::index_add, out, in(index), in(src), dim);
}

TEST(ParityOfIndex, SelectAndAdd) {
  Random random(3);
  for (const DType dtype : kEveryDType) {
    for (const Lie lie : kLies) {
      check_rows(dtype, {}, 0, 1, lie, random);
      check_rows(dtype, {6}, 0, 0, lie, random);
      for (int dim = 0; dim < 3; ++dim) {
        for (const std::int64_t n : {0, 1, 7, 40}) {
          check_rows(dtype, {4, 9, 5}, dim, n, lie, random);
        }
      }
    }
  }
  check_rows(kFloat32, {50, 33}, 0, 2500, Lie::kRowMajor, random);  // an embedding's gradient
  check_rows(kFloat16, {70000, 2}, 0, 2500, Lie::kRowMajor, random);
  check_rows(kFloat32, {3, 50}, 1, 2500, Lie::kRowMajor, random);
}

// x (shape), indexed along its first indices.size() dims by tensors that broadcast to `rows`.
void check_together(
    DType dtype, const Shape& shape, int together, const Shape& rows, Lie lie, Random& random) {
  SCOPED_TRACE(str(dtype, " ", IntArrayRef(rows), " of ", together, " dims of ", IntArrayRef(shape),
                   ", lie ", int(lie)));
  Shape plain = rows;
  plain.insert(plain.end(), shape.begin() + together, shape.end());
  std::vector<std::unique_ptr<Twin>> twins;
  AsList indices;
  for (int k = 0; k < together; ++k) {
    Layout layout = lay(lie_after(lie, static_cast<size_t>(k) + 3), rows);
    for (size_t d = rows.size(); d < plain.size(); ++d) {
      layout.sizes[layout.ndim] = plain[d];
      layout.strides[layout.ndim++] = 0;
    }
    twins.push_back(std::make_unique<Twin>(kInt64, layout, random));
    twins.back()->draw_indices(random, -extent_of(shape, k), extent_of(shape, k));
    indices.push_back(twins.back().get());
  }
  {
    Twin out(dtype, lay(out_lie(lie), plain), random), x(dtype, lay(lie, shape), random);
    check(&Kernels::index, out, in(x), indices);
  }
  for (const bool accumulate : {false, true}) {
    Twin x(dtype, lay(out_lie(lie), shape), random), src(dtype, lay(lie, plain), random);
    check<InOut>(&Kernels::index_put, x, in(src), indices, accumulate);
  }
}

TEST(ParityOfIndex, IndexAndPut) {
  Random random(4);
  for (const DType dtype : kEveryDType) {
    for (const Lie lie : kLies) {
      for (int together = 1; together <= 3; ++together) {
        for (const Shape& rows : {Shape{}, {0}, {1}, {30}, {4, 6}}) {
          check_together(dtype, {4, 9, 5}, together, rows, lie, random);
        }
      }
    }
  }
  check_together(kFloat32, {40, 30, 5}, 2, {2500}, Lie::kRowMajor, random);
  check_together(kInt32, {400, 300}, 2, {2500}, Lie::kRowMajor, random);
}

// Where all lead to one place, and where targets need more than 32 bits to be told apart.
TEST(ParityOfIndex, OnePlaceAndFarPlaces) {
  Random random(5);
  for (const DType dtype : {kFloat32, kFloat16}) {
    Twin out(dtype, contiguous_layout({1}), random), src(dtype, contiguous_layout({2500}), random);
    Twin index(kInt64, contiguous_layout({2500}), random);
    index.draw_indices(random, 0, 1);
    check<InOut>(&Kernels::scatter_add, out, in(index), in(src), 0);
    check<InOut>(&Kernels::index_add, out, in(index), in(src), 0);
    check<InOut>(&Kernels::scatter, out, in(index), in(src), 0);

    Layout far = contiguous_layout({std::int64_t{1} << 40});
    far.strides[0] = 0;  // an output that overlaps itself, for a test without a terabyte
    Twin one(dtype, far, random);
    Twin places(kInt64, contiguous_layout({2100}), random);
    places.draw_indices(random, (std::int64_t{1} << 40) - 1, std::int64_t{1} << 40);
    Twin few(dtype, contiguous_layout({2100}), random);
    check<InOut>(&Kernels::scatter_add, one, in(places), in(few), 0);
    check<InOut>(&Kernels::scatter, one, in(places), in(few), 0);
  }
}

// Whole numbers, whose sums are the same in any order.
TEST(ParityOfIndex, AtomicAddsGiveTheSums) {
  manual_seed(6);
  const Device device(kCUDA, 0);
  const Tensor index = randint(5, {3, 400}).t(), row = index.select(1, 0);
  for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8}) {
    const Tensor x = randint(3, {5, 3}).to(dtype), src = randint(2, {400, 3}).to(dtype);
    const Tensor there = x.to(device), from = src.to(device);
    const Tensor by = index.to(device), by_row = row.to(device);
    allow_atomic_adds(true);
    const Tensor scattered = there.scatter_add(0, by, from),
                 added = there.index_add(0, by_row, from);
    const Tensor put = index_put(there, {by_row}, from, true);
    allow_atomic_adds(false);
    EXPECT_TRUE(equal(scattered.cpu(), x.scatter_add(0, index, src))) << dtype;
    EXPECT_TRUE(equal(added.cpu(), x.index_add(0, row, src))) << dtype;
    EXPECT_TRUE(equal(put.cpu(), index_put(x, {row}, src, true))) << dtype;
  }
}

TEST(ParityOfIndex, AtomicAddsAreRefusedWhereOrderIsAskedFor) {
  const Device device(kCUDA, 0);
  const Tensor x = zeros({4}).to(device), src = ones({3}).to(device);
  const Tensor at = zeros({3}, kInt64).to(device);
  allow_atomic_adds(true);
  set_deterministic(true);
  const std::string scattered = message_of([&] { x.scatter_add(0, at, src); });
  const std::string added = message_of([&] { x.index_add(0, at, src); });
  const std::string put = message_of([&] { index_put(x, {at}, src, true); });
  EXPECT_NO_THROW(x.scatter(0, at, src));
  EXPECT_NO_THROW(zeros({4}).scatter_add(0, at.cpu(), src.cpu()));
  set_deterministic(false);
  allow_atomic_adds(false);
  for (const std::string& message : {scattered, added, put}) {
    EXPECT_NE(message.find("no deterministic kernel on cuda:0"), std::string::npos) << message;
  }
  EXPECT_NE(scattered.find("scatter_add"), std::string::npos) << scattered;
  EXPECT_NE(added.find("index_add"), std::string::npos) << added;
  EXPECT_NE(put.find("index_put"), std::string::npos) << put;
}

// The same error on both machines, for the first of several; nothing is written.
TEST(ParityOfIndex, IndicesOutOfRange) {
  Random random(6);
  for (const std::int64_t bad : {std::int64_t{5}, std::int64_t{-1}, std::int64_t{1} << 62,
                                 std::numeric_limits<std::int64_t>::min()}) {
    for (const Lie lie : {Lie::kRowMajor, Lie::kStretched}) {
      Twin x(kFloat32, contiguous_layout({5, 4}), random);
      Twin y(kFloat32, contiguous_layout({3, 4}), random);
      Twin index(kInt64, lay(lie, {3, 4}), random);
      index.draw_indices(random, 0, 5);
      index.put_index(3, bad);
      index.put_index(2, bad == -1 ? -7 : bad);
      check(&Kernels::gather, y, in(x), in(index), 0);
      check<InOut>(&Kernels::scatter, x, in(index), in(y), 0);
      check<InOut>(&Kernels::scatter_add, x, in(index), in(y), 0);
    }
  }
  Twin x(kFloat32, contiguous_layout({5, 4}), random), y(kFloat32, contiguous_layout({9}), random);
  Twin rows(kInt64, contiguous_layout({9}), random),
      columns(kInt64, contiguous_layout({9}), random);
  rows.draw_indices(random, -5, 5);
  for (const std::int64_t bad : {4, -5}) {  // in range along dim 0, and wrapping
    columns.draw_indices(random, -4, 4);
    columns.put_index(8, bad);
    check(&Kernels::index, y, in(x), AsList{&rows, &columns});
    check<InOut>(&Kernels::index_put, x, in(y), AsList{&rows, &columns}, true);
    rows.put_index(1, 100 + bad);
  }
}

TEST(ParityOfIndex, OutOfRangeIsAnErrorOfTheCaller) {
  Random random(7);
  Twin x(kFloat32, contiguous_layout({5}), random), y(kFloat32, contiguous_layout({3}), random);
  Twin index(kInt64, contiguous_layout({3}), random);
  index.draw_indices(random, 0, 5);
  index.put_index(1, 5);
  try {
    const Exec exec(Device(kCUDA, 0));
    cuda_kernels().gather(exec, y.on_cuda<Out>(), x.on_cuda<In>(), index.on_cuda<In>(), 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "index 5 is out of range for dim 0 of size 5");
  }
}

}  // namespace
}  // namespace taper::cuda
