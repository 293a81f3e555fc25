// Index order is a reverse topological order: of any graph, recorded by many threads, and from
// within a backward.
#include <mutex>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "taper/taper.h"

namespace taper {
namespace {

// Every input has a smaller index than the entry that takes it.
void expect_inputs_before(const std::vector<Ref<Entry>>& entries) {
  for (const Ref<Entry>& entry : entries) {
    for (const Edge& edge : entry->inputs) {
      if (!edge) continue;
      ASSERT_LT(edge.node->index, entry->index) << entry->name;
    }
  }
}

// Tensors that all threads take from and add to, with views and writes in place among the ops.
class Pool {
 public:
  explicit Pool(std::uint32_t seed) {
    manual_seed(seed);
    for (int i = 0; i < 8; ++i) tensors_.push_back(randn({4, 4}).requires_grad_());
  }

  void grow(std::uint32_t seed, int ops) {
    std::mt19937 random(seed);
    for (int i = 0; i < ops; ++i) {
      const Tensor a = pick(random), b = pick(random);
      Tensor made;
      switch (random() % 6) {
        case 0: made = a + b; break;
        case 1: made = a * b.tanh(); break;
        case 2: made = matmul(a, b).tanh(); break;
        case 3: made = cat({a.slice(0, 0, 2), b.slice(0, 2, 4)}, 0); break;
        case 4: {
          made = a * 1;
          made[0].mul_(b[1]);
          made = made.t();
          break;
        }
        default: made = a.tanh() - b; break;
      }
      put(std::move(made));
    }
  }

  Tensor sum() {
    Tensor total = zeros({});
    for (const Tensor& t : tensors_) total = total + t.sum();
    return total;
  }

  std::vector<Tensor> tensors_;

 private:
  Tensor pick(std::mt19937& random) {
    const std::lock_guard lock(mutex_);
    return tensors_[random() % tensors_.size()];
  }

  void put(Tensor t) {
    const std::lock_guard lock(mutex_);
    tensors_.push_back(std::move(t));
  }

  std::mutex mutex_;
};

// A pass runs nodes by decreasing index, each once.
void expect_decreasing(const Tensor& loss) {
  Backward pass(loss);
  std::uint64_t last = ~std::uint64_t{0};
  while (pass.step()) {
    ASSERT_LT(pass.here().entry, last);
    last = pass.here().entry;
  }
}

TEST(Order, HoldsForGraphsOfOneThread) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    Pool pool(seed);
    pool.grow(seed, 200);
    expect_inputs_before(all_entries());
    expect_decreasing(pool.sum());
  }
}

TEST(Order, HoldsWhenThreadsTakeFromEachOther) {
  for (std::uint32_t round = 0; round < 5; ++round) {
    Pool pool(round);
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < 4; ++i) {
      threads.emplace_back([&pool, round, i] { pool.grow(round * 10 + i, 100); });
    }
    for (std::thread& t : threads) t.join();
    expect_inputs_before(all_entries());
    expect_decreasing(pool.sum());
  }
}

// Records and runs a graph of its own, in backward, and records more on what it was given.
struct Nested : autograd::Function<Nested> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    return x * x;
  }

  static autograd::tensor_list backward(autograd::AutogradContext* ctx,
                                        autograd::tensor_list grads) {
    const AutoGradMode record(true);
    const Tensor x = ctx->get_saved_variables()[0].detach().requires_grad_();
    (x * x).sum().backward();
    expect_inputs_before(all_entries());
    return {grads[0] * x.grad()};
  }
};

TEST(Order, HoldsWhenBackwardRecordsAndRunsAnother) {
  const Tensor x = randn({5}).requires_grad_();
  const Tensor y = Nested::apply(Nested::apply(x));
  expect_decreasing(y.sum());
  EXPECT_TRUE(allclose(x.grad(), 4 * x.detach().pow(3), 1e-4));
}

TEST(Order, HoldsForTheGraphOfAGradient) {
  Pool pool(3);
  pool.grow(3, 40);
  const std::vector<Tensor> leaves(pool.tensors_.begin(), pool.tensors_.begin() + 8);
  const std::vector<Tensor> first = grad({pool.sum()}, leaves, {}, true, true, true);
  Tensor norm = zeros({});
  for (const Tensor& g : first) {
    if (g.defined()) norm = norm + g.square().sum();
  }
  expect_inputs_before(all_entries());
  expect_decreasing(norm);
}

}  // namespace
}  // namespace taper
