// What backward and the modes of gradients refuse.
#include "taper/tests/errors/refusal.h"

namespace taper::errors {
namespace {

class Gradients : public Refusal {
 protected:
  const Tensor x = ones({2, 3}, requires_grad()), y = full({2, 3}, 2., requires_grad());

  void SetUp() override {
    watch(x);
    watch(y);
  }
};

TEST_F(Gradients, BackwardStartsFromOneElement) {
  const Tensor z = x * y;
  refuses("backward", {"(2, 3)", "gradient"}, [&] { here(), z.backward(); });
  refuses("backward", {"(2, 3)", "(3)"}, [&] { here(), z.backward(f3); });
  refuses("backward", {"(2, 3)"}, [&] { here(), backward({z}); });
  refuses("backward", {"1", "2"}, [&] { here(), backward({z}, {f23, f23}); });
  refuses("backward", {"(2, 3)"}, [&] { here(), Backward(z).finish(); });
  refuses("backward", {nothing}, [&] { here(), none.backward(); });
  refuses("grad", {"(2, 3)"}, [&] { here(), grad({z}, {x}); });
  EXPECT_FALSE(x.grad().defined());
}

TEST_F(Gradients, BackwardNeedsARecord) {
  refuses("backward", {"require grad"}, [&] { here(), f.backward(); });
  refuses("backward", {"require grad"}, [&] { here(), x.detach().sum().backward(); });
  Tensor cut;
  {
    const NoGradGuard no_grad;
    cut = x.sum();
  }
  refuses("backward", {"NoGradGuard"}, [&] { here(), cut.backward(); });
  refuses("backward", {"require grad"}, [&] { here(), x.argmax().backward(); });
}

TEST_F(Gradients, GradOfWhatTookPart) {
  const Tensor z = x.sum();
  refuses("grad", {"input 0", "(2, 3)"}, [&] { here(), grad({z}, {f23}); });
  refuses("grad", {"input 1", "(2, 3)", "allow_unused"}, [&] { here(), grad({z}, {x, y}); });
  refuses("grad", {"input"}, [&] { here(), grad({x.sum()}, {}); });
  refuses("grad", {nothing}, [&] { here(), grad({x.sum()}, {none}); });
  EXPECT_NO_THROW(grad({x.sum()}, {x, y}, {}, std::nullopt, false, true));
}

TEST_F(Gradients, SecondBackwardNamesBothLines) {
  here();
  const Tensor z = (x * y).sum();
  const std::string forward = name_of(SourceLoc("backward_test.cpp", "", here_at.line + 1));
  here(), z.backward();
  const std::string first = name_of(here_at);
  refuses("backward", {"mul", "retain_graph", forward, first}, [&] { here(), z.backward(); });
  refuses("grad", {"mul", "retain_graph", forward, first}, [&] { here(), grad({z}, {x}); });
}

TEST_F(Gradients, TwoLossesShareWhatSavedNothing) {
  const Tensor trunk = (x + 1).view({-1});
  const Tensor first = (trunk * trunk).sum(), second = trunk.exp().sum();
  first.backward();
  second.backward();
  const Tensor d = x.detach() + 1;
  EXPECT_TRUE(allclose(x.grad(), 2 * d + d.exp()));
}

// Errors inside backward stand at the line of the forward.
TEST_F(Gradients, WritesToWhatWasSavedNameBothOpsAndLines) {
  const Tensor a = x * 1, b = a.exp();
  SourceLoc saved, written;
  const auto run = [&] {
    const Tensor z = (here(), a.mul(b));
    saved = here_at;
    here(), b.add_(1);
    written = here_at;
    here_at = saved;
    z.sum().backward();
  };
  refuses("mul", {"(2, 3)", "saved", "version", "add", "clone()"}, run);
  try {
    const Tensor c = x * 1;
    const Tensor z = (here(), c.mul(c));
    saved = here_at;
    here(), c.sigmoid_();
    written = here_at;
    z.sum().backward();
    ADD_FAILURE() << "it was not refused";
  } catch (const Error& e) {
    EXPECT_TRUE(contains(e.what(), name_of(saved))) << e.what();
    EXPECT_TRUE(contains(e.what(), name_of(written))) << e.what();
    EXPECT_TRUE(contains(e.what(), "sigmoid")) << e.what();
  }
}

TEST_F(Gradients, OwnOutputsAreWatchedToo) {
  const auto writes = [&](const Tensor& out) {
    const SourceLoc at = here_at;
    out.add_(1);
    here_at = at;
    out.sum().backward();
  };
  refuses("exp", {"(2, 3)", "add"}, [&] { writes((here(), x.exp())); });
  refuses("sqrt", {"(2, 3)", "add"}, [&] { writes((here(), x.sqrt())); });
  refuses("sigmoid", {"(2, 3)", "add"}, [&] { writes((here(), x.sigmoid())); });
  refuses("tanh", {"(2, 3)", "add"}, [&] { writes((here(), x.tanh())); });
  refuses("softmax", {"(2, 3)", "add"}, [&] { writes((here(), x.softmax(1))); });
  refuses("log_softmax", {"(2, 3)", "add"}, [&] { writes((here(), x.log_softmax(1))); });
  refuses("reciprocal", {"(2, 3)", "add"}, [&] { writes((here(), x.reciprocal())); });
}

TEST_F(Gradients, WritesThroughDetachCount) {
  const auto run = [&] {
    const Tensor a = x * 1, z = (here(), a.mul(a));
    a.detach().zero_();
    z.sum().backward();
  };
  refuses("mul", {"(2, 3)", "fill_"}, run);
}

struct WrongShape : autograd::Function<WrongShape> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& t) { return t * 2; }
  static autograd::tensor_list backward(autograd::AutogradContext*, autograd::tensor_list) {
    return {ones({4})};
  }
};

