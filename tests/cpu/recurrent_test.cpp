// Steps of an LSTM and a GRU, and their gradients, against double, on every instruction set.
#include "taper/tests/reference/recurrent.h"

#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

struct Shape {
  std::int64_t batch, size;
};

constexpr Shape kShapes[] = {{1, 1}, {3, 5}, {32, 128}, {1, 5000}, {7, 33}, {0, 4}};

// A matrix of numbers; with `gap` its rows do not follow one another.
Array matrix(DType dtype, std::int64_t rows, std::int64_t cols, bool gap, unsigned seed) {
  Array a(dtype, {rows, cols + (gap ? 3 : 0)});
  a.layout().sizes[1] = cols;
  Random random(seed);
  a.fill([&] { return random.uniform(-2, 2); });
  return a;
}

InOut in_out(Array& a) {
  return {a.view()};
}

void expect_near(const Array& got, std::int64_t i, double want) {
  ASSERT_TRUE(is_near(got.get(i), want, 8 * tolerance(got.dtype())))
      << i << ": " << got.get(i) << " for " << want;
}

// All operands of a step and of its gradient, of either kind.
struct Problem {
  Shape s;
  Array sums, state, before, gates, h, c, dh, dc, dgates, dstate, d_before;

  Problem(DType dtype, const Shape& shape, bool gap)
      : s(shape),
        sums(matrix(dtype, s.batch, 4 * s.size, gap, 1)),
        state(matrix(dtype, s.batch, 3 * s.size, gap, 2)),
        before(matrix(dtype, s.batch, s.size, gap, 3)),
        gates(matrix(dtype, s.batch, 4 * s.size, gap, 1)),
        h(matrix(dtype, s.batch, s.size, gap, 4)),
        c(matrix(dtype, s.batch, s.size, gap, 5)),
        dh(matrix(dtype, s.batch, s.size, gap, 6)),
        dc(matrix(dtype, s.batch, s.size, gap, 7)),
        dgates(matrix(dtype, s.batch, 4 * s.size, gap, 8)),
        dstate(matrix(dtype, s.batch, 3 * s.size, gap, 9)),
        d_before(matrix(dtype, s.batch, s.size, gap, 10)) {}

  std::vector<const Array*> outputs() const {
    return {&gates, &h, &c, &dgates, &dstate, &d_before};
  }

  // Of gate k where element i of a state is.
  std::int64_t gate(std::int64_t i, std::int64_t k, std::int64_t count = 4) const {
    return i / s.size * count * s.size + k * s.size + i % s.size;
  }

  std::array<double, 4> four(const Array& of, std::int64_t i) const {
    return {of.get(gate(i, 0)), of.get(gate(i, 1)), of.get(gate(i, 2)), of.get(gate(i, 3))};
  }

  void run_lstm(const Kernels& kernels) {
    const Exec exec(kCPU);
    kernels.lstm(exec, in_out(gates), h.out(), c.out(), before.in());
    kernels.lstm_grad(exec, dgates.out(), in_out(d_before), dh.in(), dc.in(), gates.in(), c.in(),
                      before.in());
  }

  void check_lstm(const Problem& start) const {
    for (std::int64_t i = 0; i < h.numel(); ++i) {
      const auto want = reference::lstm_gates(four(start.gates, i));
      for (std::size_t k = 0; k < 4; ++k) {
        expect_near(gates, gate(i, static_cast<std::int64_t>(k)), want[k]);
      }
      const auto states = reference::lstm_states(want, before.get(i));
      expect_near(c, i, states[0]);
      expect_near(h, i, states[1]);
      const auto grads =
          reference::lstm_grads(dh.get(i), dc.get(i), four(gates, i), c.get(i), before.get(i));
      for (std::size_t k = 0; k < 4; ++k) {
        expect_near(dgates, gate(i, static_cast<std::int64_t>(k)), grads[k]);
      }
      expect_near(d_before, i, start.d_before.get(i) + grads[4]);
    }
  }

