// Outside the tree: an installed Taper is found, linked, and differentiates a product.
#include <cstdio>

#include <taper/taper.h>

int main() {
  auto x = taper::ones({2, 3}, taper::requires_grad());
  auto loss = (x * x).sum();
  loss.backward();
  const float slope = x.grad().sum().item<float>();  // d(x*x) = 2x dx, six ones
  std::printf("slope %g\n", static_cast<double>(slope));
  return slope == 12.0F ? 0 : 1;
}
