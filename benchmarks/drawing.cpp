// Writes SVG elements.
#include "taper/benchmarks/drawing.h"

#include <cmath>
#include <cstdio>
#include <fstream>

namespace bench {
namespace {

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", x);
  return text;
}

std::string attribute(const char* name, double x) {
  return std::string(" ") + name + "=\"" + number(x) + "\"";
}

std::string escaped(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else out += c;
  }
  return out;
}

}  // namespace

void Drawing::line(
    double x1, double y1, double x2, double y2, const std::string& ink, double width, bool dashed) {
  body_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
           attribute("y2", y2) + " style=\"stroke:" + ink + "\"" +
           attribute("stroke-width", width) + (dashed ? " stroke-dasharray=\"4 3\"" : "") + "/>\n";
}

void Drawing::bar(double x, double y, double width, double height, const std::string& ink) {
  body_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
           attribute("height", height) + " style=\"fill:" + ink + "\"/>\n";
}

void Drawing::point(
    double x, double y, double radius, const std::string& ink, const std::string& tip) {
  body_ += "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) +
           " style=\"fill:" + ink + "\" fill-opacity=\"0.75\"><title>" + escaped(tip) +
           "</title></circle>\n";
}

void Drawing::path(const std::vector<std::pair<double, double>>& points, const std::string& ink) {
  body_ += "<polyline fill=\"none\" stroke-width=\"1.8\" style=\"stroke:" + ink + "\" points=\"";
  for (const auto& [x, y] : points) body_ += number(x) + "," + number(y) + " ";
  body_ += "\"/>\n";
}

void Drawing::text(double x,
                   double y,
                   const std::string& words,
                   const std::string& anchor,
                   const std::string& ink,
                   double size) {
  body_ += "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + anchor + "\"" +
           attribute("font-size", size) + " style=\"fill:" + ink + "\">" + escaped(words) +
           "</text>\n";
}

void Drawing::write(const std::string& path, double width, double height) const {
  std::ofstream(path) << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << number(width)
                      << " " << number(height) << "\" width=\"" << number(width)
                      << "\" font-family=\"system-ui, sans-serif\">\n"
                      << "<style>\n"
                         "svg { --page: #ffffff; --ink: #1b1e24; --dim: #5b6270; --line: #d8dce3; "
                         "--ours: #d9541e; }\n"
                         "@media (prefers-color-scheme: dark) { svg { --page: #14171c; --ink: "
                         "#e6e9ee; --dim: #9aa3b0; --line: #363d48; --ours: #ff8a57; } }\n"
                         "</style>\n"
                      << "<rect width=\"100%\" height=\"100%\" style=\"fill:var(--page)\"/>\n"
                      << body_ << "</svg>\n";
}

std::string column_ink(std::size_t n) {
  constexpr const char* kInks[] = {"#8a93a3", "#8fbce6", "#2f78c4", "#8a5bc7", "#3a9d6e"};
  return kInks[n % std::size(kInks)];
}

}  // namespace bench
