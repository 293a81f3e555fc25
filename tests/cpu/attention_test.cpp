// Attention and its gradients against a matrix of scores in double, on every instruction set.
#include "taper/tests/reference/attention.h"

#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kScale = 0.3;

enum class Masked { kNot, kBool, kAdded, kCausal };

constexpr Masked kEveryMask[] = {Masked::kNot, Masked::kBool, Masked::kAdded, Masked::kCausal};

struct Shape {
  std::int64_t batch, queries, keys, depth, columns;
};

const Shape kShapes[] = {{2, 5, 9, 6, 7},     {1, 1, 1, 1, 1},     {2, 64, 64, 16, 16},
                         {1, 65, 63, 17, 33}, {1, 130, 200, 3, 5}, {3, 1, 129, 8, 66},
                         {1, 70, 2, 40, 1},   {2, 3, 4, 0, 5},     {1, 3, 4, 5, 0},
                         {0, 3, 4, 5, 6},     {2, 0, 4, 5, 6}};

// All operands of one problem, and what its slots wrote.
struct Problem {
  Shape s;
  Masked masked;
  Array q, k, v, grad, seen, added, y, stats, dq, dk, dv;

  Problem(DType dtype, const Shape& shape, Masked how, Form form, Form out)
      : s(shape),
        masked(how),
        q(dtype, {s.batch, s.queries, s.depth}, form),
        k(dtype, {s.batch, s.keys, s.depth}, form),
        v(dtype, {s.batch, s.keys, s.columns}, form),
        grad(dtype, {s.batch, s.queries, s.columns}, form),
        seen(kBool, {s.batch, s.queries, s.keys}, form),
        added(dtype, {s.batch, s.queries, s.keys}, form),
        y(dtype, {s.batch, s.queries, s.columns}, out),
        stats(dtype == kFloat64 ? kFloat64 : kFloat32, {s.batch, s.queries, 2}, out),
        dq(dtype, {s.batch, s.queries, s.depth}, out),
        dk(dtype, {s.batch, s.keys, s.depth}, out),
        dv(dtype, {s.batch, s.keys, s.columns}, out) {
    Random random(static_cast<std::uint64_t>(s.queries * 31 + s.keys));
    for (Array* a : {&q, &k, &v, &grad}) a->fill([&] { return random.uniform(-2, 2); });
    seen.fill([&] { return random.next() % 3 == 0 ? 0 : 1; });
    for (std::int64_t j = 0; j < s.keys && s.batch * s.queries > 0; ++j) seen.set(j, 0);
    for (std::int64_t i = 0; i < s.batch * s.queries; ++i) {
      for (std::int64_t j = 0; j < s.keys; ++j) added.set(i * s.keys + j, added_to(i, random));
    }
  }

  // Rows that see nothing; that see all keys, far below; a few keys far above the others; some.
  double added_to(std::int64_t row, Random& random) const {
    const bool rare = random.next() % 3 == 0;
    const double large = q.dtype() == kFloat16 ? 6e4 : 1e9;
    switch (row % 5) {
      case 0: return -kInf;
      case 1: return -large;
      case 2: return -1e308;
      case 3: return rare ? large : -large;
      default: return rare ? -kInf : random.uniform(-1, 1);
    }
  }

  void run(const Kernels& kernels) {
    const Exec exec(kCPU);
    const In mask = masked == Masked::kBool    ? seen.in()
                    : masked == Masked::kAdded ? added.in()
                                               : In{};
    const bool causal = masked == Masked::kCausal;
    kernels.attention(exec, y.out(), stats.out(), q.in(), k.in(), v.in(), mask, causal, kScale);
    kernels.attention_grad(exec, dq.out(), dk.out(), dv.out(), grad.in(), q.in(), k.in(), v.in(),
                           y.in(), stats.in(), mask, causal, kScale);
    for (const Array* a : outputs()) ASSERT_TRUE(a->is_pad_whole());
  }

  std::vector<const Array*> outputs() const { return {&y, &stats, &dq, &dk, &dv}; }

