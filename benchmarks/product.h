// A matrix product by name, the same in our program and in the peers': "64x256x784 nt".
#pragma once
#include <cstdio>
#include <string>

namespace bench {

// C (m, n) = A (m, k) B (k, n), `batch` times. A transposed operand lies in memory the other way.
struct Product {
  long m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  long batch = 1;
  bool bf16 = false;

  double flops() const {
    return 2 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }

  // "M x N x K", how A and B lie, then what is not usual: "128x64x128 tn x32 bf16".
  std::string name() const {
    char text[96];
    std::snprintf(text, sizeof text, "%ldx%ldx%ld %c%c", m, n, k, a_transposed ? 't' : 'n',
                  b_transposed ? 't' : 'n');
    return text + (batch == 1 ? "" : " x" + std::to_string(batch)) + (bf16 ? " bf16" : "");
  }
};

// What name() wrote; false for any other text.
inline bool parse_product(const std::string& name, Product& out) {
  out = Product();
  char a = 0, b = 0;
  if (std::sscanf(name.c_str(), "%ldx%ldx%ld %c%c x%ld", &out.m, &out.n, &out.k, &a, &b,
                  &out.batch) < 5)
    return false;
  out.a_transposed = a == 't';
  out.b_transposed = b == 't';
  out.bf16 = name.ends_with(" bf16");
  return out.name() == name;
}

}  // namespace bench
