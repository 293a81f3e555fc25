// Initial values of parameters. Each writes its tensor in place, unrecorded, and returns it.
#pragma once
#include <utility>

#include "taper/core/kernels.h"
#include "taper/core/tensor.h"

namespace taper::nn::init {

// Which nonlinearity follows: its gain keeps the variance of activations.
enum class Nonlinearity : std::uint8_t { kLinear, kConv2D, kSigmoid, kTanh, kReLU, kLeakyReLU };
// Which side keeps its variance: activations (fan in) or gradients (fan out).
enum class FanMode : std::uint8_t { kFanIn, kFanOut };

double calculate_gain(Nonlinearity nonlinearity, double param = 0.01);
// (fan in, fan out) of a weight (out, in, ...).
std::pair<double, double> calculate_fan_in_and_fan_out(const Tensor& t, Loc loc = Loc::current());

Tensor uniform_(Tensor t, double low = 0, double high = 1, Loc loc = Loc::current());
Tensor normal_(Tensor t, double mean = 0, double std = 1, Loc loc = Loc::current());
Tensor constant_(Tensor t, Scalar value, Loc loc = Loc::current());
Tensor ones_(Tensor t, Loc loc = Loc::current());
Tensor zeros_(Tensor t, Loc loc = Loc::current());
Tensor eye_(Tensor t, Loc loc = Loc::current());
// Glorot and Bengio 2010.
Tensor xavier_uniform_(Tensor t, double gain = 1, Loc loc = Loc::current());
Tensor xavier_normal_(Tensor t, double gain = 1, Loc loc = Loc::current());
// He et al. 2015.
Tensor kaiming_uniform_(Tensor t,
                        double a = 0,
                        FanMode mode = FanMode::kFanIn,
                        Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU,
                        Loc loc = Loc::current());
Tensor kaiming_normal_(Tensor t,
                       double a = 0,
                       FanMode mode = FanMode::kFanIn,
                       Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU,
                       Loc loc = Loc::current());

}  // namespace taper::nn::init

namespace taper {

inline constexpr auto kFanIn = nn::init::FanMode::kFanIn;
inline constexpr auto kFanOut = nn::init::FanMode::kFanOut;
// relu, as what follows a layer (init) or as what a layer ends with (LinearOptions).
struct ReluChoice {
  // NOLINTNEXTLINE(google-explicit-constructor): as the enumerators are given
  constexpr operator nn::init::Nonlinearity() const { return nn::init::Nonlinearity::kReLU; }

  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator Activation() const { return Activation::kRelu; }
};

inline constexpr ReluChoice kReLU{};
inline constexpr auto kGELU = Activation::kGelu;
inline constexpr auto kLeakyReLU = nn::init::Nonlinearity::kLeakyReLU;
inline constexpr auto kTanh = nn::init::Nonlinearity::kTanh;
inline constexpr auto kLinear = nn::init::Nonlinearity::kLinear;

}  // namespace taper