struct TooFew : autograd::Function<TooFew> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& a, const Tensor& b) {
    return a * b;
  }
  static autograd::tensor_list backward(autograd::AutogradContext*, autograd::tensor_list g) {
    return {g[0]};
  }
};

struct Integers : autograd::Function<Integers> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& t) { return t * 2; }
  static autograd::tensor_list backward(autograd::AutogradContext*, autograd::tensor_list g) {
    return {g[0].to(kInt64)};
  }
};

struct Throws : autograd::Function<Throws> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& t) { return t * 2; }
  static autograd::tensor_list backward(autograd::AutogradContext*, autograd::tensor_list g) {
    return {g[0].matmul(ones({5, 5}))};
  }
};

struct Nothing : autograd::Function<Nothing> {
  static autograd::variable_list forward(autograd::AutogradContext*, const Tensor&) { return {}; }
  static autograd::tensor_list backward(autograd::AutogradContext*, autograd::tensor_list g) {
    return g;
  }
};

TEST_F(Gradients, CustomFunctionsReturnGradientsThatFit) {
  const auto back = [](const Tensor& out) { out.sum().backward(); };
  refuses("WrongShape", {"(4)", "(2, 3)"}, [&] { back((here(), WrongShape::apply(x))); });
  refuses("TooFew", {"1"}, [&] { back((here(), TooFew::apply(x, y))); });
  refuses("Integers", {"i64", "f32"}, [&] { back((here(), Integers::apply(x))); });
  refuses("Throws", {"(2, 3)", "(5, 5)"}, [&] { back((here(), Throws::apply(x))); });
  refuses("Nothing", {"at least one"}, [&] { here(), Nothing::apply(x); });
  EXPECT_FALSE(x.grad().defined());
}

TEST_F(Gradients, HooksReturnGradientsThatFit) {
  const auto run = [&] {
    const Tensor z = (here(), x.mul(2));
    z.register_hook([](const Tensor&) { return ones({4}); });
    z.sum().backward();
  };
  refuses("mul", {"(4)", "(2, 3)"}, run);
  const Tensor leaf = ones({2, 3}, requires_grad());
  leaf.register_hook([](const Tensor&) { return ones({4}); });
  refuses("hook", {"(4)", "(2, 3)"}, [&] { here(), leaf.sum().backward(); });
  refuses("register_hook", {"require"},
          [&] { here(), f3.register_hook([](const Tensor& g) { return g; }); });
}

