// Draws ratios as bars that begin at 1, to the left where ours is quicker, with goals as marks.
#include <algorithm>
#include <cmath>

#include "taper/benchmarks/drawing.h"
#include "taper/benchmarks/report.h"

namespace bench {
namespace {

constexpr double kLeft = 270, kWide = 560, kBar = 9, kGap = 7, kMost = 16;  // a ratio that fits

// Ratios by their logarithm, 1 in the middle.
double place(double ratio) {
  const double within = std::clamp(ratio, 1 / kMost, kMost);
  return kLeft + kWide / 2 * (1 + std::log(within) / std::log(kMost));
}

std::string ratio_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", x);
  return text;
}

void draw_cell(Drawing& d, const Cell& c, double y, const std::string& ink) {
  const double from = place(1), to = place(c.ratio);
  d.bar(std::min(from, to), y, std::max(1.0, std::abs(to - from)), kBar - 1, ink);
  const bool missed = c.at_most > 0 && c.ratio > c.at_most;
  // At the edge there is no room, and left of a missed goal's bar stands the goal.
  const bool left = c.ratio < 1 && c.ratio > 1.5 / kMost && !missed;
  const double right = std::max({from, to, c.at_most > 0 ? place(c.at_most) : from});
  d.text(left ? to - 4 : right + 4, y + kBar - 1.5, ratio_text(c.ratio) + (missed ? " NO" : ""),
         left ? "end" : "start", missed ? Drawing::kOursInk : Drawing::kDim, 9);
  if (c.at_most > 0)
    d.line(place(c.at_most), y - 1.5, place(c.at_most), y + kBar, Drawing::kOursInk, 2);
}

double draw_line(Drawing& d, const Line& line, double y) {
  double at = y;
  for (std::size_t i = 0; i < line.cells.size(); ++i) {
    if (std::isnan(line.cells[i].ratio)) continue;
    draw_cell(d, line.cells[i], at, column_ink(i));
    at += kBar;
  }
  if (at == y) return y;  // nothing stands beside it
  d.text(kLeft - 8, (y + at) / 2 + 4, line.row.name, "end");
  return at + kGap;
}

}  // namespace

void write_svg(const std::string& path, const std::string& title, const std::vector<Line>& lines) {
  Drawing d;
  d.text(16, 26, title + ": time beside each column; left of 1 ours is quicker", "start",
         Drawing::kInk, 15);
  double y = 44;
  int threads = 0;
  for (const Line& line : lines) {
    if (line.threads != threads) {
      threads = line.threads;
      y += 16;
      d.text(16, y, std::to_string(threads) + (threads == 1 ? " thread" : " threads"), "start",
             Drawing::kInk, 13);
      double x = kLeft;
      for (std::size_t i = 0; i < line.cells.size(); ++i) {
        d.bar(x, y - 9, 10, 10, column_ink(i));
        d.text(x + 14, y, line.cells[i].column, "start", Drawing::kDim);
        x += 30 + 7.5 * static_cast<double>(line.cells[i].column.size());
      }
      d.line(x + 2, y - 10, x + 2, y + 1, Drawing::kOursInk, 2);
      d.text(x + 10, y, "asked, at most", "start", Drawing::kDim);
      for (const double tick : {1 / 16.0, 1 / 8.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0})
        d.text(place(tick), y + 20, ratio_text(tick), "middle", Drawing::kDim, 10);
      y += 28;
    }
    y = draw_line(d, line, y);
  }
  for (const double tick : {0.25, 0.5, 1.0, 2.0, 4.0})
    d.line(place(tick), 84, place(tick), y, Drawing::kFaint, tick == 1 ? 1.5 : 0.6);
  d.write(path, kLeft + kWide + 60, y + 16);
}

}  // namespace bench
