// Makes lines of samples, and prints them.
#include "taper/benchmarks/report.h"

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

namespace bench {
namespace {

// Without those that are NaN; NaN when there are none.
double median_of(const std::vector<double>& samples) {
  std::vector<double> known;
  for (const double x : samples) {
    if (!std::isnan(x)) known.push_back(x);
  }
  return known.empty() ? std::nan("") : median(known);
}

std::string number(double x) {
  if (std::isnan(x)) return "-";
  char text[32];
  std::snprintf(text, sizeof text,
                x >= 1000  ? "%.0f"
                : x >= 100 ? "%.1f"
                : x >= 10  ? "%.2f"
                           : "%.3f",
                x);
  return text;
}

std::string ratio_text(double x) {
  if (std::isnan(x)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", x);
  return text;
}

// "<= 60": what is asked of ours itself.
std::string asked(const Row& row) {
  if (row.limit >= 0) return "<= " + number(row.limit);
  return row.least >= 0 ? ">= " + number(row.least) : "";
}

void judge(Line& line) {
  const auto ask = [&](bool fulfilled) { line.met = line.met.value_or(true) && fulfilled; };
  if (std::isnan(line.ours)) return;
  if (line.row.limit >= 0) ask(line.ours <= line.row.limit);
  if (line.row.least >= 0) ask(line.ours >= line.row.least);
  for (const Cell& c : line.cells) {
    if (c.at_most > 0 && !std::isnan(c.ratio)) ask(c.ratio <= c.at_most);
  }
}

}  // namespace

double units_in_a_second(const std::string& unit) {
  if (unit == "ns") return 1e9;
  if (unit == "us") return 1e6;
  return unit == "ms" ? 1e3 : 1;
}

void Report::add(const std::string& row, const std::string& column, double value) {
  samples_[row][column].push_back(value);
}

double Report::last(const std::string& row, const std::string& column) const {
  const auto of_row = samples_.find(row);
  if (of_row == samples_.end()) return std::nan("");
  const auto found = of_row->second.find(column);
  return found == of_row->second.end() ? std::nan("") : found->second.back();
}

void Report::end_round() {
  std::vector<std::string> all = columns_;
  all.emplace_back(kOurs);
  for (const Row& row : rows_) {
    for (const std::string& column : all) {
      double value = std::nan("");
      for (const std::string& part : row.best_of) value = std::fmin(value, last(part, column));
      if (!row.above_limit_of.empty() && column != kLimit)
        value = last(row.above_limit_of, column) - last(row.above_limit_of, kLimit);
      if (!row.best_of.empty() || !row.above_limit_of.empty()) add(row.name, column, value);
    }
  }
}

std::vector<Line> Report::lines() const {
  std::vector<Line> out;
  for (const Row& row : rows_) {
    const auto found = samples_.find(row.name);
    if (found == samples_.end()) continue;
    Samples samples = found->second;
    const std::vector<double>& ours = samples[kOurs];
    Line line{row, threads_, median_of(ours), {}, {}};
    for (const std::string& column : columns_) {
      const std::vector<double>& theirs = samples[column];
      std::vector<double> ratios;
      for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        ratios.push_back(theirs[i] > 0 ? ours[i] / theirs[i] : std::nan(""));
      Cell cell{column, median_of(theirs), median_of(ratios)};
      for (const Goal& goal : row.goals) {
        if (goal.beside == column) cell.at_most = goal.at_most;
      }
      line.cells.push_back(cell);
    }
    judge(line);
    out.push_back(line);
  }
  return out;
}

void print_table(const std::vector<Line>& lines) {
  if (lines.empty()) return;
  std::printf("%-34s %9s", "name", kOurs);
  for (const Cell& c : lines[0].cells)
    std::printf("  %14s %7s %6s", c.column.c_str(), "ratio", "goal");
  std::printf("  %8s %4s  unit\n", "asked", "met");
  for (const Line& line : lines) {
    std::printf("%-34s %9s", line.row.name.c_str(), number(line.ours).c_str());
    for (const Cell& c : line.cells) {
      std::printf("  %14s %7s %6s", number(c.value).c_str(), ratio_text(c.ratio).c_str(),
                  c.at_most > 0 ? ratio_text(c.at_most).c_str() : "");
    }
    const char* met = !line.met.has_value() ? "" : *line.met ? "yes" : "NO";
    std::printf("  %8s %4s  %s\n", asked(line.row).c_str(), met, line.row.unit.c_str());
  }
}

void write_json(const std::string& path, const std::vector<Line>& lines) {
  using Json = nlohmann::ordered_json;
  const auto known = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
  Json out = Json::array();
  for (const Line& line : lines) {
    Json limit = known(line.row.limit >= 0   ? line.row.limit
                       : line.row.least >= 0 ? line.row.least
                                             : std::nan(""));
    std::vector<Cell> others;
    for (const Cell& c : line.cells) {
      if (c.column == kLimit) limit = known(c.value);
      if (!std::isnan(c.value)) others.push_back(c);
    }
    if (others.empty()) others.push_back({"", std::nan(""), std::nan("")});
    for (const Cell& c : others) {
      Json met = c.at_most > 0 ? Json(c.ratio <= c.at_most) : Json();
      if (c.at_most == 0 && line.row.goals.empty() && line.met) met = *line.met;
      out.push_back({{"name", line.row.name},
                     {"threads", line.threads},
                     {"ours", known(line.ours)},
                     {"peer", known(c.value)},
                     {"peer_name", c.column.empty() ? Json() : Json(c.column)},
                     {"limit", limit},
                     {"unit", line.row.unit},
                     {"ratio", known(c.ratio)},
                     {"goal", c.at_most > 0 ? Json(c.at_most) : Json()},
                     {"met", met}});
    }
  }
  std::ofstream(path) << out.dump(2) << '\n';
}

}  // namespace bench
