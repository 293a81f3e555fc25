// How the numbers of a tensor spread over powers of two, and what narrower formats would lose.
#include <algorithm>
#include <cmath>

#include "taper/autograd/lens/answers.h"

namespace taper::lens {
namespace {

// A binary format by its figures. Sources: IEEE 754-2008 (fp16), bfloat16, and Micikevicius et al.,
// "FP8 formats for deep learning", 2022; its e4m3 has no infinity: what is beyond becomes NaN.
struct Format {
  const char* name;
  int significand;      // bits, with the hidden one
  int lowest_exponent;  // of normal numbers
  double largest;
};

constexpr Format kFormats[] = {{"fp16", 11, -14, 65504.0},
                               {"bf16", 8, -126, 3.3895313892515355e38},
                               {"fp8 e4m3", 4, -6, 448.0},
                               {"fp8 e5m2", 3, -14, 57344.0}};

}  // namespace

Exponents exponents(const Tensor& t, Loc loc) {
  const Call call(loc);
  TAPER_CHECK(t.is_floating_point(), "exponents: a tensor ", t.dtype(), " ", t.sizes(),
              " has none; convert it to a float");
  TAPER_CHECK(!t.is_meta(), "exponents: a meta tensor has no elements");
  const NoGradGuard no_grad;
  const Tensor host = t.detach().to(kCPU).to(kDouble).contiguous();
  const ArrayRef<double> numbers(host.data_ptr<double>(), static_cast<std::size_t>(host.numel()));
  Exponents e;
  e.total = host.numel();
  constexpr int kLowest = -1074, kHighest = 1023;  // of doubles
  std::vector<std::int64_t> counts(kHighest - kLowest + 1);
  std::int64_t zero[std::size(kFormats)] = {}, subnormal[std::size(kFormats)] = {},
               over[std::size(kFormats)] = {};
  for (const double x : numbers) {
    if (x == 0) ++e.zeros;
    else if (std::isnan(x)) ++e.nans;
    else if (std::isinf(x)) ++e.infinities;
    else ++counts[static_cast<std::size_t>(std::ilogb(x) - kLowest)];
    if (x == 0 || !std::isfinite(x)) continue;
    for (std::size_t f = 0; f < std::size(kFormats); ++f) {
      const Format& format = kFormats[f];
      // Rounded to a multiple of the unit in the last place that the format has there.
      const int exponent = std::max(std::ilogb(x), format.lowest_exponent);
      const double unit = std::ldexp(1.0, exponent - format.significand + 1);
      const double rounded = std::abs(std::nearbyint(x / unit) * unit);
      if (rounded == 0) ++zero[f];
      else if (rounded > format.largest) ++over[f];
      else if (rounded < std::ldexp(1.0, format.lowest_exponent)) ++subnormal[f];
    }
  }
  const auto numbers_left = static_cast<double>(e.total - e.zeros - e.nans - e.infinities);
  for (std::size_t f = 0; f < std::size(kFormats); ++f) {
    const auto share = [&](std::int64_t n) {
      return numbers_left == 0 ? 0 : static_cast<double>(n) / numbers_left;
    };
    e.losses.push_back({kFormats[f].name, share(zero[f]), share(subnormal[f]), share(over[f])});
  }
  const auto used = [](std::int64_t n) { return n != 0; };
  const auto begin = std::find_if(counts.begin(), counts.end(), used);
  const auto end = std::find_if(counts.rbegin(), counts.rend(), used).base();
  if (begin == counts.end()) return e;
  e.lowest = kLowest + static_cast<int>(begin - counts.begin());
  e.counts.assign(begin, end);
  return e;
}

std::string to_string(const Exponents& e) {
  const auto padded = [](std::string s, std::size_t width) {
    return s.size() < width ? std::string(width - s.size(), ' ') + s : s;
  };
  const auto percent = [](double share) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
    return std::string(text);
  };
  std::string text = str(e.total, " elements: ", e.zeros, " zero, ", e.infinities, " infinite, ",
                         e.nans, " NaN\n");
  const std::int64_t most =
      e.counts.empty() ? 1 : *std::max_element(e.counts.begin(), e.counts.end());
  bool gap = false;  // empty bins in a row are one line
  for (std::size_t i = e.counts.size(); i-- > 0;) {
    if (e.counts[i] == 0) {
      if (!gap) text += "      ...\n";
      gap = true;
      continue;
    }
    gap = false;
    const auto width = static_cast<std::size_t>((40 * e.counts[i] + most - 1) / most);
    text += str("  2^", padded(std::to_string(e.lowest + static_cast<int>(i)), 5), " ",
                padded(std::to_string(e.counts[i]), 10), " ", std::string(width, '#'), "\n");
  }
  for (const Exponents::Loss& l : e.losses) {
    text += str("  ", padded(l.format, 8), ": ", padded(percent(l.to_zero), 8), " become 0, ",
                padded(percent(l.to_subnormal), 8), " subnormal, ", padded(percent(l.overflow), 8),
                " overflow\n");
  }
  return text;
}

}  // namespace taper::lens
