// The elementwise kernels again, slow and obvious, in double.
#pragma once
#include <cmath>
#include <numbers>

#include "taper/core/kernels.h"

namespace taper::reference {

// What a kernel is defined on, and the arguments that tests try.
enum class Domain { kReal, kNumber, kAny, kInteger, kBits };

struct Unary {
  const char* name;
  Kernels::Unary Kernels::*slot;
  Domain domain;
  double (*f)(double);
  double low = -4, high = 4;
  bool to_bool = false;
};

struct Binary {
  const char* name;
  Kernels::Binary Kernels::*slot;
  Domain domain;
  double (*f)(double, double);
  double low = -6, high = 6;
  bool to_bool = false;
  bool is_real_only_here = false;  // for integers another function holds
};

struct Unary2 {
  const char* name;
  Kernels::Unary2 Kernels::*slot;
  Domain domain;
  double first, second;
  double (*f)(double x, double first, double second);
};

struct Binary2 {
  const char* name;
  Kernels::Binary2 Kernels::*slot;
  double first, second;
  double (*f)(double grad, double x, double first, double second);
};

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
inline double phi(double x) {
  return std::erfc(-x / std::numbers::sqrt2) / 2;
}
inline double density(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}
inline double floor_mod(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
inline double gelu_tanh(double x) {
  return x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))) / 2;
}
inline double whole(double x) {
  return std::nearbyint(x);
}

inline const Unary kUnary[] = {
    {"neg", &Kernels::neg, Domain::kNumber, [](double x) { return -x; }},
    {"abs", &Kernels::abs, Domain::kAny, [](double x) { return std::abs(x); }},
    {"sign", &Kernels::sign, Domain::kAny, [](double x) { return double(x > 0) - double(x < 0); }},
    {"square", &Kernels::square, Domain::kAny, [](double x) { return x * x; }},
    {"reciprocal", &Kernels::reciprocal, Domain::kReal, [](double x) { return 1 / x; }, 0.25, 4},
    {"logical_not", &Kernels::logical_not, Domain::kAny, [](double x) { return double(x == 0); },
     -1, 2, true},
    {"bitwise_not", &Kernels::bitwise_not, Domain::kInteger, [](double x) { return -x - 1; }},
    {"exp", &Kernels::exp, Domain::kReal, [](double x) { return std::exp(x); }},
    {"expm1", &Kernels::expm1, Domain::kReal, [](double x) { return std::expm1(x); }},
    {"log", &Kernels::log, Domain::kReal, [](double x) { return std::log(x); }, 0.01, 9},
    {"log1p", &Kernels::log1p, Domain::kReal, [](double x) { return std::log1p(x); }, -0.9, 9},
    {"sqrt", &Kernels::sqrt, Domain::kReal, [](double x) { return std::sqrt(x); }, 0, 9},
    {"rsqrt", &Kernels::rsqrt, Domain::kReal, [](double x) { return 1 / std::sqrt(x); }, 0.25, 9},
    {"sin", &Kernels::sin, Domain::kReal, [](double x) { return std::sin(x); }},
    {"cos", &Kernels::cos, Domain::kReal, [](double x) { return std::cos(x); }},
    {"tan", &Kernels::tan, Domain::kReal, [](double x) { return std::tan(x); }, -1.2, 1.2},
    {"asin", &Kernels::asin, Domain::kReal, [](double x) { return std::asin(x); }, -1, 1},
    {"acos", &Kernels::acos, Domain::kReal, [](double x) { return std::acos(x); }, -1, 1},
    {"atan", &Kernels::atan, Domain::kReal, [](double x) { return std::atan(x); }},
    {"sinh", &Kernels::sinh, Domain::kReal, [](double x) { return std::sinh(x); }},
    {"cosh", &Kernels::cosh, Domain::kReal, [](double x) { return std::cosh(x); }},
    {"tanh", &Kernels::tanh, Domain::kReal, [](double x) { return std::tanh(x); }},
    {"erf", &Kernels::erf, Domain::kReal, [](double x) { return std::erf(x); }},
    {"floor", &Kernels::floor, Domain::kNumber, [](double x) { return std::floor(x); }},
    {"ceil", &Kernels::ceil, Domain::kNumber, [](double x) { return std::ceil(x); }},
    {"round", &Kernels::round, Domain::kNumber, whole},
    {"trunc", &Kernels::trunc, Domain::kNumber, [](double x) { return std::trunc(x); }},
    {"sigmoid", &Kernels::sigmoid, Domain::kReal, sigmoid},
    {"relu", &Kernels::relu, Domain::kNumber, [](double x) { return x < 0 ? 0 : x; }},
    {"silu", &Kernels::silu, Domain::kReal, [](double x) { return x * sigmoid(x); }},
    {"gelu", &Kernels::gelu, Domain::kReal, [](double x) { return x * phi(x); }},
    {"gelu_tanh", &Kernels::gelu_tanh, Domain::kReal, gelu_tanh},
    {"log_sigmoid", &Kernels::log_sigmoid, Domain::kReal,
     [](double x) { return std::log(sigmoid(x)); }},
};

