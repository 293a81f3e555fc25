// What tests/gdb/frames.py steps through: one multiplication, forward and back.
#include "taper/taper.h"

int main() {
  const taper::Tensor x = taper::ones({2}, taper::requires_grad());
  const taper::Tensor y = (x * x).sum();
  y.backward();
  return 0;
}
