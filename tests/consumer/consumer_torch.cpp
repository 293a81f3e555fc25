// Outside the tree: a LibTorch script compiles unchanged through Taper::torch_compat.
#include <cstdio>

#include <torch/torch.h>

int main() {
  torch::Tensor x = torch::ones({2, 3}, torch::requires_grad());
  torch::Tensor loss = (x * x).sum();
  loss.backward();
  AT_ASSERT(x.grad().sizes() == x.sizes(), "the gradient has the sizes of x");
  at::globalContext().setAllowTF32CuBLAS(true);
  AT_ASSERT(torch::matmul(x, x.t()).sizes()[0] == 2 && at::globalContext().allowTF32CuBLAS());
  const float slope = x.grad().sum().item<float>();
  std::printf("slope %g\n", static_cast<double>(slope));
  return slope == 12.0F ? 0 : 1;
}
