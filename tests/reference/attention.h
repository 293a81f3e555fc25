// Attention again, slow and obvious: a matrix of scores, softmax by row, all in double.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace taper::reference {

// One matrix; row-major. The mask is added to the scores, -inf where a key is not seen. Scores are
// rounded as the machine's are, since what is left of one beside a mask of -1e9 is a matter of
// that.
struct Attention {
  std::int64_t queries, keys, depth, columns;
  double scale;
  std::vector<double> q, k, v, mask, grad;
  bool in_f32 = false;

  std::vector<double> weights() const {
    std::vector<double> w(static_cast<std::size_t>(queries * keys));
    for (std::int64_t i = 0; i < queries; ++i) {
      double max = -std::numeric_limits<double>::infinity(), sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        double score = 0;
        for (std::int64_t d = 0; d < depth; ++d) score += at(q, i, d, depth) * at(k, j, d, depth);
        at(w, i, j, keys) = rounded(score * scale + at(mask, i, j, keys));
        max = std::fmax(max, at(w, i, j, keys));
      }
      for (std::int64_t j = 0; j < keys; ++j) {
        double& x = at(w, i, j, keys);
        x = std::isinf(max) ? 0 : std::exp(x - max);
        sum += x;
      }
      for (std::int64_t j = 0; j < keys; ++j) {
        if (sum > 0) at(w, i, j, keys) /= sum;
      }
    }
    return w;
  }

  std::vector<double> y() const {
    const std::vector<double> w = weights();
    std::vector<double> out(static_cast<std::size_t>(queries * columns));
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        for (std::int64_t c = 0; c < columns; ++c)
          at(out, i, c, columns) += at(w, i, j, keys) * at(v, j, c, columns);
      }
    }
    return out;
  }

  struct Grads {
    std::vector<double> dq, dk, dv;
  };

  Grads grads() const {
    const std::vector<double> w = weights();
    Grads out{std::vector<double>(q.size()), std::vector<double>(k.size()),
              std::vector<double>(v.size())};
    for (std::int64_t i = 0; i < queries; ++i) {
      std::vector<double> of_weights(static_cast<std::size_t>(keys));
      double mean = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        double& dw = at(of_weights, 0, j, keys);
        for (std::int64_t c = 0; c < columns; ++c) {
          dw += at(grad, i, c, columns) * at(v, j, c, columns);
          at(out.dv, j, c, columns) += at(w, i, j, keys) * at(grad, i, c, columns);
        }
        mean += at(w, i, j, keys) * dw;
      }
      for (std::int64_t j = 0; j < keys; ++j) {
        const double ds = at(w, i, j, keys) * (at(of_weights, 0, j, keys) - mean) * scale;
        for (std::int64_t d = 0; d < depth; ++d) {
          at(out.dq, i, d, depth) += ds * at(k, j, d, depth);
          at(out.dk, j, d, depth) += ds * at(q, i, d, depth);
        }
      }
    }
    return out;
  }

 private:
  double rounded(double score) const {
    return in_f32 ? static_cast<double>(static_cast<float>(score)) : score;
  }

  static double& at(std::vector<double>& x, std::int64_t i, std::int64_t j, std::int64_t cols) {
    return x[static_cast<std::size_t>(i * cols + j)];
  }

  static double at(const std::vector<double>& x,
                   std::int64_t i,
                   std::int64_t j,
                   std::int64_t cols) {
    return x[static_cast<std::size_t>(i * cols + j)];
  }
};

}  // namespace taper::reference