  reference::Attention oracle(std::int64_t batch) const {
    reference::Attention a{
        s.queries, s.keys, s.depth, s.columns, kScale, {}, {}, {}, {}, {}, q.dtype() != kFloat64};
    const auto take = [&](std::vector<double>& to, const Array& from, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) to.push_back(from.get(batch * n + i));
    };
    take(a.q, q, s.queries * s.depth);
    take(a.k, k, s.keys * s.depth);
    take(a.v, v, s.keys * s.columns);
    take(a.grad, grad, s.queries * s.columns);
    for (std::int64_t i = 0; i < s.queries; ++i) {
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const std::int64_t at = (batch * s.queries + i) * s.keys + j;
        double mask = 0;
        if (masked == Masked::kBool) mask = seen.get(at) != 0 ? 0 : -kInf;
        if (masked == Masked::kAdded) mask = added.get(at);
        if (masked == Masked::kCausal && j > i) mask = -kInf;
        a.mask.push_back(mask);
      }
    }
    return a;
  }

  void expect_near(const Array& got, std::int64_t batch, const std::vector<double>& want) const {
    const auto n = static_cast<std::int64_t>(want.size());
    for (std::int64_t i = 0; i < n; ++i) {
      const double expected = want[static_cast<std::size_t>(i)];
      ASSERT_TRUE(is_near(got.get(batch * n + i), expected, 8 * tolerance(got.dtype())))
          << i << ": " << got.get(batch * n + i) << " for " << expected;
    }
  }

  void check() const {
    for (std::int64_t batch = 0; batch < s.batch; ++batch) {
      const reference::Attention a = oracle(batch);
      expect_near(y, batch, a.y());
      if (s.columns == 0) continue;  // a case of the op, not of the slot
      const auto [want_q, want_k, want_v] = a.grads();
      expect_near(dq, batch, want_q);
      expect_near(dk, batch, want_k);
      expect_near(dv, batch, want_v);
    }
  }
};

TEST(Attention, MatchesReference) {
  for (const Shape& shape : kShapes) {
    for (const DType dtype : kFloating) {
      for (const Masked masked : kEveryMask) {
        for (const Form form : kForms) {
          const Form out = kOutForms[static_cast<int>(form) % 3];
          SCOPED_TRACE(std::string(info(dtype).name) + name(form) + std::to_string(shape.queries) +
                       " " + std::to_string(shape.keys) + " mask " +
                       std::to_string(static_cast<int>(masked)));
          Problem first(dtype, shape, masked, form, out);
          first.run(cpu_kernels());
          first.check();
        }
      }
    }
  }
}

TEST(Attention, NoColumnOrThreadOrLayoutChangesBits) {
  for (const Shape& shape : {Shape{1, 130, 140, 17, 33}, Shape{7, 66, 70, 4, 4}}) {
    for (const DType dtype : kFloating) {
      for (const Masked masked : kEveryMask) {
        SCOPED_TRACE(std::string(info(dtype).name) + std::to_string(static_cast<int>(masked)));
        Problem first(dtype, shape, masked, Form::kContiguous, Form::kContiguous);
        first.run(cpu_kernels());
        on_every_column([&](const Kernels& kernels) {
          Problem again(dtype, shape, masked, Form::kSliced, Form::kTransposed);
          again.run(kernels);
          for (std::size_t i = 0; i < 5; ++i) {
            ASSERT_TRUE(same_bits(*first.outputs()[i], *again.outputs()[i])) << i;
          }
        });
      }
    }
  }
}

// Without a mask a row of -inf has no softmax; with one it is a row that sees nothing.
TEST(Attention, RowsOfMinusInfinity) {
  for (const Masked masked : {Masked::kNot, Masked::kAdded}) {
    Problem p(kFloat32, {1, 2, 70, 1, 1}, masked, Form::kContiguous, Form::kContiguous);
    for (std::int64_t j = 0; j < 70; ++j) p.k.set(j, 1), p.added.set(j, 0);
    p.q.set(0, -kInf);
    p.run(cpu_kernels());
    EXPECT_EQ(std::isnan(p.y.get(0)), masked == Masked::kNot);
    EXPECT_EQ(p.stats.get(0), -kInf);
    EXPECT_EQ(p.stats.get(1), masked == Masked::kNot ? 0 : kInf);
    EXPECT_FALSE(std::isnan(p.y.get(1)));
    EXPECT_EQ(p.y.get(0) == 0, masked == Masked::kAdded);
  }
}

// Scores that rise from tile to tile, and ones far beyond the range of exp.
TEST(Attention, LargeScores) {
  Problem p(kFloat64, {1, 3, 300, 2, 2}, Masked::kNot, Form::kContiguous, Form::kContiguous);
  for (std::int64_t j = 0; j < 300; ++j) p.k.set(2 * j, static_cast<double>(j) * 3);
  p.run(cpu_kernels());
  p.check();
}

}  // namespace
}  // namespace taper::testing
