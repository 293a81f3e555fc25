// Convolution and pooling over one (N, C, H, W) tensor by their definitions, in double.
#pragma once
#include <cmath>
#include <cstdint>

#include "taper/core/kernels.h"

namespace taper::reference {

struct Size4 {
  std::int64_t n, c, h, w;

  std::int64_t at(std::int64_t i, std::int64_t j, std::int64_t y, std::int64_t x) const {
    return ((i * c + j) * h + y) * w + x;
  }
};

// Calls use(output, input, weight), as row-major numbers, for every product of a convolution: all
// of one output together, its taps in row-major order, and the channels within a tap.
template <class Use>
void for_each_product(
    const Size4& y, const Size4& x, const Size4& w, const Window2d& window, const Use& use) {
  const std::int64_t outputs = y.c / window.groups;
  for (std::int64_t n = 0; n < y.n; ++n) {
    for (std::int64_t o = 0; o < y.c; ++o) {
      for (std::int64_t i = 0; i < y.h; ++i) {
        for (std::int64_t j = 0; j < y.w; ++j) {
          for (std::int64_t a = 0; a < w.h; ++a) {
            for (std::int64_t b = 0; b < w.w; ++b) {
              const std::int64_t r =
                  i * window.stride[0] - window.padding[0] + a * window.dilation[0];
              const std::int64_t s =
                  j * window.stride[1] - window.padding[1] + b * window.dilation[1];
              if (r < 0 || r >= x.h || s < 0 || s >= x.w) continue;
              for (std::int64_t c = 0; c < w.c; ++c) {
                use(y.at(n, o, i, j), x.at(n, o / outputs * w.c + c, r, s), w.at(o, c, a, b));
              }
            }
          }
        }
      }
    }
  }
}

// Calls use(output, input) for every place that a window of a pooling covers inside the input.
template <class Use>
void for_each_place(const Size4& y, const Size4& x, const Window2d& window, const Use& use) {
  for (std::int64_t n = 0; n < y.n; ++n) {
    for (std::int64_t c = 0; c < y.c; ++c) {
      for (std::int64_t i = 0; i < y.h; ++i) {
        for (std::int64_t j = 0; j < y.w; ++j) {
          for (std::int64_t a = 0; a < window.kernel[0]; ++a) {
            for (std::int64_t b = 0; b < window.kernel[1]; ++b) {
              const std::int64_t r =
                  i * window.stride[0] - window.padding[0] + a * window.dilation[0];
              const std::int64_t s =
                  j * window.stride[1] - window.padding[1] + b * window.dilation[1];
              if (r < 0 || r >= x.h || s < 0 || s >= x.w) continue;
              use(y.at(n, c, i, j), x.at(n, c, r, s));
            }
          }
        }
      }
    }
  }
}

// What avg_pool2d divides output (i, j) by (torch's rule).
inline double pool_divisor(const Size4& x, const Window2d& window, std::int64_t i, std::int64_t j) {
  if (window.divisor_override != 0) return static_cast<double>(window.divisor_override);
  double count = 1;
  const std::int64_t at[2] = {i, j}, length[2] = {x.h, x.w};
  for (int d = 0; d < 2; ++d) {
    std::int64_t begin = at[d] * window.stride[d] - window.padding[d];
    std::int64_t end = std::min(begin + window.kernel[d], length[d] + window.padding[d]);
    if (!window.count_include_pad) {
      begin = std::max<std::int64_t>(begin, 0);
      end = std::min(end, length[d]);
    }
    count *= static_cast<double>(end - begin);
  }
  return count;
}

}  // namespace taper::reference
