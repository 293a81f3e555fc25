// Softmax on a CUDA device, emulated or real; docs/cuda.md looks into its kernel with gdb.
#include <cstdio>

#include "taper/taper.h"

using namespace taper;

int main() {
  if (cuda::device_count() == 0) return std::puts("there is no CUDA device"), 77;
  const Tensor x = arange(12, kFloat).reshape({3, 4}).to(Device(kCUDA, 0));
  const Tensor y = softmax(x, 1);
  std::printf("the largest is %.4f\n", y.max().item<double>());
}
