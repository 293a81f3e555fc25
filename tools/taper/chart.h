// Line charts as SVG: one file, no scripts, readable on light and dark pages.
#pragma once
#include <string>
#include <vector>

namespace taper::tools {

struct Series {
  std::string name;
  std::string color;  // "#rrggbb"
  std::vector<double> x, y;
  bool faint = false;       // drawn thin and pale, left out of the legend
  bool right_axis = false;  // measured on the right
};

struct Chart {
  std::string title, x_label, left_label, right_label;
  std::vector<Series> series;
};

std::string to_svg(const Chart& chart);

}  // namespace taper::tools
