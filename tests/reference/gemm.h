// The slow obvious matrix product: one chain of fmas for each element, in the type that it is
// summed in.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace taper::reference {

// c (m, n) = a (m, k) b (k, n) + start (m, n), all row-major.
template <class T>
std::vector<T> product(std::int64_t m,
                       std::int64_t n,
                       std::int64_t k,
                       const std::vector<T>& a,
                       const std::vector<T>& b,
                       std::vector<T> start) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      T sum = start[at(i * n + j)];
      for (std::int64_t q = 0; q < k; ++q) sum = std::fma(a[at(i * k + q)], b[at(q * n + j)], sum);
      start[at(i * n + j)] = sum;
    }
  }
  return start;
}

}  // namespace taper::reference
