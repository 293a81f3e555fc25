// Lines, bars, points and words as SVG: one file, no scripts, readable on light and dark pages.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace bench {

class Drawing {
 public:
  // Ink is a colour as SVG names it, or one of these, which follow the reader's light or dark page.
  static constexpr const char* kInk = "var(--ink)";
  static constexpr const char* kDim = "var(--dim)";
  static constexpr const char* kFaint = "var(--line)";
  static constexpr const char* kOursInk = "var(--ours)";

  void line(double x1,
            double y1,
            double x2,
            double y2,
            const std::string& ink,
            double width = 1,
            bool dashed = false);
  void bar(double x, double y, double width, double height, const std::string& ink);
  void point(double x, double y, double radius, const std::string& ink, const std::string& tip);
  void path(const std::vector<std::pair<double, double>>& points, const std::string& ink);
  // `anchor`: start, middle or end.
  void text(double x,
            double y,
            const std::string& words,
            const std::string& anchor = "start",
            const std::string& ink = kInk,
            double size = 12);

  void write(const std::string& path, double width, double height) const;

 private:
  std::string body_;
};

// The n-th colour beside ours.
std::string column_ink(std::size_t n);

}  // namespace bench
