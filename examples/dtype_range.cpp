// Range against precision: what f16 and bf16 can hold, and why loss scaling exists.
#include <cmath>
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

const char* name(DType d) {
  return d == kFloat16 ? "f16" : d == kBFloat16 ? "bf16" : "f32";
}

double through(double x, DType d) {
  return tensor(x, kFloat64).to(d).item<double>();
}

// Bits of precision: how far below 1 the last bit lies that 1 + 2^-k still shows, counting the 1.
int significand_bits(DType d) {
  int k = 0;
  while (through(1 + std::ldexp(1.0, -(k + 1)), d) != 1) ++k;
  return k + 1;
}

double smallest_normal(DType d) {
  return std::ldexp(1.0, d == kFloat16 ? -14 : -126);
}

// The gradient that reaches w when it flows through an activation of dtype d.
double gradient_through(DType d, double true_gradient, double loss_scale) {
  const Tensor w = ones({1}, TensorOptions(kFloat32).requires_grad(true));
  const Tensor activation = w.to(d);
  (activation.to(kFloat32) * true_gradient * loss_scale).sum().backward();
  return w.grad().item<double>() / loss_scale;
}

int main() {
  std::printf("dtype   bits of significand   smallest normal      70000 becomes   1e-8 becomes\n");
  for (const DType d : {kFloat32, kBFloat16, kFloat16}) {
    std::printf("%-5s   %19d   %15.3g   %16g   %12.3g\n", name(d), significand_bits(d),
                smallest_normal(d), through(70000, d), through(1e-8, d));
  }
  std::printf(
      "\nbf16 has the range of f32 and pays with precision; f16 has the bits and ends at 65504.\n");

  const double g = 1e-8;
  std::printf("\nA gradient of %g, sent through an activation:\n", g);
  for (const DType d : {kFloat32, kBFloat16, kFloat16}) {
    const double got = gradient_through(d, g, 1);
    std::printf("  %-5s arrives as %-12.4g%s\n", name(d), got,
                got == 0 ? "  it has vanished: training stands still" : "");
  }

  std::printf("\nThe remedy in f16: multiply the loss, and divide the gradient afterwards.\n");
  std::printf("  scale     1e-8 * scale     in f16        error\n");
  int first_normal = -1;
  for (const int power : {0, 2, 4, 8, 12, 13, 16}) {
    const double scale = std::ldexp(1.0, power), got = gradient_through(kFloat16, g, scale);
    const bool normal = g * scale >= smallest_normal(kFloat16);
    if (normal && first_normal < 0) first_normal = power;
    std::printf("  2^%-2d      %12.3g     %-10s %8.3f %%\n", power, g * scale,
                got == 0 ? "zero"
                : normal ? "normal"
                         : "subnormal",
                100 * std::fabs(got - g) / g);
  }
  std::printf(
      "From 2^%d on, 1e-8 is a normal f16 number with all 11 bits. GradScalers begin at 2^16.\n",
      first_normal);

  const bool good = std::isinf(through(70000, kFloat16)) && through(70000, kBFloat16) == 70144 &&
                    significand_bits(kFloat16) == 11 && significand_bits(kBFloat16) == 8 &&
                    gradient_through(kFloat16, g, 1) == 0 &&
                    gradient_through(kBFloat16, g, 1) > 0 && first_normal == 13;
  return good ? 0 : 1;
}