inline const Binary kBinary[] = {
    {"add", &Kernels::add, Domain::kNumber, [](double a, double b) { return a + b; }},
    {"sub", &Kernels::sub, Domain::kNumber, [](double a, double b) { return a - b; }},
    {"mul", &Kernels::mul, Domain::kAny, [](double a, double b) { return a * b; }},
    {"div", &Kernels::div, Domain::kReal, [](double a, double b) { return a / b; }},
    {"maximum", &Kernels::maximum, Domain::kAny, [](double a, double b) { return a > b ? a : b; }},
    {"minimum", &Kernels::minimum, Domain::kAny, [](double a, double b) { return a < b ? a : b; }},
    {"floor_divide", &Kernels::floor_divide, Domain::kNumber,
     [](double a, double b) { return std::floor(a / b); }, 1, 40},
    {"remainder", &Kernels::remainder, Domain::kNumber, floor_mod, 1, 40},
    {"fmod", &Kernels::fmod, Domain::kNumber, [](double a, double b) { return std::fmod(a, b); }, 1,
     40},
    {"pow", &Kernels::pow, Domain::kNumber, [](double a, double b) { return std::pow(a, b); }, 0,
     3},
    {"atan2", &Kernels::atan2, Domain::kReal, [](double a, double b) { return std::atan2(a, b); }},
    {"eq", &Kernels::eq, Domain::kAny, [](double a, double b) { return double(a == b); }, -1, 1,
     true},
    {"ne", &Kernels::ne, Domain::kAny, [](double a, double b) { return double(a != b); }, -1, 1,
     true},
    {"lt", &Kernels::lt, Domain::kAny, [](double a, double b) { return double(a < b); }, -1, 1,
     true},
    {"le", &Kernels::le, Domain::kAny, [](double a, double b) { return double(a <= b); }, -1, 1,
     true},
    {"gt", &Kernels::gt, Domain::kAny, [](double a, double b) { return double(a > b); }, -1, 1,
     true},
    {"ge", &Kernels::ge, Domain::kAny, [](double a, double b) { return double(a >= b); }, -1, 1,
     true},
    {"logical_and", &Kernels::logical_and, Domain::kAny,
     [](double a, double b) { return double(a != 0 && b != 0); }, -1, 2, true},
    {"logical_or", &Kernels::logical_or, Domain::kAny,
     [](double a, double b) { return double(a != 0 || b != 0); }, -1, 2, true},
    {"logical_xor", &Kernels::logical_xor, Domain::kAny,
     [](double a, double b) { return double((a != 0) != (b != 0)); }, -1, 2, true},
    {"bitwise_and", &Kernels::bitwise_and, Domain::kBits,
     [](double a, double b) { return double(long(a) & long(b)); }, 0, 100},
    {"bitwise_or", &Kernels::bitwise_or, Domain::kBits,
     [](double a, double b) { return double(long(a) | long(b)); }, 0, 100},
    {"bitwise_xor", &Kernels::bitwise_xor, Domain::kBits,
     [](double a, double b) { return double(long(a) ^ long(b)); }, 0, 100},
    {"sigmoid_grad", &Kernels::sigmoid_grad, Domain::kReal,
     [](double g, double y) { return g * y * (1 - y); }, 0, 1},
    {"tanh_grad", &Kernels::tanh_grad, Domain::kReal,
     [](double g, double y) { return g * (1 - y * y); }, -1, 1},
    {"relu_grad", &Kernels::relu_grad, Domain::kReal,
     [](double g, double y) { return y > 0 ? g : 0; }},
    {"silu_grad", &Kernels::silu_grad, Domain::kReal,
     [](double g, double x) { return g * (sigmoid(x) + x * sigmoid(x) * sigmoid(-x)); }, -4, 4},
    {"gelu_grad", &Kernels::gelu_grad, Domain::kReal,
     [](double g, double x) { return g * (phi(x) + x * density(x)); }, -4, 4},
    {"gelu_tanh_grad", &Kernels::gelu_tanh_grad, Domain::kReal,
     [](double g, double x) {
       const double scale = std::sqrt(2 / std::numbers::pi);
       const double t = std::tanh(scale * (x + 0.044715 * x * x * x));
       return g * ((1 + t) + x * (1 - t * t) * scale * (1 + 0.134145 * x * x)) / 2;
     },
     -4, 4},
    {"log_sigmoid_grad", &Kernels::log_sigmoid_grad, Domain::kReal,
     [](double g, double x) { return g * sigmoid(-x); }, -4, 4},
};

inline const Unary2 kUnary2[] = {
    {"clamp", &Kernels::clamp, Domain::kNumber, -1, 2,
     [](double x, double low, double high) { return std::fmin(std::fmax(x, low), high); }},
    {"leaky_relu", &Kernels::leaky_relu, Domain::kReal, 0.1, 0,
     [](double x, double slope, double) { return x > 0 ? x : slope * x; }},
    {"elu", &Kernels::elu, Domain::kReal, 1.5, 0,
     [](double x, double alpha, double) { return x > 0 ? x : alpha * std::expm1(x); }},
    {"softplus", &Kernels::softplus, Domain::kReal, 2, 3,
     [](double x, double beta, double threshold) {
       return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
     }},
};

inline const Binary2 kBinary2[] = {
    {"clamp_grad", &Kernels::clamp_grad, -1, 2,
     [](double g, double x, double low, double high) { return x >= low && x <= high ? g : 0; }},
    {"leaky_relu_grad", &Kernels::leaky_relu_grad, 0.1, 0,
     [](double g, double x, double slope, double) { return x > 0 ? g : slope * g; }},
    {"elu_grad", &Kernels::elu_grad, 1.5, 0,
     [](double g, double x, double alpha, double) { return x > 0 ? g : g * alpha * std::exp(x); }},
    {"softplus_grad", &Kernels::softplus_grad, 2, 3,
     [](double g, double x, double beta, double threshold) {
       return beta * x > threshold ? g : g * sigmoid(beta * x);
     }},
};

}  // namespace taper::reference
