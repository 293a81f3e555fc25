// Line charts as SVG.
#include "taper/tools/taper/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace taper::tools {
namespace {

constexpr double kWidth = 760, kHeight = 400;
constexpr double kLeft = 64, kRight = 64, kTop = 48, kBottom = 52;

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

std::string pixels(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", x);
  return text;
}

std::string escaped(const std::string& s) {
  std::string out;
  for (const char c : s) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else out += c;
  }
  return out;
}

// A range that contains all values, its ends on round numbers, with a tick each `step`.
struct Axis {
  double low = 0, high = 1, step = 0.2;

  double at(double x) const { return (x - low) / (high - low); }
};

Axis axis_of(double low, double high) {
  if (!(low < high)) high = low + 1;
  const double rough = (high - low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double s : {1.0, 2.0, 5.0}) {
    if (s * power >= rough) {
      step = s * power;
      break;
    }
  }
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, step};
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    double bounds[3][2];  // x, left, right
    for (auto& b : bounds) b[0] = HUGE_VAL, b[1] = -HUGE_VAL;
    const auto include = [](double* b, double v) {
      if (!std::isfinite(v)) return;
      b[0] = std::min(b[0], v), b[1] = std::max(b[1], v);
    };
    for (const Series& s : chart.series) {
      for (const double v : s.x) include(bounds[0], v);
      for (const double v : s.y) include(bounds[s.right_axis ? 2 : 1], v);
    }
    for (auto& b : bounds) {
      if (b[0] > b[1]) b[0] = 0, b[1] = 1;
    }
    x_ = axis_of(bounds[0][0], bounds[0][1]);
    left_ = axis_of(std::min(0.0, bounds[1][0]), bounds[1][1]);
    right_ = axis_of(bounds[2][0], bounds[2][1]);
    for (const Series& s : chart.series) has_right_ = has_right_ || s.right_axis;
  }

  std::string svg() {
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth) + " " +
           number(kHeight) + "\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n";
    out_ += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    text(kLeft, 24, "start", chart_.title, "font-size=\"15\" font-weight=\"600\" fill=\"#1a1a1a\"");
    draw_axes();
    for (const Series& s : chart_.series) draw_line(s);
    draw_legend();
    return out_ + "</svg>\n";
  }

 private:
  double px(double x) const { return kLeft + x_.at(x) * (kWidth - kLeft - kRight); }

  double py(const Axis& a, double y) const {
    return kHeight - kBottom - a.at(y) * (kHeight - kTop - kBottom);
  }

  void text(
      double x, double y, const char* anchor, const std::string& s, const std::string& style) {
    out_ += "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" text-anchor=\"" + anchor +
            "\" " + style + ">" + escaped(s) + "</text>\n";
  }

  void draw_axes() {
    const std::string grey = "fill=\"#666666\"";
    for (double v = left_.low; v <= left_.high + left_.step / 2; v += left_.step) {
      const std::string y = pixels(py(left_, v));
      out_ += "<line x1=\"" + pixels(kLeft) + "\" x2=\"" + pixels(kWidth - kRight) + "\" y1=\"" +
              y + "\" y2=\"" + y + "\" stroke=\"#e6e6e6\"/>\n";
      text(kLeft - 8, py(left_, v) + 4, "end", number(std::abs(v) < 1e-12 ? 0 : v), grey);
    }
    for (double v = x_.low; v <= x_.high + x_.step / 2; v += x_.step) {
      text(px(v), kHeight - kBottom + 18, "middle", number(v), grey);
    }
    if (has_right_) {
      for (double v = right_.low; v <= right_.high + right_.step / 2; v += right_.step) {
        text(kWidth - kRight + 8, py(right_, v) + 4, "start", number(v), grey);
      }
      text(kWidth - 4, kTop - 10, "end", chart_.right_label, grey);
    }
    text(4, kTop - 10, "start", chart_.left_label, grey);
    text((kLeft + kWidth - kRight) / 2, kHeight - 12, "middle", chart_.x_label, grey);
  }

  void draw_line(const Series& s) {
    const Axis& a = s.right_axis ? right_ : left_;
    std::string points;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      if (std::isfinite(s.y[i])) points += pixels(px(s.x[i])) + "," + pixels(py(a, s.y[i])) + " ";
    }
    out_ += "<polyline fill=\"none\" stroke=\"" + s.color + "\" stroke-width=\"" +
            (s.faint ? "1\" opacity=\"0.25" : "2") + "\" points=\"" + points + "\"/>\n";
    if (!s.right_axis) return;
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      out_ += "<circle r=\"3.5\" fill=\"" + s.color + "\" cx=\"" + pixels(px(s.x[i])) + "\" cy=\"" +
              pixels(py(a, s.y[i])) + "\"/>\n";
    }
  }

  void draw_legend() {
    double x = kWidth - kRight;
    for (auto s = chart_.series.rbegin(); s != chart_.series.rend(); ++s) {
      if (s->faint) continue;
      x -= 7.0 * static_cast<double>(s->name.size());
      text(x, 24, "start", s->name, "fill=\"" + s->color + "\" font-weight=\"600\"");
      x -= 18;
    }
  }

  const Chart& chart_;
  Axis x_, left_, right_;
  bool has_right_ = false;
  std::string out_;
};

}  // namespace

std::string to_svg(const Chart& chart) {
  return Drawing(chart).svg();
}

}  // namespace taper::tools
