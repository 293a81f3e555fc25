// Initial values of parameters.
#include "taper/nn/init.h"

#include <cmath>

#include "taper/autograd/grad_mode.h"

namespace taper::nn::init {

double calculate_gain(Nonlinearity nonlinearity, double param) {
  switch (nonlinearity) {
    case Nonlinearity::kTanh: return 5.0 / 3.0;
    case Nonlinearity::kReLU: return std::sqrt(2.0);
    case Nonlinearity::kLeakyReLU: return std::sqrt(2.0 / (1 + param * param));
    default: return 1;
  }
}

std::pair<double, double> calculate_fan_in_and_fan_out(const Tensor& t, Loc loc) {
  const Call call(loc);
  TAPER_CHECK(t.dim() >= 2, "init: the fan of a tensor needs 2 dims or more, got ", t.sizes());
  double field = 1;
  for (std::int64_t d = 2; d < t.dim(); ++d) field *= static_cast<double>(t.size(d));
  return {static_cast<double>(t.size(1)) * field, static_cast<double>(t.size(0)) * field};
}

namespace {

double kaiming_std(const Tensor& t, double a, FanMode mode, Nonlinearity nonlinearity) {
  const auto [fan_in, fan_out] = calculate_fan_in_and_fan_out(t);
  return calculate_gain(nonlinearity, a) / std::sqrt(mode == FanMode::kFanIn ? fan_in : fan_out);
}

double xavier_std(const Tensor& t, double gain) {
  const auto [fan_in, fan_out] = calculate_fan_in_and_fan_out(t);
  return gain * std::sqrt(2.0 / (fan_in + fan_out));
}

}  // namespace

Tensor uniform_(Tensor t, double low, double high, Loc loc) {
  const Call call(loc);
  const NoGradGuard guard;
  return t.uniform_(low, high);
}

Tensor normal_(Tensor t, double mean, double std, Loc loc) {
  const Call call(loc);
  const NoGradGuard guard;
  return t.normal_(mean, std);
}

Tensor constant_(Tensor t, Scalar value, Loc loc) {
  const Call call(loc);
  const NoGradGuard guard;
  return t.fill_(value);
}

Tensor ones_(Tensor t, Loc loc) {
  const Call call(loc);
  return constant_(std::move(t), 1);
}

Tensor zeros_(Tensor t, Loc loc) {
  const Call call(loc);
  return constant_(std::move(t), 0);
}

Tensor eye_(Tensor t, Loc loc) {
  const Call call(loc);
  const NoGradGuard guard;
  TAPER_CHECK(t.dim() == 2, "init::eye_ needs 2 dims, got ", t.sizes());
  t.zero_();
  t.diagonal().fill_(1);
  return t;
}

Tensor xavier_uniform_(Tensor t, double gain, Loc loc) {
  const Call call(loc);
  const double bound = std::sqrt(3.0) * xavier_std(t, gain);
  return uniform_(std::move(t), -bound, bound);
}

Tensor xavier_normal_(Tensor t, double gain, Loc loc) {
  const Call call(loc);
  const double std = xavier_std(t, gain);
  return normal_(std::move(t), 0, std);
}

Tensor kaiming_uniform_(Tensor t, double a, FanMode mode, Nonlinearity nonlinearity, Loc loc) {
  const Call call(loc);
  const double bound = std::sqrt(3.0) * kaiming_std(t, a, mode, nonlinearity);
  return uniform_(std::move(t), -bound, bound);
}

Tensor kaiming_normal_(Tensor t, double a, FanMode mode, Nonlinearity nonlinearity, Loc loc) {
  const Call call(loc);
  const double std = kaiming_std(t, a, mode, nonlinearity);
  return normal_(std::move(t), 0, std);
}

}  // namespace taper::nn::init
