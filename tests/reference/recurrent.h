// One step of an LSTM and of a GRU for one element, and their gradients, in double.
#pragma once
#include <array>
#include <cmath>

namespace taper::reference {

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Of sums i, f, g, o: the gates.
inline std::array<double, 4> lstm_gates(const std::array<double, 4>& sums) {
  return {sigmoid(sums[0]), sigmoid(sums[1]), std::tanh(sums[2]), sigmoid(sums[3])};
}

// (c, h)
inline std::array<double, 2> lstm_states(const std::array<double, 4>& gates, double c_before) {
  const double c = gates[1] * c_before + gates[0] * gates[2];
  return {c, gates[3] * std::tanh(c)};
}

// Of the four sums, then what c_before gets.
inline std::array<double, 5> lstm_grads(
    double dh, double dc, const std::array<double, 4>& gates, double c, double c_before) {
  const auto [i, f, g, o] = gates;
  const double y = std::tanh(c), all = dc + dh * o * (1 - y * y);
  return {all * g * i * (1 - i), all * c_before * f * (1 - f), all * i * (1 - g * g),
          dh * y * o * (1 - o), all * f};
}

// Of sums r, z, and n's two parts: (r, z, n, h).
inline std::array<double, 4> gru_step(
    double sum_r, double sum_z, double x_n, double m, double h_before) {
  const double r = sigmoid(sum_r), z = sigmoid(sum_z), n = std::tanh(x_n + r * m);
  return {r, z, n, (1 - z) * n + z * h_before};
}

// Of r's and z's sums, x's part of n, the state's part, then what h_before gets.
inline std::array<double, 5> gru_grads(double dh,
                                       const std::array<double, 4>& gates,
                                       double h_before) {
  const auto [r, z, n, m] = gates;
  const double dn = dh * (1 - z) * (1 - n * n);
  return {dn * m * r * (1 - r), dh * (h_before - n) * z * (1 - z), dn, dn * r, dh * z};
}

}  // namespace taper::reference
