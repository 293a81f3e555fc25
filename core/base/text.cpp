// How messages and reports write amounts and tables.
#include "taper/core/base/text.h"

#include <algorithm>
#include <cstdio>

#include "taper/core/base/error.h"

namespace taper {

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return str(bytes, " B");
  double x = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (x >= 1023.5 && unit + 1 < std::size(kUnits)) x /= 1024, ++unit;  // no "1024 KiB"
  char text[32];
  std::snprintf(text, sizeof text,
                x < 9.995   ? "%.2f %s"
                : x < 99.95 ? "%.1f %s"
                            : "%.0f %s",
                x, kUnits[unit]);
  return text;
}

std::string fixed(double x, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}

std::string percent(double share) {
  return fixed(100 * share, 1) + " %";
}

std::string count_text(std::uint64_t n, const char* what) {
  return str(n, " ", what, n == 1 ? "" : "s");
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i < left_ ? row[i] + pad : pad + row[i]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace taper