TEST_F(Gradients, LeavesAreNotWritten) {
  refuses("add_", {"leaf"}, [&] { here(), x.add_(1); });
  refuses("zero_", {"leaf"}, [&] { here(), x.zero_(); });
  refuses("mul_", {"view", "leaf"}, [&] { here(), x.select(0, 0).mul_(2); });
  const Tensor z = x * 1;
  const std::vector<Tensor> parts = z.chunk(2);
  refuses("mul_", {"split", "clone()"}, [&] { here(), parts[0].mul_(2); });
  Tensor hidden;
  {
    const NoGradGuard no_grad;
    hidden = z.view({6});
  }
  refuses("mul_", {"NoGradGuard"}, [&] { here(), hidden.mul_(2); });
  const NoGradGuard no_grad;
  const Tensor own = ones({2}, requires_grad());
  EXPECT_NO_THROW(own.add_(1));
}

TEST_F(Gradients, RequiresGrad) {
  const Tensor z = x * 2;
  refuses("requires_grad_", {"leaf", "mul"}, [&] { here(), z.requires_grad_(false); });
  refuses("requires_grad_", {"i64"}, [&] { here(), i3.requires_grad_(); });
  refuses("requires_grad_", {"bool"}, [&] { here(), b3.set_requires_grad(true); });
  refuses("retain_grad", {"require"}, [&] { here(), f3.retain_grad(); });
  refuses("requires_grad_", {nothing}, [&] { here(), none.requires_grad_(); });
  refuses("detach_", {"view"}, [&] { here(), z.view({6}).detach_(); });
  refuses("retain_grad", {nothing}, [&] { here(), none.retain_grad(); });
  refuses("set_data", {nothing}, [&] { here(), f3.clone().set_data(none); });
}

TEST_F(Gradients, InferenceTensors) {
  Tensor frozen;
  {
    const InferenceMode mode;
    frozen = ones({2, 3});
  }
  watch(frozen);
  refuses("mul", {"inference", "(2, 3)"}, [&] { here(), x* frozen; });
  refuses("add_", {"inference"}, [&] { here(), frozen.add_(1); });
  refuses("requires_grad_", {"inference"}, [&] { here(), frozen.requires_grad_(); });
  refuses("matmul", {"inference"}, [&] { here(), x.matmul(frozen.t()); });
  EXPECT_NO_THROW(x + frozen);
}

class Wild final : public OpOf<Wild> {
 public:
  static constexpr const char* kName = "wild";
  void forward(Frame& f) override { f.out(f.in(0).clone()); }
  Grads backward(const Reverse& r) const override { return {r.grad()}; }
  bool deterministic(Device) const override { return false; }
};

TEST_F(Gradients, DeterminismIsAskedFor) {
  set_deterministic(true);
  refuses("wild", {"deterministic", "cpu"}, [&] {
    here();
    const Call call(here_at);
    apply(Wild(), {&x});
  });
  set_deterministic(false);
  EXPECT_NO_THROW(apply(Wild(), {&x}));
}

TEST_F(Gradients, GradcheckNamesWhatIsWrong) {
  const Tensor d = ones({2}, TensorOptions(kFloat64).requires_grad(true));
  const auto square = [](const std::vector<Tensor>& in) { return in[0] * in[0]; };
  const auto wrong = [](const std::vector<Tensor>& in) { return in[0] * in[0].detach(); };
  refuses("gradcheck", {"f32"}, [&] { here(), gradcheck(square, {x}); });
  refuses("gradcheck", {"requires grad"}, [&] { here(), gradcheck(square, {f3.to(kFloat64)}); });
  refuses("gradcheck", {"input 0"}, [&] { here(), gradcheck(wrong, {d}); });
}

}  // namespace
}  // namespace taper::errors
