// What the tests of op families share: samples, comparison, both gradient checks, error texts.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "taper/autograd/gradcheck.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/tests/message_of.h"

namespace taper::testing {

using Numbers = std::vector<double>;

// Fixed pseudo-random f64 numbers in [low, high), the same on every machine.
inline Tensor sample(IntArrayRef sizes, unsigned seed = 1, double low = -1, double high = 1) {
  std::vector<double> v(static_cast<std::size_t>(checked_numel(sizes)));
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u;
  for (double& x : v) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53;
  }
  return tensor(v, kFloat64).view(sizes);
}

inline Tensor leaf(const Tensor& t) {
  return t.clone().requires_grad_();
}

inline Tensor leaf(IntArrayRef sizes, unsigned seed = 1, double low = -1, double high = 1) {
  return sample(sizes, seed, low, high).clone().requires_grad_();
}

inline Numbers values(const Tensor& t) {
  const Tensor flat = t.detach().to(kFloat64).contiguous();
  const auto* p = flat.data_ptr<double>();
  return Numbers(p, p + flat.numel());
}

// Equal shapes, and elements within `tolerance` of one another; NaN equals NaN.
inline void expect_close(const Tensor& got, const Tensor& want, double tolerance = 1e-10) {
  ASSERT_TRUE(got.sizes() == want.sizes()) << str(got.sizes(), " against ", want.sizes());
  const Numbers a = values(got), b = values(want);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::fabs(b[i]))) << "element " << i;
  }
}

// First and second derivatives of f, a callable from std::vector<Tensor>, against differences.
template <class F> void expect_gradients(const F& f, const std::vector<Tensor>& inputs) {
  EXPECT_NO_THROW(gradcheck(f, inputs));
  EXPECT_NO_THROW(gradgradcheck(f, inputs));
}

// The gradient of f's output, weighted by fixed numbers, in each input; fused and as a graph.
template <class F> void expect_same_with_graph(const F& f, const std::vector<Tensor>& inputs) {
  const Tensor y = f(inputs);
  const Tensor cotangent = sample(y.sizes(), 99);
  const auto fused = grad({y}, inputs, {cotangent}, true, false);
  const auto composite = grad({y}, inputs, {cotangent}, true, true);
  for (std::size_t i = 0; i < inputs.size(); ++i) expect_close(fused[i], composite[i], 1e-9);
}

template <class F> void expect_error(const F& f, const std::vector<std::string>& parts) {
  const std::string text = message_of(f);
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
  }
}

}  // namespace taper::testing