  // x is its part of the sums, (B, 3 H); its gradients are laid into dgates.
  void run_gru(const Kernels& kernels, const Array& x) {
    const Exec exec(kCPU);
    kernels.gru(exec, gates.out(), h.out(), x.in(), state.in(), before.in());
    Array dx = x;
    kernels.gru_grad(exec, dx.out(), dstate.out(), in_out(d_before), dh.in(), gates.in(),
                     before.in());
    for (std::int64_t i = 0; i < dx.numel(); ++i) {
      const std::int64_t row = i / (3 * s.size), col = i % (3 * s.size);
      dgates.set(row * 4 * s.size + col, dx.get(i));
    }
  }

  void check_gru(const Problem& start, const Array& x) const {
    for (std::int64_t i = 0; i < h.numel(); ++i) {
      const auto of_x = [&](std::int64_t k) { return x.get(gate(i, k, 3)); };
      const auto of_state = [&](std::int64_t k) { return state.get(gate(i, k, 3)); };
      const auto want = reference::gru_step(of_x(0) + of_state(0), of_x(1) + of_state(1), of_x(2),
                                            of_state(2), before.get(i));
      for (std::size_t k = 0; k < 3; ++k) {
        expect_near(gates, gate(i, static_cast<std::int64_t>(k)), want[k]);
      }
      EXPECT_EQ(gates.get(gate(i, 3)), of_state(2));
      expect_near(h, i, want[3]);
      const auto grads = reference::gru_grads(dh.get(i), four(gates, i), before.get(i));
      for (std::int64_t k = 0; k < 3; ++k) {
        expect_near(dgates, gate(i, k), grads[static_cast<std::size_t>(k)]);
        expect_near(dstate, gate(i, k, 3), grads[static_cast<std::size_t>(k == 2 ? 3 : k)]);
      }
      expect_near(d_before, i, start.d_before.get(i) + grads[4]);
    }
  }
};

template <class F> void for_each_problem(const F& f) {
  for (const Shape& shape : kShapes) {
    for (const DType dtype : kFloating) {
      SCOPED_TRACE(std::string(info(dtype).name) + " " + std::to_string(shape.batch) + " " +
                   std::to_string(shape.size));
      f(dtype, shape);
    }
  }
}

Array sums_of_x(DType dtype, const Shape& shape, bool gap) {
  return matrix(dtype, shape.batch, 3 * shape.size, gap, 11);
}

TEST(Lstm, MatchesReferenceOnEveryColumn) {
  for_each_problem([](DType dtype, const Shape& shape) {
    const Problem start(dtype, shape, false);
    Problem first = start;
    first.run_lstm(cpu_kernels());
    first.check_lstm(start);
    on_every_column([&](const Kernels& kernels) {
      Problem again(dtype, shape, true);
      again.run_lstm(kernels);
      for (std::size_t i = 0; i < first.outputs().size(); ++i) {
        ASSERT_TRUE(same_bits(*first.outputs()[i], *again.outputs()[i])) << i;
      }
    });
  });
}

TEST(Gru, MatchesReferenceOnEveryColumn) {
  for_each_problem([](DType dtype, const Shape& shape) {
    const Problem start(dtype, shape, false);
    Problem first = start;
    first.run_gru(cpu_kernels(), sums_of_x(dtype, shape, false));
    first.check_gru(start, sums_of_x(dtype, shape, false));
    on_every_column([&](const Kernels& kernels) {
      Problem again(dtype, shape, true);
      again.run_gru(kernels, sums_of_x(dtype, shape, true));
      for (std::size_t i = 0; i < first.outputs().size(); ++i) {
        ASSERT_TRUE(same_bits(*first.outputs()[i], *again.outputs()[i])) << i;
      }
    });
  });
}

// Large sums saturate the gates, and give no NaN.
TEST(Lstm, TakesLargeSums) {
  Problem p(kFloat32, {2, 3}, false);
  for (std::int64_t i = 0; i < p.gates.numel(); ++i) p.gates.set(i, i % 2 == 0 ? 1e30 : -1e30);
  p.run_lstm(cpu_kernels());
  for (const Array* a : p.outputs()) {
    for (std::int64_t i = 0; i < a->numel(); ++i) ASSERT_TRUE(std::isfinite(a->get(i)));
  }
}

}  // namespace
}  // namespace taper::testing
