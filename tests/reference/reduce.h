// Reductions again, slow and obvious: the rule of core/reducers.h word for word, and plain doubles.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace taper::reference {

// Steps 2 and 3 of the rule: 64 lanes, then the tree. Op(a, b) joins; T is the type computed in.
template <class T, class Op> T reduce_block(const std::vector<T>& x, T identity, Op op) {
  std::vector<T> lanes(64, identity);
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 64] = op(lanes[i % 64], x[i]);
  for (std::size_t w = 32; w > 0; w /= 2) {
    for (std::size_t i = 0; i < w; ++i) lanes[i] = op(lanes[i], lanes[i + w]);
  }
  return lanes[0];
}

// All of it: blocks of 65536.
template <class T, class Op> T reduce(const std::vector<T>& x, T identity, Op op) {
  if (x.size() <= 65536) return reduce_block(x, identity, op);
  std::vector<T> results;
  for (std::size_t first = 0; first < x.size(); first += 65536) {
    const std::size_t end = first + 65536 < x.size() ? first + 65536 : x.size();
    results.push_back(reduce_block(
        std::vector<T>(x.begin() + static_cast<long>(first), x.begin() + static_cast<long>(end)),
        identity, op));
  }
  return reduce_block(results, identity, op);
}

template <class T> T sum(const std::vector<T>& x) {
  return reduce(x, T(0), [](T a, T b) { return T(a + b); });
}

inline double sum_in_double(const std::vector<double>& x) {
  long double total = 0;
  for (const double v : x) total += static_cast<long double>(v);
  return static_cast<double>(total);
}

// Blocks of 256, sequential inside, each joined to what came before it.
template <class T, class Op> std::vector<T> scan(const std::vector<T>& x, Op op) {
  std::vector<T> out;
  T before{}, running{};
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 256 == 0 && i > 0) before = out.back();
    running = i % 256 == 0 ? x[i] : op(running, x[i]);
    out.push_back(i < 256 ? running : op(before, running));
  }
  return out;
}

}  // namespace taper::reference
