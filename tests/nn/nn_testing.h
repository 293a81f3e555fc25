// What the tests of modules share: errors with their place, and gradients of every parameter.
#pragma once
#include <sstream>

#include "taper/autograd/grad_mode.h"
#include "taper/nn/module.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {

// The error that f throws; one that says "no error" when it throws none.
template <class F> Error error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error("no error", "", {}, "");
}

// The error names this line of a test, this module scope, and each of `parts`.
inline void expect_names(const Error& e,
                         unsigned line,
                         const std::string& scope,
                         const std::vector<std::string>& parts) {
  const std::string text = e.what();
  EXPECT_TRUE(std::string(e.loc().file).ends_with("_test.cpp")) << text;
  EXPECT_EQ(e.loc().line, line) << text;
  EXPECT_EQ(e.scope(), scope) << text;
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
  }
}

inline std::string printed(const nn::Module& module) {
  std::ostringstream out;
  out << module;
  return out.str();
}

// Gradients of forward() in all parameters of an f64 module, against central differences.
template <class F> void expect_parameter_gradients(const nn::Module& module, const F& forward) {
  const Tensor y = forward();
  const Tensor cotangent = sample(y.sizes(), 99);
  (y * cotangent).sum().backward();
  const auto loss = [&] {
    const NoGradGuard no_grad;
    return (forward() * cotangent).sum().template item<double>();
  };
  for (const auto& p : module.named_parameters()) {
    ASSERT_TRUE(p.value().grad().defined()) << p.key();
    const Numbers got = values(p.value().grad());
    auto* w = p.value().data_ptr<double>();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double kept = w[i], h = 1e-6;
      w[i] = kept + h;
      const double up = loss();
      w[i] = kept - h;
      const double down = loss();
      w[i] = kept;
      const double want = (up - down) / (2 * h);
      ASSERT_NEAR(got[i], want, 1e-6 * (1 + std::fabs(want))) << p.key() << " element " << i;
    }
  }
}

// Every element in [-bound, bound], and spread over it as uniform numbers are: n large.
inline void expect_uniform(const Tensor& t, double bound) {
  double largest = 0, sum = 0, squares = 0;
  for (const double x : values(t)) {
    largest = std::max(largest, std::fabs(x));
    sum += x;
    squares += x * x;
  }
  const double n = static_cast<double>(t.numel());
  EXPECT_LE(largest, bound * (1 + 1e-6));
  EXPECT_GT(largest, bound * (1 - 30 / n));
  EXPECT_NEAR(sum / n, 0, 5 * bound / std::sqrt(3 * n));
  EXPECT_NEAR(squares / n, bound * bound / 3, 5 * bound * bound * std::sqrt(4.0 / 45 / n));
}

}  // namespace taper::testing
