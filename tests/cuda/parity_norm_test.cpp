// Layer normalisation of the CUDA column gives the bits of the CPU column.
#include "taper/tests/cuda/parity.h"

namespace taper::cuda {
namespace {

using Sizes64 = std::vector<std::int64_t>;

constexpr DType kFloating[] = {kFloat64, kFloat32, kFloat16, kBFloat16};
constexpr Lie kOutputLies[] = {Lie::kRowMajor, Lie::kReversed, Lie::kGaps, Lie::kBackwards};
constexpr double kEps = 1e-5;

// All operands of one problem. x, y and their gradients are of one dtype, the rest of another.
struct Problem {
  Twin x, y, mean, rstd, weight, bias, grad, dx, dweight, dbias;

  Problem(DType dtype, DType others, const Sizes64& sizes, size_t lie, Random& random)
      : x(dtype, lay(kEveryLie[lie], sizes), random),
        y(dtype, lay(kOutputLies[(lie + 1) % 4], sizes), random),
        mean(others, lay(kOutputLies[lie % 4], {sizes[0]}), random),
        rstd(others, lay(kOutputLies[(lie + 1) % 4], {sizes[0]}), random),
        weight(others, lay(kEveryLie[(lie + 1) % 6], {sizes[1]}), random),
        bias(others, lay(kEveryLie[(lie + 2) % 6], {sizes[1]}), random),
        grad(dtype, lay(kEveryLie[(lie + 3) % 6], sizes), random),
        dx(dtype, lay(kOutputLies[(lie + 2) % 4], sizes), random),
        dweight(others, lay(kOutputLies[lie % 4], {sizes[1]}), random),
        dbias(others, lay(kOutputLies[(lie + 3) % 4], {sizes[1]}), random) {}

  void tame(Random& random) {
    for (Twin* twin : {&x, &weight, &bias, &grad}) twin->tame(random);
  }

  void check_rows() {
    forward(in(weight), in(bias));
    backward(Out{}, Out{}, in(weight));
  }

  void check_all() {
    forward(in(weight), In{});
    forward(In{}, in(bias));
    forward(In{}, In{});
    check_rows();
    backward(As<Out>{dweight}, As<Out>{dbias}, in(weight));
    backward(As<Out>{dweight}, Out{}, In{});
    backward(Out{}, As<Out>{dbias}, In{});
  }

 private:
  template <class Weight, class Bias> void forward(const Weight& w, const Bias& b) {
    check(&Kernels::layer_norm, y, As<Out>{mean}, As<Out>{rstd}, in(x), w, b, kEps);
    compare(mean);
    compare(rstd);
  }

  template <class Scale, class Shift, class Weight>
  void backward(const Scale& scale, const Shift& shift, const Weight& w) {
    check(&Kernels::layer_norm_grad, dx, scale, shift, in(grad), in(x), in(mean), in(rstd), w);
    compare(dweight);
    compare(dbias);
  }
};

void check_norm(DType dtype, DType others, const Sizes64& sizes, size_t lie) {
  SCOPED_TRACE(str(dtype, " and ", others, " ", IntArrayRef(sizes), ", lie ", lie));
  Random random(lie * 97 + static_cast<size_t>(sizes[0] * 31 + sizes[1]));
  Problem problem(dtype, others, sizes, lie, random);
  problem.check_all();  // with infinities and NaN
  problem.tame(random);
  problem.check_all();
}

TEST(ParityNorm, EveryPairOfDTypesAndEveryLie) {
  for (const DType dtype : kFloating) {
    for (const DType others : kFloating) {
      for (size_t lie = 0; lie < 6; ++lie) check_norm(dtype, others, {9, 37}, lie);
    }
  }
}

TEST(ParityNorm, Shapes) {
  const Sizes64 shapes[] = {{1, 1}, {1, 31}, {3, 64},    {70, 65}, {5, 131},
                            {0, 4}, {4, 0},  {1100, 40}, {1100, 3}};
  for (const Sizes64& sizes : shapes) {
    for (const DType dtype : kFloating) {
      check_norm(dtype, dtype == kFloat64 ? kFloat64 : kFloat32, sizes, 0);
    }
    check_norm(kFloat32, kFloat32, sizes, 1);
  }
}

TEST(ParityNorm, LongRowsGoThroughBlocks) {
  for (const DType dtype : {kFloat32, kBFloat16}) {
    for (const std::int64_t cols : {65536, 66000}) {
      SCOPED_TRACE(str(dtype, " ", cols));
      Random random(3);
      Problem problem(dtype, kFloat32, {2, cols}, 0, random);
      problem.tame(random);
      problem.check_rows();
    }
  }
}

TEST(ParityNorm, SumsOverManyRowsGoThroughBlocks) {
  check_norm(kFloat32, kFloat32, {65536, 2}, 0);
  check_norm(kFloat16, kFloat32, {66000, 3}, 0);
}

}  // namespace
}  // namespace taper::cuda
