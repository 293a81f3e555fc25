// What the tests of the op families share: leaves, element lists, slow oracles' inputs, messages.
#pragma once
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "taper/autograd/gradcheck.h"
#include "taper/autograd/ops/create.h"
#include "taper/autograd/ops/elementwise.h"
#include "taper/autograd/ops/reduce.h"
#include "taper/autograd/ops/shape.h"
#include "taper/tests/message_of.h"

namespace taper {

using Numbers = std::vector<double>;
using Shape = std::vector<std::int64_t>;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

inline Tensor f64(const NestedNumbers& numbers) {
  return tensor(numbers, TensorOptions(kFloat64));
}

inline Tensor leaf(const NestedNumbers& numbers) {
  return tensor(numbers, TensorOptions(kFloat64).requires_grad(true));
}

inline Tensor i64(const NestedNumbers& numbers) {
  return tensor(numbers, TensorOptions(kInt64));
}

inline Numbers values(const Tensor& t) {
  const Tensor flat = t.detach().to(kFloat64).contiguous();
  const auto* p = static_cast<const double*>(flat.data_ptr());
  return Numbers(p, p + flat.numel());
}

inline Shape shape(const Tensor& t) {
  return t.sizes().vec();
}

// Fixed numbers in (-1, 1), all different.
inline Tensor numbers(IntArrayRef sizes, double seed = 1) {
  const Tensor i = arange(checked_numel(sizes), TensorOptions(kFloat64));
  return sin(i * 1.7 + seed * 12.9898).reshape(sizes).clone();
}

inline Tensor variable(IntArrayRef sizes, double seed = 1) {
  return numbers(sizes, seed).requires_grad_();
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Each element as expected to within `tolerance`; NaN and infinity as they are.
inline void expect_near(const Tensor& t, const Numbers& expected, double tolerance = 1e-12) {
  const Numbers got = values(t);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) EXPECT_TRUE(std::isnan(got[i])) << "element " << i;
    else if (std::isinf(expected[i])) EXPECT_EQ(got[i], expected[i]) << "element " << i;
    else
      EXPECT_NEAR(got[i], expected[i], tolerance * (1 + std::fabs(expected[i]))) << "element " << i;
  }
}

// First and second derivatives.
template <class F> void check_derivatives(F f, const std::vector<Tensor>& inputs) {
  EXPECT_TRUE(gradcheck(f, inputs));
  EXPECT_TRUE(gradgradcheck(f, inputs));
}

inline Tensor grad_of(const Tensor& out, const Tensor& in, bool create_graph = false) {
  return grad(out, in, {}, create_graph, create_graph)[0];
}

}  // namespace taper
