// What the tests of optimizers share: parameters of all kinds, and gradients made up for them.
#pragma once
#include "taper/autograd/grad_mode.h"
#include "taper/optim/optimizer.h"
#include "taper/tests/autograd/ops_testing.h"

namespace taper::testing {

// Several shapes, with none, no and one dim, and one whose elements lie transposed.
inline std::vector<Tensor> parameters_of(DType dtype, unsigned seed = 1) {
  std::vector<Tensor> params;
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{3, 4}, {0, 2}, {}, {700}}) {
    params.push_back(sample(shape, ++seed).to(dtype).clone().requires_grad_());
  }
  params.push_back(sample({5, 2}, ++seed).to(dtype).clone().t().detach().requires_grad_());
  return params;
}

// Gradients as of step t, the same for equal t.
inline void give_gradients(const std::vector<Tensor>& params, unsigned t) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    p.mutable_grad() = sample(p.sizes(), 1000 * t + static_cast<unsigned>(i) + 1).to(p.dtype());
  }
}

inline std::vector<Numbers> values_of(const std::vector<Tensor>& params) {
  std::vector<Numbers> out;
  for (const Tensor& p : params) out.push_back(values(p));
  return out;
}

inline void expect_near(const std::vector<Tensor>& params,
                        const std::vector<Numbers>& want,
                        double tolerance) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Numbers got = values(params[i]);
    ASSERT_EQ(got.size(), want[i].size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      ASSERT_NEAR(got[k], want[i][k], tolerance * (1 + std::fabs(want[i][k])))
          << "parameter " << i << " element " << k;
    }
  }
}

}  // namespace taper::testing
