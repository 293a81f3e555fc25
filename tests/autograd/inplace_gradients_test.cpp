// Every in-place method has the gradient of its out-of-place twin, whole and through a view.
#include <functional>

#include <gtest/gtest.h>

#include "taper/taper.h"

namespace taper {
namespace {

using indexing::Slice;

struct Method {
  const char* name;
  std::function<void(const Tensor& y, const Tensor& w)> in_place;
  std::function<Tensor(const Tensor& y, const Tensor& w)> twin;
};

const std::vector<Method>& methods() {
  static const std::vector<Method> all = {
      {"add_", [](auto& y, auto& w) { y.add_(w, 2); },
       [](auto& y, auto& w) { return add(y, w, 2); }},
      {"sub_", [](auto& y, auto& w) { y.sub_(w); }, [](auto& y, auto& w) { return y - w; }},
      {"mul_", [](auto& y, auto& w) { y.mul_(w); }, [](auto& y, auto& w) { return y * w; }},
      {"mul_ self", [](auto& y, auto&) { y.mul_(y); }, [](auto& y, auto&) { return y * y; }},
      {"div_", [](auto& y, auto& w) { y.div_(w); }, [](auto& y, auto& w) { return y / w; }},
      {"pow_ 3", [](auto& y, auto&) { y.pow_(3); }, [](auto& y, auto&) { return y.pow(3); }},
      {"pow_", [](auto& y, auto& w) { y.pow_(w); }, [](auto& y, auto& w) { return y.pow(w); }},
      {"addcmul_", [](auto& y, auto& w) { y.addcmul_(w, w * 2, 0.5); },
       [](auto& y, auto& w) { return y.addcmul(w, w * 2, 0.5); }},
      {"addcdiv_", [](auto& y, auto& w) { y.addcdiv_(w, w + 1); },
       [](auto& y, auto& w) { return y.addcdiv(w, w + 1); }},
      {"lerp_", [](auto& y, auto& w) { y.lerp_(w, 0.3); },
       [](auto& y, auto& w) { return y.lerp(w, 0.3); }},
      {"neg_", [](auto& y, auto&) { y.neg_(); }, [](auto& y, auto&) { return -y; }},
      {"abs_", [](auto& y, auto&) { y.abs_(); }, [](auto& y, auto&) { return y.abs(); }},
      {"exp_", [](auto& y, auto&) { y.exp_(); }, [](auto& y, auto&) { return y.exp(); }},
      {"log_", [](auto& y, auto&) { y.log_(); }, [](auto& y, auto&) { return y.log(); }},
      {"sqrt_", [](auto& y, auto&) { y.sqrt_(); }, [](auto& y, auto&) { return y.sqrt(); }},
      {"tanh_", [](auto& y, auto&) { y.tanh_(); }, [](auto& y, auto&) { return y.tanh(); }},
      {"sigmoid_", [](auto& y, auto&) { y.sigmoid_(); },
       [](auto& y, auto&) { return y.sigmoid(); }},
      {"relu_", [](auto& y, auto&) { y.relu_(); }, [](auto& y, auto&) { return y.relu(); }},
      {"floor_", [](auto& y, auto&) { y.floor_(); }, [](auto& y, auto&) { return y.floor(); }},
      {"round_", [](auto& y, auto&) { y.round_(); }, [](auto& y, auto&) { return y.round(); }},
      {"clamp_", [](auto& y, auto&) { y.clamp_(0.5, 1.5); },
       [](auto& y, auto&) { return y.clamp(0.5, 1.5); }},
      {"sin_", [](auto& y, auto&) { y.sin_(); }, [](auto& y, auto&) { return y.sin(); }},
      {"cos_", [](auto& y, auto&) { y.cos_(); }, [](auto& y, auto&) { return y.cos(); }},
      {"square_", [](auto& y, auto&) { y.square_(); }, [](auto& y, auto&) { return y.square(); }},
      {"rsqrt_", [](auto& y, auto&) { y.rsqrt_(); }, [](auto& y, auto&) { return y.rsqrt(); }},
      {"reciprocal_", [](auto& y, auto&) { y.reciprocal_(); },
       [](auto& y, auto&) { return y.reciprocal(); }},
      {"ceil_", [](auto& y, auto&) { y.ceil_(); }, [](auto& y, auto&) { return y.ceil(); }},
      {"trunc_", [](auto& y, auto&) { y.trunc_(); }, [](auto& y, auto&) { return y.trunc(); }},
      {"clamp_min_", [](auto& y, auto&) { y.clamp_min_(0.8); },
       [](auto& y, auto&) { return y.clamp_min(0.8); }},
      {"clamp_max_", [](auto& y, auto&) { y.clamp_max_(0.8); },
       [](auto& y, auto&) { return y.clamp_max(0.8); }},
      {"masked_fill_", [](auto& y, auto&) { y.masked_fill_(y > 1, 3); },
       [](auto& y, auto&) { return y.masked_fill(y > 1, 3); }},
      {"fill_", [](auto& y, auto&) { y.fill_(2); }, [](auto& y, auto&) { return y * 0 + 2; }},
      {"zero_", [](auto& y, auto&) { y.zero_(); }, [](auto& y, auto&) { return y * 0; }},
      {"copy_", [](auto& y, auto& w) { y.copy_(w); }, [](auto& y, auto& w) { return y * 0 + w; }},
      {"index_put_", [](auto& y, auto& w) { y.index_put_({0}, w[0]); },
       [](auto& y, auto& w) {
         return cat({w.narrow(0, 0, 1), y.narrow(0, 1, 2)});
       }},
      {"index_add_",
       [](auto& y, auto& w) {
         y.index_add_(0, tensor({2, 0, 2}), w);
       },
       [](auto& y, auto& w) {
         return y.index_add(0, tensor({2, 0, 2}), w);
       }},
      {"scatter_",
       [](auto& y, auto& w) {
         y.scatter_(0, tensor({{1, 0, 2}}), w);
       },
       [](auto& y, auto& w) {
         return y.scatter(0, tensor({{1, 0, 2}}), w);
       }},
      {"scatter_add_",
       [](auto& y, auto& w) {
         y.scatter_add_(0, tensor({{1, 1, 2}}), w);
       },
       [](auto& y, auto& w) {
         return y.scatter_add(0, tensor({{1, 1, 2}}), w);
       }},
  };
  return all;
}

Tensor numbers(double low) {
  return (arange(9, TensorOptions(kFloat64)) * 0.17 + low).reshape({3, 3});
}

void expect_same(const Tensor& a, const Tensor& b, const std::string& what) {
  const bool none_a = !a.defined() || a.abs().sum().item<double>() == 0;
  const bool none_b = !b.defined() || b.abs().sum().item<double>() == 0;
  EXPECT_EQ(none_a, none_b) << what;
  if (none_a || none_b) return;
  EXPECT_TRUE(a.allclose(b, 1e-12, 1e-12)) << what << "\n" << a << b;
}

// The gradients of x and w, through a function of both.
template <class F> std::vector<Tensor> gradients(F f) {
  const Tensor x = numbers(0.3).requires_grad_(), w = numbers(0.71).requires_grad_();
  f(x, w).square().sum().backward();
  return {x.grad(), w.grad()};
}

TEST(InPlaceGradients, AreThoseOfTheTwin) {
  for (const Method& m : methods()) {
    const auto got = gradients([&](const Tensor& x, const Tensor& w) {
      const Tensor y = x * 1;
      m.in_place(y, w);
      return y;
    });
    const auto want = gradients([&](const Tensor& x, const Tensor& w) { return m.twin(x * 1, w); });
    expect_same(got[0], want[0], str(m.name, ": x"));
    expect_same(got[1], want[1], str(m.name, ": w"));
  }
}

TEST(InPlaceGradients, OfAViewReachTheBase) {
  for (const Method& m : methods()) {
    const auto got = gradients([&](const Tensor& x, const Tensor& w) {
      const Tensor y = cat({x, x * 2});
      m.in_place(y.narrow(0, 2, 3), w);
      return y;
    });
    const auto want = gradients([&](const Tensor& x, const Tensor& w) {
      const Tensor y = cat({x, x * 2});
      return cat({y.narrow(0, 0, 2), m.twin(y.narrow(0, 2, 3), w), y.narrow(0, 5, 1)});
    });
    expect_same(got[0], want[0], str(m.name, ": x"));
    expect_same(got[1], want[1], str(m.name, ": w"));
  }
}

TEST(InPlaceGradients, HaveGradientsThemselves) {
  const auto f = [](const Tensor& x) {
    const Tensor y = x * 1;
    y.mul_(x).pow_(3);
    return y.sum();
  };
  const Tensor x = numbers(0.3).requires_grad_();
  const Tensor first = grad({f(x)}, {x}, {}, true, true)[0];
  const Tensor second = grad({first.sum()}, {x})[0];
  EXPECT_TRUE(second.allclose(30 * x.detach().pow(4), 1e-12, 1e-12)) << second;  // of x^6
}

}  // namespace
}  // namespace taper
