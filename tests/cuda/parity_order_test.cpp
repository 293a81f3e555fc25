// Sorting, the places of extremes, running sums and what is not zero: the bits of the CPU column.
#include "taper/tests/cuda/parity.h"

namespace taper::cuda {
namespace {

using Shape = std::vector<std::int64_t>;
using Arg = Kernel<void(const Exec&, Out, In, int)> Kernels::*;

constexpr Lie kLies[] = {Lie::kRowMajor,  Lie::kReversed,  Lie::kGaps,
                         Lie::kBackwards, Lie::kStretched, Lie::kOneNumber};

Lie out_lie(Lie lie) {
  return kEveryOutLie[(static_cast<size_t>(lie) + 1) % 4];
}

// --- argmax and argmin ---

// Over several dims too, which the slots can do, whatever dim they are told.
void check_arg(const Shape& shape, std::initializer_list<int> dims, Lie lie, Random& random) {
  for (const DType dtype : kEveryDType) {
    Twin x(dtype, lay(lie, shape), random);
    for (const Arg slot : {&Kernels::argmax, &Kernels::argmin}) {
      SCOPED_TRACE(where(slot, dtype, int(lie)) + str(" ", IntArrayRef(shape)));
      Twin out(kInt64, reduced(lay(Lie::kRowMajor, shape), dims), random);
      check(slot, out, in(x), dims.size() == 0 ? 0 : *dims.begin());
    }
  }
}

TEST(ParityOfOrder, ArgOverAnyDims) {
  Random random(1);
  for (const Lie lie : kLies) {
    check_arg({}, {}, lie, random);
    check_arg({1}, {0}, lie, random);
    check_arg({5, 7, 130}, {2}, lie, random);
    check_arg({5, 7, 130}, {1}, lie, random);
    check_arg({5, 7, 130}, {0, 1, 2}, lie, random);
    check_arg({6, 1}, {1}, lie, random);
    check_arg({3, 0, 4}, {1}, lie, random);
    check_arg({0, 4}, {1}, lie, random);
  }
  check_arg({1200, 3}, {1}, Lie::kRowMajor, random);  // a thread each
  check_arg({3, 1200}, {0}, Lie::kRowMajor, random);
}

TEST(ParityOfOrder, ArgOfManyPieces) {
  Random random(2);
  for (const std::int64_t n : {2048, 2049, 20001}) {
    check_arg({2, n}, {1}, Lie::kRowMajor, random);
    check_arg({n, 3}, {0}, Lie::kRowMajor, random);
  }
}

TEST(ParityOfOrder, ArgWithoutNaNAndWithTies) {
  Random random(3);
  for (const std::int64_t n : {1, 33, 5000}) {
    Twin few(kInt64, contiguous_layout({4, n}), random);
    few.draw_indices(random, -2, 3);
    Twin out(kInt64, reduced(contiguous_layout({4, n}), {1}), random);
    check(&Kernels::argmax, out, in(few), 1);
    check(&Kernels::argmin, out, in(few), 1);
    Twin floats(kFloat32, contiguous_layout({4, n}), random);
    check(&Kernels::copy, floats, in(few));
    check(&Kernels::argmax, out, in(floats), 1);
    check(&Kernels::argmin, out, in(floats), 1);
  }
}

// --- running sums ---

void check_scans(const Shape& shape, int dim, Lie lie, Random& random) {
  for (const DType dtype : kEveryDType) {
    Twin x(dtype, lay(lie, shape), random);
    for (const Arg slot : {&Kernels::cumsum, &Kernels::cumprod}) {
      SCOPED_TRACE(where(slot, dtype, int(lie)) + str(" ", IntArrayRef(shape), " along ", dim));
      Twin out(dtype, lay(out_lie(lie), shape), random);
      check(slot, out, in(x), dim);
    }
  }
}

TEST(ParityOfOrder, ScansAlongAnyDim) {
  Random random(4);
  for (const Lie lie : kLies) {
    check_scans({}, 0, lie, random);
    for (const std::int64_t n : {0, 1, 33, 257}) {
      check_scans({n}, 0, lie, random);
      for (int dim = 0; dim < 3; ++dim) {
        Shape shape = {3, 2, 5};
        shape[static_cast<size_t>(dim)] = n;
        check_scans(shape, dim, lie, random);
      }
    }
    check_scans({0, 5}, 1, lie, random);
  }
}

// No NaN and no overflow here: every bit of a sum of many blocks counts.
TEST(ParityOfOrder, LongScans) {
  Random random(5);
  for (const std::int64_t n : {512, 8193, 20001}) {
    for (const DType dtype : {kFloat64, kFloat32, kFloat16}) {
      for (int dim = 0; dim < 2; ++dim) {
        SCOPED_TRACE(str(dtype, " ", n, " along ", dim));
        const Layout layout = contiguous_layout(dim == 0 ? Shape{n, 3} : Shape{3, n});
        Twin x(dtype, layout, random), y(dtype, layout, random);
        check(&Kernels::uniform, x, std::uint64_t{1}, std::uint64_t{0}, -1.0, 1.0);
        check(&Kernels::cumsum, y, in(x), dim);
        check(&Kernels::uniform, x, std::uint64_t{2}, std::uint64_t{0}, 0.9, 1.1);
        check(&Kernels::cumprod, y, in(x), dim);
      }
    }
  }
}

TEST(ParityOfOrder, ScansInPlace) {
  Random random(6);
  for (const Lie lie : kEveryOutLie) {
    for (int dim = 0; dim < 2; ++dim) {
      SCOPED_TRACE(str("lie ", int(lie), " along ", dim));
      Twin x(kInt32, lay(lie, {290, 300}), random);
      check(&Kernels::cumsum, x, in(x), dim);
    }
  }
}

// --- sorting ---

void check_sort(DType dtype, const Shape& shape, int dim, Lie lie, Random& random) {
  Twin x(dtype, lay(lie, shape), random);
  for (const bool descending : {false, true}) {
    SCOPED_TRACE(str(dtype, " ", IntArrayRef(shape), " along ", dim, ", lie ", int(lie),
                     descending ? " descending" : ""));
    Twin values(dtype, lay(out_lie(lie), shape), random);
    Twin indices(kInt64, lay(kEveryOutLie[static_cast<size_t>(lie) % 4], shape), random);
    check(&Kernels::sort, values, As<Out>{indices}, in(x), dim, descending);
    compare(indices);
  }
}

TEST(ParityOfOrder, SortsAlongAnyDim) {
  Random random(7);
  for (const DType dtype : kEveryDType) {
    for (const Lie lie : kLies) {
      check_sort(dtype, {}, 0, lie, random);
      check_sort(dtype, {0, 5}, 1, lie, random);
      check_sort(dtype, {5, 0}, 1, lie, random);
      for (const std::int64_t n : {1, 2, 3, 33, 128}) {
        for (int dim = 0; dim < 3; ++dim) {
          Shape shape = {3, 2, 5};
          shape[static_cast<size_t>(dim)] = n;
          check_sort(dtype, shape, dim, lie, random);
        }
      }
    }
  }
}

// The longest lines that one block sorts, and lines of several tiles.
TEST(ParityOfOrder, SortsLongLines) {
  Random random(8);
  for (const DType dtype : {kFloat32, kInt64}) {
    check_sort(dtype, {2048}, 0, Lie::kRowMajor, random);
    check_sort(dtype, {4500}, 0, Lie::kBackwards, random);
  }
  for (const DType dtype : kEveryDType) check_sort(dtype, {2049, 2}, 0, Lie::kRowMajor, random);
  check_sort(kUInt8, {2500}, 0, Lie::kOneNumber, random);
}

// --- what is not zero ---

TEST(ParityOfOrder, NonzeroAndItsCount) {
  Random random(9);
  for (const DType dtype : kEveryDType) {
    for (const Lie lie : kLies) {
      for (const Shape& shape :
           {Shape{}, {1}, {7}, {3, 1, 5}, {4, 33, 6}, {0, 3}, {3, 0}, {5, 101}, {2, 5, 17, 57}}) {
        SCOPED_TRACE(str(dtype, " ", IntArrayRef(shape), ", lie ", int(lie)));
        Twin x(dtype, lay(lie, shape), random);
        Twin count(kInt64, contiguous_layout({}), random);
        check(&Kernels::count_nonzero, count, in(x));
        const std::int64_t n = *count.on_cpu<In>().as<const std::int64_t>();
        const auto ndim = static_cast<std::int64_t>(shape.size());
        Twin rows(kInt64, lay(out_lie(lie), {n, ndim}), random);
        check(&Kernels::nonzero, rows, in(x));
      }
    }
  }
}

TEST(ParityOfOrder, NonzeroOfManyChunks) {
  Random random(10);
  for (const DType dtype : {kBool, kFloat16, kFloat64}) {
    Twin x(dtype, contiguous_layout({3, 50001}), random);
    check(&Kernels::bernoulli, x, std::uint64_t{1}, std::uint64_t{0}, 0.3, 0.0);
    Twin count(kInt64, contiguous_layout({}), random);
    check(&Kernels::count_nonzero, count, in(x));
    const std::int64_t n = *count.on_cpu<In>().as<const std::int64_t>();
    EXPECT_GT(n, 40000);
    Twin rows(kInt64, contiguous_layout({n, 2}), random);
    check(&Kernels::nonzero, rows, in(x));
  }
}

}  // namespace
}  // namespace taper::cuda
