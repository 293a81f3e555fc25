// A LibTorch script: autograd by examples, each compared with the derivative on paper.
#include <iostream>

#include <torch/torch.h>

using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

struct Cube : torch::autograd::Function<Cube> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list grads) {
    auto x = ctx->get_saved_variables()[0];
    return {grads[0] * 3 * x * x};
  }
};

bool all_right = true;

void expect(const std::string& what, const torch::Tensor& got, const torch::Tensor& want) {
  const bool right = torch::allclose(got, want);
  all_right = all_right && right;
  std::cout << (right ? "right  " : "WRONG  ") << what << "\n" << got << "\n";
}

int main() {
  // A scalar function of a matrix.
  auto x = torch::tensor({{1.0, 2.0}, {3.0, 4.0}}, torch::requires_grad());
  auto y = (x * x + 3).mean();
  y.backward();
  expect("d mean(x^2 + 3) / dx = x / 2", x.grad(), x.detach() / 2);

  // Gradients add up until they are cleared.
  (2 * x).sum().backward();
  expect("+ 2", x.grad(), x.detach() / 2 + 2);
  x.mutable_grad().zero_();
  expect("cleared", x.grad(), torch::zeros({2, 2}));

  // A vector-valued function takes a vector: v^T J.
  auto a = torch::tensor({1.0, 2.0, 3.0}, torch::TensorOptions().requires_grad(true));
  auto b = a * a;
  b.backward(torch::tensor({1.0, 10.0, 100.0}));
  expect("v 2a", a.grad(), torch::tensor({2.0, 40.0, 600.0}));

  // Second derivatives.
  auto t = torch::tensor(0.5, torch::requires_grad());
  auto f = torch::sin(t);
  auto df = torch::autograd::grad({f}, {t}, {}, true, true)[0];
  auto ddf = torch::autograd::grad({df}, {t})[0];
  expect("sin'' = -sin", ddf, -torch::sin(t.detach()));

  // Hooks see gradients, and may replace them.
  auto w = torch::ones({2}, torch::requires_grad());
  w.register_hook([](torch::Tensor g) { return g * 10; });
  (w * 3).sum().backward();
  expect("a hook that multiplies by 10", w.grad(), torch::full({2}, 30.0));

  // Kept for an inner tensor; not recorded; cut off.
  auto p = torch::ones({2}, torch::requires_grad());
  auto q = p * 4;
  q.retain_grad();
  (q * q).sum().backward();
  expect("2q", q.grad(), torch::full({2}, 8.0));
  {
    torch::NoGradGuard no_grad;
    all_right = all_right && !(p * 2).requires_grad();
  }
  all_right = all_right && !q.detach().requires_grad() && p.is_leaf() && !q.is_leaf();

  // A function of one's own.
  auto c = torch::tensor({2.0, 3.0}, torch::requires_grad());
  Cube::apply(c).sum().backward();
  expect("3 c^2", c.grad(), torch::tensor({12.0, 27.0}));

  // What a write into a saved tensor does.
  auto s = torch::ones({2}, torch::requires_grad());
  auto e = s.exp();
  auto product = e.sum();
  e.add_(1);
  try {
    product.backward();
    std::cout << "WRONG  no error after a write\n";
    all_right = false;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    std::cout << "right  an error after a write: " << text.substr(0, text.find('\n')) << "\n";
  }
  return all_right ? 0 : 1;
}
