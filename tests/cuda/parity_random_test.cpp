// The same seed and offset give the same random bits on both machines.
#include "taper/tests/cuda/parity.h"

namespace taper::cuda {
namespace {

using Draw = Kernels::Random Kernels::*;

struct Numbers {
  double a, b;
};

void check_draws(Draw slot, const std::vector<Numbers>& numbers, const std::vector<DType>& dtypes) {
  Random random(1);
  const std::vector<std::vector<std::int64_t>> shapes = {{},        {1},    {2},    {3},     {4},
                                                         {5, 7, 3}, {0, 3}, {4099}, {33, 64}};
  for (const DType dtype : dtypes) {
    for (const Lie lie : kEveryOutLie) {
      for (const auto& shape : shapes) {
        SCOPED_TRACE(where(slot, dtype, int(lie)) + str(" ", IntArrayRef(shape)));
        Twin out(dtype, lay(lie, shape), random);
        for (const Numbers& n : numbers) {
          check(slot, out, std::uint64_t{0x123456789abcdef}, std::uint64_t{7}, n.a, n.b);
        }
        // The counter's words carry into each other.
        check(slot, out, std::uint64_t{5}, (std::uint64_t{1} << 32) - 1, numbers[0].a,
              numbers[0].b);
      }
    }
  }
}

const std::vector<DType> kFloats = {kFloat64, kFloat32, kFloat16, kBFloat16};
const std::vector<DType> kAll(std::begin(kEveryDType), std::end(kEveryDType));

TEST(ParityOfRandom, Uniform) {
  check_draws(&Kernels::uniform, {{0, 1}, {-3, 0.5}, {1, 1.0078125}, {2, 2}}, kFloats);
}

TEST(ParityOfRandom, Normal) {
  check_draws(&Kernels::normal, {{0, 1}, {-2.5, 1e-3}, {1, 0}}, kFloats);
}

TEST(ParityOfRandom, Bernoulli) {
  check_draws(&Kernels::bernoulli, {{0.5, 0}, {0, 0}, {1, 0}, {1e-3, 0}}, kAll);
}

TEST(ParityOfRandom, Randint) {
  check_draws(&Kernels::randint, {{0, 10}, {-5, 250}, {0, 2}, {-4e18, 4e18}}, kAll);
}

// Memory that is not aligned to the four numbers of a block.
TEST(ParityOfRandom, OddPlacesInMemory) {
  Random random(2);
  for (const DType dtype : kAll) {
    SCOPED_TRACE(str(dtype));
    Twin out(dtype, contiguous_layout({1003}), random);
    const Layout rest = contiguous_layout({1000});
    const std::int64_t size = element_size(dtype);
    for (std::int64_t first = 0; first < 4; ++first) {
      const auto shifted = [&](const Out& all) {
        return Out{{all.as<std::byte>() + first * size, &rest, dtype}};
      };
      const Exec cpu(kCPU), cuda(Device(kCUDA, 0));
      cpu_kernels().randint(cpu, shifted(out.on_cpu<Out>()), 3, 4, -100, 100);
      cuda_kernels().randint(cuda, shifted(out.on_cuda<Out>()), 3, 4, -100, 100);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      compare(out);
    }
  }
}

}  // namespace
}  // namespace taper::cuda
