// One seed gives one sequence of numbers, on whatever device they are drawn.
#include <functional>

#include "taper/tests/cuda/ops/same_bits.h"

namespace taper::cuda {
namespace {

using Draws = std::function<std::vector<Tensor>(Device)>;

// The same draws after the same seed, twice on each device: the generator must also stand where it
// stood on the CPU after them.
void expect_same_draws(const char* what, const Draws& draws) {
  for (const std::uint64_t seed : {0ULL, 1ULL, 0xffffffffffffffffULL}) {
    manual_seed(seed);
    const std::vector<Tensor> cpu = draws(kCPU);
    const std::uint64_t offset = default_generator().state().offset;
    const std::vector<Tensor> next = draws(kCPU);
    manual_seed(seed);
    const std::vector<Tensor> cuda = draws(kFirst);
    EXPECT_EQ(default_generator().state().offset, offset) << what;
    ASSERT_EQ(cpu.size(), cuda.size());
    for (std::size_t i = 0; i < cpu.size(); ++i) {
      EXPECT_EQ(cuda[i].device(), kFirst) << what;
      expect_same_bits(cpu[i], cuda[i], str(what, ", draw ", i));
    }
    const std::vector<Tensor> then = draws(kFirst);
    for (std::size_t i = 0; i < next.size(); ++i) {
      expect_same_bits(next[i], then[i], str(what, ", once more, draw ", i));
    }
  }
}

TensorOptions on(Device device, DType dtype = kFloat32) {
  return TensorOptions(dtype).device(device);
}

TEST(SameSeeds, NewTensors) {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{}, {0, 3}, {1}, {5, 7}, {3, 1, 1000}}) {
      expect_same_draws("floats", [&](Device d) -> std::vector<Tensor> {
        const Tensor like = empty(sizes, on(d, dtype));
        return {rand(sizes, on(d, dtype)), randn(sizes, on(d, dtype)), rand_like(like),
                randn_like(like), normal(2, 3, sizes, default_generator(), on(d, dtype))};
      });
    }
  }
  expect_same_draws("integers", [](Device d) -> std::vector<Tensor> {
    return {randint(10, {7, 9}, d), randint(-3, 1000, {501}, d), randint(2, {64}, on(d, kInt32))};
  });
}

TEST(SameSeeds, Permutations) {
  for (const std::int64_t n : {0, 1, 2, 33, 5000}) {
    expect_same_draws("randperm",
                      [&](Device d) -> std::vector<Tensor> { return {randperm(n, d)}; });
  }
}

TEST(SameSeeds, DrawsByProbabilities) {
  expect_same_draws("bernoulli", [](Device d) -> std::vector<Tensor> {
    const Tensor p = linspace(0, 1, 300, on(d));
    return {bernoulli(p), bernoulli(p, 0.3), normal(p, p + 1)};
  });
  // By the sums of probabilities, as one draws a next letter.
  expect_same_draws("by weights", [](Device d) -> std::vector<Tensor> {
    const Tensor sums = linspace(0.5, 2, 40, on(d)).softmax(0).cumsum(0);
    return {(sums < rand({200, 1}, on(d))).sum(1)};
  });
}

TEST(SameSeeds, InPlaceAlsoWhereATensorLiesOtherwise) {
  expect_same_draws("in place", [](Device d) -> std::vector<Tensor> {
    const Tensor a = zeros({6, 50}, on(d)), b = zeros({50, 6}, on(d, kFloat64)).t(),
                 c = zeros({6, 100}, on(d, kFloat16)).slice(1, 0, 100, 2);
    std::vector<Tensor> out;
    for (const Tensor& t : {a, b, c}) {
      out.push_back(t.uniform_(-1, 2).clone());
      out.push_back(t.normal_(1, 2).clone());
      out.push_back(t.bernoulli_(0.2).clone());
    }
    return out;
  });
}

TEST(SameSeeds, DropoutMasksAndTheirGradients) {
  for (const double p : {0.1, 0.5, 1.0}) {
    expect_same_draws("dropout", [&](Device d) -> std::vector<Tensor> {
      const Tensor x = linspace(-2, 2, 3000, on(d)).view({30, 100}).requires_grad_();
      nn::Dropout module(p);
      const Tensor y = dropout(x, p, true) + module(x);
      (y * x).sum().backward();
      return {y, x.grad()};
    });
  }
}

TEST(SameSeeds, InitialWeights) {
  using Init = std::function<void(const Tensor&)>;
  const Init inits[] = {
      [](const Tensor& t) { nn::init::uniform_(t, -1, 2); },
      [](const Tensor& t) { nn::init::normal_(t, 1, 2); },
      [](const Tensor& t) { nn::init::xavier_uniform_(t); },
      [](const Tensor& t) { nn::init::xavier_normal_(t); },
      [](const Tensor& t) { nn::init::kaiming_uniform_(t); },
      [](const Tensor& t) { nn::init::kaiming_normal_(t); },
  };
  for (const Init& init : inits) {
    expect_same_draws("init", [&](Device d) -> std::vector<Tensor> {
      const Tensor w = empty({16, 24}, on(d)), kernel = empty({8, 4, 3, 3}, on(d));
      init(w);
      init(kernel);
      return {w, kernel};
    });
  }
}

// A module that lies on a device draws the weights that it would draw on the CPU.
TEST(SameSeeds, ModulesResetOnTheDevice) {
  expect_same_draws("modules", [](Device d) -> std::vector<Tensor> {
    nn::Linear linear(20, 30);
    nn::Conv2d conv(nn::Conv2dOptions(3, 8, 3));
    nn::Embedding embedding(10, 6);
    nn::TransformerBlock block(16, 2);
    const auto generator = default_generator().state();
    std::vector<Tensor> out;
    const auto collect = [&](const auto& module) {
      module->to(d);
      module->reset_parameters();
      for (const Tensor& p : module->parameters()) out.push_back(p.detach());
    };
    default_generator().set_state({generator.seed, generator.offset + 7});
    collect(linear);
    collect(conv);
    collect(embedding);
    block->to(d);
    for (const Tensor& p : block->parameters()) out.push_back(p.detach());
    return out;
  });
}

}  // namespace
}  // namespace taper::cuda
