// Steps of Adam, AdamW and SGD, in every dtype and layout, against their formulas in double.
#include "taper/tests/reference/optim.h"

#include "taper/tests/cpu/array.h"

namespace taper::testing {
namespace {

using Sizes64 = std::vector<std::int64_t>;

constexpr int kSteps = 4;
constexpr Form kParamForms[] = {Form::kContiguous, Form::kTransposed, Form::kSliced,
                                Form::kReversed};

Array random_array(std::uint64_t seed, DType dtype, const Sizes64& sizes, Form form) {
  Random random(seed);
  Array a(dtype, sizes, form);
  a.fill([&] { return random.uniform(-1, 1); });
  return a;
}

// 16-bit state drifts by its own rounding.
double allowed(DType dtype) {
  return dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 2e-5 : dtype == kFloat16 ? 0.02 : 0.1;
}

void check_adam(
    DType dtype, DType state, Form form, Form grad_form, const AdamHyper& h, bool amsgrad) {
  const Sizes64 sizes = {7, 5, 40};
  for (const cpu::Column& column : runnable_columns()) {
    SCOPED_TRACE(
        str(column.isa, " ", info(dtype).name, " state ", info(state).name, " ", name(form)));
    Array p = random_array(1, dtype, sizes, form);
    Array m(state, sizes, form), v(state, sizes, form), largest(state, sizes, form);
    std::vector<reference::AdamState> expected;
    for (std::int64_t i = 0; i < p.numel(); ++i) expected.push_back({p.get(i), 0, 0, 0});
    for (int t = 1; t <= kSteps; ++t) {
      const Array grad = random_array(static_cast<std::uint64_t>(t) + 5, dtype, sizes, grad_form);
      AdamParam param;
      param.param = {p.view()};
      param.exp_avg = {m.view()};
      param.exp_avg_sq = {v.view()};
      if (amsgrad) param.max_exp_avg_sq = {largest.view()};
      param.grad = grad.in();
      param.step = static_cast<std::uint64_t>(t);
      column.kernels->adam(Exec(kCPU), ArrayRef<AdamParam>(&param, 1), h);
      for (std::int64_t i = 0; i < p.numel(); ++i) {
        reference::adam(expected[static_cast<std::size_t>(i)], grad.get(i), t, h.lr, h.beta1,
                        h.beta2, h.eps, h.weight_decay, h.decoupled, amsgrad);
      }
    }
    for (std::int64_t i = 0; i < p.numel(); ++i) {
      const reference::AdamState& e = expected[static_cast<std::size_t>(i)];
      ASSERT_NEAR(p.get(i), e.p, allowed(dtype)) << i;
      ASSERT_NEAR(m.get(i), e.m, allowed(state)) << i;
      ASSERT_NEAR(v.get(i), e.v, allowed(state)) << i;
      if (amsgrad) {
        ASSERT_NEAR(largest.get(i), e.largest, allowed(state)) << i;
      }
    }
    ASSERT_TRUE(p.is_pad_whole() && m.is_pad_whole() && v.is_pad_whole());
  }
}

TEST(Adam, MatchesItsFormula) {
  for (const DType dtype : kFloating) {
    for (const Form form : kParamForms) {
      for (const Form grad_form : {form, Form::kExpanded}) {
        check_adam(dtype, dtype, form, grad_form, {1e-2, 0.9, 0.99, 1e-8, 0, false}, false);
        if (::testing::Test::HasFatalFailure()) return;
      }
      check_adam(dtype, dtype, form, form, {1e-2, 0.9, 0.99, 1e-8, 0.1, false}, true);
      check_adam(dtype, dtype, form, form, {1e-2, 0.8, 0.9, 1e-3, 0.1, true}, false);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  check_adam(kBFloat16, kFloat32, Form::kContiguous, Form::kContiguous,
             {1e-2, 0.9, 0.99, 1e-8, 0, true}, true);
}

// With the bias corrections, the first step is lr * sign(grad).
TEST(Adam, FirstStepMovesByTheRate) {
  Array p(kFloat32, {2}), m(kFloat32, {2}), v(kFloat32, {2}), grad(kFloat32, {2});
  p.set(0, 1), p.set(1, -2), grad.set(0, 0.5), grad.set(1, 2);
  AdamParam param;
  param.param = {p.view()};
  param.exp_avg = {m.view()};
  param.exp_avg_sq = {v.view()};
  param.grad = grad.in();
  param.step = 1;
  cpu_kernels().adam(Exec(kCPU), ArrayRef<AdamParam>(&param, 1), {0.1, 0.9, 0.999, 1e-8, 0, false});
  EXPECT_NEAR(p.get(0), 0.9, 1e-6);
  EXPECT_NEAR(p.get(1), -2.1, 1e-6);
}

void check_sgd(DType dtype, Form form, const SgdHyper& h) {
  const Sizes64 sizes = {7, 5, 40};
  for (const cpu::Column& column : runnable_columns()) {
    SCOPED_TRACE(str(column.isa, " ", info(dtype).name, " ", name(form)));
    Array p = random_array(1, dtype, sizes, form), buffer(dtype, sizes, form);
    std::vector<double> expected, momentum(static_cast<std::size_t>(p.numel()));
    for (std::int64_t i = 0; i < p.numel(); ++i) expected.push_back(p.get(i));
    for (int t = 0; t < kSteps; ++t) {
      const Array grad =
          random_array(static_cast<std::uint64_t>(t) + 5, dtype, sizes, Form::kTransposed);
      SgdParam param;
      param.param = {p.view()};
      if (h.momentum != 0) param.momentum_buffer = {buffer.view()};
      param.grad = grad.in();
      param.first = t == 0;
      column.kernels->sgd(Exec(kCPU), ArrayRef<SgdParam>(&param, 1), h);
      for (std::int64_t i = 0; i < p.numel(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        reference::sgd(expected[k], momentum[k], grad.get(i), t == 0, h.lr, h.momentum, h.dampening,
                       h.weight_decay, h.nesterov);
      }
    }
    for (std::int64_t i = 0; i < p.numel(); ++i) {
      ASSERT_NEAR(p.get(i), expected[static_cast<std::size_t>(i)], allowed(dtype)) << i;
    }
    ASSERT_TRUE(p.is_pad_whole() && buffer.is_pad_whole());
  }
}

TEST(Sgd, MatchesItsFormula) {
  for (const DType dtype : kFloating) {
    for (const Form form : kParamForms) {
      check_sgd(dtype, form, {0.1, 0, 0, 0, false});
      check_sgd(dtype, form, {0.1, 0, 0, 0.2, false});
      check_sgd(dtype, form, {0.1, 0.9, 0.3, 0.2, false});
      check_sgd(dtype, form, {0.1, 0.9, 0, 0, true});
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Optimizers, ThreadsAndInstructionSetsDoNotChangeBits) {
  std::vector<Array> results;
  on_every_column([&](const Kernels& kernels) {
    Array p = random_array(1, kFloat32, {50001}, Form::kContiguous), q = p;
    Array m(kFloat32, {50001}), v(kFloat32, {50001}), b(kFloat32, {50001});
    const Array grad = random_array(2, kFloat32, {50001}, Form::kContiguous);
    for (int t = 1; t <= 2; ++t) {
      AdamParam adam;
      adam.param = {p.view()};
      adam.exp_avg = {m.view()};
      adam.exp_avg_sq = {v.view()};
      adam.grad = grad.in();
      adam.step = static_cast<std::uint64_t>(t);
      kernels.adam(Exec(kCPU), ArrayRef<AdamParam>(&adam, 1), {0.1, 0.9, 0.999, 1e-8, 0.1, false});
      const SgdParam sgd{{q.view()}, {b.view()}, grad.in(), t == 1};
      kernels.sgd(Exec(kCPU), ArrayRef<SgdParam>(&sgd, 1), {0.1, 0.9, 0, 0.1, true});
    }
    results.push_back(p);
    results.push_back(q);
    EXPECT_TRUE(same_bits(results[0], p));
    EXPECT_TRUE(same_bits(results[1], q));
  });
}

}  // namespace
}  // namespace taper::testing
