// Adam and SGD, one number at a time and in double, as PyTorch's documentation writes them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace taper::reference {

struct AdamState {
  double p, m, v, largest;
};

inline void adam(AdamState& s,
                 double g,
                 std::int64_t t,
                 double lr,
                 double beta1,
                 double beta2,
                 double eps,
                 double decay,
                 bool decoupled,
                 bool amsgrad) {
  if (decoupled) s.p *= 1 - lr * decay;
  else g += decay * s.p;
  s.m = beta1 * s.m + (1 - beta1) * g;
  s.v = beta2 * s.v + (1 - beta2) * g * g;
  s.largest = std::max(s.largest, s.v);
  const double m = s.m / (1 - std::pow(beta1, static_cast<double>(t)));
  const double v = (amsgrad ? s.largest : s.v) / (1 - std::pow(beta2, static_cast<double>(t)));
  s.p -= lr * m / (std::sqrt(v) + eps);
}

inline void sgd(double& p,
                double& buffer,
                double g,
                bool first,
                double lr,
                double momentum,
                double dampening,
                double decay,
                bool nesterov) {
  g += decay * p;
  if (momentum != 0) {
    buffer = first ? g : momentum * buffer + (1 - dampening) * g;
    g = nesterov ? g + momentum * buffer : buffer;
  }
  p -= lr * g;
}

}  // namespace taper::reference
